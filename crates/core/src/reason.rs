//! Why a worker went to sleep and why it came back, as closed sets beside the free-text message.

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// Why a worker was put to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// It was idle for its `idle_timeout`.
    IdleTimeout,
    /// A person asked for it.
    Manual,
    /// Somebody did it behind our back: a console, `docker stop`, the program's own exit.
    External,
    /// It ran for its `max_runtime`.
    MaxRuntime,
    /// It was drained because the fleet is larger than it need be.
    ScaleDown,
    /// A window of its schedule opened.
    Schedule,
}

impl PauseReason {
    pub const ALL: [PauseReason; 6] = [
        PauseReason::IdleTimeout,
        PauseReason::Manual,
        PauseReason::External,
        PauseReason::MaxRuntime,
        PauseReason::ScaleDown,
        PauseReason::Schedule,
    ];

    /// The code used in the API, the journal and `wake_from`.
    pub const fn code(self) -> &'static str {
        match self {
            PauseReason::IdleTimeout => "idle_timeout",
            PauseReason::Manual => "manual",
            PauseReason::External => "external",
            PauseReason::MaxRuntime => "max_runtime",
            PauseReason::ScaleDown => "scale_down",
            PauseReason::Schedule => "schedule",
        }
    }

    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// Whether it rests on what Drowse saw of one run, rather than on somebody's word about the worker.
    pub const fn is_judged(self) -> bool {
        match self {
            PauseReason::IdleTimeout
            | PauseReason::MaxRuntime
            | PauseReason::ScaleDown
            | PauseReason::Schedule => true,
            PauseReason::Manual | PauseReason::External => false,
        }
    }

    /// Whether `stop_after` runs for a worker that was frozen for this reason.
    ///
    /// What a person or the outside froze waits for a person; only our own idle freezes sink deeper.
    pub const fn sinks_to_stopped(self) -> bool {
        match self {
            PauseReason::IdleTimeout | PauseReason::Schedule => true,
            PauseReason::Manual
            | PauseReason::External
            | PauseReason::MaxRuntime
            | PauseReason::ScaleDown => false,
        }
    }
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Why a worker runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeReason {
    /// A person asked for it.
    Manual,
    /// A connection or a program's lease arrived.
    Wake,
    /// Somebody started it behind our back.
    External,
    /// A window of its schedule opened.
    Schedule,
    /// Something arrived while it was falling asleep, so the pause was taken back. Counts nothing.
    Undo,
    /// It exited by itself with an error and is started again. Counts nothing.
    Restart,
}

impl ResumeReason {
    pub const fn code(self) -> &'static str {
        match self {
            ResumeReason::Manual => "manual",
            ResumeReason::Wake => "wake",
            ResumeReason::External => "external",
            ResumeReason::Schedule => "schedule",
            ResumeReason::Undo => "undo",
            ResumeReason::Restart => "restart",
        }
    }
}

impl fmt::Display for ResumeReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A set of pause reasons, as `wake_from` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PauseReasons(u8);

impl PauseReasons {
    pub const NONE: PauseReasons = PauseReasons(0);

    pub fn of(reasons: impl IntoIterator<Item = PauseReason>) -> Self {
        Self(reasons.into_iter().fold(0, |bits, reason| bits | 1 << reason as u8))
    }

    pub const fn contains(self, reason: PauseReason) -> bool {
        self.0 & (1 << reason as u8) != 0
    }

    pub fn iter(self) -> impl Iterator<Item = PauseReason> {
        PauseReason::ALL.into_iter().filter(move |reason| self.contains(*reason))
    }
}

impl Serialize for PauseReasons {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for PauseReasons {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<PauseReason>::deserialize(deserializer).map(Self::of)
    }
}

/// How a worker is put to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SleepMode {
    /// Its processor stops, its memory stays: back in a blink.
    Freeze,
    /// It ends and its memory is freed: back after a start.
    Stop,
    /// Its memory goes to disk: back after a start, with its state.
    Hibernate,
}

impl SleepMode {
    pub const ALL: [SleepMode; 3] = [SleepMode::Freeze, SleepMode::Stop, SleepMode::Hibernate];

    pub const fn code(self) -> &'static str {
        match self {
            SleepMode::Freeze => "freeze",
            SleepMode::Stop => "stop",
            SleepMode::Hibernate => "hibernate",
        }
    }
}

/// Which signals of the agent keep a worker awake (seed 002).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdlePolicy {
    /// Activity, leases and connections all count.
    #[default]
    Default,
    /// The agent's activity is shown and kept as history but not counted: for programs that always poll.
    LeasesOnly,
}

impl IdlePolicy {
    pub const ALL: [IdlePolicy; 2] = [IdlePolicy::Default, IdlePolicy::LeasesOnly];

    pub const fn code(self) -> &'static str {
        match self {
            IdlePolicy::Default => "default",
            IdlePolicy::LeasesOnly => "leases_only",
        }
    }
}
