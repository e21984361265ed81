//! The one rule: never pause on missing data, and time that nobody observed is not idle time.

use drowse_core::Timestamp;
use drowse_core::counter::{Meter, Total};
use drowse_core::evidence::Read;
use drowse_core::signal::{DriverKind, Signal, UnknownCause};
use drowse_core::verdict::{Action, BaselineSource, Reason, Use};

use super::world::{IDLE, TICK, World, at, minute, policy, secs};

const CAUSES: [UnknownCause; 11] = [
    UnknownCause::NeverRead,
    UnknownCause::ProbeFailed,
    UnknownCause::SwitchedOff,
    UnknownCause::Vanished,
    UnknownCause::WentBackwards,
    UnknownCause::FirstSample,
    UnknownCause::NotReadInThisCheck,
    UnknownCause::ChannelDown,
    UnknownCause::NoAnswer,
    UnknownCause::RouterLost,
    UnknownCause::DoorShut,
];

/// A routed process that has been idle for ever and would sleep in the next check.
fn overdue() -> World {
    let mut world = World::routed(&[]);
    world.run_quiet(at(0), minute(60) - TICK);
    world
}

#[test]
fn without_missing_data_it_would_sleep() {
    assert_eq!(overdue().quiet_check(minute(60)).action, IDLE);
}

#[test]
fn no_cause_of_unknown_ever_puts_a_worker_to_sleep() {
    for signal in [Signal::Cpu, Signal::Connections] {
        for cause in CAUSES {
            let mut world = overdue();
            for now in (60..10_000).step_by(5) {
                world.quiet(minute(now));
                world.unknown(signal, cause, minute(now));
                let verdict = world.check(minute(now));
                assert_eq!(
                    (verdict.used, verdict.action),
                    (Use::Unknown, Action::None),
                    "{signal} {cause:?}"
                );
                assert!(verdict.reasons().any(|reason| reason == Reason::UnknownSignal { signal }));
                assert_eq!(verdict.streak.count, 0);
            }
        }
    }
}

#[test]
fn a_required_signal_that_was_never_read_is_unknown() {
    let mut world = World::routed(&[]);
    world.record(Signal::Connections, Read::quiet(at(0)), at(0));
    let verdict = world.check(minute(600));
    assert!(verdict.signals.unknown.contains(Signal::Cpu));
    assert_eq!(verdict.action, Action::None);
}

#[test]
fn a_pulled_signal_that_was_not_read_in_this_check_is_unknown() {
    let mut world = overdue();
    world.record(Signal::Cpu, Read::quiet(minute(60) - TICK), minute(60) - TICK);
    let stale = world.check(minute(60));
    assert_eq!((stale.used, stale.action), (Use::Unknown, Action::None));
    // Between checks the same reading stands.
    assert_eq!(overdue().look(minute(60)).used, Use::Quiet);
    // What is told to us need not be told again.
    let mut world = overdue();
    world.record(Signal::Cpu, Read::quiet(minute(60)), minute(60));
    assert_eq!(world.check(minute(60)).action, IDLE);
}

#[test]
fn no_evidence_at_all_is_no_idleness() {
    let mut world = World::process(&[
        ("signals.cpu.use", "off"),
        ("signals.tcp.use", "off"),
        ("signals.network.use", "off"),
    ]);
    for now in (0..10_000).step_by(5) {
        let verdict = world.check(minute(now));
        assert_eq!((verdict.used, verdict.action), (Use::Unknown, Action::None));
        assert!(verdict.reasons().any(|reason| reason == Reason::NoEvidence));
    }
}

#[test]
fn a_counted_signal_that_fails_is_judged_by_the_others_but_not_alone() {
    let mut world = World::process(&[("signals.cpu.use", "counted")]);
    world.quiet(at(0));
    world.unknown(Signal::Tcp, UnknownCause::ProbeFailed, at(0));
    assert_eq!(world.check(at(0)).used, Use::Quiet);
    for signal in [Signal::Cpu, Signal::Network] {
        world.unknown(signal, UnknownCause::ProbeFailed, at(0));
    }
    assert_eq!(world.check(at(0)).used, Use::Unknown);
}

#[test]
fn telemetry_that_is_switched_off_is_unknown_and_says_so() {
    let mut world = World::new(DriverKind::Ec2, policy(&[("activity_detection", "false")]));
    world.worker.selectors.kind = Some("cml".into());
    for now in (0..600).step_by(30) {
        world.record(Signal::Telemetry, Read::quiet(minute(now)), minute(now));
        let verdict = world.check(minute(now));
        assert_eq!((verdict.used, verdict.action), (Use::Unknown, Action::None));
    }
}

#[test]
fn somebody_is_told_after_a_quarter_of_an_hour_and_again_each_day() {
    let mut world = World::process(&[]);
    world.quiet_check(at(0));
    let failing = |world: &mut World, now: Timestamp| {
        world.quiet(now);
        world.unknown(Signal::Cpu, UnknownCause::ProbeFailed, now);
    };
    let seen = world.run(minute(5), minute(5) + secs(3 * 86_400), failing);
    let alerts: Vec<Timestamp> =
        seen.iter().filter(|verdict| verdict.unknown_alert).map(|verdict| verdict.at).collect();
    let day = |days: i64| minute(20 + days * 1_440);
    assert_eq!(alerts, [day(0), day(1), day(2)], "from the first failed read, at the very minute");
    // A read that works ends it, and the next failure counts from its own beginning.
    world.quiet_check(day(3));
    assert_eq!(world.evidence.unknown, None);
    failing(&mut world, day(4));
    world.check(day(4));
    assert_eq!(world.evidence.unknown.map(|unknown| unknown.since), Some(day(4)));
}

