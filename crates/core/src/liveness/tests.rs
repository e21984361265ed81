use super::OfflineReason::{Goodbye, NeverSeen, Stale, Stopped};
use super::Standing::{Offline, Online};
use super::*;
use crate::id::BootId;
use proptest::prelude::*;

const TICK: Duration = Duration::from_micros(1);
const TERMS: LivenessTerms = LivenessTerms { stale_after: Duration::from_secs(90) };

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

/// Awake, enrolled at 0, never slept, heard at `beat`, recorded as online since 0.
fn heard(beat: i64) -> Seen {
    Seen {
        enrolled_at: Some(at(0)),
        last_heartbeat_at: Some(at(beat)),
        boots: Boots::default(),
        power: Power::Awake { resumed_at: None },
        said_goodbye_at: None,
        was: Some(Online { since: at(0) }),
        observer_resumed_at: None,
        brake_engaged: false,
    }
}

fn beat(boot: &str, seq: u64, secs: i64) -> Beat {
    Beat { boot: BootId::new(boot), seq, at: at(secs) }
}

fn offline(secs: i64, reason: OfflineReason) -> Standing {
    Offline { since: at(secs), reason }
}

fn awake(resumed: i64) -> Power {
    Power::Awake { resumed_at: Some(at(resumed)) }
}

/// Assesses, records the answer and checks what holds for every answer.
fn tick(seen: &mut Seen, now: Timestamp) -> Liveness {
    let answer = assess(seen, &TERMS, now);
    assert!(answer.deadline.is_none_or(|deadline| deadline > now), "{answer:?}");
    seen.was = answer.standing;
    answer
}

#[test]
fn exactly_ninety_seconds_is_still_online() {
    let seen = heard(100);
    for (now, state) in [
        (at(190) - TICK, State::Online),
        (at(190), State::Online),
        (at(190) + TICK, State::Offline),
        (at(9_999), State::Offline),
    ] {
        assert_eq!(assess(&seen, &TERMS, now).state(), Some(state), "{now}");
    }
    let late = assess(&seen, &TERMS, at(9_999));
    assert_eq!(late.offline_since(), Some(at(190) + TICK), "dated by the deadline, not by who looked");
    assert_eq!(late.change, Change::WentOffline { reason: Stale });
    assert_eq!(assess(&seen, &TERMS, at(150)).deadline, Some(at(190) + TICK));
}

#[test]
fn marking_a_worker_offline_leaves_its_last_heartbeat_as_measured() {
    let mut seen = heard(100);
    assert_eq!(tick(&mut seen, at(500)).state(), Some(State::Offline));
    assert_eq!(seen.last_heartbeat_at, Some(at(100)));
    assert_eq!(tick(&mut seen, at(600)).change, Change::None, "told once");
}

#[test]
fn a_worker_that_never_enrolled_has_no_liveness() {
    for power in [awake(5), Power::Frozen, Power::Stopped { since: at(5) }] {
        let seen = Seen { enrolled_at: None, was: None, power, ..heard(100) };
        let answer = assess(&seen, &TERMS, at(1_000));
        assert_eq!((answer.standing, answer.change, answer.deadline), (None, Change::None, None));
    }
}

#[test]
fn without_any_heartbeat_the_age_counts_from_enrolment() {
    let mut seen = Seen { last_heartbeat_at: None, was: None, ..heard(0) };
    let answer = tick(&mut seen, at(90));
    assert_eq!((answer.state(), answer.change), (Some(State::Online), Change::WentOnline));
    let answer = tick(&mut seen, at(90) + TICK);
    assert_eq!(answer.change, Change::WentOffline { reason: NeverSeen });
    assert_eq!(seen.last_heartbeat_at, None);
}

