//! What becomes of a sleeper that nobody wakes, and that nobody is surprised by it.

use drowse_core::hold::HoldKind;
use drowse_core::policy::exemption::{Expiry, From};
use drowse_core::reason::PauseReason;
use drowse_core::status::{Status, StatusKind};
use drowse_core::verdict::{Action, WarningKind};

use super::world::{TICK, World, at, exemption, hold, minute, policy};

fn sleeper(kind: StatusKind, values: &[(&str, &str)]) -> World {
    let mut world = World::routed(values);
    world.status(kind, at(0));
    world
}

const DELETES: &[(&str, &str)] = &[("terminate_after", "100m"), ("stop_after", "never")];

#[test]
fn whoever_is_to_be_deleted_is_told_in_time() {
    for kind in [StatusKind::Paused, StatusKind::Stopped] {
        let mut world = sleeper(kind, DELETES);
        let early = world.check(minute(95) - TICK);
        assert_eq!((early.action, early.deletes_at), (Action::None, Some(minute(100))));
        assert_eq!(early.next_check_at.min(minute(95)), early.next_check_at);
        assert_eq!(early.deletion_warning, None);
        let told = world.check(minute(95)).deletion_warning.expect("it is announced");
        assert_eq!((told.kind, told.happens_at), (WarningKind::TerminateAfter, minute(100)));
        assert_eq!(world.check(minute(96)).deletion_warning, None, "once");
        assert_eq!(world.check(minute(100) - TICK).action, Action::None);
        assert_eq!(world.check(minute(100)).action, Action::TerminateAfter);
        // Nobody looked for a long time: it is announced then, and there is time to react.
        let mut late = sleeper(kind, DELETES);
        let told = late.check(minute(300)).deletion_warning.expect("it is announced");
        assert_eq!(told.happens_at, minute(305));
        assert_eq!(late.check(minute(300)).action, Action::None);
        assert_eq!(late.check(minute(305)).action, Action::TerminateAfter);
    }
}

#[test]
fn whom_somebody_keeps_is_not_deleted_and_announced_anew_afterwards() {
    type Keep = (&'static str, fn(&mut World));
    let keeps: [Keep; 5] = [
        ("exempt from idle_timeout", |world| {
            world.exemptions.push(exemption(&[From::IdleTimeout], Expiry::Never));
        }),
        ("exempt from max_runtime", |world| {
            world.exemptions.push(exemption(&[From::MaxRuntime], Expiry::Never));
        }),
        ("a keep-alive file", |world| world.holds.push(hold(HoldKind::KeepAliveFile, at(0), None))),
        ("stopped by hand", |world| world.slept_for(PauseReason::External)),
        ("stopped by a person", |world| world.slept_for(PauseReason::Manual)),
    ];
    for (name, keep) in keeps {
        for kind in [StatusKind::Paused, StatusKind::Stopped] {
            let mut world = sleeper(kind, DELETES);
            keep(&mut world);
            for minutes in [95, 100, 500, 5_000] {
                let verdict = world.check(minute(minutes));
                let seen = (verdict.action, verdict.deletes_at, verdict.deletion_warning);
                assert_eq!(seen, (Action::None, None, None), "{name}");
            }
        }
    }
    let mut world = sleeper(StatusKind::Stopped, DELETES);
    let until = Some(minute(200));
    world.holds.push(hold(HoldKind::KeepAliveFile, at(0), until));
    assert_eq!(world.check(minute(150)).deletes_at, None);
    assert_eq!(world.check(minute(200)).deletes_at, Some(minute(205)));
}

#[test]
fn what_was_announced_at_the_freeze_stands_when_stop_after_is_shortened() {
    let mut world = sleeper(StatusKind::Paused, &[("stop_after", "30m")]);
    world.worker.stop_announced_for = Some(minute(30));
    world.set_policy(policy(&[("stop_after", "5s")]));
    let verdict = world.check(minute(10));
    assert_eq!((verdict.action, verdict.stops_at), (Action::None, Some(minute(30))));
    assert_eq!(world.check(minute(30)).action, Action::StopAfter);
    // Lengthened: people are told again, in time.
    let mut world = sleeper(StatusKind::Paused, &[("stop_after", "60m")]);
    world.worker.stop_announced_for = Some(minute(30));
    assert_eq!(world.check(minute(30)).stops_at, Some(minute(60)));
    let told = world.check(minute(55)).stop_warning.expect("it is announced");
    assert_eq!((told.kind, told.happens_at), (WarningKind::StopAfter, minute(60)));
    // Nobody had been told of any stop.
    let mut world = sleeper(StatusKind::Paused, &[("stop_after", "50m")]);
    world.worker.stop_announced_for = None;
    assert_eq!(world.check(minute(200)).stop_warning.expect("it is announced").happens_at, minute(205));
    assert_eq!(world.check(minute(204)).action, Action::None);
    assert_eq!(world.check(minute(205)).action, Action::StopAfter);
}

#[test]
fn who_is_observed_protected_or_braked_is_not_deleted() {
    for kind in [StatusKind::Paused, StatusKind::Stopped] {
        for (extra, expected) in [
            (("window", "1"), Action::TerminateAfter),
            (("auto_pause", "false"), Action::None),
            (("protected", "true"), Action::None),
        ] {
            let mut world = sleeper(kind, &[DELETES, &[extra]].concat());
            world.check(minute(95));
            assert_eq!(world.check(minute(100)).action, expected);
            world.is_braked = true;
            assert_eq!(world.check(minute(100)).action, Action::None);
        }
    }
}

#[test]
fn nobody_sinks_deeper_unseen() {
    for kind in [StatusKind::Paused, StatusKind::Stopped] {
        let mut world = sleeper(kind, DELETES);
        world.check(minute(95));
        world.is_seen = false;
        assert_eq!(world.check(minute(200)).action, Action::None);
        world.is_seen = true;
        assert_eq!(world.check(minute(200)).action, Action::TerminateAfter);
    }
}

impl World {
    fn slept_for(&mut self, reason: PauseReason) {
        if let Status::Paused { sleep, .. } | Status::Stopped { sleep, .. } = &mut self.worker.status {
            sleep.reason = reason;
        }
    }
}
