//! Names and numbers that identify things.
//!
//! Ids are made by shells or derived from what is already there (an intent is numbered by the generation
//! of its worker), never drawn here.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// A worker's stable name: a slug that survives restarts, re-creations and renames of what it stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct WorkerId(String);

/// Long enough for `region/instance` style names, short enough for a URL, a file and a terminal column.
const LONGEST_WORKER_ID: usize = 128;

/// Why a text cannot be a worker's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a worker id of 1 to 128 letters, digits, '.', '_' or '-' that starts with a letter or digit, found {found:?}"
)]
pub struct NotAWorkerId {
    found: String,
}

impl WorkerId {
    pub fn new(text: &str) -> Result<Self, NotAWorkerId> {
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let made_well = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
        if starts_well && made_well && text.len() <= LONGEST_WORKER_ID {
            Ok(Self(text.to_string()))
        } else {
            Err(NotAWorkerId { found: text.chars().take(LONGEST_WORKER_ID).collect() })
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WorkerId {
    type Err = NotAWorkerId;
    fn from_str(text: &str) -> Result<Self, NotAWorkerId> {
        Self::new(text)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for WorkerId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <alloc::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}

/// Identity of one run of a worker: container id + start time, instance id + launch time, or the
/// machine's boot id + pid + start time. What belongs to an older one changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);

impl BootId {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Counts the transitions of one worker. A timer or an observation that carries an older one is late and
/// changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl Generation {
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Identity of an intent within its worker: the generation that opened it. A retry of the same intent
/// carries the same id, so that nothing is done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IntentId(pub u64);

impl fmt::Display for IntentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_ids_are_slugs() {
        for good in ["web", "lab-1", "a", "9", "i-0123456789abcdef0", "Team_A.web"] {
            assert_eq!(WorkerId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "-web", ".hidden", "a/b", "a b", "é", &"x".repeat(129)] {
            assert!(WorkerId::new(bad).is_err(), "{bad:?} was taken for a worker id");
        }
    }
}
