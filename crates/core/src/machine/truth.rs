//! What is, against what was meant: after a deadline, after silence, after a restart of Drowse.
//!
//! What matches the transition belongs to it, late or not. What is as it was before the transition goes on
//! as it was. Everything else was somebody else.

use alloc::boxed::Box;
use core::time::Duration;

use super::{Draft, Step, asleep, driver, end, observe, reissue, wake};
use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::id::BootId;
use crate::journal::Entry;
use crate::status::{Sleep, Stage, Status, StatusKind, WakeCause, WakeFrom};
use crate::worker::{Abandoned, Power};

/// What was seen, without when.
#[derive(Clone, Copy)]
pub(super) struct Sight<'s> {
    pub(super) power: Power,
    pub(super) boot: Option<&'s BootId>,
    pub(super) dated_at: Option<Timestamp>,
}

const fn status_of(power: Power) -> StatusKind {
    match power {
        Power::Running => StatusKind::Running,
        Power::Paused => StatusKind::Paused,
        Power::Stopped => StatusKind::Stopped,
        Power::Gone => StatusKind::Terminated,
    }
}

/// Whether `power` is what the transition `was` was to bring about.
const fn is_meant(was: &Status, power: Power) -> bool {
    matches!(
        (was, power),
        (Status::Pausing { .. }, Power::Paused)
            | (Status::Stopping { .. }, Power::Stopped)
            | (Status::Waking { .. }, Power::Running)
            | (Status::Terminating { .. }, Power::Gone)
    )
}

/// The time is over, or nobody knew: this is what the driver says, and it counts, whatever was meant.
pub(super) fn adopt(mut draft: Draft, seen: Sight<'_>) -> Step {
    draft.note(Entry::Found { was: draft.worker.status.kind(), found: status_of(seen.power) });
    let was = match (&draft.worker.status, &draft.worker.abandoned) {
        (Status::Unknown { .. } | Status::Failed { .. }, Some(abandoned)) => abandoned.was.clone(),
        (status, _) => status.clone(),
    };
    if is_meant(&was, seen.power) {
        return fulfil(draft, was, seen);
    }
    // It was taken back too late: there is nothing left to thaw.
    if let (Some(was @ Status::Stopping { .. }), Power::Stopped) = (draft.abandoned().cloned(), seen.power) {
        return fulfil(draft, was, seen);
    }
    draft.worker.abandoned = None;
    match seen.power {
        Power::Running => found_running(draft, was, seen),
        Power::Paused => found_paused(draft, was, seen),
        Power::Stopped => found_stopped(draft, was, seen),
        Power::Gone => {
            driver::terminated(&mut draft);
            draft.accept()
        }
    }
}

/// The effect of a transition that was given up has come after all; `None` if this is no such effect.
pub(super) fn late_effect(draft: &Draft, power: Power) -> Option<Status> {
    draft.abandoned().filter(|was| is_meant(was, power)).cloned()
}

/// Somebody's change turns out to be ours.
pub(super) fn put_right(mut draft: Draft, was: Status, seen: Sight<'_>) -> Step {
    draft.note(Entry::Found { was: draft.worker.status.kind(), found: status_of(seen.power) });
    fulfil(draft, was, seen)
}

fn fulfil(mut draft: Draft, was: Status, seen: Sight<'_>) -> Step {
    draft.worker.abandoned = None;
    if let Status::Waking { from, .. } = was {
        driver::note_run(&mut draft, from, seen.boot, seen.dated_at);
    }
    driver::complete(draft, was, None)
}

