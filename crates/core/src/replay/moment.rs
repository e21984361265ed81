//! The moments of a timeline, each in a few words that a scenario can expect.

use alloc::format;
use alloc::string::{String, ToString};
use core::time::Duration;

use super::mark::format_offset;
use crate::clock::Timestamp;
use crate::journal::Entry;
use crate::reason::PauseReason;
use crate::refusal::Refusal;
use crate::verdict::{Warning, WarningKind};

/// Something that Drowse did, said or refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A change that is written down.
    Entry(Entry),
    /// A person was warned.
    Warned(Warning),
    /// It would have been put to sleep, were it not only observed.
    WouldSleep(PauseReason),
    /// It has been unknown for too long.
    UnknownAlert,
    /// A request was refused.
    Refused { what: &'static str, refusal: Refusal },
    /// A lease was refused.
    LeaseRefused { code: &'static str },
}

/// One moment of a timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: Happening,
}

impl Moment {
    /// In a few words; `None` for entries that only prepare another.
    pub fn text(&self) -> Option<String> {
        Some(match &self.what {
            Happening::Entry(entry) => entry_text(entry)?,
            Happening::Warned(warning) => {
                let kind = match warning.kind {
                    WarningKind::Idle => "idle",
                    WarningKind::ScaleDown => "deleted",
                    WarningKind::MaxRuntime => "max_runtime",
                    WarningKind::Schedule => "schedule",
                    WarningKind::StopAfter => "stop_after",
                    WarningKind::TerminateAfter => "terminate_after",
                };
                let told = if warning.is_fyi { "fyi" } else { "warned" };
                format!("{told} {kind} {:.0}%", warning.percent)
            }
            Happening::WouldSleep(reason) => format!("would_pause {reason}"),
            Happening::UnknownAlert => "alert unknown".to_string(),
            Happening::Refused { what, refusal } => format!("refused {what}: {}", refusal_code(refusal)),
            Happening::LeaseRefused { code } => format!("refused lease: {code}"),
        })
    }

    /// The same with its time from `start`.
    pub fn line(&self, start: Timestamp) -> Option<String> {
        let offset: Duration = self.at.since(start);
        self.text().map(|text| format!("{} {text}", format_offset(offset)))
    }
}

fn entry_text(entry: &Entry) -> Option<String> {
    Some(match entry {
        Entry::SleepIntended { .. } | Entry::WakeIntended { .. } | Entry::TerminateIntended { .. } => {
            return None;
        }
        Entry::Paused { reason, .. } => format!("paused {reason}"),
        Entry::Stopped { reason, .. } => format!("stopped {reason}"),
        Entry::GraceExceeded => "grace exceeded".to_string(),
        Entry::Resumed { reason, .. } => format!("running {reason}"),
        Entry::Started => "running started".to_string(),
        Entry::Undone { by } => format!("undone {by}"),
        Entry::HookVetoed { .. } => "vetoed".to_string(),
        Entry::VetoAlert { .. } => "veto alert".to_string(),
        Entry::External { to } => format!("external {to}"),
        Entry::Exited { code } => format!("exited {code}"),
        Entry::Draining { by } => format!("draining {by}"),
        Entry::DrainEnded { by, .. } => format!("undrained {by}"),
        Entry::TerminateUndone { .. } => "not deleted".to_string(),
        Entry::Terminated => "terminated".to_string(),
        Entry::Found { found, .. } => format!("found {found}"),
        Entry::DriverRefused { attempt, .. } => format!("driver refused {attempt}"),
        Entry::Failed { .. } => "failed".to_string(),
        Entry::Unknown { .. } => "unknown".to_string(),
    })
}

fn refusal_code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::WrongStatus { .. } => "wrong_status",
        Refusal::InTransition { .. } => "in_transition",
        Refusal::Held { .. } => "held",
        Refusal::WakeNotAllowed { .. } => "wake_not_allowed",
        Refusal::Protected => "protected",
        Refusal::OutOfService => "out_of_service",
        Refusal::Stopped => "stopped",
        Refusal::Overtaken(_) => "overtaken",
        Refusal::Late { .. } => "late",
        Refusal::Ignored { .. } => "ignored",
    }
}
