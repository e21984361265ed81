//! What must hold of every step, whatever came before.

#![expect(clippy::wildcard_enum_match_arm, reason = "each law looks at the entries that it is about")]

use core::time::Duration;

use drowse_core::Timestamp;
use drowse_core::effect::Effect;
use drowse_core::event::Event;
use drowse_core::id::IntentId;
use drowse_core::journal::Entry;
use drowse_core::machine::{Answer, Step};
use drowse_core::reason::{PauseReason, ResumeReason};
use drowse_core::signal::DriverKind;
use drowse_core::status::{Status, StatusKind, WakeFrom};
use drowse_core::worker::{Counters, Worker};

use super::machine_table::{cause_of, row_of};

type Law = Result<(), String>;

macro_rules! law {
    ($holds:expr, $($says:tt)+) => {
        if !$holds {
            return Err(format!($($says)+));
        }
    };
}

/// Holds a step that was not refused against all laws.
pub(crate) fn obey(before: &Worker, event: &Event, step: &Step, now: Timestamp) -> Law {
    if step.answer == Answer::AlreadyTrue {
        law!(step.worker == *before, "what was true already has changed the worker");
        law!(step.effects.is_empty() && step.entries.is_empty(), "what was true already has an effect");
        return Ok(());
    }
    transitions_are_lawful(before, event, step, now)?;
    intents_are_numbered(before, step)?;
    counters_follow_the_journal(before, event, step)?;
    snoozes_follow_resumes(before, step, now)?;
    deadlines_are_those_of_the_specification(before, step, now)?;
    lasts_follow_the_journal(before, step)?;
    Ok(())
}

/// The rows that a step has used.
pub(crate) fn rows(before: &Worker, event: &Event, step: &Step, now: Timestamp) -> Vec<Option<usize>> {
    let by = cause_of(before, event, now);
    let (from, to) = (before.status.kind(), step.worker.status.kind());
    match step.worker.generation.0 - before.generation.0 {
        0 => Vec::new(),
        _ => vec![row_of(from, by, to)],
    }
}

fn transitions_are_lawful(before: &Worker, event: &Event, step: &Step, now: Timestamp) -> Law {
    let by = cause_of(before, event, now);
    let (from, to) = (before.status.kind(), step.worker.status.kind());
    let count = step.worker.generation.0.wrapping_sub(before.generation.0);
    match count {
        0 => law!(from == to, "{from} became {to} within a generation"),
        1 => law!(row_of(from, by, to).is_some(), "{from} became {to} by {by:?}: that is in no row"),
        // It was asleep for no time at all, because somebody waited for that.
        2 => {
            law!(to == StatusKind::Waking, "{from} became {to} in two steps");
            let asleep = step.entries.iter().any(|entry| {
                matches!(entry, Entry::Stopped { .. } | Entry::Paused { .. } | Entry::Found { .. })
            });
            law!(asleep, "{from} became {to} in two steps and did not sleep");
            law!(row_of(from, by, to).is_some(), "{from} became {to} by {by:?}: that is in no row");
        }
        _ => return Err(format!("{count} transitions at once")),
    }
    if count > 0 {
        law!(step.worker.status.since() == now, "a new status that did not begin now");
        law!(step.worker.suspicion.is_none(), "a suspicion outlived what it was about");
    }
    Ok(())
}

fn intents_are_numbered(before: &Worker, step: &Step) -> Law {
    let intent = step.worker.status.intent();
    if step.worker.generation == before.generation {
        law!(intent == before.status.intent(), "the intent changed within a generation");
    } else if let Some(intent) = intent {
        law!(intent == IntentId(step.worker.generation.0), "intent {intent} is not numbered by generation");
    }
    for effect in &step.effects {
        let named = match effect {
            Effect::RunBeforePause { intent, .. }
            | Effect::Freeze { intent }
            | Effect::Thaw { intent }
            | Effect::Stop { intent, .. }
            | Effect::Start { intent, .. }
            | Effect::Terminate { intent } => Some(*intent),
            Effect::RunAfterResume
            | Effect::AnnounceSleep { .. }
            | Effect::Look { .. }
            | Effect::Snooze { .. }
            | Effect::EndHolds
            | Effect::EndLeasedTime => None,
        };
        law!(named.is_none() || named == intent, "{effect:?} does not belong to {intent:?}");
    }
    Ok(())
}

/// The transition that the step has ended: what was under way, or what had been given up and came late.
fn ended(before: &Worker, entries: &[Entry]) -> Status {
    let is_late = entries.iter().any(|entry| matches!(entry, Entry::Found { .. } | Entry::Exited { .. }));
    match (&before.status, &before.abandoned) {
        (Status::Waking { .. }, _) | (_, None) => before.status.clone(),
        (_, Some(abandoned)) if is_late => abandoned.was.clone(),
        (_, Some(_)) => before.status.clone(),
    }
}

