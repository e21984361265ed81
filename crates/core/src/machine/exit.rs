//! Workers that exit by themselves.

use super::{Draft, Step, asleep, driver, wake};
use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::grace::Restart;
use crate::id::BootId;
use crate::journal::Entry;
use crate::refusal::Refusal;
use crate::status::{FailCause, Sleep, Stage, Status, WakeCause, WakeFrom};

/// It exited by itself.
pub(super) fn exited(mut draft: Draft, boot: &BootId, code: i32) -> Result<Step, Refusal> {
    let late = Refusal::Late { what: "the exit", than: "run" };
    let is_this_run = draft.worker.boot.as_ref() == Some(boot);
    let (started_at, after) = match draft.worker.status.clone() {
        // It cannot be said whether that was this run.
        Status::Running { .. } if draft.worker.boot.is_none() => {
            let not_before = draft.now;
            draft.effect(Effect::Look { not_before });
            return Ok(draft.accept());
        }
        Status::Running { .. } if is_this_run => (this_run_began(&draft), (WakeCause::Exit, None)),
        Status::Waking { from: WakeFrom::Undone, .. } if is_this_run => {
            (this_run_began(&draft), (WakeCause::Exit, None))
        }
        // Whoever wakes it still waits for it.
        Status::Waking { from: WakeFrom::Frozen, cause, sleep, .. } if is_this_run => {
            (this_run_began(&draft), (cause, sleep))
        }
        // The run that is being started is not known until it answers; the one before it is, and is over.
        Status::Waking { from: WakeFrom::Stopped, cause, sleep, not_before, .. }
            if !is_this_run && draft.now >= not_before =>
        {
            draft.worker.boot = Some(boot.clone());
            (not_before, (cause, sleep))
        }
        Status::Running { .. } | Status::Waking { .. } => return Err(late),
        // On its way to sleep or frozen: the driver's answer or the next look tells.
        Status::Provisioning { .. }
        | Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Stopping { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => {
            return Err(Refusal::Ignored { why: "it is not awake, or not for long".into() });
        }
    };
    draft.note(Entry::Exited { code });
    // Our own signal, late: it was asked to stop and was given up.
    if let Some(was @ Status::Stopping { stage: Stage::Acting, .. }) = draft.abandoned().cloned() {
        draft.worker.abandoned = None;
        return Ok(driver::complete(draft, was, Some(code)));
    }
    if code == 0 || !draft.worker.can.restarts_on_error {
        let sleep = asleep::external_sleep(draft.now);
        asleep::finish_stop(&mut draft, sleep, false, Some(code));
        return Ok(draft.accept());
    }
    Ok(restart(draft, started_at, code, after))
}

fn this_run_began(draft: &Draft) -> Timestamp {
    draft.worker.boot_started_at.unwrap_or(draft.now)
}

fn restart(
    mut draft: Draft,
    started_at: Timestamp,
    code: i32,
    (cause, sleep): (WakeCause, Option<Sleep>),
) -> Step {
    let next = draft.worker.crashes.exited(started_at, draft.now);
    asleep::end_run(&mut draft);
    match next {
        Restart::GiveUp => {
            let message = alloc::format!("it exited with code {code} right after its start, again and again");
            draft.worker.abandoned = None;
            driver::fail(&mut draft, FailCause::CrashLoop, message);
            draft.accept()
        }
        Restart::After(wait) => wake::begin(draft, WakeFrom::Stopped, cause, sleep, wait),
    }
}