#[test]
fn a_restart_within_the_window_is_not_stale() {
    let mut seen = heard(0);
    seen.accept_heartbeat(&beat("first", 7, 100));
    assert_eq!(seen.accept_heartbeat(&beat("second", 0, 189)), Accepted::NewBoot);
    let answer = tick(&mut seen, at(191));
    assert_eq!((answer.state(), answer.change), (Some(State::Online), Change::None));
    assert_eq!(seen.accept_heartbeat(&beat("first", 8, 192)), Accepted::OldBoot);
    assert_eq!(seen.last_heartbeat_at, Some(at(189)));
}

#[test]
fn a_returning_heartbeat_flips_it_online_at_once_but_not_one_of_an_older_boot() {
    let mut seen = heard(0);
    seen.accept_heartbeat(&beat("old", 1, 10));
    seen.accept_heartbeat(&beat("new", 0, 100));
    tick(&mut seen, at(300));
    assert_eq!(seen.accept_heartbeat(&beat("old", 2, 301)), Accepted::OldBoot);
    assert_eq!(tick(&mut seen, at(301)).state(), Some(State::Offline));
    assert_eq!(seen.accept_heartbeat(&beat("new", 1, 302)), Accepted::Fresh);
    let answer = tick(&mut seen, at(302));
    assert_eq!((answer.standing, answer.change), (Some(Online { since: at(302) }), Change::WentOnline));
}

#[test]
fn beats_of_one_boot_are_told_apart_by_their_number() {
    let mut seen = Seen { last_heartbeat_at: None, ..heard(0) };
    for (seq, secs, expected) in [
        (5, 10, Accepted::NewBoot),
        (7, 20, Accepted::Fresh),
        (6, 21, Accepted::OutOfOrder),
        (7, 22, Accepted::Duplicate),
        // The agent started again without a new boot.
        (0, 23, Accepted::Fresh),
        (0, 24, Accepted::Duplicate),
        (1, 40, Accepted::Fresh),
        // Nothing is under way for more than a minute: this one is repeated because nobody acknowledged it.
        (1, 100, Accepted::Duplicate),
        (1, 101, Accepted::Fresh),
    ] {
        let before = seen.last_heartbeat_at;
        let accepted = seen.accept_heartbeat(&beat("boot", seq, secs));
        assert_eq!(accepted, expected, "{seq} at {secs}");
        let newest = if accepted.counts() { Some(at(secs)) } else { before };
        assert_eq!(seen.last_heartbeat_at, newest, "{seq} at {secs}");
    }
}

#[test]
fn ended_boots_are_remembered_in_bounds() {
    let mut seen = heard(0);
    for run in 0..100 {
        seen.accept_heartbeat(&beat(&format!("run {run}"), 0, run));
    }
    assert_eq!(seen.boots.retired.len(), 16);
    for run in 83..99 {
        assert_eq!(seen.accept_heartbeat(&beat(&format!("run {run}"), 9, 200)), Accepted::OldBoot);
    }
    seen.boots.retire_current();
    assert_eq!(seen.accept_heartbeat(&beat("run 99", 9, 200)), Accepted::OldBoot, "stopped: it is over");
}

#[test]
fn a_goodbye_is_offline_at_once_and_a_later_heartbeat_ends_it() {
    let mut seen = heard(0);
    seen.accept_heartbeat(&beat("boot", 4, 100));
    assert!(seen.accept_goodbye(&BootId::new("boot"), at(100)));
    let answer = tick(&mut seen, at(100));
    assert_eq!((answer.standing, answer.deadline), (Some(offline(100, Goodbye)), None));
    assert_eq!(
        seen.accept_heartbeat(&beat("boot", 4, 101)),
        Accepted::Duplicate,
        "a straggler revives nobody"
    );
    assert_eq!(tick(&mut seen, at(101)).standing, Some(offline(100, Goodbye)));
    assert_eq!(tick(&mut seen, at(500)).standing, Some(offline(100, Goodbye)), "silence is what it promised");
    seen.accept_heartbeat(&beat("boot", 0, 501));
    assert_eq!(tick(&mut seen, at(501)).change, Change::WentOnline);
    // A goodbye of a run that is over is no news.
    seen.accept_heartbeat(&beat("next", 0, 502));
    assert!(!seen.accept_goodbye(&BootId::new("boot"), at(503)));
    assert_eq!(tick(&mut seen, at(503)).state(), Some(State::Online));
}

