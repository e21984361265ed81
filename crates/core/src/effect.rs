//! What the shells must do after a step: the output of [`crate::machine::step`].
//!
//! Each is level-triggered, "make it so": doing it twice is the same as doing it once. Those that touch
//! the driver carry the intent, so that an answer to an older one is recognised.

use core::time::Duration;

use crate::clock::Timestamp;
use crate::id::IntentId;
use crate::reason::SleepMode;

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Run the `before_pause` hook; its veto counts only if `heed_veto`, and silence at `deadline` is one.
    RunBeforePause { intent: IntentId, heed_veto: bool, deadline: Timestamp },
    /// Freeze it.
    Freeze { intent: IntentId },
    /// Thaw it and wait until it answers.
    Thaw { intent: IntentId },
    /// Stop it: SIGTERM, grace, SIGKILL. A frozen one is thawed first, so that SIGTERM is heard.
    Stop { intent: IntentId, mode: SleepMode, grace: Duration, thaw_first: bool },
    /// Start it, no sooner than `not_before`, and wait until it answers.
    Start { intent: IntentId, not_before: Timestamp },
    /// Delete it, thawed first.
    Terminate { intent: IntentId },
    /// Run the `after_resume` hook.
    RunAfterResume,
    /// Tell whoever sits in front of it that it is frozen, and when `stop_after` stops it.
    AnnounceSleep { stops_at: Option<Timestamp> },
    /// Look at the driver, no sooner than `not_before`.
    Look { not_before: Timestamp },
    /// Protect it from automatic sleep until then.
    Snooze { until: Timestamp },
    /// The leases, connections and keep-alive files of this run end: it no longer runs. What a person or a
    /// resume protects until a time stays protected.
    EndHolds,
    /// It slept: the count of continuous leased time starts again.
    EndLeasedTime,
}