fn counters_follow_the_journal(before: &Worker, event: &Event, step: &Step) -> Law {
    let mut expected = before.counters;
    let was_paused = matches!(ended(before, &step.entries), Status::Stopping { was_paused: true, .. });
    for entry in &step.entries {
        match entry {
            Entry::Paused { reason, .. } => count_pause(&mut expected, *reason),
            // From frozen to stopped counts nothing, unless it was somebody else's doing.
            Entry::Stopped { reason, .. } if !was_paused || *reason == PauseReason::External => {
                count_pause(&mut expected, *reason);
            }
            Entry::Resumed { reason, .. } => match reason {
                ResumeReason::Manual => expected.manual_resume += 1,
                ResumeReason::Wake | ResumeReason::Schedule => expected.auto_resume += 1,
                ResumeReason::External => expected.external_resume += 1,
                ResumeReason::Undo | ResumeReason::Restart => {}
            },
            _ => {}
        }
    }
    if let (Event::Drained { .. }, Status::Draining { reason: PauseReason::ScaleDown, .. }) =
        (event, &before.status)
    {
        expected.scale_down += 1;
    }
    law!(step.worker.counters == expected, "counted {:?}, expected {expected:?}", step.worker.counters);
    Ok(())
}

fn count_pause(counters: &mut Counters, reason: PauseReason) {
    match reason {
        PauseReason::IdleTimeout | PauseReason::Schedule => counters.auto_pause += 1,
        PauseReason::Manual => counters.manual_pause += 1,
        PauseReason::External => counters.external_pause += 1,
        PauseReason::MaxRuntime => counters.max_runtime += 1,
        PauseReason::ScaleDown => counters.scale_down += 1,
    }
}

fn snoozes_follow_resumes(before: &Worker, step: &Step, now: Timestamp) -> Law {
    let resumed = step.entries.iter().find_map(|entry| match entry {
        Entry::Resumed { reason, .. } => Some(*reason),
        _ => None,
    });
    let from_frozen = match ended(before, &step.entries) {
        Status::Waking { from, .. } => from != WakeFrom::Stopped,
        // A thaw by somebody else, or for a stop that did not come.
        status => matches!(status, Status::Stopping { .. } | Status::Paused { .. }),
    };
    let until = step.effects.iter().find_map(|effect| match effect {
        Effect::Snooze { until } => Some(*until),
        _ => None,
    });
    let expected = match resumed {
        None | Some(ResumeReason::Undo | ResumeReason::Restart) => Duration::ZERO,
        // Its date is the driver's; that is tested apart.
        Some(ResumeReason::External) => {
            law!(until.is_some() != before.terms.snooze.is_zero(), "an external resume starts a snooze");
            return Ok(());
        }
        Some(ResumeReason::Wake) if from_frozen => before.terms.snooze_after_thaw,
        Some(ResumeReason::Schedule) if from_frozen => Duration::ZERO,
        Some(ResumeReason::Manual | ResumeReason::Wake | ResumeReason::Schedule) => before.terms.snooze,
    };
    let expected = (!expected.is_zero()).then(|| now + expected);
    law!(until == expected, "snoozed until {until:?} instead of {expected:?} after {resumed:?}");
    Ok(())
}

fn deadlines_are_those_of_the_specification(before: &Worker, step: &Step, now: Timestamp) -> Law {
    if step.worker.generation == before.generation {
        return Ok(());
    }
    let is_ec2 = before.driver == DriverKind::Ec2;
    let secs = Duration::from_secs;
    let expected = match &step.worker.status {
        Status::Pausing { .. } => Some(now + secs(30)),
        Status::Waking { not_before, .. } => Some(*not_before + secs(if is_ec2 { 600 } else { 60 })),
        Status::Stopping { .. } if is_ec2 => Some(now + secs(600)),
        Status::Stopping { .. } => Some(now + before.terms.grace + secs(30)),
        Status::Terminating { .. } => Some(now + secs(600)),
        Status::Draining { .. } => Some(now + before.terms.drain_timeout),
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => None,
    };
    let found = step.worker.status.deadline();
    law!(found == expected, "its deadline is {found:?} instead of {expected:?}");
    Ok(())
}

fn lasts_follow_the_journal(before: &Worker, step: &Step) -> Law {
    let slept = step
        .entries
        .iter()
        .any(|entry| matches!(entry, Entry::Paused { .. } | Entry::Stopped { .. } | Entry::Found { .. }));
    law!(slept || step.worker.last_pause == before.last_pause, "a last sleep that was none");
    let resumed = step.entries.iter().find_map(|entry| match entry {
        Entry::Resumed { reason, .. } => Some(*reason),
        _ => None,
    });
    match resumed {
        None | Some(ResumeReason::Undo | ResumeReason::Restart) => {
            law!(step.worker.last_resume == before.last_resume, "a last resume that was none");
        }
        Some(reason) => {
            let last = step.worker.last_resume.as_ref().map(|last| last.reason);
            law!(last == Some(reason), "the last resume was {reason}, not {last:?}");
        }
    }
    Ok(())
}
