//! Seed 002's interaction matrix, row by row: which of connections, activity and leases keep a microVM awake.

use drowse_core::Timestamp;
use drowse_core::evidence::Read;
use drowse_core::hold::HoldKind;
use drowse_core::policy::{Level, PolicyBook, Selectors};
use drowse_core::reason::IdlePolicy;
use drowse_core::signal::{DriverKind, Signal, UnknownCause};
use drowse_core::verdict::{Action, Reason, Use, Verdict};

use super::world::{IDLE, TICK, World, at, hold, layer, secs};

/// What goes on in a microVM.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the columns of the matrix")]
struct Row {
    inbound: bool,
    /// The agent says "busy" every five seconds.
    heartbeat: bool,
    lease: bool,
    leases_only: bool,
}

/// A routed microVM that has been quiet since its last activity at midnight.
fn microvm(row: Row) -> World {
    let idle_policy = if row.leases_only { "leases_only" } else { "default" };
    let book = PolicyBook::new(vec![layer(Level::Worker, Some("w"), &[("idle_policy", idle_policy)])]);
    let selectors = Selectors { worker: "w".into(), kind: Some("microvm".into()), ..Selectors::default() };
    let (policy, _) = book.resolve_for(&selectors);
    assert_eq!(policy.idle_timeout, Some(secs(60)), "seed 002's minute");
    let mut world = World::new(DriverKind::Qemu, policy);
    world.worker.selectors = selectors;
    world.worker.is_routed = true;
    if row.inbound {
        world.holds.push(hold(HoldKind::Connection, at(0), None));
    }
    if row.lease {
        world.holds.push(hold(HoldKind::Lease, at(0), Some(at(3_600))));
    }
    world
}

/// What the router and the agent tell by `now`. The peer speaks only the three notifications of seed 002, so
/// that its silence is quiet while its channel is up.
fn tell(row: Row, world: &mut World, now: Timestamp) {
    let counts = world.policy.idle_policy == IdlePolicy::Default;
    let interval = world.interval();
    let front_door = if row.inbound { Read::active(now, now) } else { Read::quiet(now) };
    world.evidence.record(Signal::Connections, front_door, true, interval, now);
    let inside = if row.heartbeat { Read::active(now, now) } else { Read::quiet(now) };
    world.evidence.record(Signal::Activity, inside, counts, interval, now);
}

/// The verdict at `until`, with every check before it that was due.
fn run(row: Row, until: Timestamp) -> Verdict {
    let mut world = microvm(row);
    let seen = world.run(at(0), until, |world, now| tell(row, world, now));
    *seen.last().expect("at least one check")
}

#[track_caller]
fn pauses_after_a_minute(row: Row) {
    let before = run(row, at(60) - TICK);
    assert_eq!(before.action, Action::None);
    assert_eq!(before.at, at(60) - TICK);
    assert_eq!(before.target_pause_at, Some(at(60)), "the countdown says so");
    let then = run(row, at(60));
    assert_eq!((then.at, then.action), (at(60), IDLE));
    assert_eq!(then.idle_for, secs(60));
    assert!(then.eligible && then.is_idle);
    // A check that comes a tick late finds the same.
    let mut world = microvm(row);
    world.run(at(0), at(60) - TICK, |world, now| tell(row, world, now));
    tell(row, &mut world, at(60) + TICK);
    assert_eq!(world.check(at(60) + TICK).action, IDLE);
}

#[track_caller]
fn keeps_running(row: Row, because: Reason) {
    for until in [at(60) - TICK, at(60), at(60) + TICK, at(600)] {
        let verdict = run(row, until);
        assert_eq!((verdict.at, verdict.action), (until, Action::None));
        assert!(
            verdict.reasons().any(|reason| reason == because),
            "{:?}",
            verdict.reasons().collect::<Vec<_>>()
        );
    }
}

const INBOUND: Reason = Reason::Held { hold: HoldKind::Connection };
const LEASE: Reason = Reason::Held { hold: HoldKind::Lease };
const HEARTBEAT: Reason = Reason::RecentActivity { signal: Signal::Activity };

#[test]
fn an_http_server_with_requests_runs() {
    keeps_running(Row { inbound: true, heartbeat: true, ..Row::default() }, INBOUND);
}

#[test]
fn an_http_server_without_requests_pauses_after_a_minute() {
    pauses_after_a_minute(Row::default());
}