#[test]
fn a_look_just_before_the_quarter_of_an_hour_raises_no_alert() {
    let mut world = World::process(&[]);
    world.unknown(Signal::Cpu, UnknownCause::ProbeFailed, at(0));
    world.check(at(0));
    assert!(!world.look(minute(15) - TICK).unknown_alert);
    assert!(world.look(minute(15)).unknown_alert);
}

/// An hour of quiet checks, a failed one in the middle at minute 30, and what the read at minute 35 says.
fn with_a_gap(read: Read) -> World {
    let mut world = World::routed(&[]);
    for now in (0..30).step_by(5) {
        world.quiet_check(minute(now));
    }
    world.quiet(minute(30));
    world.unknown(Signal::Cpu, UnknownCause::ProbeFailed, minute(30));
    world.check(minute(30));
    world.record(Signal::Connections, Read::quiet(minute(35)), minute(35));
    world.record(Signal::Cpu, read, minute(35));
    world.check(minute(35));
    world
}

#[test]
fn a_gap_starts_the_clock_afresh() {
    let mut world = with_a_gap(Read::quiet(minute(35)));
    let verdict = world.look(minute(35));
    assert_eq!((verdict.baseline.at, verdict.baseline.source), (minute(35), BaselineSource::CoveredSince));
    assert_eq!(
        world.run_quiet(minute(40), minute(200)).at,
        minute(95),
        "an hour after it could be read again"
    );
}

#[test]
fn a_gap_is_repaired_by_a_source_that_tells_about_it() {
    let mut world = with_a_gap(Read::quiet(minute(35)).telling_gap());
    assert_eq!(world.look(minute(35)).baseline.source, BaselineSource::BootStarted);
    assert_eq!(world.run_quiet(minute(40), minute(200)).at, minute(60));
}

#[test]
fn a_counter_repairs_a_gap_only_with_a_difference_that_is_quiet_for_one_interval() {
    // 2 % of five minutes are six seconds of processor time.
    for (micros, expected) in [(6_000_000, minute(60)), (6_000_001, minute(95))] {
        let policy = policy(&[]);
        let before = Total { value: 0, at: minute(25) };
        let after = Total { value: micros, at: minute(35) };
        let read = Meter::Cpu.read(Some(&before), &after, &policy, policy.check_interval);
        let mut world = with_a_gap(read);
        assert_eq!(world.run_quiet(minute(40), minute(200)).at, expected, "{micros} µs");
    }
}

#[test]
fn nothing_repairs_a_counter_that_went_backwards() {
    let mut world = World::routed(&[]);
    world.quiet_check(at(0));
    world.quiet(minute(5));
    world.unknown(Signal::Cpu, UnknownCause::WentBackwards, minute(5));
    world.check(minute(5));
    world.quiet(minute(10));
    world.record(Signal::Cpu, Read::quiet(minute(10)).telling_gap(), minute(10));
    let verdict = world.check(minute(10));
    assert_eq!(verdict.baseline.at, minute(5), "covered since its new first sample, and no sooner");
}

#[test]
fn an_outage_of_drowse_itself_is_not_idle_time() {
    let mut world = World::routed(&[]);
    world.quiet_check(at(0));
    // Nobody looked for ten hours; the read after them tells only about itself.
    let verdict = world.quiet_check(minute(600));
    assert_eq!((verdict.baseline.at, verdict.idle_for), (minute(600), secs(0)));
    assert_eq!(verdict.target_pause_at, Some(minute(660)));
}

#[test]
fn coverage_of_a_counter_begins_with_its_first_sample() {
    let mut world = World::routed(&[]);
    world.quiet(at(10));
    world.unknown(Signal::Cpu, UnknownCause::FirstSample, at(10));
    let first = world.check(at(10));
    assert_eq!((first.used, first.target_pause_at), (Use::Unknown, Some(at(3_610))));
    assert_eq!(world.run_quiet(at(40), at(9_000)).at, at(3_610));
}

#[test]
fn a_read_that_was_overtaken_proves_activity_and_nothing_else() {
    let mut world = with_a_gap(Read::unknown(UnknownCause::ProbeFailed, minute(35)));
    // A late push from before the failure, and a late failure from before that: neither is news.
    world.record(Signal::Cpu, Read::quiet(minute(20)), minute(36));
    world.active(Signal::Cpu, minute(21), minute(21));
    assert_eq!(world.evidence.last_activity_at(), Some(minute(21)));
    assert_eq!(world.look(minute(36)).used, Use::Unknown);
    // So the repair that comes later still finds where coverage began.
    world.record(Signal::Cpu, Read::quiet(minute(40)).telling_gap(), minute(40));
    let sample = world.evidence.sample(Signal::Cpu).expect("a sample");
    assert_eq!(sample.covered_since, Some(at(0)));
}

#[test]
fn a_clock_ahead_of_ours_does_not_make_later_reads_look_old() {
    let mut world = World::routed(&[]);
    world.record(Signal::Cpu, Read::quiet(minute(500)), at(0));
    world.active(Signal::Cpu, at(60), at(60));
    assert_eq!(world.look(at(60)).used, Use::Active);
}

#[test]
fn the_brake_holds_back_whoever_would_sleep() {
    let mut world = overdue();
    world.is_braked = true;
    let verdict = world.quiet_check(minute(60));
    assert!(verdict.is_idle && !verdict.eligible);
    assert_eq!(verdict.action, Action::None);
    assert!(verdict.reasons().any(|reason| reason == Reason::Brake));
    world.is_braked = false;
    assert_eq!(world.quiet_check(minute(61)).action, IDLE);
}
