//! Durations, sizes and percentages as people write them.
//!
//! A bare number is refused everywhere: `max_runtime: 48` once meant 48 seconds where 48 hours were meant,
//! and killed a user's job. A unit costs one letter and cannot be misread.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

/// What was wrong with a value and what would have been right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A number without a unit.
    #[error("a bare number has no unit: write \"{number}s\", \"{number}m\" or \"{number}h\"")]
    BareDuration { number: String },
    /// A number without a unit where a size is expected.
    #[error("a bare number has no unit: write \"{number}B\", \"{number}KiB\" or \"{number}MiB\"")]
    BareSize { number: String },
    /// A number without a per cent sign.
    #[error("a bare number has no unit: write \"{number}%\"")]
    BarePercent { number: String },
    /// Not a duration at all.
    #[error("expected a duration such as \"30s\", \"90m\", \"1h30m\" or \"2d\", found {found:?}")]
    NotADuration { found: String },
    /// Not a size at all.
    #[error("expected a size such as \"512B\", \"64KiB\" or \"1MiB\", found {found:?}")]
    NotASize { found: String },
    /// Not a percentage at all.
    #[error("expected a percentage such as \"2%\" or \"0.5%\", found {found:?}")]
    NotAPercentage { found: String },
    /// Larger than Drowse can count.
    #[error("{found:?} is too large")]
    TooLarge { found: String },
}

/// The units of a duration, longest first. Months and years are left out: their length varies.
const DURATION_UNITS: [(&str, u64); 6] = [
    ("w", 7 * 24 * 3_600_000_000),
    ("d", 24 * 3_600_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
];

/// The units of a size. Both families are accepted; powers of two are what we print.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Ten thousand years: anything longer is a slip of the keyboard, and "never" is written as a word.
const LONGEST_MICROS: u64 = 10_000 * 365 * 24 * 3_600_000_000;

/// Reads `30s`, `90m`, `1h30m`, `2d`, `500ms`; also with spaces between the parts and with fractions
/// (`1.5h`). Each unit at most once, longest first.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let not_one = || UnitError::NotADuration { found: text.to_string() };
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(not_one());
    }
    if is_number(rest) {
        return Err(UnitError::BareDuration { number: rest.to_string() });
    }
    let mut total: u64 = 0;
    let mut last_unit = usize::MAX;
    while !rest.is_empty() {
        let (number, after) = split_number(rest).ok_or_else(not_one)?;
        let unit_len = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, tail) = after.split_at(unit_len);
        let index = DURATION_UNITS.iter().position(|(name, _)| *name == unit).ok_or_else(not_one)?;
        if last_unit != usize::MAX && index <= last_unit {
            return Err(not_one());
        }
        last_unit = index;
        let part = scaled(number, DURATION_UNITS[index].1).ok_or_else(not_one)?;
        total = total
            .checked_add(part)
            .filter(|sum| *sum <= LONGEST_MICROS)
            .ok_or_else(|| UnitError::TooLarge { found: text.to_string() })?;
        rest = tail.trim_start();
    }
    Ok(Duration::from_micros(total))
}

/// Reads `512B`, `64KiB`, `1MiB`, `1.5GB`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    if is_number(trimmed) {
        return Err(UnitError::BareSize { number: trimmed.to_string() });
    }
    let not_one = || UnitError::NotASize { found: text.to_string() };
    let (number, after) = split_number(trimmed).ok_or_else(not_one)?;
    let unit = after.trim_start();
    let (_, scale) = SIZE_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(not_one)?;
    scaled(number, *scale).ok_or_else(|| UnitError::TooLarge { found: text.to_string() })
}

/// Reads `2%`, `0.5%`, `250%` (a process that uses two and a half cores).
pub fn parse_percent(text: &str) -> Result<f64, UnitError> {
    let trimmed = text.trim();
    if is_number(trimmed) {
        return Err(UnitError::BarePercent { number: trimmed.to_string() });
    }
    let not_one = || UnitError::NotAPercentage { found: text.to_string() };
    let number = trimmed.strip_suffix('%').ok_or_else(not_one)?.trim_end();
    if !is_number(number) {
        return Err(not_one());
    }
    match number.parse::<f64>() {
        Ok(value) if value <= 1_000_000.0 => Ok(value),
        Ok(_) => Err(UnitError::TooLarge { found: text.to_string() }),
        Err(_) => Err(not_one()),
    }
}

/// Digits with at most one point between them.
fn is_number(text: &str) -> bool {
    split_number(text).is_some_and(|(_, rest)| rest.is_empty())
}

/// Splits the leading number off; `None` if there is none. Signs and exponents are not numbers here.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let starts_well = number.starts_with(|c: char| c.is_ascii_digit());
    let ends_well = number.ends_with(|c: char| c.is_ascii_digit());
    let points = number.bytes().filter(|b| *b == b'.').count();
    (starts_well && ends_well && points <= 1).then_some((number, rest))
}

/// `number` × `scale` exactly, without going through a float for whole numbers.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let mut total = whole.parse::<u64>().ok()?.checked_mul(scale)?;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        total = total.checked_add(u64::from(digit - b'0').checked_mul(place)?)?;
    }
    Some(total)
}

/// A duration in the notation that [`parse_duration`] reads: `1h30m`, `90s`, `0s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Human(pub Duration);