#[test]
fn a_polling_bot_runs() {
    keeps_running(Row { heartbeat: true, ..Row::default() }, HEARTBEAT);
}

#[test]
fn an_install_that_uses_the_processor_runs() {
    // The agent sends the same notification whichever of its thresholds was passed.
    keeps_running(Row { heartbeat: true, ..Row::default() }, HEARTBEAT);
}

#[test]
fn a_program_that_only_sleeps_pauses_after_a_minute() {
    pauses_after_a_minute(Row::default());
}

#[test]
fn a_build_with_a_lease_runs_whatever_its_activity() {
    for heartbeat in [false, true] {
        keeps_running(Row { heartbeat, lease: true, ..Row::default() }, LEASE);
    }
}

#[test]
fn a_polling_bot_under_leases_only_pauses_after_a_minute() {
    pauses_after_a_minute(Row { heartbeat: true, leases_only: true, ..Row::default() });
}

#[test]
fn a_bot_under_leases_only_with_a_lease_runs() {
    keeps_running(Row { heartbeat: true, lease: true, leases_only: true, ..Row::default() }, LEASE);
}

#[test]
fn an_inbound_connection_counts_under_leases_only_too() {
    keeps_running(Row { inbound: true, leases_only: true, ..Row::default() }, INBOUND);
}

#[test]
fn under_leases_only_activity_sets_no_time_and_breaks_no_streak() {
    let row = Row { heartbeat: true, leases_only: true, ..Row::default() };
    let mut world = microvm(row);
    tell(row, &mut world, at(0));
    let verdict = world.check(at(0));
    assert_eq!((verdict.used, verdict.streak.count), (Use::Quiet, 1));
    assert_eq!(world.evidence.last_activity_at(), None);
    assert!(world.evidence.sample(Signal::Activity).is_some(), "it is kept as history");
}

#[test]
fn under_leases_only_the_channel_decides_between_quiet_and_unknown() {
    let row = Row { leases_only: true, ..Row::default() };
    let mut world = microvm(row);
    world.worker.is_routed = false;
    tell(row, &mut world, at(0));
    assert_eq!(world.check(at(0)).used, Use::Quiet, "an unrouted worker has evidence all the same");
    world.unknown(Signal::Activity, UnknownCause::ChannelDown, at(30));
    assert_eq!(world.check(at(30)).used, Use::Unknown);
}

#[test]
fn the_minute_runs_from_the_end_of_a_lease() {
    let mut world = microvm(Row::default());
    world.holds.push(hold(HoldKind::Lease, at(0), Some(at(45))));
    let seen = world.run(at(0), at(600), |world, now| tell(Row::default(), world, now));
    assert!(seen.iter().all(|verdict| verdict.target_pause_at == Some(at(105))));
    assert_eq!(seen.last().map(|last| (last.at, last.action)), Some((at(105), IDLE)));
}

#[test]
fn the_minute_runs_from_the_end_of_a_connection() {
    let mut world = microvm(Row::default());
    tell(Row { inbound: true, ..Row::default() }, &mut world, at(0));
    world.check(at(0));
    // It is closed: that is activity, and the end of its hold.
    world.evidence.note_activity(at(45), Signal::Connections, at(45));
    world.hold_ended_at = Some(at(45));
    let seen = world.run(at(45), at(600), |world, now| tell(Row::default(), world, now));
    assert_eq!(seen.last().map(|last| (last.at, last.action)), Some((at(105), IDLE)));
}

#[test]
fn an_agent_that_was_busy_and_fell_silent_is_asked_before_the_worker_sleeps() {
    let mut world = microvm(Row::default());
    world.active(Signal::Activity, at(5), at(5));
    world.record(Signal::Connections, Read::quiet(at(5)), at(5));
    let seen =
        world.run(at(5), at(600), |world, now| world.record(Signal::Connections, Read::quiet(now), now));
    let asked = seen.last().expect("at least one check");
    assert_eq!((asked.at, asked.action), (at(65), Action::AskAgent));
    let mut answered = world.clone();
    answered.record(Signal::Activity, Read::quiet(at(65)).telling_gap(), at(65));
    assert_eq!(answered.check(at(65)).action, IDLE);
    world.unknown(Signal::Activity, UnknownCause::NoAnswer, at(65));
    let unanswered = world.check(at(65));
    assert_eq!((unanswered.used, unanswered.action), (Use::Unknown, Action::None));
}
