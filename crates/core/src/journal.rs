//! Entries of the append-only journal, as the rules write them.
//!
//! The shell adds the worker, the time and the order, and writes them in the transaction of the change
//! that they record.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::IntentId;
use crate::reason::{PauseReason, ResumeReason};
use crate::status::StatusKind;

/// Something that was done or seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    /// A decision to put it to sleep was made.
    SleepIntended { intent: IntentId, reason: PauseReason, by: String, message: String, to: StatusKind },
    /// It is frozen.
    Paused {
        reason: PauseReason,
        by: String,
        /// When `stop_after` stops it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stops_at: Option<Timestamp>,
    },
    /// It is stopped.
    Stopped { reason: PauseReason, by: String, exit_code: Option<i32> },
    /// SIGTERM was not enough: exit code 137.
    GraceExceeded,
    /// A decision to wake it was made.
    WakeIntended { intent: IntentId, reason: ResumeReason, by: String },
    /// It runs again.
    Resumed { reason: ResumeReason, by: String },
    /// It runs for the first time.
    Started,
    /// A pause was taken back before anybody noticed.
    Undone { by: String },
    /// The hook said no, for the `in_a_row`th time without a yes.
    HookVetoed { message: String, in_a_row: u32 },
    /// It says no all the time: somebody should look at it.
    VetoAlert { in_a_row: u32 },
    /// Somebody changed it behind our back, and we respect that.
    External { to: StatusKind },
    /// It ended without us: by itself, or by a signal of somebody else.
    Exited { code: i32 },
    /// It takes no new work.
    Draining { by: String },
    /// The drain was taken back.
    DrainEnded { by: String, why: String },
    /// It is being deleted.
    TerminateIntended { intent: IntentId, by: String },
    /// It is not deleted after all.
    TerminateUndone { by: String },
    /// It is gone.
    Terminated,
    /// It was not clear what had become of it, and this is what the driver says.
    Found { was: StatusKind, found: StatusKind },
    /// The driver refused.
    DriverRefused { message: String, attempt: u8 },
    /// It needs a person.
    Failed { message: String },
    /// The driver does not say.
    Unknown { was: StatusKind },
}

impl Entry {
    /// The type of the event as it is published.
    pub const fn event_type(&self) -> &'static str {
        match self {
            Entry::SleepIntended { .. } => "worker.sleep_intended",
            Entry::Paused { .. } => "worker.paused",
            Entry::Stopped { .. } => "worker.stopped",
            Entry::GraceExceeded => "worker.grace_exceeded",
            Entry::WakeIntended { .. } => "worker.wake_intended",
            Entry::Resumed { .. } => "worker.resumed",
            Entry::Started => "worker.started",
            Entry::Undone { .. } => "worker.undone",
            Entry::HookVetoed { .. } => "worker.hook_vetoed",
            Entry::VetoAlert { .. } => "worker.veto_alert",
            Entry::External { .. } => "worker.external",
            Entry::Exited { .. } => "worker.exited",
            Entry::Draining { .. } => "worker.draining",
            Entry::DrainEnded { .. } => "worker.drain_ended",
            Entry::TerminateIntended { .. } => "worker.terminate_intended",
            Entry::TerminateUndone { .. } => "worker.terminate_undone",
            Entry::Terminated => "worker.terminated",
            Entry::Found { .. } => "worker.found",
            Entry::DriverRefused { .. } => "worker.driver_refused",
            Entry::Failed { .. } => "worker.failed",
            Entry::Unknown { .. } => "worker.unknown",
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = match self {
            Entry::SleepIntended { reason, by, to, message, .. } => {
                let why = if message.is_empty() { String::new() } else { format!(": {message}") };
                format!("going to sleep ({to}): {reason}, by {by}{why}")
            }
            Entry::Paused { reason, by, stops_at: Some(at) } => {
                format!("paused: {reason}, by {by}; it is stopped at {}", at.to_the_second())
            }
            Entry::Paused { reason, by, stops_at: None } => format!("paused: {reason}, by {by}"),
            Entry::Stopped { reason, by, exit_code: Some(code) } => {
                format!("stopped: {reason}, by {by}, exit code {code}")
            }
            Entry::Stopped { reason, by, exit_code: None } => format!("stopped: {reason}, by {by}"),
            Entry::GraceExceeded => "grace exceeded: it had to be killed".to_string(),
            Entry::WakeIntended { reason, by, .. } => format!("waking: {reason}, by {by}"),
            Entry::Resumed { reason, by } => format!("running again: {reason}, by {by}"),
            Entry::Started => "running for the first time".to_string(),
            Entry::Undone { by } => format!("pause taken back: {by}"),
            Entry::HookVetoed { message, in_a_row: 0 | 1 } => format!("before_pause said no: {message}"),
            Entry::HookVetoed { message, in_a_row } => {
                format!("before_pause said no, {in_a_row} times in a row: {message}")
            }
            Entry::VetoAlert { in_a_row } => format!(
                "before_pause has said no {in_a_row} times in a row: see whether it still means it, or set hooks that do"
            ),
            Entry::External { to } => format!("changed from outside: {to}"),
            // A signal came from somewhere, and the engine does not say from where.
            Entry::Exited { code: 137 } => {
                "was killed, and not by Drowse (by hand, or out of memory): exit code 137".to_string()
            }
            Entry::Exited { code: 143 } => "was told to end, and not by Drowse: exit code 143".to_string(),
            Entry::Exited { code } => format!("exited by itself with code {code}"),
            Entry::Draining { by } => format!("draining, by {by}"),
            Entry::DrainEnded { by, why } => format!("drain ended, by {by}: {why}"),
            Entry::TerminateIntended { by, .. } => format!("being deleted, by {by}"),
            Entry::TerminateUndone { by } => format!("not deleted after all: {by}"),
            Entry::Terminated => "gone: the driver finds nothing left of it".to_string(),
            Entry::Found { was, found } => format!("was {was}; the driver says {found}"),
            Entry::DriverRefused { message, attempt } => {
                format!("driver refused ({attempt} of 3): {message}")
            }
            Entry::Failed { message } => format!("failed: {message}"),
            Entry::Unknown { was } => format!("unknown: the driver is silent (was {was})"),
        };
        f.write_str(&text)
    }
}
