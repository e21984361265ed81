//! Instants as the rules see them.
//!
//! A [`Timestamp`] is an integer count of microseconds since the Unix epoch, which is also how it is
//! stored: text of varying width does not sort as time. Nothing here reads a clock; `now` is always an
//! argument, so a rule gives the same answer in production, in a test and in a replay.

use alloc::string::{String, ToString};
use core::fmt;
use core::ops::{Add, Sub};
use core::str::FromStr;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant, in microseconds since 1970-01-01T00:00:00Z.
///
/// Arithmetic saturates: a policy of "400000d" must not wrap around into the past.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The Unix epoch; also the earliest instant that Drowse deals with.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// 9999-12-30T22:00:00Z, the last instant that can also be written as RFC 3339 text.
    pub const MAX: Timestamp = Timestamp(253_402_207_200_000_000);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    ///
    /// Clocks of different machines disagree, so "a moment ago" can lie in the future. A negative age
    /// would make a rule look at something that cannot be; zero is always the careful answer.
    pub const fn since(self, earlier: Timestamp) -> Duration {
        let micros = self.0.saturating_sub(earlier.0);
        if micros <= 0 { Duration::ZERO } else { Duration::from_micros(micros.unsigned_abs()) }
    }

    /// The second that it is in: what people are told.
    #[must_use]
    pub const fn to_the_second(self) -> Self {
        Self(self.0 - self.0.rem_euclid(1_000_000))
    }

    /// The first instant, not before this one, that is a whole number of `step`s after the epoch.
    #[must_use]
    pub fn up_to_whole(self, step: Duration) -> Self {
        match micros(step) {
            0 => self,
            step => Self(self.0.saturating_add((-self.0).rem_euclid(step))).min(Self::MAX),
        }
    }

    /// The instant one `duration` later, or [`Timestamp::MAX`] if there is none.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration))).min(Self::MAX)
    }

    /// The instant one `duration` earlier, at the earliest the epoch.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration))).max(Self::EPOCH)
    }
}

/// Whole microseconds of a duration, saturating.
fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, duration: Duration) -> Timestamp {
        self.after(duration)
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;
    fn sub(self, duration: Duration) -> Timestamp {
        self.before(duration)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => fmt::Display::fmt(&instant, f),
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not an instant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an instant such as 2026-03-01T09:30:00Z, found {found:?}")]
pub struct NotAnInstant {
    found: String,
}

impl FromStr for Timestamp {
    type Err = NotAnInstant;

    /// Reads RFC 3339 with an offset or `Z`; an instant without a zone is refused here (CML's zone-less
    /// times are a matter of `crate::telemetry` alone).
    fn from_str(text: &str) -> Result<Self, NotAnInstant> {
        text.parse::<jiff::Timestamp>()
            .map(|instant| Self(instant.as_microsecond()))
            .map_err(|_| NotAnInstant { found: text.to_string() })
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <alloc::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_never_negative() {
        let earlier = Timestamp::from_secs(10);
        let later = Timestamp::from_secs(11);
        assert_eq!(later.since(earlier), Duration::from_secs(1));
        assert_eq!(earlier.since(later), Duration::ZERO);
    }

    #[test]
    fn up_to_whole_steps_and_never_back() {
        let step = Duration::from_millis(500);
        for (micros, whole) in [(0, 0), (1, 500_000), (499_999, 500_000), (500_000, 500_000), (-1, 0)] {
            assert_eq!(Timestamp(micros).up_to_whole(step), Timestamp(whole), "{micros}");
        }
        assert_eq!(Timestamp(7).up_to_whole(Duration::ZERO), Timestamp(7));
        assert_eq!(Timestamp::MAX.up_to_whole(Duration::from_secs(7)), Timestamp::MAX);
    }

    #[test]
    fn arithmetic_stops_at_the_ends_of_time() {
        assert_eq!(Timestamp::MAX + Duration::MAX, Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH - Duration::MAX, Timestamp::EPOCH);
        assert!(Timestamp::MAX.to_string().starts_with("9999-12-30T22"));
    }

    #[test]
    fn text_and_back() {
        let instant: Timestamp = "2026-03-01T09:30:00.25Z".parse().unwrap();
        assert_eq!(instant.to_string(), "2026-03-01T09:30:00.25Z");
        assert_eq!("2026-03-01T10:30:00.25+01:00".parse(), Ok(instant));
        assert!("2026-03-01T09:30:00".parse::<Timestamp>().is_err());
    }
}
