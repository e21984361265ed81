//! Warnings about idleness: keyed by the deadline, sent once, with full notice.

use drowse_core::Timestamp;
use drowse_core::evidence::Read;
use drowse_core::flap::Flap;
use drowse_core::hold::HoldKind;
use drowse_core::policy::exemption::{Expiry, From};
use drowse_core::reason::PauseReason;
use drowse_core::signal::{DriverKind, Signal};
use drowse_core::verdict::{Action, Reason, Verdict, WarningKind};

use super::world::{IDLE, TICK, World, at, exemption, hold, minute, policy, secs};

/// A process without a router port: warned at 48 and 57 minutes, asleep after 60.
fn unrouted() -> World {
    World::process(&[])
}

/// When who was told what about idleness: minute, level, mere information.
fn told(seen: &[Verdict]) -> Vec<(u64, f64, bool)> {
    seen.iter()
        .filter_map(|verdict| {
            let warning = verdict.idle_warning?;
            Some((verdict.at.since(at(0)).as_secs() / 60, warning.percent, warning.is_fyi))
        })
        .collect()
}

fn end(seen: &[Verdict]) -> (Timestamp, Action) {
    let last = seen.last().expect("at least one check");
    (last.at, last.action)
}

#[test]
fn two_warnings_and_then_sleep() {
    let mut world = unrouted();
    let seen = world.run(at(0), minute(120), World::quiet);
    assert_eq!(told(&seen), [(48, 80.0, false), (57, 95.0, false)]);
    assert_eq!(end(&seen), (minute(60), IDLE));
    assert!(seen.iter().all(|verdict| verdict.target_pause_at == Some(minute(60))));
}

#[test]
fn a_check_that_comes_a_moment_late_sleeps_all_the_same() {
    for late in [TICK, secs(1), secs(299)] {
        let mut world = unrouted();
        world.run(at(0), minute(60) - TICK, World::quiet);
        let verdict = world.quiet_check(minute(60) + late);
        assert_eq!((verdict.action, verdict.idle_warning), (IDLE, None), "{late:?} late");
    }
}

#[test]
fn each_level_is_sent_once_however_often_one_looks() {
    let mut world = unrouted();
    world.quiet_check(at(0));
    let seen: Vec<Verdict> = (1..=3_600).map(|now| world.quiet_check(at(now))).collect();
    assert_eq!(told(&seen), [(48, 80.0, false), (57, 95.0, false)]);
}

#[test]
fn activity_moves_the_deadline_and_arms_every_warning_again() {
    let mut world = unrouted();
    let before = world.run(at(0), minute(50), World::quiet);
    world.quiet(minute(51));
    world.active(Signal::Cpu, minute(51), minute(51));
    world.check(minute(51));
    let after = world.run(minute(52), minute(300), World::quiet);
    assert_eq!(told(&before), [(48, 80.0, false)]);
    assert_eq!(told(&after), [(99, 80.0, false), (108, 95.0, false)]);
    assert_eq!(end(&after), (minute(111), IDLE));
}

#[test]
fn a_deadline_that_comes_nearer_keeps_what_was_announced() {
    let mut world = unrouted();
    world.holds.push(hold(HoldKind::KeepAwake, at(0), Some(minute(90))));
    let before = world.run(at(0), minute(80), World::quiet);
    assert_eq!(told(&before), [(78, 80.0, false)], "ahead of the end of the keep-awake");
    world.holds.clear();
    let after = world.run(minute(81), minute(300), World::quiet);
    assert_eq!(end(&after), (minute(90), IDLE), "nobody sleeps before the time they were told");
}

#[test]
fn after_an_outage_people_are_told_once_with_the_latest_level_and_have_full_notice() {
    let mut world = unrouted();
    world.quiet_check(at(0));
    let told_all = |world: &mut World, now: Timestamp| {
        for signal in [Signal::Cpu, Signal::Tcp, Signal::Network] {
            world.record(signal, Read::quiet(now).telling_gap(), now);
        }
    };
    let seen = world.run(minute(500), minute(900), told_all);
    assert_eq!(told(&seen), [(500, 95.0, false)]);
    assert_eq!(end(&seen), (minute(505), IDLE));
    assert!(seen[0].eligible, "idle and warned: the notice is running");
    assert!(seen[0].reasons().any(|reason| reason == Reason::NoticeRunning));
}

#[test]
fn min_notice_is_honoured_and_is_at_most_a_fifth_of_the_timeout() {
    for (timeout, notice, warned_at) in
        [("60m", "10m", 50), ("60m", "12m", 48), ("60m", "40m", 48), ("60m", "0s", 54)]
    {
        // One late level of its own: what comes before it is the notice.
        let mut world =
            World::process(&[("idle_timeout", timeout), ("min_notice", notice), ("warn_at", "90%")]);
        let seen = world.run(at(0), minute(120), World::quiet);
        assert_eq!(told(&seen)[0].0, warned_at, "{notice}");
        assert_eq!(end(&seen).0, minute(60));
    }
}