#[test]
fn a_paused_worker_keeps_its_value() {
    for was in [Some(Online { since: at(0) }), Some(offline(50, Stale)), Some(offline(50, Goodbye))] {
        let seen = Seen { power: Power::Frozen, was, ..heard(100) };
        let answer = assess(&seen, &TERMS, at(100_000));
        assert_eq!((answer.standing, answer.change, answer.deadline), (was, Change::None, None));
    }
    // Its own word is no guess from silence.
    let seen = Seen { power: Power::Frozen, said_goodbye_at: Some(at(105)), ..heard(100) };
    assert_eq!(assess(&seen, &TERMS, at(110)).standing, Some(offline(105, Goodbye)));
    let seen = Seen { power: Power::Frozen, was: None, ..heard(100) };
    assert_eq!(
        assess(&seen, &TERMS, at(9_999)).state(),
        Some(State::Online),
        "enrolled, and nobody looked yet"
    );
}

#[test]
fn after_a_thaw_the_age_counts_from_the_resume() {
    let seen = Seen { power: awake(5_000), ..heard(100) };
    let answer = assess(&seen, &TERMS, at(5_090));
    assert_eq!((answer.state(), answer.deadline), (Some(State::Online), Some(at(5_090) + TICK)));
    assert_eq!(assess(&seen, &TERMS, at(5_090) + TICK).offline_reason(), Some(Stale));
    // A thaw proves nothing about who was silent before.
    let seen = Seen { was: Some(offline(190, Stale)), ..seen };
    let answer = assess(&seen, &TERMS, at(5_001));
    assert_eq!((answer.standing, answer.deadline), (Some(offline(190, Stale)), None));
}

#[test]
fn a_stopped_worker_is_offline_because_it_is_stopped() {
    let mut seen = Seen { power: Power::Stopped { since: at(110) }, ..heard(100) };
    let answer = tick(&mut seen, at(111));
    assert_eq!((answer.standing, answer.deadline), (Some(offline(110, Stopped)), None));
    assert_eq!(answer.change, Change::WentOffline { reason: Stopped });
    // Whoever was silent before stays offline since then, with a better reason.
    let silent = Seen { was: Some(offline(50, Stale)), ..seen.clone() };
    let answer = assess(&silent, &TERMS, at(111));
    assert_eq!((answer.standing, answer.change), (Some(offline(50, Stopped)), Change::None));
    // Started again: the old run's heartbeat is only 20 s old and revives nobody.
    seen.power = awake(115);
    let answer = tick(&mut seen, at(120));
    assert_eq!((answer.standing, answer.deadline), (Some(offline(110, Stopped)), Some(at(205) + TICK)));
    let mut speaks = seen.clone();
    speaks.accept_heartbeat(&beat("next", 0, 121));
    assert_eq!(tick(&mut speaks, at(121)).change, Change::WentOnline);
    // It runs and says nothing: offline for another reason, which is no transition.
    let answer = tick(&mut seen, at(205) + TICK);
    assert_eq!((answer.standing, answer.change), (Some(offline(110, Stale)), Change::None));
}

#[test]
fn nobody_is_condemned_before_a_whole_threshold_after_our_own_absence() {
    let seen = Seen { observer_resumed_at: Some(at(10_000)), ..heard(100) };
    assert_eq!(assess(&seen, &TERMS, at(10_090)).state(), Some(State::Online));
    assert_eq!(assess(&seen, &TERMS, at(10_090) + TICK).state(), Some(State::Offline));
    let seen = Seen { was: None, ..seen };
    assert_eq!(assess(&seen, &TERMS, at(10_000)).standing, Some(Online { since: at(100) }));
}

