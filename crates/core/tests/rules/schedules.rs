//! What the windows of a schedule do to a verdict.

use drowse_core::Timestamp;
use drowse_core::hold::HoldKind;
use drowse_core::policy::exemption::{Expiry, From};
use drowse_core::reason::PauseReason;
use drowse_core::signal::Signal;
use drowse_core::status::StatusKind;
use drowse_core::verdict::{Action, Reason, Verdict};

use super::world::{IDLE, TICK, World, at, exemption, hold, minute, secs};

const OFFICE: &str = r#"{ days = "mon-fri", hours = "08:00-18:00", keep_awake = true }"#;
const NIGHT: &str = r#"{ days = "daily", hours = "22:00-06:00", idle_timeout = "10m" }"#;
const CURFEW: &str = r#"{ days = "daily", hours = "20:00-21:00", sleep = true, force = true }"#;
const GENTLE: &str = r#"{ days = "daily", hours = "20:00-21:00", sleep = true }"#;

const BY_SCHEDULE: Action = Action::Sleep { reason: PauseReason::Schedule };

fn hour(hours: i64) -> Timestamp {
    minute(hours * 60)
}

fn world(windows: &str) -> World {
    World::routed(&[("schedule", windows)])
}

fn busy(world: &mut World, now: Timestamp) {
    world.quiet(now);
    world.active(Signal::Cpu, now, now);
}

fn end(seen: &[Verdict]) -> (Timestamp, Action) {
    let last = seen.last().expect("at least one check");
    (last.at, last.action)
}

#[test]
fn a_keep_awake_window_holds_up_to_its_end() {
    let mut world = world(OFFICE);
    let seen = world.run(hour(8), hour(24), World::quiet);
    assert_eq!(end(&seen), (hour(18), IDLE));
    assert!(seen.iter().all(|verdict| verdict.target_pause_at == Some(hour(18))));
    assert!(seen[0].reasons().any(|reason| reason == Reason::Held { hold: HoldKind::Schedule }));
    assert_eq!(world.look(hour(18) - TICK).holds.iter().count(), 1);
    assert_eq!(world.look(hour(18)).holds.iter().count(), 0);
}

#[test]
fn a_pause_that_would_come_after_the_opening_waits_for_the_close() {
    let mut world = world(OFFICE);
    busy(&mut world, minute(7 * 60 + 30));
    let verdict = world.check(minute(7 * 60 + 30));
    assert_eq!(verdict.target_pause_at, Some(hour(18)));
    assert_eq!(verdict.next_check_at, minute(7 * 60 + 35));
}

#[test]
fn a_night_window_shortens_the_timeout_from_its_opening_on() {
    let mut world = World::process(&[("schedule", NIGHT)]);
    let until = minute(21 * 60 + 30);
    let seen = world.run(
        hour(21),
        hour(30),
        |world, now| {
            if now <= until { busy(world, now) } else { world.quiet(now) }
        },
    );
    assert_eq!(end(&seen), (hour(22), IDLE), "half an hour is enough by then");
    let warned: Vec<Timestamp> =
        seen.iter().filter(|verdict| verdict.idle_warning.is_some()).map(|verdict| verdict.at).collect();
    assert_eq!(warned[0], hour(22) - secs(120), "four fifths of ten minutes");
}

#[test]
fn in_the_morning_the_long_timeout_is_back() {
    let mut world = world(NIGHT);
    let until = minute(5 * 60 + 55);
    let seen = world.run(
        hour(5),
        hour(12),
        |world, now| {
            if now <= until { busy(world, now) } else { world.quiet(now) }
        },
    );
    assert_eq!(end(&seen), (minute(6 * 60 + 55), IDLE));
}

#[test]
fn a_window_never_lengthens_the_timeout_nor_ends_never() {
    let long = r#"{ days = "daily", hours = "00:00-24:00", idle_timeout = "5h" }"#;
    assert_eq!(world(long).run_quiet(at(0), hour(12)).at, hour(1));
    let mut never = World::routed(&[("schedule", NIGHT), ("idle_timeout", "never")]);
    assert_eq!(never.run_quiet(at(0), hour(48)).action, Action::None);
}

#[test]
fn a_curfew_stops_whoever_is_busy_or_held_after_notice() {
    let mut world = world(CURFEW);
    world.holds.push(hold(HoldKind::Lease, at(0), None));
    let seen = world.run(hour(19), hour(24), busy);
    assert_eq!(end(&seen), (hour(20), BY_SCHEDULE));
    let warned: Vec<Timestamp> =
        seen.iter().filter(|verdict| verdict.schedule_warning.is_some()).map(|verdict| verdict.at).collect();
    assert_eq!(warned, [minute(19 * 60 + 55)], "once");
    assert!(seen.iter().all(|verdict| verdict.schedule_sleeps_at == Some(hour(20))));
    assert!(seen.last().is_some_and(|last| last.reasons().any(|reason| reason == Reason::ScheduleSleep)));
    assert!(seen.last().is_some_and(|last| last.is_forced), "activity does not undo it");
}

#[test]
fn a_curfew_that_was_not_announced_gives_notice_first() {
    let mut world = world(CURFEW);
    let seen = world.run(minute(20 * 60 + 10), hour(24), busy);
    assert_eq!(end(&seen), (minute(20 * 60 + 15), BY_SCHEDULE));
}

#[test]
fn a_curfew_whose_window_closes_within_the_notice_is_over() {
    let mut world = world(CURFEW);
    let seen = world.run(minute(20 * 60 + 58), hour(23), busy);
    assert_eq!(end(&seen), (hour(23), Action::None));
    assert_eq!(seen[0].schedule_sleeps_at, Some(hour(44)), "tomorrow");
}

