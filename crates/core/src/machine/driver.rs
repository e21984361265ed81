//! What the driver and the hooks answer, and what happens when they do not.

use alloc::string::{String, ToString};
use core::time::Duration;

use super::{Draft, Step, asleep, reissue, wake};
use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::id::{BootId, Generation, IntentId};
use crate::journal::Entry;
use crate::refusal::Refusal;
use crate::status::{FailCause, Sleep, Stage, Status, WakeCause, WakeFrom};

/// A driver that refused this often is not asked again.
const MOST_REFUSALS: u8 = 3;

/// The sleep whose hook runs, if one does.
fn hooked(status: &Status) -> Option<&Sleep> {
    match status {
        Status::Pausing { sleep, stage: Stage::Hook, .. }
        | Status::Stopping { sleep, stage: Stage::Hook, .. } => Some(sleep),
        Status::Pausing { .. }
        | Status::Stopping { .. }
        | Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Waking { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => None,
    }
}

pub(super) fn hook_passed(mut draft: Draft, intent: IntentId) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the hook's answer")?;
    if hooked(&draft.worker.status).is_none() {
        return Ok(draft.already());
    }
    draft.worker.vetoes = 0;
    Ok(act(draft))
}

/// So many vetoes in a row are worth somebody's attention.
const ALERT_AT_VETO: u32 = 3;

pub(super) fn hook_vetoed(mut draft: Draft, intent: IntentId, message: &str) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the hook's answer")?;
    let Some(sleep) = hooked(&draft.worker.status).cloned() else {
        return Ok(draft.already());
    };
    draft.worker.vetoes = draft.worker.vetoes.saturating_add(1);
    let in_a_row = draft.worker.vetoes;
    draft.note(Entry::HookVetoed { message: message.to_string(), in_a_row });
    if in_a_row == ALERT_AT_VETO {
        draft.note(Entry::VetoAlert { in_a_row });
    }
    Ok(if asleep::heeds_veto(&sleep) { wake::undo(draft, sleep, &WakeCause::Veto) } else { act(draft) })
}

/// The hook has had its say; now the driver is asked.
fn act(mut draft: Draft) -> Step {
    if let Status::Pausing { stage, .. } | Status::Stopping { stage, .. } = &mut draft.worker.status {
        *stage = Stage::Acting;
    }
    draft.effects.extend(reissue(&draft.worker));
    draft.accept()
}

/// The driver did what it was asked to do: froze, stopped or deleted it.
pub(super) fn done(
    mut draft: Draft,
    intent: IntentId,
    exit_code: Option<i32>,
    asked_at: Option<Timestamp>,
) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the driver's answer")?;
    draft.check_asked()?;
    match draft.worker.status.clone() {
        // A start that was made is not yet a worker that answers.
        Status::Waking { .. } => Err(Refusal::Ignored { why: "it does not answer yet".into() }),
        status @ (Status::Pausing { .. } | Status::Stopping { .. } | Status::Terminating { .. }) => {
            draft.asked_at = asked_at;
            Ok(complete(draft, status, exit_code))
        }
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => Ok(draft.already()),
    }
}

impl Draft {
    /// The driver can answer only what it was asked, and while the hook runs it has not been.
    fn check_asked(&self) -> Result<(), Refusal> {
        match hooked(&self.worker.status) {
            Some(_) => Err(Refusal::Ignored { why: "the driver has not been asked yet".into() }),
            None => Ok(()),
        }
    }
}

/// Ends the transition `was` as it was meant to end, whether it is still under way or was given up.
pub(super) fn complete(mut draft: Draft, was: Status, exit_code: Option<i32>) -> Step {
    // Who remembers no better counts the grace from the decision, which is sooner.
    draft.asked_at.get_or_insert(was.since());
    match was {
        // Something arrived between the decision and the freeze. Nobody is left at a frozen worker.
        Status::Pausing { sleep, wake: Some(cause), .. } => return wake::undo(draft, sleep, &cause),
        Status::Pausing { sleep, wake: None, .. } => asleep::finish_pause(&mut draft, sleep),
        Status::Stopping { sleep, was_paused, wake: waiting, .. } => {
            asleep::finish_stop(&mut draft, sleep.clone(), was_paused, exit_code);
            if let Some(cause) = waiting {
                // One transition for the reader of the journal, two for the worker: it was stopped, and
                // somebody waits for it.
                return wake::begin(draft, WakeFrom::Stopped, cause, Some(sleep), Duration::ZERO);
            }
        }
        Status::Terminating { .. } => {
            asleep::note_grace(&mut draft, exit_code);
            terminated(&mut draft);
        }
        Status::Waking { from, cause, sleep, .. } => wake::finish(&mut draft, from, &cause, sleep.as_ref()),
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => return draft.already(),
    }
    draft.accept()
}

pub(super) fn terminated(draft: &mut Draft) {
    draft.note(Entry::Terminated);
    asleep::end_run(draft);
    draft.effect(Effect::EndLeasedTime);
    draft.worker.abandoned = None;
    let since = draft.now;
    draft.go(Status::Terminated { since });
}

/// The worker answers.
pub(super) fn ready(
    mut draft: Draft,
    intent: IntentId,
    boot: Option<&BootId>,
    started_at: Option<Timestamp>,
) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the driver's answer")?;
    let status = draft.worker.status.clone();
    if let Status::Waking { from, .. } = status {
        note_run(&mut draft, from, boot, started_at);
        Ok(complete(draft, status, None))
    } else {
        Err(Refusal::Late { what: "the driver's answer", than: "intent" })
    }
}

