//! The last look: what the verdict could not know, because it happened after it.
//!
//! Between a verdict and the act a hook runs, an engine takes its time, and somebody in the worker may ask to be
//! left alone, or somebody else start it anew. So the shell looks once more, before what cannot be taken back and
//! after what can, and says what it found. What that means is decided here, by two rules:
//!
//! - **A late keep-alive file is a veto**, like a hook's: it is heeded by everything that was not forced.
//! - **A run that nobody judged is not put to sleep.** What Drowse decided rests on one run; a person's order does not.

use super::{Draft, Step, asleep, wake};
use crate::hold::KeepAlive;
use crate::id::{BootId, IntentId};
use crate::refusal::Refusal;
use crate::status::{Late, Sleep, Status, WakeCause, WakeFrom};

/// What was found when the driver was about to act, or had just frozen the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLook {
    /// The run that is there, where the driver tells.
    pub boot: Option<BootId>,
    /// Its keep-alive file.
    pub keep_alive: KeepAlive,
}

/// Takes the sleep back if the last look speaks against it; else nothing changes, and the driver may act.
pub(super) fn looked_again(draft: Draft, intent: IntentId, look: &LastLook) -> Result<Step, Refusal> {
    draft.check_intent(intent, "the last look")?;
    let (sleep, was_paused) = match &draft.worker.status {
        Status::Pausing { sleep, .. } => (sleep.clone(), false),
        Status::Stopping { sleep, was_paused, .. } => (sleep.clone(), *was_paused),
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Paused { .. }
        | Status::Waking { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => return Ok(draft.already()),
    };
    let Some(found) = veto(&draft, &sleep, look) else { return Ok(draft.already()) };
    let cause = WakeCause::LastLook { found };
    Ok(if was_paused {
        // It slept, and that has been counted: it comes back from there.
        wake::begin(draft, WakeFrom::Frozen, cause, Some(sleep), core::time::Duration::ZERO)
    } else {
        wake::undo(draft, sleep, &cause)
    })
}

fn veto(draft: &Draft, sleep: &Sleep, look: &LastLook) -> Option<Late> {
    let is_other_run =
        draft.worker.boot.as_ref().zip(look.boot.as_ref()).is_some_and(|(old, new)| old != new);
    if is_other_run && sleep.reason.is_judged() {
        return Some(Late::OtherRun);
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
