//! Stopping with grace, and what an exit means.
//!
//! ```text
//!   frozen ── Thaw ──► thawing ── thawed ──┐
//!                                          ▼
//!   running ─────────────────────────── Term ──► waiting ── grace over ──► Kill ──► killing
//!                                                   └────────── exited ──────────────┘
//! ```
//!
//! Nothing is signalled twice because of a retry: the plan says what is *due*, and remembers what was done.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// What the driver is to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Let it run again, so that it can hear what follows. Counts as no resume.
    Thaw,
    /// Ask it to end (SIGTERM, or what the driver has for it).
    Term,
    /// End it (SIGKILL).
    Kill,
}

/// Where a stop has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// It was frozen and is being thawed; grace has not begun. The deadline of `stopping` bounds this.
    Thawing,
    /// It was asked to end and may take its time.
    Waiting {
        /// When its grace is over.
        kill_at: Timestamp,
    },
    /// Its grace was over and it was killed.
    Killing {
        /// When its grace was over.
        kill_at: Timestamp,
    },
}

/// One stop of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopPlan {
    /// How long it may take from being asked to being killed.
    #[serde(with = "crate::units::duration")]
    pub grace: Duration,
    /// Where it has got to.
    pub phase: Phase,
}

impl StopPlan {
    /// Begins to stop a worker, and says what to do first.
    pub fn begin(is_frozen: bool, grace: Duration, now: Timestamp) -> (StopPlan, Action) {
        if is_frozen {
            (StopPlan { grace, phase: Phase::Thawing }, Action::Thaw)
        } else {
            (StopPlan { grace, phase: Phase::Waiting { kill_at: now.after(grace) } }, Action::Term)
        }
    }

    /// The driver has thawed it. Its grace begins now: while frozen it could not have used it.
    pub fn thawed(&mut self, now: Timestamp) -> Option<Action> {
        match self.phase {
            Phase::Thawing => {
                self.phase = Phase::Waiting { kill_at: now.after(self.grace) };
                Some(Action::Term)
            }
            // Told twice.
            Phase::Waiting { .. } | Phase::Killing { .. } => None,
        }
    }

    /// Says what is due. `>=`: grace that is used up to its last moment is used up.
    pub fn tick(&mut self, now: Timestamp) -> Option<Action> {
        match self.phase {
            Phase::Waiting { kill_at } if now >= kill_at => {
                self.phase = Phase::Killing { kill_at };
                Some(Action::Kill)
            }
            Phase::Thawing | Phase::Waiting { .. } | Phase::Killing { .. } => None,
        }
    }

    /// When to [`tick`](Self::tick) next; none if nothing will be due by itself.
    pub const fn deadline(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Waiting { kill_at } => Some(kill_at),
            Phase::Thawing | Phase::Killing { .. } => None,
        }
    }

    /// What it means that the worker ended with `code` at `at`.
    pub fn exited(&self, code: i32, at: Timestamp) -> ExitNote {
        match (ExitNote::of(code), self.phase) {
            // Docker counts the grace by itself, so that the time tells it and not who sent the signal. A kill
            // before the end of the grace was somebody else's: out of memory, or by hand.
            (ExitNote::Killed, Phase::Waiting { kill_at } | Phase::Killing { kill_at }) if at >= kill_at => {
                ExitNote::GraceExceeded
            }
            (note, _) => note,
        }
    }
}

/// What the journal says about an exit. A death by signal has the code 128 + signal, as in a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "exit", rename_all = "snake_case")]
pub enum ExitNote {
    /// Code 0.
    Clean,
    /// Code 143: it was ended by SIGTERM, which it did not handle.
    Terminated,
    /// Code 137 after its grace was over: what it had not saved by then is lost.
    GraceExceeded,
    /// Code 137 and not by us: usually out of memory.
    Killed,
    /// Any other code.
    Failed {
        /// The code.
        code: i32,
    },
}

impl ExitNote {
    /// What a code means when nobody asked the worker to stop.
    pub const fn of(code: i32) -> ExitNote {
        match code {
            0 => Self::Clean,
            137 => Self::Killed,
            143 => Self::Terminated,
            code => Self::Failed { code },
        }
    }
}

impl fmt::Display for ExitNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("ended by itself"),
            Self::Terminated => f.write_str("ended by SIGTERM"),
            Self::GraceExceeded => f.write_str("grace exceeded"),
            Self::Killed => f.write_str("killed, not by Drowse (out of memory?)"),
            Self::Failed { code } => write!(f, "failed with code {code}"),
        }
    }
}

/// A run that ends no later than this after its start did not really start.
const QUICK: Duration = Duration::from_secs(10);

/// So many quick exits within [`LOOP_WINDOW`] are a crash loop.
const QUICK_EXITS: usize = 5;

/// The stretch in which quick exits are counted, both ends included.
const LOOP_WINDOW: Duration = Duration::from_mins(2);

/// The longest wait before a restart: a service whose database comes back should not be missed for longer.
const LONGEST_BACKOFF: Duration = Duration::from_mins(1);

/// What to do about a process that ended with a code other than 0, unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restart {
    /// Start it again after this time.
    After(Duration),
    /// It is a crash loop: `failed`, until a person resumes it.
    GiveUp,
}

/// The failures of one process. A manual resume begins with a new one; a stop that we asked for is no failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashLoop {
    /// When it last ended soon after its start, oldest first; five at most.
    pub quick_exits: Vec<Timestamp>,
    /// Failures in a row, none of them after a run longer than two minutes.
    pub in_a_row: u32,
}

impl CrashLoop {
    /// Counts a failure of a run that began at `started_at`.
    pub fn exited(&mut self, started_at: Timestamp, now: Timestamp) -> Restart {
        let lived_for = now.since(started_at);
        if lived_for > LOOP_WINDOW {
            // It worked for a while, so this is a new trouble and not the old one.
            self.in_a_row = 0;
        }
        self.quick_exits.retain(|earlier| now.since(*earlier) <= LOOP_WINDOW);
        if lived_for <= QUICK {
            self.quick_exits.push(now);
            if self.quick_exits.len() >= QUICK_EXITS {
                return Restart::GiveUp;
            }
        }
        let wait = Duration::from_secs(1 << self.in_a_row.min(6)).min(LONGEST_BACKOFF);
        self.in_a_row = self.in_a_row.saturating_add(1);
        Restart::After(wait)
    }
}

#[cfg(test)]
mod tests;
