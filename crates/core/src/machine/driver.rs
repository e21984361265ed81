//! What the driver and the hooks answer, and what happens when they do not.

use alloc::string::{String, ToString};
use core::time::Duration;

use super::{Draft, Step, asleep, reissue, wake};
use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::grace::Restart;
use crate::id::{BootId, Generation, IntentId};
use crate::journal::Entry;
use crate::refusal::Refusal;
use crate::status::{FailCause, Stage, Status, WakeCause, WakeFrom};
use crate::worker::Power;

/// A driver that refused this often is not asked again.
const MOST_REFUSALS: u8 = 3;

pub(super) fn hook_passed(mut draft: Draft, intent: IntentId) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the hook's answer")?;
    match &mut draft.worker.status {
        Status::Pausing { stage, .. } | Status::Stopping { stage, .. } if *stage == Stage::Hook => {
            *stage = Stage::Acting;
        }
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
        | Status::Unknown { .. } => return draft.already(),
    }
    draft.effects.extend(reissue(&draft.worker));
    draft.accept()
}

pub(super) fn hook_vetoed(mut draft: Draft, intent: IntentId, message: &str) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the hook's answer")?;
    let heeded = match &draft.worker.status {
        Status::Pausing { sleep, stage: Stage::Hook, .. }
        | Status::Stopping { sleep, stage: Stage::Hook, .. } => asleep::heeds_veto(sleep),
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
        | Status::Unknown { .. } => return draft.already(),
    };
    draft.note(Entry::HookVetoed { message: message.to_string() });
    if heeded { wake::undo(draft, &WakeCause::Veto) } else { hook_passed(draft, intent) }
}

/// The driver did what it was asked to do: froze, stopped or deleted it.
pub(super) fn done(draft: Draft, intent: IntentId, exit_code: Option<i32>) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the driver's answer")?;
    complete(draft, exit_code)
}

/// Ends the transition that is under way as it was meant to end.
fn complete(mut draft: Draft, exit_code: Option<i32>) -> Result<Step, Refusal> {
    match draft.worker.status.clone() {
        // Something arrived between the decision and the freeze. Nobody is left at a frozen worker.
        Status::Pausing { wake: Some(cause), .. } => wake::undo(draft, &cause),
        Status::Pausing { sleep, wake: None, .. } => {
            asleep::finish_pause(&mut draft, sleep);
            draft.accept()
        }
        Status::Stopping { sleep, was_paused, wake: waiting, .. } => {
            asleep::finish_stop(&mut draft, sleep.clone(), was_paused, exit_code);
            match waiting {
                // One transition for the reader of the journal, two for the worker: it was stopped, and
                // somebody waits for it.
                Some(cause) => wake::begin(draft, WakeFrom::Stopped, cause, Some(sleep), Duration::ZERO),
                None => draft.accept(),
            }
        }
        Status::Terminating { .. } => {
            terminated(&mut draft);
            draft.accept()
        }
        Status::Waking { from, cause, sleep, .. } => {
            wake::finish(&mut draft, from, &cause, sleep.as_ref());
            draft.accept()
        }
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => draft.already(),
    }
}

pub(super) fn terminated(draft: &mut Draft) {
    draft.note(Entry::Terminated);
    asleep::end_run(draft);
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
    if let Status::Waking { from, .. } = draft.worker.status {
        if from == WakeFrom::Stopped || (boot.is_some() && boot != draft.worker.boot.as_ref()) {
            begin_run(&mut draft, boot, started_at);
        }
        complete(draft, None)
    } else {
        Err(Refusal::Late { what: "the driver's answer", than: "intent" })
    }
}

/// Another run of the worker has begun.
pub(super) fn begin_run(draft: &mut Draft, boot: Option<&BootId>, started_at: Option<Timestamp>) {
    let now = draft.now;
    draft.worker.boot_started_at = Some(started_at.map_or(now, |at| at.min(now)));
    draft.worker.frozen_for = Duration::ZERO;
    draft.worker.gpu_was_read = false;
    if let Some(boot) = boot {
        draft.worker.boot = Some(boot.clone());
    }
}

/// Tried again until the third time; then a person is needed, or the wake goes first.
pub(super) fn refused(mut draft: Draft, intent: IntentId, message: &str) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the driver's answer")?;
    // A pause that the driver refuses while somebody waits is not worth a second try.
    if let Status::Pausing { wake: Some(cause), .. } = draft.worker.status.clone() {
        return wake::undo(draft, &cause);
    }
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
        | Status::Unknown { .. } => return draft.already(),
    };
    draft.note(Entry::DriverRefused { message: message.to_string(), attempt });
    if attempt < MOST_REFUSALS {
        draft.effects.extend(reissue(&draft.worker));
        return draft.accept();
    }
    fail(&mut draft, FailCause::Refused, alloc::format!("the driver refused three times: {message}"));
    draft.accept()
}

fn fail(draft: &mut Draft, cause: FailCause, message: String) {
    draft.note(Entry::Failed { message: message.clone() });
    let since = draft.now;
    draft.go(Status::Failed { since, cause, message });
}

