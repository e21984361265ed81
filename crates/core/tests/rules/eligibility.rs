//! Seed 001: eligible = idle ∧ auto-pause enabled ∧ not in snooze ∧ running.

use drowse_core::Timestamp;
use drowse_core::evidence::Read;
use drowse_core::hold::HoldKind;
use drowse_core::policy::{Level, resolve};
use drowse_core::reason::{PauseReason, ResumeReason};
use drowse_core::signal::{DriverKind, Signal};
use drowse_core::status::StatusKind;
use drowse_core::verdict::{Action, BaselineSource, Blocker, Reason, Verdict};
use drowse_core::worker::{Last, Worker};

use super::world::{IDLE, TICK, World, at, hold, layer, minute, policy, secs};

/// A CML worker whose telemetry has been readable since midnight, an hour before `now` give or take.
fn cml(values: &[(&str, &str)]) -> World {
    let mut world = World::new(DriverKind::Ec2, policy(values));
    world.worker.selectors.kind = Some("cml".into());
    world.record(Signal::Telemetry, Read::quiet(at(0)), at(0));
    world
}

/// A check at `now` that reads telemetry back to the beginning and finds nothing new.
fn check(world: &mut World, now: Timestamp) -> Verdict {
    world.record(Signal::Telemetry, Read::quiet(now).telling_gap(), now);
    world.check(now)
}

#[test]
fn all_sixteen_combinations_at_the_boundary_and_a_tick_either_side() {
    for bits in 0..16_u8 {
        let [is_idle, enabled, snoozed, running] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
        for (tick, now) in [(-1, minute(60) - TICK), (0, minute(60)), (1, minute(60) + TICK)] {
            let mut world = cml(&[("auto_pause", if enabled { "true" } else { "false" })]);
            // Idle at the boundary: the last activity is an hour ago; else it is half an hour ago.
            if !is_idle {
                world.evidence.note_activity(minute(30), Signal::Telemetry, minute(30));
            }
            if snoozed {
                world.holds.push(hold(HoldKind::Snooze, at(0), Some(minute(60) + secs(1))));
            }
            if !running {
                world.status(StatusKind::Draining, at(0));
            }
            let verdict = check(&mut world, now);
            let context = format!("bits {bits:04b}, tick {tick}: {verdict:?}");
            let reached = is_idle && tick >= 0;
            assert_eq!(verdict.is_idle, reached, "{context}");
            assert_eq!(verdict.auto_pause_enabled, enabled, "{context}");
            assert_eq!(verdict.snooze_until.is_some(), snoozed, "{context}");
            assert_eq!(verdict.status == StatusKind::Running, running, "{context}");
            assert_eq!(verdict.eligible, reached && enabled && !snoozed && running, "{context}");
            // Every condition that fails is reported, not just the first.
            let has = |reason: Reason| verdict.reasons().any(|other| other == reason);
            assert_eq!(has(Reason::NotIdleYet), !reached, "{context}");
            assert_eq!(has(Reason::ObserveMode), !enabled, "{context}");
            assert_eq!(has(Reason::InSnoozePeriod), snoozed, "{context}");
            assert_eq!(has(Reason::NotRunning { status: StatusKind::Draining }), !running, "{context}");
        }
    }
}

#[test]
fn eligible_means_paused_once_notice_was_given() {
    let mut world = cml(&[]);
    let seen = world.run(at(0), minute(120), |world, now| {
        world.record(Signal::Telemetry, Read::quiet(now).telling_gap(), now);
    });
    let last = seen.last().expect("at least one check");
    assert_eq!((last.at, last.action), (minute(60), IDLE));
    let warned: Vec<(Timestamp, f64)> = seen
        .iter()
        .filter_map(|verdict| verdict.idle_warning.map(|warning| (verdict.at, warning.percent)))
        .collect();
    assert_eq!(warned, [(minute(48), 80.0), (minute(57), 95.0)]);
}

/// When each thing happened, in minutes; the latest counts.
type Past = (i64, Option<i64>, Option<i64>, Option<i64>, Option<i64>);

