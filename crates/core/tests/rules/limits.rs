//! Max runtime: a limit, not idleness. What holds it off, what does not, and who is told.

use drowse_core::Timestamp;
use drowse_core::hold::HoldKind;
use drowse_core::policy::exemption::{Expiry, From};
use drowse_core::reason::PauseReason;
use drowse_core::signal::{Signal, UnknownCause};
use drowse_core::status::StatusKind;
use drowse_core::verdict::{Action, Reason, Verdict, WarningKind};

use super::world::{TICK, World, at, exemption, hold, minute, secs};

const STOPPED: Action = Action::Sleep { reason: PauseReason::MaxRuntime };

/// A process that may run for 100 minutes and is busy all the time: warned at 75 and 90, notice 5 minutes.
fn limited() -> World {
    World::routed(&[("max_runtime", "100m")])
}

fn busy(world: &mut World, now: Timestamp) {
    world.quiet(now);
    world.active(Signal::Cpu, now, now);
}

/// When who was told what about max runtime: minute, level, mere information.
fn told(seen: &[Verdict]) -> Vec<(i64, f64, bool)> {
    seen.iter()
        .filter_map(|verdict| {
            let warning = verdict.runtime_warning?;
            assert_eq!(warning.kind, WarningKind::MaxRuntime);
            let minutes = verdict.at.since(at(0)).as_secs() / 60;
            Some((i64::try_from(minutes).expect("few"), warning.percent, warning.is_fyi))
        })
        .collect()
}

fn end(seen: &[Verdict]) -> (Timestamp, Action) {
    let last = seen.last().expect("at least one check");
    (last.at, last.action)
}

#[test]
fn a_busy_worker_is_stopped_at_the_very_end_after_two_warnings() {
    let mut world = limited();
    let seen = world.run(at(0), minute(200), busy);
    assert_eq!(end(&seen), (minute(100), STOPPED));
    assert_eq!(told(&seen), [(75, 75.0, false), (90, 90.0, false)]);
    assert!(seen.iter().all(|verdict| verdict.runtime_ends_at == Some(minute(100))));
    let last = seen.last().expect("at least one check");
    assert!(last.reasons().any(|reason| reason == Reason::MaxRuntimeExceeded));
    assert!(last.reasons().any(|reason| reason == Reason::RecentActivity { signal: Signal::Cpu }));
}

#[test]
fn a_tick_before_the_end_it_still_runs() {
    let mut world = limited();
    assert_eq!(end(&world.run(at(0), minute(100) - TICK, busy)), (minute(100) - TICK, Action::None));
    busy(&mut world, minute(100) + TICK);
    assert_eq!(world.check(minute(100) + TICK).action, STOPPED, "a late check finds the same");
}

#[test]
fn an_unknown_worker_is_stopped_too() {
    let mut world = limited();
    let seen = world.run(at(0), minute(200), |world, now| {
        world.quiet(now);
        world.unknown(Signal::Cpu, UnknownCause::ProbeFailed, now);
    });
    assert_eq!(end(&seen), (minute(100), STOPPED));
}

#[test]
fn time_spent_frozen_does_not_count() {
    let mut world = limited();
    world.worker.frozen_for = secs(600);
    assert_eq!(end(&world.run(at(0), minute(200), busy)), (minute(110), STOPPED));
}

#[test]
fn a_new_boot_counts_afresh() {
    let mut world = limited();
    world.worker.boot_started_at = Some(minute(50));
    assert_eq!(end(&world.run(minute(50), minute(300), busy)), (minute(150), STOPPED));
}

#[test]
fn no_hold_but_a_persons_keep_awake_holds_it_off() {
    for kind in HoldKind::ALL {
        let mut world = limited();
        world.holds.push(hold(kind, at(0), Some(minute(130))));
        let ends_at = if kind == HoldKind::KeepAwake { minute(130) } else { minute(100) };
        assert_eq!(end(&world.run(at(0), minute(200), busy)), (ends_at, STOPPED), "{kind}");
    }
}

