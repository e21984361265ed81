//! Ways back: connections, leases, people, schedules, and activity that overtook a pause.

use alloc::string::ToString;
use core::time::Duration;

use super::{Draft, Step};
use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::grace::CrashLoop;
use crate::journal::Entry;
use crate::reason::ResumeReason;
use crate::refusal::Refusal;
use crate::signal::Signal;
use crate::status::{Sleep, Stage, Status, WakeCause, WakeFrom};
use crate::worker::Last;

/// What came in by [`crate::event::Event::WakeRequested`]. Some causes are ours to find and nobody's to
/// ask for: a stopped worker is not started because somebody says "activity".
pub(super) fn asked(draft: Draft, cause: &WakeCause) -> Result<Step, Refusal> {
    match cause {
        WakeCause::Connection
        | WakeCause::Lease { .. }
        | WakeCause::KeepAwake { .. }
        | WakeCause::Schedule
        | WakeCause::Shutdown
        | WakeCause::Removal => requested(draft, cause),
        WakeCause::Resume { by } => resume_requested(draft, by),
        // Whoever asks in the name of activity vouches that no hook made it.
        WakeCause::Activity => Ok(activity_arrived(draft, Signal::Telemetry)),
        WakeCause::Veto | WakeCause::LastLook { .. } | WakeCause::Recovery | WakeCause::Exit => {
            Err(Refusal::Ignored { why: "nobody can ask for that".into() })
        }
    }
}

pub(super) fn resume_requested(mut draft: Draft, by: &str) -> Result<Step, Refusal> {
    let cause = WakeCause::Resume { by: by.to_string() };
    match &draft.worker.status {
        Status::Provisioning { .. } => Err(draft.in_transition()),
        // Only a person brings back what needs a person; the driver's start makes it so from any state.
        Status::Unknown { .. } | Status::Failed { .. } => {
            let sleep = draft.worker.abandoned.as_deref().and_then(|it| counted_sleep(&it.was));
            draft.worker.crashes = CrashLoop::default();
            Ok(begin(draft, WakeFrom::Stopped, cause, sleep, Duration::ZERO))
        }
        Status::Stopped { .. } => {
            // A person has looked at it: its crashes are forgiven.
            draft.worker.crashes = CrashLoop::default();
            requested(draft, &cause)
        }
        Status::Running { .. }
        | Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. } => requested(draft, &cause),
    }
}

/// The sleep that a transition was to end or to deepen, and that has been counted.
fn counted_sleep(was: &Status) -> Option<Sleep> {
    match was {
        Status::Waking { from: WakeFrom::Frozen | WakeFrom::Stopped, sleep, .. }
        | Status::Terminating { sleep, .. } => sleep.clone(),
        Status::Stopping { sleep, was_paused: true, .. } => Some(sleep.clone()),
        Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => None,
    }
}

pub(super) fn requested(draft: Draft, cause: &WakeCause) -> Result<Step, Refusal> {
    match draft.worker.status.clone() {
        // A worker that is coming up will serve whoever waits at the door.
        Status::Running { .. } | Status::Waking { .. } | Status::Provisioning { .. } => Ok(draft.already()),
        Status::Pausing { sleep, stage, .. } => {
            check_allowed(&draft, &sleep, cause)?;
            Ok(match stage {
                // The driver has not been asked: there is nothing to wait for.
                Stage::Hook => undo(draft, sleep, cause),
                Stage::Acting => wait(draft, cause),
            })
        }
        Status::Paused { sleep, .. } => {
            check_allowed(&draft, &sleep, cause)?;
            Ok(begin(draft, WakeFrom::Frozen, cause.clone(), Some(sleep), Duration::ZERO))
        }
        Status::Stopping { sleep, stage, .. } => {
            check_allowed(&draft, &sleep, cause)?;
            // While the hook runs the worker runs too. What somebody insisted on goes on all the same,
            // but for a person who wants the worker back.
            let is_person = matches!(cause, WakeCause::Resume { .. });
            if stage == Stage::Hook && (is_person || !sleep.forced) {
                return Ok(undo(draft, sleep, cause));
            }
            check_may_start(cause)?;
            Ok(wait(draft, cause))
        }
        Status::Stopped { sleep, .. } => {
            check_allowed(&draft, &sleep, cause)?;
            check_may_start(cause)?;
            Ok(begin(draft, WakeFrom::Stopped, cause.clone(), Some(sleep), Duration::ZERO))
        }
        Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => Err(draft.wrong_status("woken")),
    }
}

