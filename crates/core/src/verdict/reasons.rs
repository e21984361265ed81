//! All reasons of a verdict, as codes.

use core::fmt;

use serde::Serialize;

use super::{Action, Use, Verdict};
use crate::clock::Timestamp;
use crate::hold::HoldKind;
use crate::signal::Signal;
use crate::status::StatusKind;

/// One reason for or against sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Reason {
    /// A signal shows use now.
    RecentActivity { signal: Signal },
    /// A required signal cannot be told.
    UnknownSignal { signal: Signal },
    /// Nothing at all was read.
    NoEvidence,
    /// It has not been idle for long enough.
    NotIdleYet,
    /// It has not been seen quiet often enough.
    WindowNotFull,
    /// Its idle timeout is "never".
    IdleTimeoutNever,
    /// Some layer lets Drowse only observe.
    ObserveMode,
    /// It was resumed not long ago, or somebody asked to keep it awake.
    InSnoozePeriod,
    /// Something holds it awake.
    Held { hold: HoldKind },
    /// The fleet's brake is engaged.
    Brake,
    /// It is not running.
    NotRunning { status: StatusKind },
    /// It is never touched.
    Protected,
    /// It is idle, and people have been told; their notice is running.
    NoticeRunning,
    /// The agent must be asked before anything is done.
    AgentNotAsked,
    /// The flap guard lengthens its idle timeout.
    FlapGuard,
    /// It has run for as long as it may.
    MaxRuntimeExceeded,
    /// It is exempt from `max_runtime`.
    ExemptFromMaxRuntime,
    /// A window of its schedule puts it to sleep.
    ScheduleSleep,
    /// It has been idle for long enough and seen quiet often enough.
    IdleTimeoutExceeded,
}

impl Reason {
    pub const fn code(self) -> &'static str {
        match self {
            Reason::RecentActivity { .. } => "recent_activity",
            Reason::UnknownSignal { .. } => "unknown_signal",
            Reason::NoEvidence => "no_evidence",
            Reason::NotIdleYet => "not_idle_yet",
            Reason::WindowNotFull => "window_not_full",
            Reason::IdleTimeoutNever => "idle_timeout_never",
            Reason::ObserveMode => "observe_mode",
            Reason::InSnoozePeriod => "in_snooze_period",
            Reason::Held { .. } => "held",
            Reason::Brake => "brake",
            Reason::NotRunning { .. } => "not_running",
            Reason::Protected => "protected",
            Reason::NoticeRunning => "notice_running",
            Reason::AgentNotAsked => "agent_not_asked",
            Reason::FlapGuard => "flap_guard",
            Reason::MaxRuntimeExceeded => "max_runtime_exceeded",
            Reason::ExemptFromMaxRuntime => "exempt_from_max_runtime",
            Reason::ScheduleSleep => "schedule_sleep",
            Reason::IdleTimeoutExceeded => "idle_timeout_exceeded",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())?;
        match self {
            Reason::RecentActivity { signal } | Reason::UnknownSignal { signal } => write!(f, " ({signal})"),
            Reason::Held { hold } => write!(f, " ({hold})"),
            Reason::NotRunning { status } => write!(f, " ({status})"),
            Reason::NoEvidence
            | Reason::NotIdleYet
            | Reason::WindowNotFull
            | Reason::IdleTimeoutNever
            | Reason::ObserveMode
            | Reason::InSnoozePeriod
            | Reason::Brake
            | Reason::Protected
            | Reason::NoticeRunning
            | Reason::AgentNotAsked
            | Reason::FlapGuard
            | Reason::MaxRuntimeExceeded
            | Reason::ExemptFromMaxRuntime
            | Reason::ScheduleSleep
            | Reason::IdleTimeoutExceeded => Ok(()),
        }
    }
}

impl Verdict {
    /// Every reason, for and against; never just the first.
    pub fn reasons(&self) -> impl Iterator<Item = Reason> + '_ {
        let is_snoozed = |kind| matches!(kind, HoldKind::Snooze | HoldKind::KeepAwake);
        let has_evidence = !(self.used == Use::Unknown && self.signals.unknown.is_empty());
        let is_long_enough = self.idle_timeout.is_some_and(|timeout| self.idle_for >= timeout);
        let is_waiting = self.eligible && self.target_pause_at.is_some_and(|at| at > self.at);
        let is_over = |end: Option<Timestamp>| end.is_some_and(|end| end <= self.at);
        let plain = [
            (!has_evidence, Reason::NoEvidence),
            (self.idle_timeout.is_none(), Reason::IdleTimeoutNever),
            (self.idle_timeout.is_some() && !is_long_enough, Reason::NotIdleYet),
            (self.streak.count < self.window, Reason::WindowNotFull),
            (!self.auto_pause_enabled, Reason::ObserveMode),
            (self.holds.iter().any(is_snoozed), Reason::InSnoozePeriod),
            (self.is_braked, Reason::Brake),
            (self.is_protected, Reason::Protected),
            (self.status != StatusKind::Running, Reason::NotRunning { status: self.status }),
            (self.flap_multiplier > 1, Reason::FlapGuard),
            (self.action == Action::AskAgent, Reason::AgentNotAsked),
            (is_waiting, Reason::NoticeRunning),
            (is_over(self.runtime_ends_at), Reason::MaxRuntimeExceeded),
            (self.is_runtime_exempt, Reason::ExemptFromMaxRuntime),
            (is_over(self.schedule_sleeps_at), Reason::ScheduleSleep),
            (self.is_idle, Reason::IdleTimeoutExceeded),
        ];
        let active = self.signals.active.iter().map(|signal| Reason::RecentActivity { signal });
        let unknown = self.signals.unknown.iter().map(|signal| Reason::UnknownSignal { signal });
        let held = self.holds.iter().filter(move |kind| !is_snoozed(*kind)).map(|hold| Reason::Held { hold });
        active
            .chain(unknown)
            .chain(held)
            .chain(plain.into_iter().filter_map(|(is_so, reason)| is_so.then_some(reason)))
    }
}
