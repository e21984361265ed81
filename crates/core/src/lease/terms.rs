//! What is asked for, what policy allows, and what is refused.

use alloc::string::String;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{DEFAULT_HOLDER, MOST_HOLDERS};
use crate::Timestamp;
use crate::units::Human;

/// Who asks: the name of a token or of the channel that a driver made, never the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Credential(pub String);

impl Credential {
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What policy says about leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseTerms {
    /// The longest TTL of one grant.
    #[serde(with = "crate::units::duration")]
    pub ttl_max: Duration,
    /// The longest continuous leased time of one credential.
    #[serde(with = "crate::units::duration")]
    pub ceiling: Duration,
    /// The worker's idle timeout; none if it never sleeps for idleness.
    #[serde(with = "crate::units::optional_duration")]
    pub idle_timeout: Option<Duration>,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self {
            ttl_max: Duration::from_hours(1),
            ceiling: Duration::from_hours(24),
            idle_timeout: Some(Duration::from_hours(1)),
        }
    }
}

/// However short the idle timeout is: a build that pauses between two steps has not ended.
const SHORTEST_FREE: Duration = Duration::from_mins(10);

impl LeaseTerms {
    /// How long a worker must be without any lease for the count to start again.
    ///
    /// Two idle timeouts: after one it could have slept, had nothing else kept it awake.
    pub(super) fn lease_free_for(&self) -> Duration {
        let two_timeouts = self.idle_timeout.unwrap_or(Duration::ZERO).saturating_mul(2);
        two_timeouts.max(SHORTEST_FREE)
    }
}

/// The longest reason, in bytes: it is shown in one line.
const LONGEST_REASON: usize = 200;

/// The longest name of a holder, in bytes: it is part of a URL.
const LONGEST_HOLDER: usize = 128;

/// One request for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Who asks.
    pub credential: &'a Credential,
    /// In what name; none means `default`.
    pub holder: Option<&'a str>,
    /// For how long.
    pub ttl: Duration,
    /// What for.
    pub reason: &'a str,
}

impl<'a> Asked<'a> {
    /// What can be said without looking at the book. Returns the holder's name.
    pub(super) fn check(&self, terms: &LeaseTerms) -> Result<&'a str, LeaseRefusal> {
        let holder = name(self.holder);
        if self.ttl.is_zero() {
            Err(LeaseRefusal::NoTtl)
        } else if self.ttl > terms.ttl_max {
            Err(LeaseRefusal::TtlTooLong { asked: self.ttl, max: terms.ttl_max })
        } else if self.reason.len() > LONGEST_REASON {
            Err(LeaseRefusal::ReasonTooLong { bytes: self.reason.len() })
        } else if holder.len() > LONGEST_HOLDER {
            Err(LeaseRefusal::HolderTooLong { bytes: holder.len() })
        } else {
            Ok(holder)
        }
    }
}

/// The name that a request means: an empty one is none.
pub(super) fn name(holder: Option<&str>) -> &str {
    holder.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_HOLDER)
}

/// Why a lease is not granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseRefusal {
    /// A TTL of nothing.
    #[error("a lease needs a TTL greater than zero")]
    NoTtl,
    /// More than `lease_ttl_max`.
    #[error("a TTL of {} is longer than the {} that policy allows; take less and renew it", Human(*asked), Human(*max))]
    TtlTooLong {
        /// What was asked for.
        asked: Duration,
        /// What is allowed.
        max: Duration,
    },
    /// A reason that does not fit a line.
    #[error("a reason of {bytes} bytes is longer than {LONGEST_REASON}")]
    ReasonTooLong {
        /// How long it was.
        bytes: usize,
    },
    /// A name that does not fit a URL.
    #[error("a holder's name of {bytes} bytes is longer than {LONGEST_HOLDER}")]
    HolderTooLong {
        /// How long it was.
        bytes: usize,
    },
    /// More leases, or more credentials, than one worker may have.
    #[error("this worker already has {MOST_HOLDERS} leases or too many credentials that took one")]
    TooManyHolders,
    /// This credential has kept the worker awake for long enough.
    #[error("leases have kept this worker since {since}; {} without a sleep is the limit", Human(*ceiling))]
    Ceiling {
        /// When its count began.
        since: Timestamp,
        /// The limit.
        ceiling: Duration,
    },
}

impl LeaseRefusal {
    /// The stable code of the API and the journal.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoTtl => "lease_ttl_missing",
            Self::TtlTooLong { .. } => "lease_ttl_too_long",
            Self::ReasonTooLong { .. } => "lease_reason_too_long",
            Self::HolderTooLong { .. } => "lease_holder_too_long",
            Self::TooManyHolders => "lease_too_many_holders",
            Self::Ceiling { .. } => "lease_ceiling",
        }
    }
}
