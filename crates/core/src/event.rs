//! What happens to a worker: the input of [`crate::machine::step`].
//!
//! An event carries all that the decision needs, looked up under the worker's lock by the shell. Names
//! are in the past tense: something has been asked, seen or said.

use alloc::string::String;
use alloc::vec::Vec;

use crate::clock::Timestamp;
use crate::hold::Hold;
use crate::id::{BootId, Generation, IntentId};
use crate::machine::{Fence, LastLook};
use crate::signal::Signal;
use crate::status::WakeCause;
use crate::worker::Power;

/// A person's request to end or change something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asks.
    pub by: String,
    /// Why, in their words.
    pub message: String,
    /// Holds and vetoes are overruled.
    pub force: bool,
    /// The worker's holds, as read under its lock.
    pub holds: Vec<Hold>,
}

/// A look at the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What was seen.
    pub power: Power,
    /// When the look began: what changed after that may not be in it.
    pub began_at: Timestamp,
    /// The generation that the looker had in mind.
    pub generation: Generation,
    /// The run that was seen, where the driver tells.
    pub boot: Option<BootId>,
    /// When it came to be so, where the driver tells (`LaunchTime`, `StartedAt`).
    pub dated_at: Option<Timestamp>,
}

/// Something that happened to a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The driver was looked at.
    Observed(Observation),
    /// A check found it idle and eligible.
    IdleConfirmed { fence: Fence },
    /// The same, and the fleet has one more than it needs.
    ScaleDownConfirmed { fence: Fence },
    /// It ran for its `max_runtime`.
    MaxRuntimeReached { fence: Fence },
    /// A sleep window of its schedule opened.
    ScheduleSaidSleep { force: bool, fence: Fence },
    /// A person asked for a pause.
    PauseRequested(Request),
    /// A person asked for a stop.
    StopRequested(Request),
    /// A person asked to have it back.
    ResumeRequested { by: String },
    /// A keep-awake window with `wake = true` opened.
    ScheduleSaidWake,
    /// A connection, a lease or a person's keep-awake needs it.
    WakeRequested { cause: WakeCause },
    /// Activity was seen that is newer than the intent to put it to sleep.
    ActivityArrived { by: Signal },
    /// The `before_pause` hook let it sleep.
    HookPassed { intent: IntentId },
    /// The `before_pause` hook said no, or nothing.
    HookVetoed { intent: IntentId, message: String },
    /// It was looked at once more, before it is stopped or when it is frozen.
    LookedAgain { intent: IntentId, look: LastLook },
    /// The driver did what it was asked to do.
    DriverDone {
        intent: IntentId,
        exit_code: Option<i32>,
        /// When it was first asked to, where somebody remembers: its grace ran from then.
        asked_at: Option<Timestamp>,
    },
    /// The worker answers.
    DriverReady { intent: IntentId, boot: Option<BootId>, started_at: Option<Timestamp> },
    /// The driver refused.
    DriverRefused { intent: IntentId, message: String },
    /// The driver refused to make it.
    MakeRefused { generation: Generation, message: String },
    /// A transition took longer than it may.
    DeadlinePassed { generation: Generation },
    /// The driver does not answer at all.
    DriverSilent { generation: Generation },
    /// It exited by itself.
    Exited { boot: BootId, code: i32 },
    /// It has been frozen for `stop_after`.
    StopAfterElapsed { generation: Generation },
    /// It has been asleep for `terminate_after`.
    TerminateAfterElapsed { generation: Generation },
    /// A person asked to drain it.
    DrainRequested(Request),
    /// A person took the drain back.
    DrainCancelled { by: String },
    /// It drains, and nothing holds it any more.
    Drained { generation: Generation },
    /// It drains, and the time for that is up. `is_held`: something still holds it, as read under its lock.
    DrainTimedOut { generation: Generation, is_held: bool },
    /// A person asked to delete it.
    TerminateRequested(Request),
    /// Drowse came back and found it in the middle of a transition.
    Recovered { power: Option<Power> },
}
