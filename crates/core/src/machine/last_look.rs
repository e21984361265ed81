//! The last look: what the verdict could not know, because it happened after it.
//!
//! Between a verdict and the act a hook runs, an engine takes its time, and somebody in the worker may ask to be
//! left alone, or somebody else start it anew. So the shell looks once more, before what cannot be taken back and
//! after what can, and says what it found. What that means is decided here, by four rules:
//!
//! - **A late keep-alive file is a veto**, like a hook's: it is heeded by everything that was not forced.
//! - **A run that nobody judged is not put to sleep or deleted.** What Drowse decided rests on one run; a person's
//!   order does not.
//! - **What sleeps deeper must still be asleep.** Who thawed or started it wants it.
//! - **A run that was begun while another was being ended is left alone**, whoever ordered that end.

use alloc::boxed::Box;

use super::truth::Sight;
use super::{Draft, Step, asleep, observe, wake};
use crate::hold::KeepAlive;
use crate::id::{BootId, IntentId};
use crate::journal::Entry;
use crate::refusal::Refusal;
use crate::status::{Late, Sleep, Status, StatusKind, WakeCause, WakeFrom};
use crate::worker::{Abandoned, Power};

/// What was found when the driver was about to act, or had just frozen the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLook {
    /// What it does.
    pub power: Power,
    /// The run that is there, where the driver tells.
    pub boot: Option<BootId>,
    /// Its keep-alive file.
    pub keep_alive: KeepAlive,
    /// The run that the driver was asked to end is over, and this one was begun since.
    pub is_later: bool,
}

/// Takes the sleep or the deletion back if the last look speaks against it; else nothing changes, and the driver may
/// act.
pub(super) fn looked_again(draft: Draft, intent: IntentId, look: &LastLook) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the last look")?;
    let (sleep, was_paused) = match draft.worker.status.clone() {
        Status::Pausing { sleep, .. } => (sleep, false),
        Status::Stopping { sleep, was_paused, .. } => (sleep, was_paused),
        Status::Terminating { sleep, is_ordered, .. } => {
            let found = spares(&draft, sleep.as_ref(), is_ordered, look);
            return Ok(match found {
                Some(found) => spare(draft, sleep, found, look),
                None => draft.already(),
            });
        }
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Waking { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => return Ok(draft.already()),
    };
    let Some(found) = veto(&draft, &sleep, was_paused, look) else { return Ok(draft.already()) };
    let was = draft.worker.status.clone();
    let cause = WakeCause::LastLook { found };
    if found == Late::OtherRun && look.power == Power::Running {
        // It runs, and nobody has put that run to sleep: there is nothing to wake. Who began it was somebody else.
        return Ok(restarted(draft, &cause, look));
    }
    Ok(if was_paused {
        // It slept, and that has been counted: it comes back from there. If it was ourselves who had it thawed to be
        // stopped, before we died, it ends by that yet, and that is no doing of others.
        let mut step = wake::begin(draft, WakeFrom::Frozen, cause, Some(sleep), core::time::Duration::ZERO);
        step.worker.abandoned = Some(Box::new(Abandoned { was, until: None }));
        step
    } else {
        wake::undo(draft, sleep, &cause)
    })
}

fn restarted(mut draft: Draft, cause: &WakeCause, look: &LastLook) -> Step {
    draft.note(Entry::Undone { by: cause.by().into() });
    observe::restarted(&mut draft, Sight { power: look.power, boot: look.boot.as_ref(), dated_at: None });
    draft.accept()
}

fn is_other_run(draft: &Draft, look: &LastLook) -> bool {
    draft.worker.boot.as_ref().zip(look.boot.as_ref()).is_some_and(|(old, new)| old != new)
}

fn veto(draft: &Draft, sleep: &Sleep, was_paused: bool, look: &LastLook) -> Option<Late> {
    if look.is_later || (is_other_run(draft, look) && sleep.reason.is_judged()) {
        return Some(Late::OtherRun);
    }
    // A person's stop and a limit end what runs just as well as what is frozen.
    if was_paused && look.power == Power::Running && sleep.reason.sinks_to_stopped() {
        return Some(Late::Awake);
    }
    if look.power == Power::Stopped {
        // It has ended by itself: there is nobody to be left alone.
        return None;
    }
    match &look.keep_alive {
        KeepAlive::Holds(hold) => {
            (asleep::heeds_veto(sleep) && hold.is_live(draft.now)).then_some(Late::KeepAliveFile)
        }
        // There may be one. Only what rests on nobody's using it gives way to that.
        KeepAlive::Unreadable => sleep.is_undone_by_activity().then_some(Late::Unreadable),
        KeepAlive::NotLooked | KeepAlive::Absent => None,
    }
}

/// What speaks against a deletion. A person who orders one means whatever is there.
fn spares(draft: &Draft, sleep: Option<&Sleep>, is_ordered: bool, look: &LastLook) -> Option<Late> {
    if look.is_later {
        return Some(Late::OtherRun);
    }
    if is_ordered || look.power == Power::Gone {
        return None;
    }
    if is_other_run(draft, look) {
        return Some(Late::OtherRun);
    }
    if sleep.is_some() && look.power == Power::Running {
        return Some(Late::Awake);
    }
    match &look.keep_alive {
        KeepAlive::Holds(hold) => hold.is_live(draft.now).then_some(Late::KeepAliveFile),
        KeepAlive::Unreadable => Some(Late::Unreadable),
        KeepAlive::NotLooked | KeepAlive::Absent => None,
    }
}

/// It is not deleted: it is what the look shows.
fn spare(mut draft: Draft, sleep: Option<Sleep>, found: Late, look: &LastLook) -> Step {
    let by = WakeCause::LastLook { found }.by().into();
    draft.note(Entry::TerminateUndone { by });
    let seen = Sight { power: look.power, boot: look.boot.as_ref(), dated_at: None };
    let is_other = look.is_later || is_other_run(&draft, look);
    match (look.power, sleep) {
        (Power::Gone, _) => return draft.already(),
        (Power::Running, _) if is_other => observe::restarted(&mut draft, seen),
        (Power::Running, Some(_)) => observe::thawed(&mut draft, seen),
        (Power::Running, None) => {
            let since = draft.now;
            draft.go(Status::Running { since });
        }
        (Power::Paused, Some(sleep)) if !is_other => asleep::still_paused(&mut draft, sleep),
        (Power::Stopped, Some(sleep)) if !is_other => asleep::still_stopped(&mut draft, sleep),
        // Somebody else ran it and put it to sleep, and it is theirs to wake.
        (Power::Paused, _) => {
            draft.note(Entry::External { to: StatusKind::Paused });
            super::driver::begin_run(&mut draft, seen.boot, None);
            let sleep = asleep::external_sleep(draft.now);
            asleep::finish_pause(&mut draft, sleep);
        }
        (Power::Stopped, _) => {
            draft.note(Entry::External { to: StatusKind::Stopped });
            draft.worker.boot.clone_from(&look.boot);
            let sleep = asleep::external_sleep(draft.now);
            asleep::finish_stop(&mut draft, sleep, false, None);
        }
    }
    draft.accept()
}