/// Activity newer than the intent. It undoes only what rests on the absence of activity.
pub(super) fn activity_arrived(draft: Draft, by: Signal) -> Step {
    match draft.worker.status.clone() {
        // What the hook itself does is no use of the worker, and cannot be told from it.
        Status::Pausing { stage: Stage::Hook, .. } | Status::Stopping { stage: Stage::Hook, .. }
            if by.is_stirred_by_hooks() =>
        {
            draft.already()
        }
        Status::Pausing { sleep, stage: Stage::Hook, .. }
        | Status::Stopping { sleep, stage: Stage::Hook, .. }
            if sleep.is_undone_by_activity() =>
        {
            undo(draft, sleep, &WakeCause::Activity)
        }
        Status::Pausing { sleep, .. } if sleep.is_undone_by_activity() => wait(draft, &WakeCause::Activity),
        // Evidence that was on its way when the pause committed: the worker was in use.
        Status::Paused { sleep, .. } if sleep.is_undone_by_activity() => {
            begin(draft, WakeFrom::Frozen, WakeCause::Activity, Some(sleep), Duration::ZERO)
        }
        Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Stopping { .. }
        | Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Waking { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => draft.already(),
    }
}

/// Keeps what arrived until the driver has answered. The first one counts: it is one wake however many wait.
fn wait(mut draft: Draft, cause: &WakeCause) -> Step {
    if let Status::Pausing { wake: wake @ None, .. } | Status::Stopping { wake: wake @ None, .. } =
        &mut draft.worker.status
    {
        *wake = Some(cause.clone());
        return draft.accept();
    }
    draft.already()
}

/// Takes a sleep back. It counts nothing and starts no snooze.
pub(super) fn undo(mut draft: Draft, sleep: Sleep, cause: &WakeCause) -> Step {
    draft.note(Entry::Undone { by: cause.by().to_string() });
    begin(draft, WakeFrom::Undone, cause.clone(), Some(sleep), Duration::ZERO)
}

const fn reason_of(from: WakeFrom, cause: &WakeCause) -> ResumeReason {
    match from {
        WakeFrom::Undone => ResumeReason::Undo,
        WakeFrom::Frozen | WakeFrom::Stopped => cause.resume_reason(),
    }
}

/// Opens the intent to bring the worker back.
pub(super) fn begin(
    mut draft: Draft,
    from: WakeFrom,
    cause: WakeCause,
    sleep: Option<Sleep>,
    wait: Duration,
) -> Step {
    let intent = draft.next_intent();
    let not_before = draft.now + wait;
    draft.note(Entry::WakeIntended { intent, reason: reason_of(from, &cause), by: cause.by().to_string() });
    let status = Status::Waking {
        intent,
        since: draft.now,
        deadline: not_before + draft.worker.can.waking_within,
        from,
        cause,
        sleep,
        not_before,
        refusals: 0,
    };
    draft.worker.abandoned = None;
    draft.go(status);
    draft.effects.extend(super::reissue(&draft.worker));
    draft.accept()
}

/// It is back. What is counted, remembered and protected depends on how.
pub(super) fn finish(draft: &mut Draft, from: WakeFrom, cause: &WakeCause, sleep: Option<&Sleep>) {
    let reason = reason_of(from, cause);
    let now = draft.now;
    draft.note(Entry::Resumed { reason, by: cause.by().to_string() });
    match reason {
        ResumeReason::Undo | ResumeReason::Restart => {}
        ResumeReason::Manual | ResumeReason::Wake | ResumeReason::External | ResumeReason::Schedule => {
            remember(draft, now, cause.by(), reason, sleep);
        }
    }
    snooze(draft, from, reason, now);
    if draft.worker.terms.has_after_resume {
        draft.effect(Effect::RunAfterResume);
    }
    draft.go(Status::Running { since: now });
}

/// Counts a resume and writes it down as the last one.
pub(super) fn remember(
    draft: &mut Draft,
    at: Timestamp,
    by: &str,
    reason: ResumeReason,
    sleep: Option<&Sleep>,
) {
    draft.worker.counters.count_resume(reason);
    draft.worker.last_resume = Some(Last { at, by: by.to_string(), reason });
    if let (Some(sleep), Some(timeout)) = (sleep, draft.worker.terms.idle_timeout) {
        let is_wake = reason == ResumeReason::Wake;
        draft.worker.flap = draft.worker.flap.woke(at.since(sleep.at), timeout, is_wake);
    }
}

/// Snooze follows a manual or external resume and any start from stopped; a wake from frozen has its own.
/// An undo, a restart and a first boot start none.
pub(super) fn snooze(draft: &mut Draft, from: WakeFrom, reason: ResumeReason, since: Timestamp) {
    let terms = draft.worker.terms;
    let length = match (reason, from) {
        (ResumeReason::Undo | ResumeReason::Restart, _)
        | (_, WakeFrom::Undone)
        | (ResumeReason::Schedule, WakeFrom::Frozen) => Duration::ZERO,
        (ResumeReason::Manual | ResumeReason::External, WakeFrom::Frozen) | (_, WakeFrom::Stopped) => {
            terms.snooze
        }
        (ResumeReason::Wake, WakeFrom::Frozen) => terms.snooze_after_thaw,
    };
    if !length.is_zero() {
        draft.effect(Effect::Snooze { until: since + length });
    }
}

/// What a person, the outside or a limit put to sleep waits for a person.
fn check_allowed(draft: &Draft, sleep: &Sleep, cause: &WakeCause) -> Result<(), Refusal> {
    if !cause.needs_permission() {
        return Ok(());
    }
    if !draft.worker.in_service {
        return Err(Refusal::OutOfService);
    }
    if draft.worker.terms.wake_from.contains(sleep.reason) {
        Ok(())
    } else {
        Err(Refusal::WakeNotAllowed { sleep: sleep.clone() })
    }
}

/// A lease or a keep-awake is for what runs or is frozen; it does not start what is stopped. Nor does the end of
/// Drowse.
fn check_may_start(cause: &WakeCause) -> Result<(), Refusal> {
    match cause {
        WakeCause::Lease { .. } | WakeCause::KeepAwake { .. } | WakeCause::Shutdown | WakeCause::Removal => {
            Err(Refusal::Stopped)
        }
        WakeCause::Connection
        | WakeCause::Resume { .. }
        | WakeCause::Schedule
        | WakeCause::Activity
        | WakeCause::Veto
        | WakeCause::LastLook { .. }
        | WakeCause::Recovery
        | WakeCause::Exit => Ok(()),
    }
}
