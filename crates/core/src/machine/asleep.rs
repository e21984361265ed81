//! Ways to sleep: idleness, limits, schedules and people.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::{Basis, DROWSE, Draft, Fence, Step};
use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::event::Request;
use crate::grace::{ExitNote, StopPlan};
use crate::hold::Hold;
use crate::id::Generation;
use crate::journal::Entry;
use crate::reason::{PauseReason, SleepMode};
use crate::refusal::Refusal;
use crate::status::{Sleep, Stage, Status, StatusKind, WakeFrom};
use crate::worker::Last;

/// How long a freeze may take, its hook included.
pub(super) const PAUSING_WITHIN: Duration = Duration::from_secs(30);

pub(super) fn idle_confirmed(draft: Draft, fence: &Fence) -> Result<Step, Refusal> {
    require_running(&draft)?;
    fence.check(&draft.worker, Basis::Idleness)?;
    let mode = draft.worker.terms.sleep;
    let sleep = own_sleep(&draft, PauseReason::IdleTimeout, "idle", false);
    Ok(fall_asleep(draft, sleep, mode))
}

pub(super) fn max_runtime_reached(draft: Draft, fence: &Fence) -> Result<Step, Refusal> {
    fence.check(&draft.worker, Basis::Limit)?;
    let sleep = own_sleep(&draft, PauseReason::MaxRuntime, "ran for its max_runtime", true);
    if matches!(draft.worker.status.kind(), StatusKind::Running | StatusKind::Paused) {
        Ok(fall_asleep(draft, sleep, SleepMode::Stop))
    } else {
        Err(not_running(&draft))
    }
}

pub(super) fn schedule_said_sleep(draft: Draft, force: bool, fence: &Fence) -> Result<Step, Refusal> {
    require_running(&draft)?;
    fence.check(&draft.worker, if force { Basis::Limit } else { Basis::Idleness })?;
    let mode = draft.worker.terms.sleep;
    let sleep = own_sleep(&draft, PauseReason::Schedule, "its schedule says sleep", force);
    Ok(fall_asleep(draft, sleep, mode))
}

pub(super) fn pause_requested(draft: Draft, request: &Request) -> Result<Step, Refusal> {
    let mode = draft.worker.terms.sleep;
    match (&draft.worker.status, mode) {
        (Status::Running { .. }, _) => {
            check_holds(&draft, request)?;
            let sleep = person_sleep(&draft, request);
            Ok(fall_asleep(draft, sleep, mode))
        }
        (Status::Paused { .. } | Status::Pausing { wake: None, .. }, SleepMode::Freeze)
        | (
            Status::Stopped { .. } | Status::Stopping { wake: None, .. },
            SleepMode::Stop | SleepMode::Hibernate,
        ) => Ok(draft.already()),
        (
            Status::Provisioning { .. }
            | Status::Pausing { .. }
            | Status::Paused { .. }
            | Status::Waking { .. }
            | Status::Stopping { .. }
            | Status::Stopped { .. }
            | Status::Draining { .. }
            | Status::Terminating { .. }
            | Status::Terminated { .. }
            | Status::Failed { .. }
            | Status::Unknown { .. },
            _,
        ) => Err(not_running(&draft)),
    }
}

