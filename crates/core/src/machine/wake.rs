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
use crate::status::{Sleep, Stage, Status, WakeCause, WakeFrom};
use crate::worker::Last;

pub(super) fn resume_requested(mut draft: Draft, by: &str) -> Result<Step, Refusal> {
    let cause = WakeCause::Resume { by: by.to_string() };
    match draft.worker.status.clone() {
        // Only a person brings back what needs a person; the driver's start makes it so from any state.
        Status::Unknown { sleep, .. } => begin(draft, WakeFrom::Stopped, cause, sleep, Duration::ZERO),
        Status::Failed { .. } => {
            // A person has looked at it: its crashes are forgiven.
            draft.worker.crashes = CrashLoop::default();
            begin(draft, WakeFrom::Stopped, cause, None, Duration::ZERO)
        }
        Status::Provisioning { .. } => Err(draft.in_transition()),
        Status::Running { .. }
        | Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. } => requested(draft, &cause),
    }
}

pub(super) fn requested(mut draft: Draft, cause: &WakeCause) -> Result<Step, Refusal> {
    match draft.worker.status.clone() {
        // A worker that is coming up will serve whoever waits at the door.
        Status::Running { .. } | Status::Waking { .. } | Status::Provisioning { .. } => draft.already(),
        Status::Pausing { sleep, stage, .. } => {
            check_allowed(&draft, &sleep, cause)?;
            arrive(draft, stage, cause)
        }
        Status::Paused { sleep, .. } => {
            check_allowed(&draft, &sleep, cause)?;
            begin(draft, WakeFrom::Frozen, cause.clone(), Some(sleep), Duration::ZERO)
        }
        Status::Stopping { sleep, .. } => {
            check_allowed(&draft, &sleep, cause)?;
            check_may_start(cause)?;
            if let Status::Stopping { wake, .. } = &mut draft.worker.status {
                // The first one counts; it is one wake however many wait.
                wake.get_or_insert_with(|| cause.clone());
            }
            draft.accept()
        }
        Status::Stopped { sleep, .. } => {
            check_allowed(&draft, &sleep, cause)?;
            check_may_start(cause)?;
            begin(draft, WakeFrom::Stopped, cause.clone(), Some(sleep), Duration::ZERO)
        }
        Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => Err(draft.wrong_status("woken")),
    }
}

/// Activity newer than the intent. It undoes only what rests on the absence of activity.
pub(super) fn activity_arrived(draft: Draft) -> Result<Step, Refusal> {
    match draft.worker.status.clone() {
        Status::Pausing { sleep, stage, .. } if sleep.is_undone_by_activity() => {
            arrive(draft, stage, &WakeCause::Activity)
        }
        // Evidence that was on its way when the pause committed: the worker was in use.
        Status::Paused { sleep, .. } if sleep.is_undone_by_activity() => {
            begin(draft, WakeFrom::Frozen, WakeCause::Activity, Some(sleep), Duration::ZERO)
        }
        Status::Stopping { sleep, stage: Stage::Hook, .. } if sleep.is_undone_by_activity() => {
            undo(draft, &WakeCause::Activity)
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

/// Something arrived while the worker is being frozen.
fn arrive(mut draft: Draft, stage: Stage, cause: &WakeCause) -> Result<Step, Refusal> {
    match stage {
        // The driver has not been asked: there is nothing to wait for.
        Stage::Hook => undo(draft, cause),
        Stage::Acting => {
            if let Status::Pausing { wake, .. } = &mut draft.worker.status {
                wake.get_or_insert_with(|| cause.clone());
            }
            draft.accept()
        }
    }
}

/// Takes a pause back. It counts nothing and starts no snooze.
pub(super) fn undo(mut draft: Draft, cause: &WakeCause) -> Result<Step, Refusal> {
    draft.note(Entry::Undone { by: cause.by().to_string() });
    begin(draft, WakeFrom::Frozen, cause.clone(), None, Duration::ZERO)
}

/// Opens the intent to bring the worker back.
pub(super) fn begin(
    mut draft: Draft,
    from: WakeFrom,
    cause: WakeCause,
    sleep: Option<Sleep>,
    wait: Duration,
) -> Result<Step, Refusal> {
    let intent = draft.next_intent();
    let not_before = draft.now + wait;
    let reason =
        if sleep.is_none() && from == WakeFrom::Frozen { ResumeReason::Undo } else { cause.resume_reason() };
    draft.note(Entry::WakeIntended { intent, reason, by: cause.by().to_string() });
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
    draft.go(status);
    draft.effects.extend(super::reissue(&draft.worker));
    draft.accept()
}

/// It is back. What is counted, remembered and protected depends on how.
pub(super) fn finish(draft: &mut Draft, from: WakeFrom, cause: &WakeCause, sleep: Option<&Sleep>) {
    // A sleep that never began, or that was taken back, is no sleep: nothing counts.
    let reason = match (sleep, from) {
        (None, WakeFrom::Frozen) => ResumeReason::Undo,
        (_, _) => cause.resume_reason(),
    };
    let now = draft.now;
    draft.note(Entry::Resumed { reason, by: cause.by().to_string() });
    draft.worker.counters.count_resume(reason);
    if !matches!(reason, ResumeReason::Undo | ResumeReason::Restart) {
        draft.worker.last_resume = Some(Last { at: now, by: cause.by().to_string(), reason });
        if let (Some(sleep), Some(timeout)) = (sleep, draft.worker.terms.idle_timeout) {
            let is_wake = reason == ResumeReason::Wake;
            draft.worker.flap = draft.worker.flap.woke(now.since(sleep.at), timeout, is_wake);
        }
    }
    snooze(draft, from, reason, now);
    if draft.worker.terms.has_after_resume {
        draft.effect(Effect::RunAfterResume);
    }
    draft.go(Status::Running { since: now });
}

/// Snooze follows a manual or external resume and any start from stopped; a wake from frozen has its own.
/// An undo, a restart and a first boot start none.
pub(super) fn snooze(draft: &mut Draft, from: WakeFrom, reason: ResumeReason, since: Timestamp) {
    let terms = draft.worker.terms;
    let length = match (reason, from) {
        (ResumeReason::Undo | ResumeReason::Restart, _) => Duration::ZERO,
        (ResumeReason::Manual | ResumeReason::External, _) | (_, WakeFrom::Stopped) => terms.snooze,
        (ResumeReason::Wake, WakeFrom::Frozen) => terms.snooze_after_thaw,
        (ResumeReason::Schedule, WakeFrom::Frozen) => Duration::ZERO,
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

/// A lease or a keep-awake is for what runs or is frozen; it does not start what is stopped.
fn check_may_start(cause: &WakeCause) -> Result<(), Refusal> {
    match cause {
        WakeCause::Lease { .. } | WakeCause::KeepAwake { .. } => Err(Refusal::Stopped),
        WakeCause::Connection
        | WakeCause::Resume { .. }
        | WakeCause::Schedule
        | WakeCause::Activity
        | WakeCause::Veto
        | WakeCause::Recovery
        | WakeCause::Exit => Ok(()),
    }
}
