use super::*;
use proptest::prelude::*;

const TICK: Duration = Duration::from_micros(1);

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(secs)
}

fn fleet(gone: u32, total: u32) -> Fleet {
    Fleet { total, gone, trouble: None }
}

fn look(brake: &Brake, fleet: Fleet, now: Timestamp) -> (Brake, Option<Change>) {
    brake.update(&fleet, &BrakeTerms::default(), now)
}

fn engaged(at: Timestamp) -> Brake {
    look(&Brake::default(), fleet(40, 100), at).0
}

#[test]
fn more_than_the_fraction_and_at_least_the_minimum_engage_it() {
    for (gone, total, engages) in [
        (30, 100, false), // exactly 30 %
        (31, 100, true),
        (299, 1_000, false),
        (300, 1_000, false),
        (301, 1_000, true),
        (9, 12, false), // three quarters, but fewer than ten
        (10, 12, true),
        (9, 10, false),
        (10, 10, true),
        (10, 33, true),  // 30.3 %
        (10, 34, false), // 29.4 %
        (9, 9, false),   // a fleet under ten has only the stall and clock brakes
        (0, 0, false),
    ] {
        let (brake, change) = look(&Brake::default(), fleet(gone, total), at(1_000));
        assert_eq!(brake.is_engaged(), engages, "{gone} of {total}");
        let expected = engages.then_some(Change::Engaged(Cause::FleetGone { gone, total }));
        assert_eq!(change, expected, "{gone} of {total}");
    }
}

#[test]
fn only_who_went_within_one_threshold_counts() {
    let terms = BrakeTerms::default();
    assert_eq!(Brake::default().counts_from(&terms, at(1_000)), at(910));
    let brake = engaged(at(1_000));
    assert_eq!(brake.counts_from(&terms, at(1_500)), at(910), "an incident keeps its beginning");
}

#[test]
fn trouble_of_our_own_engages_it_for_any_fleet() {
    for (trouble, cause) in
        [(Trouble::LoopStalled, Cause::LoopStalled), (Trouble::ClockJumped, Cause::ClockJumped)]
    {
        let seen = Fleet { total: 3, gone: 0, trouble: Some(trouble) };
        let (brake, change) = look(&Brake::default(), seen, at(1_000));
        assert_eq!(change, Some(Change::Engaged(cause)));
        // All three silent afterwards: too few to tell us anything.
        let (brake, change) = look(&brake, fleet(3, 3), at(1_090) - TICK);
        assert_eq!((brake.is_engaged(), change), (true, None));
        let (_, change) = look(&brake, fleet(3, 3), at(1_090));
        assert_eq!(change, Some(Change::Released(Release::Calm)));
    }
}

#[test]
fn new_trouble_starts_the_wait_anew() {
    let stalled = Fleet { total: 3, gone: 0, trouble: Some(Trouble::LoopStalled) };
    let (brake, _) = look(&Brake::default(), stalled, at(1_000));
    let (brake, change) = look(&brake, stalled, at(1_080));
    assert_eq!(change, None, "engaged already");
    let (brake, _) = look(&brake, fleet(0, 3), at(1_100));
    assert!(brake.is_engaged());
    assert_eq!(brake.deadline(&BrakeTerms::default()), Some(at(1_170)));
    assert_eq!(look(&brake, fleet(0, 3), at(1_170)).1, Some(Change::Released(Release::Calm)));
}

#[test]
fn the_length_of_a_jump_is_no_time_that_it_was_engaged() {
    let jumped = Fleet { total: 3, gone: 0, trouble: Some(Trouble::ClockJumped) };
    let (brake, _) = look(&Brake::default(), jumped, at(1_000));
    // The clock goes on a day later, and that is told again.
    let (brake, change) = look(&brake, jumped, at(87_400));
    assert_eq!((brake.is_engaged(), change), (true, None), "it let go because of the jump");
    let (brake, change) = look(&brake, fleet(0, 3), at(87_489));
    assert_eq!((brake.is_engaged(), change), (true, None));
    assert_eq!(look(&brake, fleet(0, 3), at(87_490)).1, Some(Change::Released(Release::Calm)));
}

#[test]
fn under_half_for_one_threshold_releases_it() {
    let brake = engaged(at(1_000));
    assert_eq!(brake.deadline(&BrakeTerms::default()), Some(at(2_800)));
    // Exactly half of 30 % is not under half.
    let (brake, _) = look(&brake, fleet(15, 100), at(1_100));
    let (brake, change) = look(&brake, fleet(14, 100), at(1_200));
    assert_eq!((brake.is_engaged(), change), (true, None));
    assert_eq!(brake.deadline(&BrakeTerms::default()), Some(at(1_290)));
    assert!(look(&brake, fleet(14, 100), at(1_290) - TICK).0.is_engaged());
    let (brake, change) = look(&brake, fleet(14, 100), at(1_290));
    assert_eq!(change, Some(Change::Released(Release::Calm)));
    assert_eq!(brake.allowance(100, 1_000, at(1_290)), None, "a calm release is not bounded");
}