pub(super) fn stop_requested(draft: Draft, request: &Request) -> Result<Step, Refusal> {
    match &draft.worker.status {
        Status::Running { .. } | Status::Paused { .. } => {
            check_holds(&draft, request)?;
            let sleep = person_sleep(&draft, request);
            Ok(fall_asleep(draft, sleep, SleepMode::Stop))
        }
        Status::Stopped { .. } | Status::Stopping { wake: None, .. } => Ok(draft.already()),
        Status::Stopping { .. } | Status::Pausing { .. } | Status::Waking { .. } => {
            Err(draft.in_transition())
        }
        Status::Provisioning { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => Err(draft.wrong_status("stopped")),
    }
}

/// A frozen worker sinks deeper, with its pause's reason and record.
pub(super) fn stop_after_elapsed(draft: Draft, generation: Generation) -> Result<Step, Refusal> {
    draft.check_generation(generation, "the stop_after timer")?;
    let Status::Paused { since, sleep } = draft.worker.status.clone() else {
        return Err(draft.wrong_status("stopped after its freeze"));
    };
    let announced_for = draft.worker.stop_announced_for.unwrap_or(since);
    let is_due = draft.worker.terms.stop_after.is_some_and(|after| draft.now >= since + after);
    let is_due = is_due && draft.now >= announced_for;
    if !is_due || !sleep.reason.sinks_to_stopped() {
        return Err(Refusal::Ignored { why: "stop_after does not run for it".to_string() });
    }
    Ok(fall_asleep(draft, sleep, SleepMode::Stop))
}

/// Opens the intent to put the worker to sleep.
fn fall_asleep(mut draft: Draft, sleep: Sleep, mode: SleepMode) -> Step {
    let intent = draft.next_intent();
    let since = draft.now;
    let was_paused = draft.worker.status.kind() == StatusKind::Paused;
    // A frozen worker cannot run a hook, and it had its say when it was frozen.
    let has_hook = draft.worker.terms.has_before_pause && !was_paused;
    let stage = if has_hook { Stage::Hook } else { Stage::Acting };
    let terms = draft.worker.terms;
    let to = match mode {
        SleepMode::Freeze => StatusKind::Pausing,
        SleepMode::Stop | SleepMode::Hibernate => StatusKind::Stopping,
    };
    draft.note(Entry::SleepIntended {
        intent,
        reason: sleep.reason,
        by: sleep.by.clone(),
        message: sleep.message.clone(),
        to,
    });
    draft.worker.abandoned = None;
    draft.go(match mode {
        SleepMode::Freeze => Status::Pausing {
            intent,
            since,
            deadline: since + PAUSING_WITHIN,
            sleep,
            stage,
            wake: None,
            refusals: 0,
        },
        SleepMode::Stop | SleepMode::Hibernate => Status::Stopping {
            intent,
            since,
            deadline: since + draft.worker.can.stopping_within.with(terms.grace),
            sleep,
            mode,
            stage,
            was_paused,
            wake: None,
            refusals: 0,
        },
    });
    draft.effects.extend(super::reissue(&draft.worker));
    draft.accept()
}

/// Max runtime and force run the hook and heed no veto.
pub(super) fn heeds_veto(sleep: &Sleep) -> bool {
    !sleep.forced
}

/// It is frozen: written down once the driver has said so, never before.
pub(super) fn finish_pause(draft: &mut Draft, sleep: Sleep) {
    let stops_at = draft.worker.terms.stop_after.filter(|_| sleep.reason.sinks_to_stopped());
    let stops_at = stops_at.map(|after| draft.now + after);
    draft.worker.stop_announced_for = stops_at;
    draft.note(Entry::Paused { reason: sleep.reason, by: sleep.by.clone(), stops_at });
    record_sleep(draft, &sleep);
    draft.effect(Effect::EndLeasedTime);
    // That is the notice of the stop: nobody can be told anything in between.
    draft.effect(Effect::AnnounceSleep { stops_at });
    let since = draft.now;
    draft.go(Status::Paused { since, sleep });
}

/// It was frozen and still is: the same sleep goes on, and nothing counts.
pub(super) fn still_paused(draft: &mut Draft, sleep: Sleep) {
    let since = draft.now;
    draft.worker.frozen_for += since.since(draft.worker.status.since());
    record_deeper(draft, &sleep);
    draft.go(Status::Paused { since, sleep });
}

/// It is stopped: this run is over, and what belonged to it.
pub(super) fn finish_stop(draft: &mut Draft, sleep: Sleep, was_paused: bool, exit_code: Option<i32>) {
    draft.note(Entry::Stopped { reason: sleep.reason, by: sleep.by.clone(), exit_code });
    if sleep.reason != PauseReason::External {
        note_grace(draft, exit_code);
    }
    if was_paused {
        record_deeper(draft, &sleep);
    } else {
        record_sleep(draft, &sleep);
    }
    end_run(draft);
    draft.effect(Effect::EndLeasedTime);
    let since = draft.now;
    draft.go(Status::Stopped { since, sleep });
}

/// It was stopped and still is.
pub(super) fn still_stopped(draft: &mut Draft, sleep: Sleep) {
    // Or it was frozen, and a start was tried because nobody knew: then that run is over only now.
    if draft.worker.boot_started_at.is_some() {
        end_run(draft);
        draft.effect(Effect::EndLeasedTime);
    }
    let since = draft.now;
    draft.go(Status::Stopped { since, sleep });
}

/// Of a stop that we asked for.
pub(super) fn note_grace(draft: &mut Draft, exit_code: Option<i32>) {
    let (plan, _) = StopPlan::begin(false, draft.worker.terms.grace, draft.asked_at.unwrap_or(draft.now));
    if exit_code.is_some_and(|code| plan.exited(code, draft.now) == ExitNote::GraceExceeded) {
        draft.note(Entry::GraceExceeded);
    }
}

/// What belonged to this run is over. That is no sleep yet: a crash does not start the count of leased
/// time again.
pub(super) fn end_run(draft: &mut Draft) {
    draft.effect(Effect::EndHolds);
    draft.is_run_over = true;
    draft.worker.boot_started_at = None;
    draft.worker.frozen_for = Duration::ZERO;
    draft.worker.gpu_was_read = false;
    // What was asked of this run and came too late cannot come any more. A start may.
    let is_start = draft
        .worker
        .abandoned
        .as_deref()
        .is_some_and(|it| matches!(it.was, Status::Waking { from: WakeFrom::Stopped, .. }));
    if !is_start {
        draft.worker.abandoned = None;
    }
}

/// From frozen to stopped counts nothing, but a person's stop of a frozen worker is its last sleep.
fn record_deeper(draft: &mut Draft, sleep: &Sleep) {
    let is_same = draft
        .worker
        .last_pause
        .as_ref()
        .is_some_and(|last| last.reason == sleep.reason && last.by == sleep.by && sleep.at <= last.at);
    if !is_same {
        draft.worker.last_pause = Some(Last { at: draft.now, by: sleep.by.clone(), reason: sleep.reason });
    }
}

fn record_sleep(draft: &mut Draft, sleep: &Sleep) {
    draft.worker.counters.count_pause(sleep.reason);
    // Sleep that somebody else caused is dated by the driver where it tells.
    let at = if sleep.reason == PauseReason::External { sleep.at } else { draft.now };
    draft.worker.last_pause = Some(Last { at, by: sleep.by.clone(), reason: sleep.reason });
}

fn own_sleep(draft: &Draft, reason: PauseReason, message: &str, forced: bool) -> Sleep {
    Sleep { reason, by: DROWSE.to_string(), message: message.to_string(), at: draft.now, forced }
}

fn person_sleep(draft: &Draft, request: &Request) -> Sleep {
    Sleep {
        reason: PauseReason::Manual,
        by: request.by.clone(),
        message: request.message.clone(),
        at: draft.now,
        forced: request.force,
    }
}

/// Sleep that somebody else caused.
pub(super) fn external_sleep(at: Timestamp) -> Sleep {
    Sleep {
        reason: PauseReason::External,
        by: "external".to_string(),
        message: String::new(),
        at,
        forced: false,
    }
}

/// Whether a person may do this to it without insisting.
pub(super) fn check_holds(draft: &Draft, request: &Request) -> Result<(), Refusal> {
    check_protected(draft, request)?;
    let blocking: Vec<Hold> =
        request.holds.iter().filter(|hold| hold.blocks(&request.by, draft.now)).cloned().collect();
    if blocking.is_empty() || request.force { Ok(()) } else { Err(Refusal::Held { holds: blocking }) }
}

pub(super) fn check_protected(draft: &Draft, request: &Request) -> Result<(), Refusal> {
    if draft.worker.terms.protected && !request.force { Err(Refusal::Protected) } else { Ok(()) }
}

fn require_running(draft: &Draft) -> Result<(), Refusal> {
    if draft.worker.status.kind() == StatusKind::Running { Ok(()) } else { Err(not_running(draft)) }
}

fn not_running(draft: &Draft) -> Refusal {
    if draft.worker.status.intent().is_some() {
        draft.in_transition()
    } else {
        draft.wrong_status("put to sleep")
    }
}