#[test]
fn a_keep_awake_holds_it_off_for_four_hours_at_most() {
    for until in [Some(minute(100 + 240)), Some(minute(100 + 241)), Some(minute(9_999)), None] {
        let mut world = limited();
        world.holds.push(hold(HoldKind::KeepAwake, at(0), until));
        assert_eq!(end(&world.run(at(0), minute(2_000), busy)), (minute(340), STOPPED));
    }
}

#[test]
fn a_keep_awake_that_ends_before_the_limit_changes_nothing() {
    let mut world = limited();
    world.holds.push(hold(HoldKind::KeepAwake, at(0), Some(minute(99))));
    assert_eq!(end(&world.run(at(0), minute(200), busy)), (minute(100), STOPPED));
}

#[test]
fn a_keep_awake_after_the_warning_arms_the_warnings_again() {
    let mut world = limited();
    let before = world.run(at(0), minute(95), busy);
    world.holds.push(hold(HoldKind::KeepAwake, minute(95), Some(minute(150))));
    let after = world.run(minute(96), minute(300), busy);
    assert_eq!(told(&before), [(75, 75.0, false), (90, 90.0, false)]);
    assert_eq!(told(&after), [(125, 75.0, false), (140, 90.0, false)]);
    assert_eq!(end(&after), (minute(150), STOPPED));
}

#[test]
fn who_was_not_warned_in_time_gets_full_notice() {
    let mut world = limited();
    // Drowse was away from minute 10 on.
    world.run(at(0), minute(10), busy);
    let seen = world.run(minute(400), minute(900), busy);
    assert_eq!(told(&seen), [(400, 90.0, false)], "once, with the latest level");
    assert_eq!(end(&seen), (minute(405), STOPPED));
}

#[test]
fn the_notice_is_a_fifth_of_a_short_limit() {
    let mut world = World::routed(&[("max_runtime", "10m")]);
    busy(&mut world, minute(60));
    assert_eq!(world.check(minute(60)).runtime_ends_at, Some(minute(62)));
}

#[test]
fn observe_mode_and_brake_apply_to_it() {
    let mut world = World::routed(&[("max_runtime", "100m"), ("auto_pause", "false")]);
    let seen = world.run(at(0), minute(200), busy);
    assert_eq!(end(&seen), (minute(100), Action::WouldSleep { reason: PauseReason::MaxRuntime }));
    assert_eq!(told(&seen), []);
    let mut world = limited();
    world.is_braked = true;
    let braked = world.run(at(0), minute(200), busy);
    assert_eq!((end(&braked), told(&braked)), ((minute(200), Action::None), vec![]));
    world.is_braked = false;
    let released = world.run(minute(201), minute(300), busy);
    assert_eq!((end(&released), told(&released)), ((minute(206), STOPPED), vec![(201, 90.0, false)]));
}

#[test]
fn protected_workers_and_those_that_do_not_run_have_no_end() {
    let mut world = World::routed(&[("max_runtime", "100m"), ("protected", "true")]);
    let seen = world.run(at(0), minute(200), busy);
    assert_eq!((end(&seen), told(&seen)), ((minute(200), Action::None), vec![]));
    let mut world = limited();
    world.status(StatusKind::Draining, at(0));
    busy(&mut world, minute(200));
    let verdict = world.check(minute(200));
    assert_eq!((verdict.runtime_ends_at, verdict.action), (None, Action::None));
}

#[test]
fn the_permanently_exempt_are_told_for_information_and_never_stopped() {
    let mut world = limited();
    world.exemptions.push(exemption(&[From::MaxRuntime], Expiry::Never));
    let seen = world.run(at(0), minute(3_000), busy);
    assert_eq!(end(&seen), (minute(3_000), Action::None));
    assert_eq!(told(&seen), [(75, 75.0, true), (90, 90.0, true)]);
    let last = seen.last().expect("at least one check");
    assert_eq!(last.runtime_ends_at, None);
    assert!(last.reasons().any(|reason| reason == Reason::ExemptFromMaxRuntime));
}