#[test]
fn calm_that_is_broken_begins_again() {
    let (brake, _) = look(&engaged(at(1_000)), fleet(0, 100), at(1_010));
    let (brake, _) = look(&brake, fleet(20, 100), at(1_050));
    let (brake, _) = look(&brake, fleet(0, 100), at(1_060));
    assert!(look(&brake, fleet(0, 100), at(1_149)).0.is_engaged());
    assert!(!look(&brake, fleet(0, 100), at(1_150)).0.is_engaged());
}

#[test]
fn a_person_releases_it_and_the_same_workers_do_not_engage_it_again() {
    let terms = BrakeTerms::default();
    let (brake, change) =
        engaged(at(1_000)).release("ann".into(), "zone b is down".into(), at(1_010)).unwrap();
    assert_eq!(change, Change::Released(Release::Person { by: "ann".into(), why: "zone b is down".into() }));
    // They went at 1000 or earlier; from now on only later ones count.
    assert_eq!(brake.counts_from(&terms, at(1_011)), at(1_010) + TICK);
    assert_eq!(brake.counts_from(&terms, at(2_000)), at(1_910));
    assert_eq!(brake.release("bob".into(), "me too".into(), at(1_020)), None);
    assert_eq!(brake.allowance(100, 0, at(1_011)), None);
}

#[test]
fn it_lets_go_after_its_maximum_with_an_alert_and_slowly() {
    let brake = engaged(at(0));
    assert_eq!(brake.allowance(100, 0, at(10)), Some(0));
    assert!(look(&brake, fleet(40, 100), at(1_800) - TICK).0.is_engaged());
    let (brake, change) = look(&brake, fleet(40, 100), at(1_800));
    assert_eq!(change, Some(Change::Released(Release::Overdue)));
    for (secs, done, allowed) in [
        (0, 0, Some(5)),
        (59, 3, Some(2)),
        (59, 5, Some(0)),
        (60, 5, Some(5)),
        (60, 99, Some(0)),
        (1_139, 90, Some(5)),
        (1_140, 95, None),
    ] {
        assert_eq!(brake.allowance(100, done, at(1_800 + secs)), allowed, "after {secs} s with {done} done");
    }
    assert_eq!((rate_per_minute(0), rate_per_minute(1), rate_per_minute(21)), (1, 1, 2));
}

#[test]
fn calm_at_the_last_moment_needs_no_alert() {
    let (brake, _) = look(&engaged(at(0)), fleet(0, 100), at(1_710));
    assert_eq!(look(&brake, fleet(0, 100), at(1_800)).1, Some(Change::Released(Release::Calm)));
}

#[test]
fn it_survives_a_restart_of_ours() {
    let (overdue, _) = look(&engaged(at(0)), fleet(40, 100), at(1_800));
    let (by_hand, _) = engaged(at(5)).release("ann".into(), "why".into(), at(6)).unwrap();
    for brake in [Brake::default(), engaged(at(5)), overdue, by_hand] {
        let text = serde_json::to_string(&brake).unwrap();
        assert_eq!(serde_json::from_str::<Brake>(&text).unwrap(), brake, "{text}");
    }
}

proptest! {
    #[test]
    fn it_is_never_engaged_for_longer_than_its_maximum(
        looks in prop::collection::vec((0u32..120, 0u8..20, 1i64..120), 1..60),
    ) {
        let terms = BrakeTerms::default();
        let (mut brake, mut now, mut since) = (Brake::default(), at(10_000), None);
        for (gone, trouble, step) in looks {
            now = now + Duration::from_secs(step.unsigned_abs());
            let trouble = (trouble == 0).then_some(Trouble::LoopStalled);
            let (next, change) = brake.update(&Fleet { total: 120, gone, trouble }, &terms, now);
            match change {
                Some(Change::Engaged(_)) => since = Some(now),
                Some(Change::Released(_)) => since = None,
                None => {}
            }
            prop_assert_eq!(next.is_engaged(), since.is_some());
            prop_assert!(since.is_none_or(|since| now.since(since) < terms.max));
            prop_assert!(next.deadline(&terms).is_none_or(|deadline| deadline > now));
            brake = next;
        }
    }
}