fn found_running(mut draft: Draft, mut was: Status, seen: Sight<'_>) -> Step {
    let is_restarted = matches!(
        (&draft.worker.boot, seen.boot, draft.worker.boot_started_at),
        (Some(old), Some(new), Some(_)) if old != new
    );
    let now = draft.now;
    if is_restarted {
        observe::restarted(&mut draft, seen);
        return draft.accept();
    }
    if draft.worker.boot_started_at.is_none() {
        driver::begin_run(&mut draft, seen.boot, seen.dated_at);
    } else if let Some(boot) = seen.boot {
        draft.worker.boot = Some(boot.clone());
    }
    match &mut was {
        Status::Provisioning { .. } => {
            draft.note(Entry::Started);
            draft.go(Status::Running { since: now });
            return draft.accept();
        }
        // Thawed so that it could hear SIGTERM, and somebody waits for it: that wake has come true.
        Status::Stopping { was_paused: true, wake: Some(cause), sleep, .. } => {
            wake::finish(&mut draft, WakeFrom::Frozen, cause, Some(sleep));
            return draft.accept();
        }
        // It may still freeze. By then nobody can vouch for it, so that will be taken back.
        Status::Pausing { sleep, wake, .. } if sleep.is_undone_by_activity() => {
            wake.get_or_insert(WakeCause::Recovery);
        }
        Status::Pausing { .. }
        | Status::Stopping { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Waking { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => {}
    }
    remember_asked(&mut draft, was);
    draft.go(Status::Running { since: now });
    draft.accept()
}

fn found_paused(mut draft: Draft, was: Status, seen: Sight<'_>) -> Step {
    // The sleep that could not be taken back has come true.
    if let Status::Waking { from: WakeFrom::Undone, sleep: Some(sleep), .. } = &was {
        asleep::finish_pause(&mut draft, sleep.clone());
    } else if let Some(sleep) = frozen_before(&was) {
        asleep::still_paused(&mut draft, sleep.clone());
    } else {
        let sleep = external_sleep(&mut draft, StatusKind::Paused, seen);
        asleep::finish_pause(&mut draft, sleep);
    }
    after_rest(draft, was, WakeFrom::Frozen)
}

fn found_stopped(mut draft: Draft, was: Status, seen: Sight<'_>) -> Step {
    if let Some(sleep) = stopped_before(&draft, &was) {
        asleep::still_stopped(&mut draft, sleep.clone());
    } else {
        let sleep = external_sleep(&mut draft, StatusKind::Stopped, seen);
        asleep::finish_stop(&mut draft, sleep, false, None);
    }
    after_rest(draft, was, WakeFrom::Stopped)
}

/// The sleep of a worker that was frozen before the transition.
const fn frozen_before(was: &Status) -> Option<&Sleep> {
    if let Status::Waking { from: WakeFrom::Frozen, sleep: Some(sleep), .. }
    | Status::Terminating { sleep: Some(sleep), .. }
    | Status::Stopping { was_paused: true, sleep, .. } = was
    {
        Some(sleep)
    } else {
        None
    }
}

/// The sleep of a worker that was stopped before the transition.
const fn stopped_before<'s>(draft: &Draft, was: &'s Status) -> Option<&'s Sleep> {
    match (was, draft.worker.boot_started_at) {
        (Status::Waking { from: WakeFrom::Stopped, sleep: Some(sleep), .. }, _)
        | (Status::Terminating { sleep: Some(sleep), .. }, None) => Some(sleep),
        (_, _) => None,
    }
}

/// It sleeps, otherwise than was meant. Who was promised a wake at the end of the transition gets it;
/// else what the driver was asked to do may still come.
fn after_rest(mut draft: Draft, was: Status, from: WakeFrom) -> Step {
    if let Status::Pausing { wake: Some(cause), .. } | Status::Stopping { wake: Some(cause), .. } = was {
        let sleep = draft.worker.status.sleep().cloned();
        return wake::begin(draft, from, cause, sleep, Duration::ZERO);
    }
    // A frozen worker may still be stopped or thawed and a stopped one started; nothing else can come late.
    let may_come = match was {
        Status::Stopping { .. } => true,
        Status::Waking { from: WakeFrom::Stopped, .. } => from == WakeFrom::Stopped,
        Status::Waking { .. } => from == WakeFrom::Frozen,
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => false,
    };
    if may_come {
        remember_asked(&mut draft, was);
    }
    draft.accept()
}

fn external_sleep(draft: &mut Draft, to: StatusKind, seen: Sight<'_>) -> Sleep {
    draft.note(Entry::External { to });
    asleep::external_sleep(observe::dated(draft, seen.dated_at))
}