#[test]
fn the_end_of_an_exemption_is_warned_of_ahead_and_in_earnest() {
    let mut world = limited();
    world.exemptions.push(exemption(&[From::MaxRuntime], Expiry::At(minute(400))));
    let seen = world.run(at(0), minute(600), busy);
    assert_eq!(
        told(&seen),
        [(75, 75.0, true), (90, 90.0, true), (375, 75.0, false), (390, 90.0, false)],
        "each once, and nothing for mere information once it is in earnest"
    );
    assert_eq!(end(&seen), (minute(400), STOPPED));
    assert!(seen.iter().all(|verdict| verdict.runtime_ends_at == Some(minute(400))));
}

#[test]
fn an_exemption_that_is_taken_back_leaves_the_notice() {
    let mut world = limited();
    world.exemptions.push(exemption(&[From::MaxRuntime], Expiry::Never));
    world.run(at(0), minute(300), busy);
    world.exemptions.clear();
    let seen = world.run(minute(301), minute(600), busy);
    assert_eq!(told(&seen), [(301, 90.0, false)], "an FYI is no warning");
    assert_eq!(end(&seen), (minute(306), STOPPED));
}

#[test]
fn an_exemption_from_idleness_does_not_spare_from_the_limit() {
    let mut world = limited();
    world.exemptions.push(exemption(&[From::IdleTimeout], Expiry::Never));
    let verdict = world.run_quiet(at(0), minute(200));
    assert_eq!((verdict.at, verdict.action), (minute(100), STOPPED));
}

#[test]
fn an_exemption_from_the_limit_does_not_spare_from_idleness() {
    let mut world = limited();
    world.exemptions.push(exemption(&[From::MaxRuntime], Expiry::Never));
    assert_eq!(world.run_quiet(at(0), minute(200)).at, minute(60));
}

#[test]
fn the_earliest_pause_is_the_target_whatever_it_is_for() {
    let mut world = limited();
    let seen =
        world.run(
            at(0),
            minute(200),
            |world, now| {
                if now <= minute(45) { busy(world, now) } else { world.quiet(now) }
            },
        );
    let early = seen[0];
    assert_eq!(
        (early.target_pause_at, early.target_pause_reason),
        (Some(minute(60)), Some(PauseReason::IdleTimeout))
    );
    let late = seen.last().expect("at least one check");
    assert_eq!((late.at, late.action), (minute(100), STOPPED), "idle at 105 would have been later");
    assert_eq!(late.target_pause_reason, Some(PauseReason::MaxRuntime));
}

#[test]
fn a_worker_that_never_sleeps_for_idleness_still_has_a_target() {
    let mut world = World::routed(&[("max_runtime", "100m"), ("idle_timeout", "never")]);
    let verdict = world.quiet_check(at(0));
    assert_eq!(verdict.target_pause_at, Some(minute(100)));
    assert_eq!(verdict.target_pause_blocked_by, None);
    assert!(verdict.reasons().any(|reason| reason == Reason::IdleTimeoutNever));
}

#[test]
fn a_frozen_worker_sinks_after_stop_after_unless_held_or_frozen_by_somebody_else() {
    for (reason, sinks) in [
        (PauseReason::IdleTimeout, true),
        (PauseReason::Schedule, true),
        (PauseReason::Manual, false),
        (PauseReason::External, false),
    ] {
        let mut world = World::routed(&[]);
        let frozen = super::world::sleep(reason, at(0));
        world.worker.status = drowse_core::status::Status::Paused { since: at(0), sleep: frozen };
        world.worker.stop_announced_for = sinks.then_some(minute(5));
        assert_eq!(world.look(minute(5) - TICK).action, Action::None);
        let expected = if sinks { Action::StopAfter } else { Action::None };
        assert_eq!(world.look(minute(5)).action, expected, "{reason}");
        assert_eq!(world.look(at(1)).next_check_at == minute(5), sinks, "{reason}: looked at by then");
        world.holds.push(hold(HoldKind::KeepAwake, at(0), Some(minute(9))));
        assert_eq!(world.look(minute(5)).action, Action::None);
    }
}