/// A transition took longer than it may: the driver is asked for the truth, and what it says is adopted
/// (see [`super::observe`]).
pub(super) fn deadline_passed(mut draft: Draft, generation: Generation) -> Result<Step, Refusal> {
    draft.check_generation(generation, "the deadline")?;
    match draft.worker.status.deadline() {
        Some(deadline) if draft.now >= deadline => {
            let not_before = draft.now;
            draft.effect(Effect::Look { not_before });
            draft.accept()
        }
        Some(_) | None => Err(Refusal::Ignored { why: "its deadline is not over".to_string() }),
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
            draft.go(Status::Unknown { since, sleep });
            draft.accept()
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
        | Status::Unknown { .. } => Err(Refusal::Ignored { why: "nothing waits for the driver".to_string() }),
    }
}

/// It exited by itself.
pub(super) fn exited(mut draft: Draft, boot: &BootId, code: i32) -> Result<Step, Refusal> {
    if draft.worker.boot.as_ref() != Some(boot) {
        return Err(Refusal::Late { what: "the exit", than: "run" });
    }
    let is_starting = matches!(&draft.worker.status, Status::Waking { from: WakeFrom::Stopped, .. });
    let is_running = matches!(&draft.worker.status, Status::Running { .. });
    if !is_running && !is_starting {
        // On its way to sleep or frozen: the driver's answer or the next look tells.
        return Err(Refusal::Ignored { why: "a transition is under way".to_string() });
    }
    draft.note(Entry::Exited { code });
    let started_at = draft.worker.boot_started_at.unwrap_or(draft.now);
    if code == 0 || !draft.worker.can.restarts_on_error {
        let sleep = asleep::external_sleep(&draft);
        asleep::finish_stop(&mut draft, sleep, false, Some(code));
        return draft.accept();
    }
    match draft.worker.crashes.exited(started_at, draft.now) {
        Restart::GiveUp => {
            asleep::end_run(&mut draft);
            fail(
                &mut draft,
                FailCause::CrashLoop,
                alloc::format!("it exited with code {code} right after its start, again and again"),
            );
            draft.accept()
        }
        Restart::After(wait) => {
            asleep::end_run(&mut draft);
            wake::begin(draft, WakeFrom::Stopped, WakeCause::Exit, None, wait)
        }
    }
}

/// Drowse came back and found a transition under way. What it cannot vouch for it takes back; what does
/// not rest on evidence it carries on with.
pub(super) fn recovered(mut draft: Draft, power: Option<Power>) -> Result<Step, Refusal> {
    match draft.worker.status.clone() {
        // Nobody watched while Drowse was away, so nobody can say that nothing arrived.
        Status::Pausing { sleep, .. } if sleep.is_undone_by_activity() => {
            wake::undo(draft, &WakeCause::Recovery)
        }
        Status::Stopping { sleep, stage: Stage::Hook, .. } if sleep.is_undone_by_activity() => {
            wake::undo(draft, &WakeCause::Recovery)
        }
        Status::Pausing { .. } if power == Some(Power::Paused) => complete(draft, None),
        Status::Stopping { .. } if power == Some(Power::Stopped) => complete(draft, None),
        Status::Terminating { .. } if power == Some(Power::Gone) => complete(draft, None),
        Status::Pausing { .. }
        | Status::Stopping { .. }
        | Status::Terminating { .. }
        | Status::Waking { .. }
        | Status::Provisioning { .. } => {
            draft.effects.extend(reissue(&draft.worker));
            draft.accept()
        }
        Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => draft.already(),
    }
}

/// The deadline is over and this is what the driver says: it counts, whatever was meant.
pub(super) fn adopt(mut draft: Draft, power: Power, boot: Option<&BootId>) -> Result<Step, Refusal> {
    use crate::status::StatusKind;
    let was = draft.worker.status.clone();
    let found = match power {
        Power::Running => StatusKind::Running,
        Power::Paused => StatusKind::Paused,
        Power::Stopped => StatusKind::Stopped,
        Power::Gone => StatusKind::Terminated,
    };
    draft.note(Entry::Found { was: was.kind(), found });
    let is_meant = match (&was, power) {
        (Status::Pausing { .. }, Power::Paused)
        | (Status::Stopping { .. }, Power::Stopped)
        | (Status::Waking { .. }, Power::Running)
        | (Status::Terminating { .. }, Power::Gone) => true,
        (_, Power::Running | Power::Paused | Power::Stopped | Power::Gone) => false,
    };
    if is_meant {
        if let Status::Waking { from: WakeFrom::Stopped, .. } = was {
            begin_run(&mut draft, boot, None);
        }
        return complete(draft, None);
    }
    // A sleep that we caused or were about to end stays ours; only one that we know nothing of is external.
    let sleep = was.sleep().cloned().unwrap_or_else(|| asleep::external_sleep(&draft));
    match power {
        Power::Running => {
            if draft.worker.boot_started_at.is_none() {
                begin_run(&mut draft, boot, None);
            }
            let since = draft.now;
            draft.go(Status::Running { since });
        }
        Power::Paused => asleep::finish_pause(&mut draft, sleep),
        Power::Stopped => {
            let was_paused = matches!(was, Status::Waking { .. } | Status::Stopping { was_paused: true, .. });
            asleep::finish_stop(&mut draft, sleep, was_paused, None);
        }
        Power::Gone => terminated(&mut draft),
    }
    draft.accept()
}