/// What the driver was asked and did not do in time it may still do.
fn remember_asked(draft: &mut Draft, was: Status) {
    let is_asked = matches!(
        was,
        Status::Pausing { stage: Stage::Acting, .. }
            | Status::Stopping { stage: Stage::Acting, .. }
            | Status::Waking { .. }
    );
    if is_asked {
        draft.abandon(was);
    }
}

/// Drowse came back and found a transition under way. What it cannot vouch for it takes back; what does
/// not rest on evidence it carries on with.
pub(super) fn recovered(mut draft: Draft, power: Option<Power>) -> Step {
    let status = draft.worker.status.clone();
    let truth = power.map(|power| Sight { power, boot: None, dated_at: None });
    match (status.clone(), truth) {
        (status, Some(seen @ Sight { power: Power::Gone, .. })) if status.intent().is_some() => {
            adopt(draft, seen)
        }
        (
            Status::Pausing { .. } | Status::Stopping { .. } | Status::Waking { from: WakeFrom::Undone, .. },
            Some(seen @ Sight { power: Power::Stopped, .. }),
        ) => adopt(draft, seen),
        // Nobody watched while Drowse was away, so nobody can say that nothing arrived.
        (Status::Pausing { sleep, wake, .. }, _) if wake.is_some() || sleep.is_undone_by_activity() => {
            take_back(draft, status, sleep, wake)
        }
        (Status::Pausing { .. }, Some(seen @ Sight { power: Power::Paused, .. })) => adopt(draft, seen),
        (Status::Stopping { sleep, was_paused: false, wake, stage, .. }, _)
            if sleep.is_undone_by_activity() =>
        {
            // Asked to stop, perhaps, and the driver does not say: neither this way nor that. Its
            // deadline decides.
            if stage == Stage::Acting && power.is_none() {
                let not_before = draft.now;
                draft.effect(Effect::Look { not_before });
                return draft.accept();
            }
            take_back(draft, status, sleep, wake)
        }
        // Whoever wakes it still waits, and what was frozen has ended meanwhile.
        (Status::Waking { from: WakeFrom::Frozen, .. }, Some(Sight { power: Power::Stopped, .. })) => {
            if let Status::Waking { from, .. } = &mut draft.worker.status {
                *from = WakeFrom::Stopped;
            }
            carry_on(draft)
        }
        (
            Status::Pausing { .. }
            | Status::Stopping { .. }
            | Status::Terminating { .. }
            | Status::Waking { .. }
            | Status::Provisioning { .. },
            _,
        ) => carry_on(draft),
        (
            Status::Running { .. }
            | Status::Paused { .. }
            | Status::Stopped { .. }
            | Status::Draining { .. }
            | Status::Terminated { .. }
            | Status::Failed { .. }
            | Status::Unknown { .. },
            _,
        ) => draft.already(),
    }
}

fn take_back(draft: Draft, was: Status, sleep: Sleep, wake: Option<WakeCause>) -> Step {
    let mut step = wake::undo(draft, sleep, &wake.unwrap_or(WakeCause::Recovery));
    // A call of the program that died may still land.
    if let Status::Pausing { stage: Stage::Acting, .. } | Status::Stopping { stage: Stage::Acting, .. } = was
    {
        step.worker.abandoned = Some(Box::new(Abandoned { was, until: None }));
    }
    step
}

/// Asks again. The driver gets its full time from now: nobody asked it while Drowse was away.
fn carry_on(mut draft: Draft) -> Step {
    let now = draft.now;
    let can = draft.worker.can;
    let grace = draft.worker.terms.grace;
    match &mut draft.worker.status {
        Status::Pausing { deadline, .. } => *deadline = now + asleep::PAUSING_WITHIN,
        Status::Stopping { deadline, .. } => *deadline = now + can.stopping_within.with(grace),
        Status::Waking { deadline, not_before, .. } => *deadline = now.max(*not_before) + can.waking_within,
        Status::Terminating { deadline, .. } => *deadline = now + end::TERMINATING_WITHIN,
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => {}
    }
    draft.effects.extend(reissue(&draft.worker));
    draft.accept()
}