#[test]
fn who_wants_no_warnings_and_no_notice_gets_none() {
    let mut world = World::process(&[("min_notice", "0s"), ("warn_at", "")]);
    let seen = world.run(at(0), minute(120), World::quiet);
    assert_eq!((told(&seen), end(&seen)), (vec![], (minute(60), IDLE)));
}

#[test]
fn a_routed_freeze_comes_without_warning() {
    let mut world = World::routed(&[]);
    let seen = world.run(at(0), minute(120), World::quiet);
    assert_eq!((told(&seen), end(&seen)), (vec![], (minute(60), IDLE)));
}

#[test]
fn a_routed_stop_does_not() {
    let mut world = World::routed(&[("sleep", "stop")]);
    let seen = world.run(at(0), minute(120), World::quiet);
    assert_eq!(told(&seen).len(), 2);
}

#[test]
fn the_exempt_are_told_for_information_once_and_sleep_an_hour_after_the_end() {
    let mut world = unrouted();
    world.exemptions.push(exemption(&[From::IdleTimeout], Expiry::At(minute(300))));
    let seen = world.run(at(0), minute(600), World::quiet);
    assert_eq!(told(&seen), [(48, 80.0, true), (57, 95.0, true), (348, 80.0, false), (357, 95.0, false)]);
    assert_eq!(end(&seen), (minute(360), IDLE));
    assert!(seen.iter().all(|verdict| verdict.target_pause_at == Some(minute(360))));
    let exempt = seen.iter().find(|verdict| verdict.at == minute(57)).expect("a check");
    assert!(exempt.reasons().any(|reason| reason == Reason::Held { hold: HoldKind::Exemption }));
}

#[test]
fn an_exemption_is_over_at_its_very_end_even_if_it_was_looked_up_before() {
    use drowse_core::judge;
    let mut world = World::routed(&[]);
    world.exemptions.push(exemption(&[From::IdleTimeout], Expiry::At(minute(30))));
    world.run(at(0), minute(30), World::quiet);
    world.quiet(minute(30));
    let mut snapshot = world.snapshot(Some(minute(30)), at(0));
    snapshot.check_began_at = Some(minute(30));
    let verdict = judge(&snapshot, &world.policy, minute(30));
    assert!(verdict.holds.is_empty());
    assert_eq!(verdict.target_pause_at, Some(minute(90)));
}

#[test]
fn nobody_is_warned_while_a_hold_has_no_known_end() {
    let mut world = unrouted();
    world.holds.push(hold(HoldKind::KeepAwake, at(0), None));
    let seen = world.run(at(0), minute(200), World::quiet);
    assert_eq!((told(&seen), end(&seen)), (vec![], (minute(200), Action::None)));
    world.holds.clear();
    let after = world.run(minute(201), minute(300), World::quiet);
    assert_eq!((told(&after), end(&after)), (vec![(201, 95.0, false)], (minute(206), IDLE)));
}

#[test]
fn nobody_is_warned_on_old_news_while_braked_or_in_observe_mode() {
    let mut world = unrouted();
    world.run(at(0), minute(48) - TICK, World::quiet);
    assert_eq!(world.look(minute(48)).idle_warning, None);
    let mut braked = world.clone();
    braked.is_braked = true;
    assert_eq!(braked.quiet_check(minute(48)).idle_warning, None);
    let mut observed = world.clone();
    observed.set_policy(policy(&[("auto_pause", "false")]));
    assert_eq!(observed.quiet_check(minute(48)).idle_warning, None);
    assert!(world.quiet_check(minute(48)).idle_warning.is_some());
}

#[test]
fn the_agent_is_asked_before_anybody_is_warned() {
    let mut world = World::new(DriverKind::Qemu, policy(&[]));
    world.quiet_check(at(0));
    let verdict = world.check(minute(48));
    assert_eq!((verdict.action, verdict.idle_warning), (Action::AskAgent, None));
    assert!(verdict.reasons().any(|reason| reason == Reason::AgentNotAsked));
    world.record(Signal::Activity, Read::quiet(minute(48)).telling_gap(), minute(48));
    let verdict = world.check(minute(48));
    assert_eq!(verdict.action, Action::None);
    assert!(verdict.idle_warning.is_some());
}

