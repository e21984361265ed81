//! What a worker is doing, with the data that belongs to it.
//!
//! ```text
//!  provisioning ──▶ running ──▶ pausing ──▶ paused ──▶ stopping ──▶ stopped
//!                     ▲  ▲         │           │           │            │
//!                     │  └─────────┴── waking ◀┴───────────┴────────────┘
//!                     │
//!   running, stopped ─┴▶ draining ──▶ terminating ──▶ terminated
//!   any transition whose deadline is over: what the driver says, `unknown` if it is silent,
//!   `failed` if it refused three times
//! ```

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::id::IntentId;
use crate::reason::{PauseReason, ResumeReason, SleepMode};

/// Why, by whom and since when a worker sleeps. What `stop_after` stops keeps its pause's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sleep {
    /// The closed reason, which decides what may wake it.
    pub reason: PauseReason,
    /// Who caused it: a person's name, or `drowse`.
    pub by: String,
    /// Free text beside the reason.
    pub message: String,
    /// When it was decided.
    pub at: Timestamp,
    /// Somebody insisted: activity and holds do not undo it.
    pub forced: bool,
}

impl Sleep {
    /// Whether activity that arrives while it falls asleep takes the sleep back.
    ///
    /// Only sleep for idleness rests on the absence of activity; a person's word and a limit do not.
    pub const fn is_undone_by_activity(&self) -> bool {
        match self.reason {
            PauseReason::IdleTimeout | PauseReason::Schedule | PauseReason::ScaleDown => !self.forced,
            PauseReason::Manual | PauseReason::External | PauseReason::MaxRuntime => false,
        }
    }
}

/// What a last look found that speaks against a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    /// A keep-alive file that was not there when it was judged.
    KeepAliveFile,
    /// Nobody can tell whether there is one.
    Unreadable,
    /// Another run than the one that was judged.
    OtherRun,
    /// It was asleep and is awake: somebody else woke it.
    Awake,
}

/// What asks for a sleeping worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeCause {
    /// Somebody connected.
    Connection,
    /// A program took a lease.
    Lease { holder: String },
    /// A person asked to keep it awake.
    KeepAwake { by: String },
    /// A person asked for it.
    Resume { by: String },
    /// A window of its schedule opened.
    Schedule,
    /// Activity was seen that the pause did not know of.
    Activity,
    /// A hook said no.
    Veto,
    /// What was found at the last moment.
    LastLook { found: Late },
    /// Drowse came back and could not vouch for the pause it had begun.
    Recovery,
    /// It exited with an error.
    Exit,
    /// Drowse ends, and nothing would wake what it leaves frozen.
    Shutdown,
    /// It leaves the books, and nothing would wake it any more.
    Removal,
}

impl WakeCause {
    /// Whether `wake_from` decides about it. What a person asks for is always allowed.
    pub const fn needs_permission(&self) -> bool {
        match self {
            WakeCause::Connection | WakeCause::Lease { .. } | WakeCause::Schedule => true,
            WakeCause::KeepAwake { .. }
            | WakeCause::Resume { .. }
            | WakeCause::Activity
            | WakeCause::Veto
            | WakeCause::LastLook { .. }
            | WakeCause::Recovery
            | WakeCause::Shutdown
            | WakeCause::Removal
            | WakeCause::Exit => false,
        }
    }

    /// The reason of a resume that it causes.
    pub const fn resume_reason(&self) -> ResumeReason {
        match self {
            WakeCause::Connection | WakeCause::Lease { .. } => ResumeReason::Wake,
            WakeCause::KeepAwake { .. } | WakeCause::Resume { .. } => ResumeReason::Manual,
            WakeCause::Schedule => ResumeReason::Schedule,
            WakeCause::LastLook { found: Late::Awake } => ResumeReason::External,
            WakeCause::Activity
            | WakeCause::Veto
            | WakeCause::LastLook { .. }
            | WakeCause::Recovery
            | WakeCause::Shutdown
            | WakeCause::Removal => ResumeReason::Undo,
            WakeCause::Exit => ResumeReason::Restart,
        }
    }