#[test]
fn a_person_who_resumes_inside_the_window_keeps_the_worker() {
    for since in [hour(20), minute(20 * 60 + 20)] {
        let mut world = world(CURFEW);
        world.status(StatusKind::Running, since);
        world.worker.boot_started_at = Some(since);
        let seen = world.run(since, hour(24), busy);
        assert_eq!(end(&seen), (hour(24), Action::None));
    }
}

#[test]
fn a_curfew_is_observed_braked_and_protected_like_the_rest() {
    let mut observed = World::routed(&[("schedule", CURFEW), ("auto_pause", "false")]);
    let seen = observed.run(hour(19), hour(24), busy);
    assert_eq!(end(&seen), (hour(20), Action::WouldSleep { reason: PauseReason::Schedule }));
    let mut braked = world(CURFEW);
    braked.is_braked = true;
    assert_eq!(end(&braked.run(hour(19), hour(24), busy)), (hour(24), Action::None));
    let mut protected = World::routed(&[("schedule", CURFEW), ("protected", "true")]);
    assert_eq!(end(&protected.run(hour(19), hour(24), busy)), (hour(24), Action::None));
}

#[test]
fn a_weekend_that_began_two_days_ago_still_counts() {
    // Saturday 7 March to Sunday night are one window; the brake was on until Sunday evening.
    let mut world = world(r#"{ days = "sat,sun", hours = "00:00-24:00", sleep = true, force = true }"#);
    let sunday_evening = hour(6 * 24 + 20);
    let seen = world.run(sunday_evening, hour(7 * 24), busy);
    assert_eq!(end(&seen), (sunday_evening + secs(300), BY_SCHEDULE));
}

#[test]
fn a_gentle_window_puts_to_sleep_who_is_quiet_at_its_opening() {
    let mut world = world(GENTLE);
    let until = minute(19 * 60 + 50);
    let seen = world.run(
        hour(19),
        hour(24),
        |world, now| {
            if now <= until { busy(world, now) } else { world.quiet(now) }
        },
    );
    assert_eq!(end(&seen), (hour(20), BY_SCHEDULE), "ten minutes of quiet are enough");
    assert!(seen.last().is_some_and(|last| !last.is_forced), "activity undoes it");
    let quiet = seen.iter().find(|verdict| verdict.at > until).expect("a quiet check");
    assert_eq!(
        (quiet.target_pause_at, quiet.target_pause_reason),
        (Some(hour(20)), Some(PauseReason::Schedule))
    );
}

#[test]
fn a_gentle_window_waits_for_who_is_busy_or_held_while_it_is_open() {
    let mut held = world(GENTLE);
    held.holds.push(hold(HoldKind::Lease, at(0), Some(minute(20 * 60 + 30))));
    assert_eq!(end(&held.run(hour(19), hour(24), World::quiet)), (minute(20 * 60 + 30), BY_SCHEDULE));
    let mut used = world(GENTLE);
    let until = minute(20 * 60 + 20);
    let seen = used.run(
        hour(19),
        hour(24),
        |world, now| {
            if now <= until { busy(world, now) } else { world.quiet(now) }
        },
    );
    assert_eq!(end(&seen), (minute(20 * 60 + 25), BY_SCHEDULE), "the first quiet check");
    // Held beyond its close, the window is over and the ordinary timeout counts.
    let mut longer = world(GENTLE);
    longer.holds.push(hold(HoldKind::Lease, at(0), Some(minute(21 * 60 + 30))));
    assert_eq!(end(&longer.run(hour(19), hour(24), World::quiet)), (minute(22 * 60 + 30), IDLE));
}

#[test]
fn a_gentle_window_gives_notice_before_a_stop() {
    let mut world = World::routed(&[("schedule", GENTLE), ("sleep", "stop"), ("idle_timeout", "5h")]);
    let seen = world.run(hour(17), hour(24), World::quiet);
    let warned: Vec<Timestamp> =
        seen.iter().filter(|verdict| verdict.schedule_warning.is_some()).map(|verdict| verdict.at).collect();
    assert_eq!((warned, end(&seen)), (vec![minute(19 * 60 + 55)], (hour(20), BY_SCHEDULE)));
}

#[test]
fn a_gentle_window_spares_the_exempt_and_never_acts_on_missing_data() {
    let mut exempt = world(GENTLE);
    exempt.exemptions.push(exemption(&[From::IdleTimeout], Expiry::Never));
    assert_eq!(end(&exempt.run(hour(19), hour(24), World::quiet)), (hour(24), Action::None));
    let mut unknown = world(GENTLE);
    let seen = unknown.run(hour(19), hour(24), |world, now| {
        world.quiet(now);
        world.unknown(Signal::Cpu, drowse_core::signal::UnknownCause::ProbeFailed, now);
    });
    assert_eq!(end(&seen), (hour(24), Action::None));
}

#[test]
fn a_long_hold_over_many_windows_has_an_end() {
    let mut world = world(&format!("{OFFICE}, {NIGHT}"));
    // Two months away; the night of that day lets it sleep ten minutes later.
    let until = hour(60 * 24 + 23);
    world.holds.push(hold(HoldKind::Lease, at(0), Some(until)));
    let verdict = world.quiet_check(at(0));
    assert_eq!(verdict.target_pause_at, Some(until + secs(600)));
}

#[test]
fn startup_grace_holds_from_the_boot_on() {
    let mut world = World::routed(&[("startup_grace", "90m")]);
    let seen = world.run(at(0), hour(5), World::quiet);
    assert_eq!(end(&seen), (minute(90), IDLE));
    assert!(seen[0].holds.contains(HoldKind::StartupGrace));
}