#[test]
fn a_scale_down_says_deleted_and_a_warning_of_sleep_does_not_do_for_it() {
    let mut world = World::process(&[("scale_down", "true")]);
    let seen = world.run(at(0), minute(58), World::quiet);
    let kinds: Vec<WarningKind> =
        seen.iter().filter_map(|verdict| verdict.idle_warning).map(|warning| warning.kind).collect();
    assert_eq!(kinds, [WarningKind::Idle; 2], "the fleet is not too large, so it would only sleep");
    world.can_scale_down = true;
    let seen = world.run(minute(59), minute(120), World::quiet);
    let warning = seen[0].idle_warning.expect("told of the deletion");
    assert_eq!((warning.kind, warning.happens_at), (WarningKind::ScaleDown, minute(64)));
    assert_eq!(end(&seen), (minute(64), Action::ScaleDown));
}

#[test]
fn a_warning_of_deletion_does_for_sleep() {
    let mut world = World::process(&[("scale_down", "true")]);
    world.can_scale_down = true;
    world.run(at(0), minute(58), World::quiet);
    world.can_scale_down = false;
    assert_eq!(world.run_quiet(minute(59), minute(120)).at, minute(60));
}

#[test]
fn observe_mode_would_scale_down() {
    let mut world = World::process(&[("scale_down", "true"), ("auto_pause", "false")]);
    world.can_scale_down = true;
    let verdict = world.run_quiet(at(0), minute(120));
    assert_eq!(verdict.action, Action::WouldSleep { reason: PauseReason::ScaleDown });
}

#[test]
fn the_flap_guard_lengthens_the_timeout_and_the_target_says_so() {
    for (undone, hours) in [(4, 1), (5, 2), (6, 4), (7, 8), (99, 8)] {
        let mut world = World::routed(&[]);
        world.worker.flap = Flap { undone_in_a_row: undone };
        let verdict = world.quiet_check(at(0));
        assert_eq!(verdict.target_pause_at, Some(minute(60 * hours)));
        assert_eq!(verdict.reasons().any(|reason| reason == Reason::FlapGuard), hours > 1);
        assert_eq!(world.run_quiet(at(1), minute(1_000)).at, minute(60 * hours));
        world.set_policy(policy(&[("flap_guard", "false")]));
        assert_eq!(world.look(at(1)).target_pause_at, Some(minute(60)));
    }
}

#[test]
fn the_countdown_of_an_active_worker_runs_from_its_activity_and_does_not_move_with_each_look() {
    let mut world = World::routed(&[]);
    world.quiet(at(0));
    world.active(Signal::Cpu, at(0), at(0));
    world.check(at(0));
    for now in [1, 60, 299] {
        assert_eq!(world.look(at(now)).target_pause_at, Some(minute(60)));
    }
}

/// What people were told stands until it is off or later, whatever has put it off.
#[test]
fn what_was_announced_stands_until_it_is_off_or_later() {
    type Change = (&'static str, fn(&mut World));
    let changes: [Change; 7] = [
        ("activity", |world| world.active(Signal::Cpu, minute(51), minute(51))),
        ("a snooze", |world| world.holds.push(hold(HoldKind::Snooze, minute(51), Some(minute(90))))),
        ("a lease", |world| world.holds.push(hold(HoldKind::Lease, minute(51), Some(minute(52))))),
        ("an exemption", |world| world.exemptions.push(exemption(&[From::IdleTimeout], Expiry::Never))),
        ("a longer timeout", |world| world.set_policy(policy(&[("idle_timeout", "2h")]))),
        ("protection", |world| world.set_policy(policy(&[("protected", "true")]))),
        ("observe mode", |world| world.set_policy(policy(&[("auto_pause", "false")]))),
    ];
    let warned = || {
        let mut world = unrouted();
        world.run(at(0), minute(50), World::quiet);
        world
    };
    for (name, change) in changes {
        let mut world = warned();
        assert_eq!(world.look(minute(50)).announced.idle, Some(minute(60)), "{name}");
        world.quiet(minute(51));
        change(&mut world);
        assert_eq!(world.check(minute(51)).announced.idle, None, "{name}");
    }
    // A deadline that comes nearer changes nothing of what was said.
    let mut world = warned();
    world.set_policy(policy(&[("idle_timeout", "10m")]));
    assert_eq!(world.quiet_check(minute(51)).announced.idle, Some(minute(60)));
    // Mere information stands as such, and not as the warning that it is not.
    let mut world = unrouted();
    world.exemptions.push(exemption(&[From::IdleTimeout], Expiry::Never));
    world.run(at(0), minute(50), World::quiet);
    assert_eq!(world.look(minute(50)).announced.idle, Some(minute(60)));
    world.exemptions.clear();
    assert_eq!(world.quiet_check(minute(51)).announced.idle, None);
    // Nobody was told of anything.
    let mut world = unrouted();
    world.run(at(0), minute(40), World::quiet);
    assert_eq!(world.look(minute(40)).announced, drowse_core::verdict::Announced::default());
}