    /// Who is named as the cause.
    pub fn by(&self) -> &str {
        match self {
            WakeCause::KeepAwake { by } | WakeCause::Resume { by } => by,
            WakeCause::Lease { holder } => holder,
            WakeCause::Connection => "connection",
            WakeCause::Schedule => "schedule",
            WakeCause::Activity => "activity",
            WakeCause::Veto => "hook",
            WakeCause::LastLook { found: Late::KeepAliveFile } => "keep-alive file",
            WakeCause::LastLook { found: Late::Unreadable } => "keep-alive file that cannot be looked for",
            WakeCause::LastLook { found: Late::OtherRun } => "restart",
            WakeCause::LastLook { found: Late::Awake } => "external",
            WakeCause::Recovery | WakeCause::Exit => "drowse",
            WakeCause::Shutdown => "shutdown",
            WakeCause::Removal => "removal",
        }
    }
}

/// How far a worker on its way to sleep has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its `before_pause` hook runs; the driver has not been asked yet.
    Hook,
    /// The driver acts.
    Acting,
}

/// What a waking worker wakes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeFrom {
    /// It is frozen.
    Frozen,
    /// It was falling asleep and that is taken back: it may be frozen already, and nothing counts.
    Undone,
    /// It must be started.
    Stopped,
}

/// Why a worker failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailCause {
    /// The driver refused three times.
    Refused,
    /// It exited five times right after its start.
    CrashLoop,
}

/// What a worker is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status {
    /// It is being made and has not been seen running.
    Provisioning {
        since: Timestamp,
        deadline: Timestamp,
        /// How often the driver refused to make it.
        #[serde(default)]
        refusals: u8,
    },
    /// It is awake.
    Running { since: Timestamp },
    /// It is being frozen.
    ///
    /// A wake that arrives now cannot be served by the frozen worker, so it is kept here and becomes a
    /// resume as soon as the driver reports. What `wake_from` forbids was refused at the door.
    Pausing {
        intent: IntentId,
        since: Timestamp,
        deadline: Timestamp,
        sleep: Sleep,
        stage: Stage,
        wake: Option<WakeCause>,
        refusals: u8,
    },
    /// It is frozen; its memory stays.
    Paused { since: Timestamp, sleep: Sleep },
    /// It is being thawed or started, and may not answer yet.
    Waking {
        intent: IntentId,
        since: Timestamp,
        deadline: Timestamp,
        from: WakeFrom,
        cause: WakeCause,
        /// The sleep that ends. `None`: it did not sleep, but exited or needed a person.
        sleep: Option<Sleep>,
        /// A crashed process is started no sooner than this.
        not_before: Timestamp,
        refusals: u8,
    },
    /// It is being stopped.
    Stopping {
        intent: IntentId,
        since: Timestamp,
        deadline: Timestamp,
        sleep: Sleep,
        mode: SleepMode,
        stage: Stage,
        /// It was frozen when it was asked to stop: it is thawed first so that SIGTERM is heard, and its
        /// pause has been counted already.
        was_paused: bool,
        wake: Option<WakeCause>,
        refusals: u8,
    },
    /// It is not running and holds no memory.
    Stopped { since: Timestamp, sleep: Sleep },
    /// It takes no new work and will be deleted when what holds it is done.
    Draining {
        since: Timestamp,
        deadline: Timestamp,
        by: String,
        reason: PauseReason,
        /// It was stopped before; `None`: it was running.
        was_stopped: Option<Sleep>,
    },
    /// It is being deleted.
    Terminating {
        intent: IntentId,
        since: Timestamp,
        deadline: Timestamp,
        by: String,
        /// A person asked for it: then it is deleted whatever it does by now.
        #[serde(default)]
        is_ordered: bool,
        /// The sleep that it was in, should it turn out that it cannot be deleted.
        sleep: Option<Sleep>,
        refusals: u8,
    },
    /// It is gone for good.
    Terminated { since: Timestamp },
    /// It needs a person, and it says why.
    Failed { since: Timestamp, cause: FailCause, message: String },
    /// The driver does not say. `sleep` is what we were about to do, should it turn out done.
    Unknown { since: Timestamp, sleep: Option<Sleep> },
}

/// A status without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusKind {
    Provisioning,
    Running,
    Pausing,
    Paused,
    Waking,
    Stopping,
    Stopped,
    Draining,
    Terminating,
    Terminated,
    Failed,
    Unknown,
}