#[test]
fn the_brake_holds_back_condemnation_and_nothing_else() {
    let braked = Seen { brake_engaged: true, ..heard(100) };
    let answer = assess(&braked, &TERMS, at(150));
    assert_eq!((answer.deadline, answer.is_held_back), (Some(at(190) + TICK), false));
    let answer = assess(&braked, &TERMS, at(191));
    assert_eq!((answer.state(), answer.change), (Some(State::Online), Change::None));
    assert_eq!((answer.deadline, answer.is_held_back), (None, true));
    let released = Seen { brake_engaged: false, ..braked.clone() };
    assert_eq!(assess(&released, &TERMS, at(1_000)).offline_since(), Some(at(190) + TICK));
    // Facts pass: a goodbye, a stop, and who was offline already stays so.
    let left = Seen { said_goodbye_at: Some(at(105)), ..braked.clone() };
    assert_eq!(assess(&left, &TERMS, at(106)).offline_reason(), Some(Goodbye));
    let stopped = Seen { power: Power::Stopped { since: at(105) }, ..braked.clone() };
    assert_eq!(assess(&stopped, &TERMS, at(106)).offline_reason(), Some(Stopped));
    let gone = Seen { was: Some(offline(50, Stale)), ..braked };
    let answer = assess(&gone, &TERMS, at(500));
    assert_eq!((answer.standing, answer.is_held_back), (Some(offline(50, Stale)), false));
}

#[test]
fn a_threshold_without_end_never_condemns() {
    let terms = LivenessTerms { stale_after: Duration::MAX };
    let answer = assess(&heard(100), &terms, at(1_000_000_000));
    assert_eq!((answer.state(), answer.deadline), (Some(State::Online), None));
}

fn instants() -> impl Strategy<Value = Option<Timestamp>> {
    prop::option::of((0i64..400).prop_map(at))
}

fn anything_seen() -> impl Strategy<Value = Seen> {
    let power = prop_oneof![
        instants().prop_map(|resumed_at| Power::Awake { resumed_at }),
        Just(Power::Frozen),
        (0i64..400).prop_map(|since| Power::Stopped { since: at(since) }),
    ];
    let reason = prop_oneof![Just(Stale), Just(NeverSeen), Just(Goodbye), Just(Stopped)];
    let was = prop::option::of(prop_oneof![
        (0i64..400).prop_map(|since| Online { since: at(since) }),
        ((0i64..400), reason).prop_map(|(since, reason)| Offline { since: at(since), reason }),
    ]);
    (instants(), instants(), power, instants(), was, instants(), any::<bool>()).prop_map(
        |(
            enrolled_at,
            last_heartbeat_at,
            power,
            said_goodbye_at,
            was,
            observer_resumed_at,
            brake_engaged,
        )| Seen {
            enrolled_at,
            last_heartbeat_at,
            boots: Boots::default(),
            power,
            said_goodbye_at,
            was,
            observer_resumed_at,
            brake_engaged,
        },
    )
}

proptest! {
    #[test]
    fn the_deadline_is_the_first_instant_at_which_the_answer_changes(
        seen in anything_seen(), now in 400i64..800,
    ) {
        let mut seen = seen;
        let answer = tick(&mut seen, at(now));
        // Recording the answer and asking again changes nothing: rows are written on transitions only.
        let again = assess(&seen, &TERMS, at(now));
        prop_assert_eq!((again.standing, again.change), (answer.standing, Change::None));
        if let Some(deadline) = again.deadline {
            prop_assert_eq!(assess(&seen, &TERMS, deadline - TICK).standing, seen.was);
            let then = assess(&seen, &TERMS, deadline);
            prop_assert!(then.standing != seen.was || then.is_held_back);
        } else {
            prop_assert_eq!(assess(&seen, &TERMS, at(1_000_000)).standing, seen.was);
        }
        let has_none = seen.enrolled_at.is_none() || answer.is_held_back && seen.was.is_none();
        prop_assert_eq!(answer.standing.is_none(), has_none);
        if seen.brake_engaged {
            let condemned = [Stale, NeverSeen].map(|reason| Change::WentOffline { reason });
            prop_assert!(!condemned.contains(&answer.change));
        }
    }
}