impl fmt::Display for Human {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_micros()).unwrap_or(u64::MAX);
        if rest < 1_000 {
            // Below a millisecond there is nothing a person could set or act on.
            return f.write_str("0s");
        }
        // Weeks are read but not written: "7d" is what people say.
        for (unit, scale) in &DURATION_UNITS[1..] {
            let count = rest / scale;
            if count > 0 {
                write!(f, "{count}{unit}")?;
                rest -= count * scale;
            }
        }
        Ok(())
    }
}

/// A duration as people are told it: the two largest units, without what is below a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rough(pub Duration);

impl fmt::Display for Rough {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_secs();
        let mut parts = 0;
        for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
            let count = rest / seconds;
            rest %= seconds;
            if count > 0 && parts < 2 {
                write!(f, "{count}{unit}")?;
            }
            // A gap counts too: 1d0h5m is one day, not a day and five minutes.
            parts += u8::from(count > 0 || parts > 0);
        }
        if parts == 0 { f.write_str("0s") } else { Ok(()) }
    }
}

/// A size as people are told it: `712KiB`, `1.5MiB`, `87B`.
pub fn rough_size(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes, 0);
    // What would be shown as 1024 of one unit is one of the next.
    while value >= 1023.5 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let name = units[unit];
    if unit == 0 || value >= 9.95 { format!("{value:.0}{name}") } else { format!("{value:.1}{name}") }
}

/// A size in the notation that [`parse_size`] reads, without loss: `1MiB`, `1500B`.
pub fn format_size(bytes: u64) -> String {
    let (name, scale) = SIZE_UNITS[..5]
        .iter()
        .rev()
        .find(|(_, scale)| bytes >= *scale && bytes.is_multiple_of(*scale))
        .unwrap_or(&SIZE_UNITS[0]);
    format!("{}{name}", bytes / scale)
}

/// Serde for durations in the notation of the configuration file.
pub mod duration {
    use super::{Duration, Human, parse_duration};
    use alloc::borrow::Cow;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Human(*value))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        parse_duration(&<Cow<'de, str>>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Serde for a duration that may be absent (`null`).
pub mod optional_duration {
    use super::{Duration, Human, parse_duration};
    use alloc::borrow::Cow;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.collect_str(&Human(*duration)),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Option::<Cow<'de, str>>::deserialize(deserializer)?
            .map(|text| parse_duration(&text).map_err(D::Error::custom))
            .transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_are_told_no_more_than_they_read() {
        for (millis, text) in
            [(0, "0s"), (993, "0s"), (3_596_993, "59m56s"), (90_061_000, "1d1h"), (86_700_000, "1d")]
        {
            assert_eq!(Rough(Duration::from_millis(millis)).to_string(), text);
        }
        for (bytes, text) in [
            (0.0, "0B"),
            (87.4, "87B"),
            (1023.0, "1023B"),
            (1023.9, "1.0KiB"),
            (729_088.0, "712KiB"),
            (1_572_864.0, "1.5MiB"),
        ] {
            assert_eq!(rough_size(bytes), text);
        }
    }

    #[test]
    fn durations_need_a_unit() {
        for (text, secs) in [("30s", 30), ("90m", 5_400), ("1h30m", 5_400), ("48h", 172_800), ("2d", 172_800)]
        {
            assert_eq!(parse_duration(text), Ok(Duration::from_secs(secs)), "{text}");
        }
        assert_eq!(parse_duration(" 1h 30m "), Ok(Duration::from_mins(90)));
        assert_eq!(parse_duration("1.5h"), Ok(Duration::from_mins(90)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("48"), Err(UnitError::BareDuration { number: "48".into() }));
        assert_eq!(
            parse_duration("48").unwrap_err().to_string(),
            "a bare number has no unit: write \"48s\", \"48m\" or \"48h\""
        );
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in
            ["", " ", "h", "-5m", "5 minutes", "5M", "1m1h", "1h1h", "1..5h", ".5h", "5.h", "1e3s", "never"]
        {
            assert!(matches!(parse_duration(text), Err(UnitError::NotADuration { .. })), "{text:?}");
        }
        assert!(matches!(
            parse_duration("9999999999w"),
            Err(UnitError::TooLarge { .. } | UnitError::NotADuration { .. })
        ));
    }

    #[test]
    fn sizes_and_percentages_need_a_unit() {
        assert_eq!(parse_size("1MiB"), Ok(1 << 20));
        assert_eq!(parse_size("512 B"), Ok(512));
        assert_eq!(parse_size("1.5kB"), Ok(1_500));
        assert_eq!(
            parse_size("1000000").unwrap_err().to_string().split(':').next(),
            Some("a bare number has no unit")
        );
        assert!(parse_size("1mb").is_err());
        assert_eq!(parse_percent("2%"), Ok(2.0));
        assert_eq!(parse_percent("0.5 %"), Ok(0.5));
        assert_eq!(parse_percent("2"), Err(UnitError::BarePercent { number: "2".into() }));
        assert!(parse_percent("-2%").is_err());
        assert!(parse_percent("two%").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_can_be_read_again(millis in 0u64..1_000_000_000_000, bytes in any::<u64>()) {
            let duration = Duration::from_millis(millis);
            prop_assert_eq!(parse_duration(&Human(duration).to_string()), Ok(duration));
            prop_assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = (parse_duration(&text), parse_size(&text), parse_percent(&text));
        }
    }
}