impl StatusKind {
    pub const ALL: [StatusKind; 12] = [
        StatusKind::Provisioning,
        StatusKind::Running,
        StatusKind::Pausing,
        StatusKind::Paused,
        StatusKind::Waking,
        StatusKind::Stopping,
        StatusKind::Stopped,
        StatusKind::Draining,
        StatusKind::Terminating,
        StatusKind::Terminated,
        StatusKind::Failed,
        StatusKind::Unknown,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            StatusKind::Provisioning => "provisioning",
            StatusKind::Running => "running",
            StatusKind::Pausing => "pausing",
            StatusKind::Paused => "paused",
            StatusKind::Waking => "waking",
            StatusKind::Stopping => "stopping",
            StatusKind::Stopped => "stopped",
            StatusKind::Draining => "draining",
            StatusKind::Terminating => "terminating",
            StatusKind::Terminated => "terminated",
            StatusKind::Failed => "failed",
            StatusKind::Unknown => "unknown",
        }
    }

    pub fn from_code(code: &str) -> Option<StatusKind> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

impl fmt::Display for StatusKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl Status {
    pub const fn kind(&self) -> StatusKind {
        match self {
            Status::Provisioning { .. } => StatusKind::Provisioning,
            Status::Running { .. } => StatusKind::Running,
            Status::Pausing { .. } => StatusKind::Pausing,
            Status::Paused { .. } => StatusKind::Paused,
            Status::Waking { .. } => StatusKind::Waking,
            Status::Stopping { .. } => StatusKind::Stopping,
            Status::Stopped { .. } => StatusKind::Stopped,
            Status::Draining { .. } => StatusKind::Draining,
            Status::Terminating { .. } => StatusKind::Terminating,
            Status::Terminated { .. } => StatusKind::Terminated,
            Status::Failed { .. } => StatusKind::Failed,
            Status::Unknown { .. } => StatusKind::Unknown,
        }
    }

    /// Since when.
    pub const fn since(&self) -> Timestamp {
        match self {
            Status::Provisioning { since, .. }
            | Status::Running { since }
            | Status::Pausing { since, .. }
            | Status::Paused { since, .. }
            | Status::Waking { since, .. }
            | Status::Stopping { since, .. }
            | Status::Stopped { since, .. }
            | Status::Draining { since, .. }
            | Status::Terminating { since, .. }
            | Status::Terminated { since }
            | Status::Failed { since, .. }
            | Status::Unknown { since, .. } => *since,
        }
    }

    /// By when this must be over; `None` where it may last.
    pub const fn deadline(&self) -> Option<Timestamp> {
        match self {
            Status::Provisioning { deadline, .. }
            | Status::Pausing { deadline, .. }
            | Status::Waking { deadline, .. }
            | Status::Stopping { deadline, .. }
            | Status::Draining { deadline, .. }
            | Status::Terminating { deadline, .. } => Some(*deadline),
            Status::Running { .. }
            | Status::Paused { .. }
            | Status::Stopped { .. }
            | Status::Terminated { .. }
            | Status::Failed { .. }
            | Status::Unknown { .. } => None,
        }
    }

    /// The intent that is being carried out.
    pub const fn intent(&self) -> Option<IntentId> {
        match self {
            Status::Pausing { intent, .. }
            | Status::Waking { intent, .. }
            | Status::Stopping { intent, .. }
            | Status::Terminating { intent, .. } => Some(*intent),
            Status::Provisioning { .. }
            | Status::Running { .. }
            | Status::Paused { .. }
            | Status::Stopped { .. }
            | Status::Draining { .. }
            | Status::Terminated { .. }
            | Status::Failed { .. }
            | Status::Unknown { .. } => None,
        }
    }

    /// Why it sleeps or is about to.
    pub const fn sleep(&self) -> Option<&Sleep> {
        match self {
            Status::Pausing { sleep, .. }
            | Status::Paused { sleep, .. }
            | Status::Stopping { sleep, .. }
            | Status::Stopped { sleep, .. } => Some(sleep),
            Status::Draining { was_stopped, .. } => was_stopped.as_ref(),
            Status::Waking { sleep, .. }
            | Status::Terminating { sleep, .. }
            | Status::Unknown { sleep, .. } => sleep.as_ref(),
            Status::Provisioning { .. }
            | Status::Running { .. }
            | Status::Terminated { .. }
            | Status::Failed { .. } => None,
        }
    }
}
