//! Looks at the driver: what changes behind our back is seen twice, written down, and respected.

use super::{Draft, Step, asleep, driver, wake};
use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::event::Observation;
use crate::journal::Entry;
use crate::reason::ResumeReason;
use crate::refusal::Refusal;
use crate::status::{FailCause, Status, StatusKind, WakeFrom};
use crate::worker::{Last, Power, Suspicion};

pub(super) fn observed(mut draft: Draft, seen: &Observation) -> Result<Step, Refusal> {
    draft.check_generation(seen.generation, "the look")?;
    let status = draft.worker.status.clone();
    let since = status.since();

    if let Some(deadline) = status.deadline().filter(|_| status.intent().is_some()) {
        // An intent is open: what the driver shows may be half of what it is about to do. Only when its
        // time is over does a look that began after that decide.
        return if draft.now >= deadline && seen.began_at >= deadline {
            driver::adopt(draft, seen.power, seen.boot.as_ref())
        } else {
            Err(Refusal::Ignored { why: "an intent is open".into() })
        };
    }
    let settled_at = since + draft.worker.can.settle_for;
    let is_fresh = draft.worker.generation.0 == 0 || seen.began_at >= settled_at;
    if !is_fresh {
        return Err(Refusal::Ignored { why: "the look began before the last change had settled".into() });
    }
    match (&status, seen.power) {
        (Status::Running { .. }, Power::Running) => running_still(draft, seen),
        (Status::Paused { .. }, Power::Paused)
        | (Status::Stopped { .. }, Power::Stopped)
        | (Status::Terminated { .. }, _)
        | (Status::Failed { cause: FailCause::CrashLoop, .. }, Power::Stopped | Power::Paused) => {
            draft.worker.suspicion = None;
            draft.already()
        }
        // What drains will be deleted; that it stopped meanwhile changes nothing.
        (Status::Draining { .. }, Power::Running | Power::Paused | Power::Stopped) => draft.already(),
        (Status::Provisioning { .. }, Power::Running) => {
            driver::begin_run(&mut draft, seen.boot.as_ref(), seen.dated_at);
            draft.note(Entry::Started);
            let now = draft.now;
            draft.go(Status::Running { since: now });
            draft.accept()
        }
        // Nothing is contradicted, so one look is enough.
        (Status::Unknown { .. } | Status::Failed { cause: FailCause::Refused, .. }, power) => {
            driver::adopt(draft, power, seen.boot.as_ref())
        }
        (
            Status::Provisioning { .. }
            | Status::Running { .. }
            | Status::Paused { .. }
            | Status::Stopped { .. }
            | Status::Draining { .. }
            | Status::Failed { cause: FailCause::CrashLoop, .. },
            _,
        ) => contradicted(draft, seen),
        (
            Status::Pausing { .. }
            | Status::Waking { .. }
            | Status::Stopping { .. }
            | Status::Terminating { .. },
            _,
        ) => Err(draft.in_transition()),
    }
}

/// It runs, as we believe; but is it the same run?
fn running_still(mut draft: Draft, seen: &Observation) -> Result<Step, Refusal> {
    draft.worker.suspicion = None;
    match (&seen.boot, &draft.worker.boot) {
        (Some(new), Some(old)) if new != old => {
            // Restarted behind our back between two looks: evidence and holds of the old run are void.
            draft.note(Entry::External { to: StatusKind::Running });
            asleep::end_run(&mut draft);
            driver::begin_run(&mut draft, seen.boot.as_ref(), seen.dated_at);
            came_back(&mut draft, seen.dated_at, WakeFrom::Stopped);
            draft.accept()
        }
        (Some(new), None) => {
            draft.worker.boot = Some(new.clone());
            draft.accept()
        }
        (Some(_) | None, _) => draft.already(),
    }
}

/// A contradiction must be seen twice; the second look comes after the driver has settled.
fn contradicted(mut draft: Draft, seen: &Observation) -> Result<Step, Refusal> {
    let settle_for = draft.worker.can.settle_for;
    let is_second = draft.worker.suspicion.is_some_and(|first| {
        first.power == seen.power
            && seen.began_at > first.seen_at
            && seen.began_at >= first.seen_at + settle_for
    });
    if !is_second {
        let is_same = draft.worker.suspicion.is_some_and(|first| first.power == seen.power);
        if !is_same {
            draft.worker.suspicion = Some(Suspicion { power: seen.power, seen_at: seen.began_at });
        }
        let not_before = seen.began_at + settle_for;
        draft.effect(Effect::Look { not_before });
        return draft.accept();
    }
    external(draft, seen)
}

/// Somebody else did it. It is written down and respected, never fought.
fn external(mut draft: Draft, seen: &Observation) -> Result<Step, Refusal> {
    match seen.power {
        Power::Gone => driver::terminated(&mut draft),
        Power::Running => back(&mut draft, seen),
        // It must have run to be frozen now; the next look makes it paused.
        Power::Paused if draft.worker.status.kind() == StatusKind::Stopped => back(&mut draft, seen),
        Power::Paused => {
            draft.note(Entry::External { to: StatusKind::Paused });
            let sleep = asleep::external_sleep(&draft);
            asleep::finish_pause(&mut draft, sleep);
        }
        Power::Stopped => {
            draft.note(Entry::External { to: StatusKind::Stopped });
            let sleep = asleep::external_sleep(&draft);
            asleep::finish_stop(&mut draft, sleep, false, None);
        }
    }
    draft.accept()
}

fn back(draft: &mut Draft, seen: &Observation) {
    draft.note(Entry::External { to: StatusKind::Running });
    let from = if matches!(draft.worker.status, Status::Paused { .. }) {
        WakeFrom::Frozen
    } else {
        WakeFrom::Stopped
    };
    if from == WakeFrom::Stopped {
        driver::begin_run(draft, seen.boot.as_ref(), seen.dated_at);
    }
    came_back(draft, seen.dated_at, from);
}

/// It is awake through somebody else. The driver's own date counts where it tells one.
fn came_back(draft: &mut Draft, dated_at: Option<Timestamp>, from: WakeFrom) {
    let at = dated_at.map_or(draft.now, |at| at.min(draft.now));
    draft.worker.counters.count_resume(ResumeReason::External);
    draft.worker.last_resume = Some(Last { at, by: "external".into(), reason: ResumeReason::External });
    draft.note(Entry::Resumed { reason: ResumeReason::External, by: "external".into() });
    wake::snooze(draft, from, ResumeReason::External, at);
    let since = draft.now;
    draft.go(Status::Running { since });
}