/// A worker that woke runs: in a new run, or in the one that was frozen?
pub(super) fn note_run(
    draft: &mut Draft,
    from: WakeFrom,
    boot: Option<&BootId>,
    started_at: Option<Timestamp>,
) {
    let is_new = match (draft.worker.boot.as_ref(), boot) {
        (Some(old), Some(new)) => old != new,
        // Nobody tells: a start begins a new run, a thaw does not.
        (None, _) | (_, None) => from == WakeFrom::Stopped,
    };
    if is_new {
        begin_run(draft, boot, started_at);
    } else {
        meet_run(draft, boot, started_at);
    }
}

/// The run goes on, unless this is the first that we hear of it.
pub(super) fn meet_run(draft: &mut Draft, boot: Option<&BootId>, started_at: Option<Timestamp>) {
    if draft.worker.boot_started_at.is_none() {
        begin_run(draft, boot, started_at);
    } else if let Some(boot) = boot {
        draft.worker.boot = Some(boot.clone());
    }
}

/// Another run of the worker has begun. If the last one is not known to have ended, it has now.
pub(super) fn begin_run(draft: &mut Draft, boot: Option<&BootId>, started_at: Option<Timestamp>) {
    if draft.worker.boot_started_at.is_some() {
        asleep::end_run(draft);
    }
    let now = draft.now;
    draft.worker.boot_started_at = Some(started_at.map_or(now, |at| at.min(now)));
    draft.worker.frozen_for = Duration::ZERO;
    draft.worker.gpu_was_read = false;
    // Where the driver does not tell, the old identity must not stand for the new run: the next look would
    // take the difference for a restart by somebody else.
    draft.worker.boot = boot.cloned();
}

/// Tried again until the third time; then a person is needed, or the wake goes first.
pub(super) fn refused(mut draft: Draft, intent: IntentId, message: &str) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the driver's answer")?;
    draft.check_asked()?;
    let attempt = match &mut draft.worker.status {
        Status::Pausing { refusals, .. }
        | Status::Waking { refusals, .. }
        | Status::Stopping { refusals, .. }
        | Status::Terminating { refusals, .. } => {
            *refusals += 1;
            *refusals
        }
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => return Ok(draft.already()),
    };
    draft.note(Entry::DriverRefused { message: message.to_string(), attempt });
    let status = draft.worker.status.clone();
    // A sleep that the driver refuses while somebody waits is not worth a second try.
    if let Status::Stopping { sleep, was_paused: true, wake: Some(cause), .. } = status {
        return Ok(wake::begin(draft, WakeFrom::Frozen, cause, Some(sleep), Duration::ZERO));
    }
    if let Status::Pausing { sleep, wake: Some(cause), .. }
    | Status::Stopping { sleep, wake: Some(cause), .. } = status
    {
        return Ok(wake::undo(draft, sleep, &cause));
    }
    if attempt >= MOST_REFUSALS {
        let message = alloc::format!("the driver refused three times: {message}");
        draft.abandon(status);
        fail(&mut draft, FailCause::Refused, message);
    } else {
        draft.effects.extend(reissue(&draft.worker));
    }
    Ok(draft.accept())
}

/// A worker that was never made has nothing to go back to: after the third time a person is needed.
pub(super) fn make_refused(mut draft: Draft, generation: Generation, message: &str) -> Result<Step, Refusal> {
    draft.check_generation(generation, "the driver's answer")?;
    let Status::Provisioning { refusals, .. } = &mut draft.worker.status else {
        return Err(draft.wrong_status("provisioning"));
    };
    *refusals += 1;
    let attempt = *refusals;
    draft.note(Entry::DriverRefused { message: message.to_string(), attempt });
    if attempt >= MOST_REFUSALS {
        let message = alloc::format!("the driver refused three times: {message}");
        fail(&mut draft, FailCause::Refused, message);
    }
    Ok(draft.accept())
}

pub(super) fn fail(draft: &mut Draft, cause: FailCause, message: String) {
    draft.note(Entry::Failed { message: message.clone() });
    let since = draft.now;
    draft.go(Status::Failed { since, cause, message });
}

/// A transition took longer than it may: the driver is asked for the truth, and what it says is adopted
/// (see [`super::truth`]).
pub(super) fn deadline_passed(mut draft: Draft, generation: Generation) -> Result<Step, Refusal> {
    draft.check_generation(generation, "the deadline")?;
    match draft.worker.status.deadline() {
        Some(deadline) if draft.now >= deadline => {
            let not_before = draft.now;
            draft.effect(Effect::Look { not_before });
            Ok(draft.accept())
        }
        Some(_) | None => Err(Refusal::Ignored { why: "its deadline is not over".into() }),
    }
}

/// The driver does not answer at all.
pub(super) fn silent(mut draft: Draft, generation: Generation) -> Result<Step, Refusal> {
    draft.check_generation(generation, "the driver's silence")?;
    let status = draft.worker.status.clone();
    let is_over = status.deadline().is_some_and(|deadline| draft.now >= deadline);
    match status {
        Status::Provisioning { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Terminating { .. }
            if is_over =>
        {
            draft.note(Entry::Unknown { was: status.kind() });
            let sleep = status.sleep().cloned();
            let since = draft.now;
            draft.abandon(status);
            draft.go(Status::Unknown { since, sleep });
            Ok(draft.accept())
        }
        // A silent driver says nothing about a worker at rest: its signals are unknown, which keeps it
        // awake, and its status stays what it was.
        Status::Provisioning { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Terminating { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => Err(Refusal::Ignored { why: "nothing waits for the driver".into() }),
    }
}
