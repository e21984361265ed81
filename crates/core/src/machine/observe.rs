//! Looks at the driver: what changes behind our back is seen twice, written down, and respected.

use super::truth::{self, Sight};
use super::{Draft, Step, asleep, driver, wake};
use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::event::Observation;
use crate::journal::Entry;
use crate::reason::ResumeReason;
use crate::refusal::Refusal;
use crate::status::{FailCause, Status, StatusKind, WakeFrom};
use crate::worker::{Power, Suspicion};

pub(super) fn observed(mut draft: Draft, seen: &Observation) -> Result<Step, Refusal> {
    draft.check_generation(seen.generation, "the look")?;
    let status = draft.worker.status.clone();
    let since = status.since();

    if let Some(deadline) = status.deadline().filter(|_| status.intent().is_some()) {
        // An intent is open: what the driver shows may be half of what it is about to do. Only when its
        // time is over does a look that began after that decide.
        return if draft.now >= deadline && seen.began_at >= deadline {
            Ok(truth::adopt(draft, sight(seen)))
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
        (Status::Running { .. }, Power::Running) => Ok(running_still(draft, seen)),
        (Status::Paused { .. }, Power::Paused)
        | (Status::Stopped { .. }, Power::Stopped)
        | (Status::Terminated { .. }, _)
        | (Status::Failed { cause: FailCause::CrashLoop, .. }, Power::Stopped | Power::Paused) => {
            Ok(as_believed(draft))
        }
        // What drains will be deleted; that it stopped meanwhile changes nothing.
        (Status::Draining { .. }, Power::Running | Power::Paused | Power::Stopped) => Ok(as_believed(draft)),
        (Status::Provisioning { .. }, Power::Running) => {
            driver::begin_run(&mut draft, seen.boot.as_ref(), seen.dated_at);
            draft.note(Entry::Started);
            let now = draft.now;
            draft.go(Status::Running { since: now });
            Ok(draft.accept())
        }
        // Nothing is contradicted, so one look is enough.
        (Status::Unknown { .. } | Status::Failed { cause: FailCause::Refused, .. }, _) => {
            Ok(truth::adopt(draft, sight(seen)))
        }
        (
            Status::Provisioning { .. }
            | Status::Running { .. }
            | Status::Paused { .. }
            | Status::Stopped { .. }
            | Status::Draining { .. }
            | Status::Failed { cause: FailCause::CrashLoop, .. },
            _,
        ) => Ok(contradicted(draft, seen)),
        (
            Status::Pausing { .. }
            | Status::Waking { .. }
            | Status::Stopping { .. }
            | Status::Terminating { .. },
            _,
        ) => Err(draft.in_transition()),
    }
}

fn sight(seen: &Observation) -> Sight<'_> {
    Sight { power: seen.power, boot: seen.boot.as_ref(), dated_at: seen.dated_at }
}

/// It is as we believe, so that an earlier look that said otherwise was wrong or is over.
fn as_believed(mut draft: Draft) -> Step {
    if draft.worker.suspicion.take().is_some() { draft.accept() } else { draft.already() }
}

/// It runs, as we believe; but is it the same run?
fn running_still(mut draft: Draft, seen: &Observation) -> Step {
    match (&seen.boot, &draft.worker.boot) {
        (Some(new), Some(old)) if new != old => {
            restarted(&mut draft, sight(seen));
            draft.accept()
        }
        (Some(new), None) => {
            draft.worker.boot = Some(new.clone());
            draft.worker.suspicion = None;
            draft.accept()
        }
        (Some(_) | None, _) => as_believed(draft),
    }
}

/// Restarted behind our back between two looks: evidence and holds of the old run are void.
pub(super) fn restarted(draft: &mut Draft, seen: Sight<'_>) {
    draft.note(Entry::External { to: StatusKind::Running });
    driver::begin_run(draft, seen.boot, seen.dated_at);
    came_back(draft, seen.dated_at, WakeFrom::Stopped);
}

/// A contradiction must be seen twice; the second look comes after the driver has settled.
fn contradicted(mut draft: Draft, seen: &Observation) -> Step {
    let settle_for = draft.worker.can.settle_for;
    let earlier = draft.worker.suspicion.filter(|first| first.power == seen.power);
    let is_second = earlier
        .is_some_and(|first| seen.began_at > first.seen_at && seen.began_at >= first.seen_at + settle_for);
    if !is_second {
        let first = earlier.unwrap_or(Suspicion { power: seen.power, seen_at: seen.began_at });
        draft.worker.suspicion = Some(first);
        draft.effect(Effect::Look { not_before: first.seen_at + settle_for });
        return draft.accept();
    }
    match truth::late_effect(&draft, seen.power) {
        Some(was) => truth::put_right(draft, was, sight(seen)),
        None => external(draft, sight(seen)),
    }
}

/// Somebody else did it. It is written down and respected, never fought.
fn external(mut draft: Draft, seen: Sight<'_>) -> Step {
    draft.worker.abandoned = None;
    match seen.power {
        Power::Gone => driver::terminated(&mut draft),
        Power::Running => back(&mut draft, seen),
        // It must have run to be frozen now; the next look makes it paused.
        Power::Paused if draft.worker.status.kind() == StatusKind::Stopped => back(&mut draft, seen),
        Power::Paused => {
            draft.note(Entry::External { to: StatusKind::Paused });
            driver::meet_run(&mut draft, seen.boot, seen.dated_at);
            let sleep = asleep::external_sleep(dated(&draft, seen.dated_at));
            asleep::finish_pause(&mut draft, sleep);
        }
        Power::Stopped => {
            draft.note(Entry::External { to: StatusKind::Stopped });
            let sleep = asleep::external_sleep(dated(&draft, seen.dated_at));
            asleep::finish_stop(&mut draft, sleep, false, None);
        }
    }
    draft.accept()
}

fn back(draft: &mut Draft, seen: Sight<'_>) {
    let is_thawed = matches!(draft.worker.status, Status::Paused { .. })
        && (seen.boot.is_none() || draft.worker.boot.is_none() || seen.boot == draft.worker.boot.as_ref());
    if is_thawed { thawed(draft, seen) } else { restarted(draft, seen) }
}

/// Somebody thawed it: the run goes on.
pub(super) fn thawed(draft: &mut Draft, seen: Sight<'_>) {
    draft.note(Entry::External { to: StatusKind::Running });
    driver::meet_run(draft, seen.boot, seen.dated_at);
    came_back(draft, seen.dated_at, WakeFrom::Frozen);
}

/// When it came to be so: the driver's own date where it tells one. A date before our last change tells
/// of something else (the start of a run that has been frozen and thawed since).
pub(super) fn dated(draft: &Draft, dated_at: Option<Timestamp>) -> Timestamp {
    let since = draft.worker.status.since();
    dated_at.filter(|at| since < *at && *at <= draft.now).unwrap_or(draft.now)
}

/// It is awake through somebody else.
fn came_back(draft: &mut Draft, dated_at: Option<Timestamp>, from: WakeFrom) {
    let at = dated(draft, dated_at);
    let by = "external";
    let sleep = draft.worker.status.sleep().cloned();
    wake::remember(draft, at, by, ResumeReason::External, sleep.as_ref());
    draft.note(Entry::Resumed { reason: ResumeReason::External, by: by.into() });
    wake::snooze(draft, from, ResumeReason::External, at);
    let since = draft.now;
    draft.go(Status::Running { since });
}
