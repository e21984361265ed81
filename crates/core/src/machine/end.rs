//! Ends: draining and deleting.

use alloc::string::ToString;
use core::time::Duration;

use super::{Basis, DROWSE, Draft, Fence, Step, asleep};
use crate::effect::Effect;
use crate::event::Request;
use crate::id::Generation;
use crate::journal::Entry;
use crate::reason::PauseReason;
use crate::refusal::Refusal;
use crate::status::{Sleep, Status};

/// How long a deletion may take.
pub(super) const TERMINATING_WITHIN: Duration = Duration::from_mins(10);

/// Replaces the pause of a worker that the fleet can spare.
pub(super) fn scale_down_confirmed(draft: Draft, fence: &Fence) -> Result<Step, Refusal> {
    if !matches!(draft.worker.status, Status::Running { .. }) {
        return Err(draft.wrong_status("scaled down"));
    }
    fence.check(&draft.worker, Basis::Idleness)?;
    Ok(drain(draft, DROWSE, PauseReason::ScaleDown, None))
}

pub(super) fn drain_requested(draft: Draft, request: &Request) -> Result<Step, Refusal> {
    match draft.worker.status.clone() {
        Status::Running { .. } | Status::Stopped { .. }
            if asleep::check_protected(&draft, request).is_err() =>
        {
            Err(Refusal::Protected)
        }
        Status::Running { .. } => Ok(drain(draft, &request.by, PauseReason::Manual, None)),
        Status::Stopped { sleep, .. } => Ok(drain(draft, &request.by, PauseReason::Manual, Some(sleep))),
        Status::Draining { .. } => Ok(draft.already()),
        Status::Pausing { .. } | Status::Waking { .. } | Status::Stopping { .. } => {
            Err(draft.in_transition())
        }
        Status::Provisioning { .. }
        | Status::Paused { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => Err(draft.wrong_status("drained")),
    }
}

fn drain(mut draft: Draft, by: &str, reason: PauseReason, was_stopped: Option<Sleep>) -> Step {
    draft.note(Entry::Draining { by: by.to_string() });
    let since = draft.now;
    let deadline = since + draft.worker.terms.drain_timeout;
    draft.go(Status::Draining { since, deadline, by: by.to_string(), reason, was_stopped });
    draft.accept()
}

pub(super) fn drain_cancelled(draft: Draft, by: &str) -> Result<Step, Refusal> {
    back_to_work(draft, by, "cancelled")
}

pub(super) fn drain_timed_out(draft: Draft, generation: Generation, is_held: bool) -> Result<Step, Refusal> {
    draft.check_generation(generation, "the drain's end")?;
    if draft.worker.status.deadline().is_some_and(|deadline| draft.now < deadline) {
        return Err(Refusal::Ignored { why: "its deadline is not over".into() });
    }
    if is_held {
        back_to_work(draft, DROWSE, "still held when its time was up")
    } else {
        drained(draft, generation)
    }
}

/// It becomes what it was before.
fn back_to_work(mut draft: Draft, by: &str, why: &str) -> Result<Step, Refusal> {
    let Status::Draining { was_stopped, .. } = draft.worker.status.clone() else {
        return Err(draft.wrong_status("undrained"));
    };
    draft.note(Entry::DrainEnded { by: by.to_string(), why: why.to_string() });
    let since = draft.now;
    draft.go(match was_stopped {
        Some(sleep) => Status::Stopped { since, sleep },
        None => Status::Running { since },
    });
    Ok(draft.accept())
}

pub(super) fn drained(mut draft: Draft, generation: Generation) -> Result<Step, Refusal> {
    draft.check_generation(generation, "the drain's end")?;
    let Status::Draining { by, reason, .. } = draft.worker.status.clone() else {
        return Err(draft.wrong_status("deleted after its drain"));
    };
    if reason == PauseReason::ScaleDown {
        draft.worker.counters.count_pause(reason);
    }
    let is_ordered = reason == PauseReason::Manual;
    Ok(terminate(draft, &by, is_ordered))
}

pub(super) fn terminate_requested(draft: Draft, request: &Request) -> Result<Step, Refusal> {
    match &draft.worker.status {
        Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Unknown { .. }
        | Status::Failed { .. } => {
            asleep::check_holds(&draft, request)?;
            Ok(terminate(draft, &request.by, true))
        }
        Status::Terminating { .. } | Status::Terminated { .. } => Ok(draft.already()),
        Status::Provisioning { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. } => Err(draft.in_transition()),
    }
}

pub(super) fn terminate_after_elapsed(draft: Draft, generation: Generation) -> Result<Step, Refusal> {
    draft.check_generation(generation, "the terminate_after timer")?;
    let asleep_since = match &draft.worker.status {
        Status::Paused { sleep, .. } | Status::Stopped { sleep, .. } if sleep.reason.is_judged() => sleep.at,
        Status::Paused { .. } | Status::Stopped { .. } => {
            return Err(Refusal::Ignored { why: "it is somebody's to keep".into() });
        }
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => return Err(draft.wrong_status("deleted after its sleep")),
    };
    match draft.worker.terms.terminate_after {
        Some(after) if draft.now >= asleep_since + after => Ok(terminate(draft, DROWSE, false)),
        Some(_) | None => Err(Refusal::Ignored { why: "terminate_after is not over".into() }),
    }
}

fn terminate(mut draft: Draft, by: &str, is_ordered: bool) -> Step {
    let intent = draft.next_intent();
    draft.note(Entry::TerminateIntended { intent, by: by.to_string() });
    let since = draft.now;
    let sleep = match &draft.worker.status {
        Status::Paused { sleep, .. } | Status::Stopped { sleep, .. } => Some(sleep.clone()),
        Status::Draining { was_stopped, .. } => was_stopped.clone(),
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => None,
    };
    draft.worker.abandoned = None;
    draft.go(Status::Terminating {
        intent,
        since,
        deadline: since + TERMINATING_WITHIN,
        by: by.to_string(),
        is_ordered,
        sleep,
        refusals: 0,
    });
    draft.effect(Effect::Terminate { intent });
    draft.accept()
}