#[test]
fn the_clock_starts_with_the_latest_of_all_that_starts_it() {
    use BaselineSource::{Activity, BootStarted, CoveredSince, Created, HoldEnded, Resumed};
    // created, boot, resumed, activity, hold ended; telemetry is covered since minute 1.
    let table: [(Past, i64, BaselineSource); 9] = [
        ((0, None, None, None, None), 1, CoveredSince),
        ((2, None, None, None, None), 2, Created),
        ((0, Some(5), None, None, None), 5, BootStarted),
        ((0, Some(5), Some(7), None, None), 7, Resumed),
        ((0, Some(5), Some(7), Some(9), None), 9, Activity),
        ((0, Some(5), Some(7), Some(9), Some(11)), 11, HoldEnded),
        // The defect: activity of before the sleep must not count once the worker came back.
        ((0, Some(5), Some(40), Some(9), None), 40, Resumed),
        ((0, Some(45), Some(40), Some(9), Some(11)), 45, BootStarted),
        ((50, Some(45), Some(40), Some(9), Some(11)), 50, Created),
    ];
    for ((created, boot, resumed, activity, hold_ended), expected, source) in table {
        let mut world = World::new(DriverKind::Ec2, policy(&[]));
        world.worker.selectors.kind = Some("cml".into());
        world.record(Signal::Telemetry, Read::quiet(minute(1)), minute(1));
        world.worker.created_at = minute(created);
        world.worker.boot_started_at = boot.map(minute);
        world.worker.last_resume =
            resumed.map(|at| Last { at: minute(at), by: "ada".into(), reason: ResumeReason::Manual });
        if let Some(activity) = activity {
            world.evidence.note_activity(minute(activity), Signal::Telemetry, minute(55));
        }
        world.hold_ended_at = hold_ended.map(minute);
        let verdict = check(&mut world, minute(55));
        assert_eq!((verdict.baseline.at, verdict.baseline.source), (minute(expected), source));
        assert_eq!(verdict.idle_for, minute(55).since(minute(expected)));
    }
}

#[test]
fn a_worker_that_came_back_is_not_paused_for_the_time_before_its_sleep() {
    let mut world = cml(&[]);
    world.evidence.note_activity(minute(1), Signal::Telemetry, minute(1));
    world.worker.last_resume = Some(Last { at: minute(600), by: "ada".into(), reason: ResumeReason::Wake });
    let verdict = check(&mut world, minute(601));
    assert_eq!(verdict.idle_for, secs(60));
    assert!(!verdict.is_idle);
    assert_eq!(verdict.target_pause_at, Some(minute(660)));
}

#[test]
fn the_end_of_a_hold_restarts_the_clock_only_where_somebody_worked_under_it() {
    for kind in HoldKind::ALL {
        let mut world = cml(&[]);
        world.holds.push(hold(kind, at(0), Some(minute(30))));
        let live = check(&mut world, minute(30) - TICK);
        assert!(live.holds.contains(kind), "{kind}: live up to its end");
        let over = check(&mut world, minute(30));
        assert!(over.holds.is_empty(), "{kind}: over at its very end");
        let restarts = matches!(
            kind,
            HoldKind::Lease | HoldKind::Connection | HoldKind::KeepAliveFile | HoldKind::Exemption
        );
        let expected = if restarts { BaselineSource::HoldEnded } else { BaselineSource::BootStarted };
        assert_eq!(over.baseline.source, expected, "{kind}");
        let target = if restarts { minute(90) } else { minute(60) };
        assert_eq!((live.target_pause_at, over.target_pause_at), (Some(target), Some(target)), "{kind}");
    }
}

