//! What CML's telemetry says about people.
//!
//! CML sends its whole history each time, mostly noise that it or Drowse itself caused. A [`Filter`] takes
//! the events one by one, keeps those that a person caused and that were not counted before, and ends in a
//! [`Digest`] and the [`Mark`] for the next time. Its memory does not grow with the history.
//!
//! ```text
//!  body ──▶ Event ──▶ readable? ──▶ a person's? ──▶ new? ──▶ Digest ──▶ Outcome
//!                        │ no          │ no          │ no
//!                   skipped_bad     excluded     duplicates
//! ```
//!
//! What must stay true:
//! - every event ends in exactly one of the four counts;
//! - the order of the events does not matter;
//! - no bad event costs more than itself;
//! - in doubt an event counts: a worker awake for too long costs money, one asleep too soon costs work.
//!
//! Nothing here decides whether a worker is idle. An event speaks at its own time (at the latest now), so a
//! clock that runs behind makes activity look older than it is; [`Digest::late`] shows when that happens.

mod activity;
mod category;
mod event;
mod filter;
mod mark;
mod time;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

pub use activity::{Activity, RECENT_EVENTS, keep_newest};
pub use category::{Categories, EXCLUDED_USERS, PatternError, UserPattern};
pub use event::{Event, User, Value};
pub use filter::Filter;
pub use mark::{MAX_SEEN, Mark, OVERLAP};
pub use time::parse as parse_time;

use crate::Timestamp;

/// What one fetch of the history brought.
///
/// `examined` is always the sum of `relevant`, `excluded`, `duplicates` and `skipped_bad`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The time of the newest event that is new and a person's, never later than now.
    ///
    /// For `last_activity_at` the caller takes the later of this and what it has.
    pub latest_activity_at: Option<Timestamp>,
    /// Events that are new and a person's.
    pub relevant: u64,
    /// The newest of them, newest first.
    pub recent: Vec<Activity>,
    /// All events of the answer.
    pub examined: u64,
    /// Events without a readable category or time.
    pub skipped_bad: u64,
    /// Events that no person caused.
    pub excluded: u64,
    /// A person's events that were counted before, or are too old for that to be known.
    pub duplicates: u64,
    /// Those of `relevant` that were dated in the future and count as of now.
    pub clamped: u64,
    /// Those of `relevant` that are older than one that was counted at an earlier fetch.
    pub late: u64,
    /// Something new came and none of it could be read, as after a change of CML's format.
    ///
    /// One bad event among good ones does not set this; it must not cost the whole answer.
    pub unreadable: bool,
}

/// How the attempt to read a worker's telemetry ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The whole history was read.
    Events(Digest),
    /// CML does not collect telemetry: its administrator said no, or was never asked.
    OptedOut,
    /// No answer, a refusal, or one that broke off; the mark stays as it was.
    Failed,
}

impl Fetched {
    /// Joins the answers of `/telemetry` and `/telemetry/events`.
    ///
    /// Without the opt-in an empty history means nothing, so only a clear yes lets it speak.
    pub fn new<E>(opt_in: Option<bool>, events: Result<Digest, E>) -> Self {
        match (opt_in, events) {
            (Some(true), Ok(digest)) => Self::Events(digest),
            (Some(true), Err(_)) => Self::Failed,
            (Some(false) | None, _) => Self::OptedOut,
        }
    }

    /// What it says about the worker. Only a history that was read can say "quiet".
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Events(digest) => match digest.latest_activity_at {
                Some(at) => Outcome::Active { at },
                None if digest.unreadable => Outcome::Unknown(UnknownCause::Unreadable),
                None => Outcome::Quiet,
            },
            Self::OptedOut => Outcome::Unknown(UnknownCause::OptedOut),
            Self::Failed => Outcome::Unknown(UnknownCause::FetchFailed),
        }
    }
}

/// What telemetry says about a worker in this check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A person did something that was not known at the last check.
    Active {
        /// When, by the event's own time and never later than now.
        at: Timestamp,
    },
    /// The history was read and holds nothing new of a person.
    Quiet,
    /// The history says nothing.
    Unknown(UnknownCause),
}

/// Why telemetry says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownCause {
    /// CML's telemetry opt-in is off or was never answered.
    OptedOut,
    /// The history could not be fetched to its end.
    FetchFailed,
    /// New events came, and not one new event could be read.
    Unreadable,
}
