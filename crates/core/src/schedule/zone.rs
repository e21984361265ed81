//! A named time zone from the database that is part of the program.
//!
//! The machine's own zone files never matter: two replicas with files of different age would disagree
//! about when a window opens.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::str::FromStr;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::parse::ScheduleError;
use crate::Timestamp;

/// A zone of the IANA database, such as `Europe/Berlin`; the same as another if it has the same name.
#[derive(Clone)]
pub struct Zone(TimeZone);

/// Which of two instants is meant by a time that the clock shows twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Twice {
    /// Before the clock was put back.
    First,
    /// After it.
    Second,
    /// After it, for the end of a window. The end is not part of the window: one that ends exactly where
    /// the repetition begins has nothing in it that comes twice, and ends before.
    SecondAsEnd,
}

impl Zone {
    /// Universal time, which has no clock changes.
    pub const UTC: Zone = Zone(TimeZone::UTC);

    /// Looks a name up, in any case: `europe/berlin` is `Europe/Berlin`.
    pub fn new(name: &str) -> Result<Self, ScheduleError> {
        match TimeZoneDatabase::bundled().get(name) {
            // `Etc/Unknown` would silently be universal time.
            Ok(zone) if !zone.is_unknown() => Ok(Self(zone)),
            _ => Err(ScheduleError::UnknownZone { found: name.to_string(), suggestion: closest(name) }),
        }
    }

    /// The name as the database writes it.
    pub fn name(&self) -> &str {
        self.0.iana_name().expect("every zone of the database has a name")
    }

    /// The day that a calendar in this zone shows.
    pub(super) fn date(&self, at: Timestamp) -> Date {
        let at = at.clamp(Timestamp::EPOCH, Timestamp::MAX);
        let at = jiff::Timestamp::from_microsecond(at.as_micros()).expect("clamped to what can be written");
        self.0.to_datetime(at).date()
    }

    /// When the clock shows `local`; if it never does, when it jumps over it.
    pub(super) fn instant(&self, local: DateTime, twice: Twice) -> Timestamp {
        match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => instant(local, offset),
            AmbiguousOffset::Fold { before, after } => match twice {
                Twice::Second => instant(local, after),
                Twice::SecondAsEnd if self.comes_twice(local.saturating_sub(1.minute())) => {
                    instant(local, after)
                }
                Twice::First | Twice::SecondAsEnd => instant(local, before),
            },
            AmbiguousOffset::Gap { before, after } => self.jump(local, before, after),
        }
    }

    fn comes_twice(&self, local: DateTime) -> bool {
        matches!(self.0.to_ambiguous_timestamp(local).offset(), AmbiguousOffset::Fold { .. })
    }

    /// The instant of the clock change that skips `local`.
    fn jump(&self, local: DateTime, before: Offset, after: Offset) -> Timestamp {
        // Read with the offset that is not in force yet, a skipped time lies before the jump.
        let Ok(earlier) = after.to_timestamp(local) else {
            return instant(local, before);
        };
        self.0
            .following(earlier)
            .find(|change| change.offset() == after)
            .map_or_else(|| instant(local, before), |change| timestamp(change.timestamp()))
    }
}

fn instant(local: DateTime, offset: Offset) -> Timestamp {
    // Only the last day of the year 9999 has no instant.
    offset.to_timestamp(local).map_or(Timestamp::MAX, timestamp)
}

fn timestamp(instant: jiff::Timestamp) -> Timestamp {
    Timestamp::from_micros(instant.as_microsecond())
}

/// The zone whose name, or last part of the name, is most like what was written, if any is.
fn closest(written: &str) -> Option<String> {
    let written = written.trim().to_ascii_lowercase().replace(' ', "_");
    let database = TimeZoneDatabase::bundled();
    database
        .available()
        // Names with a number say the offset with its sign turned round ("Etc/GMT+2" is two hours behind):
        // a suggestion would lead astray.
        .filter(|zone| !zone.as_str().bytes().any(|byte| byte.is_ascii_digit()))
        .filter_map(|zone| {
            let name = zone.as_str().to_ascii_lowercase();
            let city = name.rsplit('/').next().unwrap_or(&name);
            // A quarter of the letters: more is another word.
            let limit = written.len() / 4;
            [name.as_str(), city]
                .into_iter()
                .filter(|name| name.len().abs_diff(written.len()) <= limit)
                .map(|name| edit_distance(&written, name))
                .filter(|distance| *distance <= limit)
                .min()
                .map(|distance| (distance, zone.as_str().to_string()))
        })
        .min()
        .map(|(_, name)| name)
}

/// How many letters have to be added, removed or changed to get from one to the other.
fn edit_distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in to.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

impl FromStr for Zone {
    type Err = ScheduleError;
    fn from_str(name: &str) -> Result<Self, ScheduleError> {
        Self::new(name)
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <alloc::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::new(&name).map_err(serde::de::Error::custom)
    }
}