#[test]
fn a_snooze_protects_up_to_its_end_and_not_beyond() {
    for (now, is_snoozed) in [(minute(90) - TICK, true), (minute(90), false), (minute(90) + TICK, false)] {
        let mut world = cml(&[]);
        world.worker.is_routed = false;
        world.holds.push(hold(HoldKind::Snooze, minute(30), Some(minute(90))));
        check(&mut world, minute(78));
        let verdict = check(&mut world, now);
        assert_eq!(verdict.reasons().any(|reason| reason == Reason::InSnoozePeriod), is_snoozed);
        assert_eq!(verdict.snooze_until, is_snoozed.then_some(minute(90)));
        assert!(verdict.is_idle, "it is idle all the while");
        assert_eq!(verdict.eligible, !is_snoozed);
        assert_eq!(verdict.action == IDLE, !is_snoozed, "the warning went out ahead of the end");
    }
}

#[test]
fn auto_pause_is_true_only_where_every_layer_says_so() {
    let levels = [Level::Global, Level::Region, Level::Type, Level::Group, Level::Owner, Level::Worker];
    for mask in 0..64_u32 {
        let layers: Vec<_> = levels
            .iter()
            .enumerate()
            .map(|(index, level)| {
                let says = if mask & (1 << index) == 0 { "true" } else { "false" };
                layer(*level, Some("x"), &[("auto_pause", says)])
            })
            .collect();
        let (resolved, provenance) = resolve(&layers);
        assert_eq!(resolved.auto_pause, mask == 0);
        let named = provenance[&drowse_core::policy::Key::AutoPause].level;
        let expected = (0..6).rev().find(|index| mask & (1 << index) != 0).unwrap_or(5);
        assert_eq!(named, levels[expected], "the most specific no is named");
    }
}

#[test]
fn observe_mode_only_writes_down_what_it_would_do() {
    let mut world = cml(&[("auto_pause", "false")]);
    let verdict = check(&mut world, minute(60));
    assert_eq!(verdict.action, Action::WouldSleep { reason: PauseReason::IdleTimeout });
    assert_eq!(verdict.target_pause_at, Some(minute(60)), "the time of would_pause");
    assert_eq!(verdict.idle_warning, None);
    assert!(verdict.is_idle && !verdict.eligible);
}

#[test]
fn no_target_means_a_named_blocker() {
    type Change = fn(&mut World);
    let cases: [(&str, Change, Blocker); 5] = [
        ("idle_timeout", |_| {}, Blocker::IdleTimeoutNever),
        ("protected", |_| {}, Blocker::Protected),
        ("schedule", |_| {}, Blocker::ScheduleAlways),
        ("window", |world| world.status(StatusKind::Draining, at(0)), Blocker::NotRunning),
        (
            "window",
            |world| {
                use drowse_core::policy::exemption::{Expiry, From};
                world.exemptions.push(super::world::exemption(&[From::IdleTimeout], Expiry::Never));
            },
            Blocker::PermanentExemption,
        ),
    ];
    for (key, change, blocker) in cases {
        let text = match key {
            "idle_timeout" => "never",
            "protected" => "true",
            "schedule" => r#"{ days = "daily", hours = "00:00-24:00", keep_awake = true }"#,
            _ => "1",
        };
        let mut world = cml(&[(key, text)]);
        change(&mut world);
        let verdict = check(&mut world, minute(90));
        assert_eq!((verdict.target_pause_at, verdict.target_pause_blocked_by), (None, Some(blocker)));
        assert_eq!(verdict.action, Action::None);
    }
}

#[test]
fn only_a_running_worker_is_ever_eligible() {
    for kind in StatusKind::ALL {
        let mut world = cml(&[]);
        world.status(kind, at(0));
        let verdict = check(&mut world, minute(90));
        assert_eq!(verdict.eligible, kind == StatusKind::Running, "{kind}");
        assert!(verdict.next_check_at > minute(90), "{kind}");
    }
}

#[test]
fn a_worker_registered_by_a_clock_ahead_of_ours_is_not_idle() {
    let mut world = cml(&[]);
    let registered: &mut Worker = &mut world.worker;
    registered.created_at = minute(120);
    let verdict = check(&mut world, minute(60));
    assert_eq!((verdict.idle_for, verdict.baseline.at), (secs(0), minute(60)));
}
