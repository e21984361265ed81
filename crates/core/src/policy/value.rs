//! The values of policy keys: what each kind looks like, how it is read and how it is written.
//!
//! A shell turns TOML, JSON or an environment variable into a [`Raw`] and keeps the position; here it is
//! decided whether that is a value of the right kind. So every way in accepts and refuses the same.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Serialize, Serializer};

use super::key::need_codes;
use crate::plain::is_plain;
use crate::reason::{IdlePolicy, PauseReason, PauseReasons, SleepMode};
use crate::schedule::Schedule;
use crate::signal::Need;
use crate::units::{self, Human, UnitError};

/// What a key's value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A duration; zero is allowed.
    Duration,
    /// A duration of at least a second, at which something recurs.
    Interval,
    /// A duration of at least a second, or `"never"`.
    DurationOrNever,
    /// A whole number between two bounds.
    Count { least: u32, most: u32 },
    /// `"2%"`.
    Percent,
    /// A list of percentages between 0 and 100, growing.
    Percents,
    /// `"1MiB"`.
    Size,
    /// A number whose unit is that of somebody else's query.
    Number,
    /// A plain text.
    Text,
    /// A list of texts: a program and its arguments.
    Command,
    /// `"freeze"`, `"stop"` or `"hibernate"`.
    Sleep,
    /// `"default"` or `"leases_only"`.
    IdlePolicy,
    /// A list of pause reasons.
    Reasons,
    /// `"off"`, `"counted"` or `"required"`.
    Need,
    /// A table with `zone` and `windows`.
    Schedule,
}

impl Kind {
    /// What a person should have written.
    pub fn expected(self) -> String {
        match self {
            Kind::Flag => "true or false".to_string(),
            Kind::Duration => "a duration such as \"90s\" or \"1h30m\"".to_string(),
            Kind::Interval => "a duration of at least 1s such as \"30s\" or \"5m\"".to_string(),
            Kind::DurationOrNever => "a duration of at least 1s such as \"30m\", or \"never\"".to_string(),
            Kind::Count { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Percent => "a percentage such as \"2%\"".to_string(),
            Kind::Percents => {
                "a list of growing percentages between 0% and 100% such as [\"80%\", \"95%\"]".to_string()
            }
            Kind::Size => "a size such as \"1MiB\"".to_string(),
            Kind::Number => "a number".to_string(),
            Kind::Text => {
                format!("a text of at most {LONGEST_TEXT} characters, none of them a control character")
            }
            Kind::Command => "a program and its arguments such as [\"sync\", \"-f\"]".to_string(),
            Kind::Sleep => one_of(&SleepMode::ALL.map(SleepMode::code)),
            Kind::IdlePolicy => one_of(&IdlePolicy::ALL.map(IdlePolicy::code)),
            Kind::Reasons => {
                format!("a list of {}", one_of(&PauseReason::ALL.map(PauseReason::code)))
            }
            Kind::Need => one_of(&need_codes()),
            Kind::Schedule => "a table with zone and windows".to_string(),
        }
    }
}

fn one_of(words: &[&str]) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let comma = match index {
            0 => "",
            last if last + 1 == words.len() => " or ",
            _ => ", ",
        };
        text.push_str(comma);
        text.push('"');
        text.push_str(word);
        text.push('"');
    }
    text
}

/// A value as it came in, before it is known to be right.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// JSON's `null`, which is how "never" is written there.
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Raw>),
    /// A table that the shell has already read as a schedule.
    Schedule(Box<Schedule>),
    /// A table where none belongs.
    Table,
}

impl Raw {
    fn as_text(&self) -> Option<&str> {
        if let Raw::Text(text) = self { Some(text) } else { None }
    }

    fn describe(&self) -> Cow<'static, str> {
        match self {
            Raw::Null => "null".into(),
            Raw::Bool(flag) => format!("{flag}").into(),
            Raw::Integer(number) => format!("the number {number}").into(),
            Raw::Float(number) => format!("the number {number}").into(),
            Raw::Text(text) => match text.char_indices().nth(SHOWN_OF_TEXT) {
                Some((end, _)) => format!("{:?} and so on", &text[..end]).into(),
                None => format!("{text:?}").into(),
            },
            Raw::List(list) if list.len() <= SHOWN_OF_LIST => {
                let items: Vec<_> = list.iter().map(Raw::describe).collect();
                format!("[{}]", items.join(", ")).into()
            }
            Raw::List(_) => "a list".into(),
            Raw::Schedule(_) | Raw::Table => "a table".into(),
        }
    }
}

/// Why a raw value is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// Something of another kind.
    #[error("expected {expected}, found {found}")]
    WrongKind { expected: String, found: String },
    /// A number without its unit, or a unit that is none.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// A value that is right for its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Flag(bool),
    Duration(Duration),
    /// Written `"never"` in TOML and `null` in JSON.
    Never,
    Count(u32),
    Percent(f64),
    Percents(Vec<f64>),
    /// Bytes.
    Size(u64),
    Number(f64),
    Text(String),
    Command(Vec<String>),
    Sleep(SleepMode),
    IdlePolicy(IdlePolicy),
    Reasons(PauseReasons),
    Need(Need),
    Schedule(Box<Schedule>),
}

/// The word for "no limit".
const NEVER: &str = "never";
/// Longer than any path that somebody writes, and short enough to be shown. Labels can set it.
const LONGEST_TEXT: usize = 1024;
/// How much of a list is shown when it is refused.
const SHOWN_OF_LIST: usize = 8;
/// How much of a text is shown when it is refused.
const SHOWN_OF_TEXT: usize = 80;
/// A shorter recurrence would be a busy loop.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

impl Value {
    /// Reads a raw value as one of `kind`.
    pub fn read(kind: Kind, raw: &Raw) -> Result<Value, ValueError> {
        let wrong =
            || ValueError::WrongKind { expected: kind.expected(), found: raw.describe().into_owned() };
        match (kind, raw) {
            (Kind::Flag, Raw::Bool(flag)) => Ok(Value::Flag(*flag)),
            (Kind::DurationOrNever, Raw::Null) => Ok(Value::Never),
            (Kind::DurationOrNever, Raw::Text(text)) if text == NEVER => Ok(Value::Never),
            (Kind::Duration, Raw::Text(text)) => Ok(Value::Duration(units::parse_duration(text)?)),
            (Kind::Interval | Kind::DurationOrNever, Raw::Text(text)) => {
                let duration = units::parse_duration(text)?;
                if duration < SHORTEST_INTERVAL { Err(wrong()) } else { Ok(Value::Duration(duration)) }
            }
            // The mistake that killed a job: said in its own words, with the ways to write it right.
            (Kind::Duration | Kind::Interval | Kind::DurationOrNever, Raw::Integer(number))
                if *number >= 0 =>
            {
                Err(UnitError::BareDuration { number: number.to_string() }.into())
            }
            (Kind::Duration | Kind::Interval | Kind::DurationOrNever, Raw::Float(number)) => {
                Err(UnitError::BareDuration { number: number.to_string() }.into())
            }
            (Kind::Size, Raw::Text(text)) => Ok(Value::Size(units::parse_size(text)?)),
            (Kind::Size, Raw::Integer(number)) if *number >= 0 => {
                Err(UnitError::BareSize { number: number.to_string() }.into())
            }
            (Kind::Size, Raw::Float(number)) => {
                Err(UnitError::BareSize { number: number.to_string() }.into())
            }
            (Kind::Percent, Raw::Text(text)) => Ok(Value::Percent(units::parse_percent(text)?)),
            (Kind::Percent, Raw::Integer(number)) if *number >= 0 => {
                Err(UnitError::BarePercent { number: number.to_string() }.into())
            }
            (Kind::Percent, Raw::Float(number)) => {
                Err(UnitError::BarePercent { number: number.to_string() }.into())
            }
            (Kind::Percents, Raw::List(list)) => {
                let parts = list
                    .iter()
                    .map(|part| Value::read(Kind::Percent, part)?.as_threshold().ok_or_else(wrong))
                    .collect::<Result<Vec<f64>, ValueError>>()?;
                let in_range = parts.iter().all(|part| *part > 0.0 && *part < 100.0);
                let growing = parts.windows(2).all(|pair| pair[0] < pair[1]);
                if in_range && growing { Ok(Value::Percents(parts)) } else { Err(wrong()) }
            }
            (Kind::Count { least, most }, Raw::Integer(number)) => u32::try_from(*number)
                .ok()
                .filter(|count| (least..=most).contains(count))
                .map(Value::Count)
                .ok_or_else(wrong),
            #[expect(clippy::cast_precision_loss, reason = "a threshold beyond 2^53 is no threshold")]
            (Kind::Number, Raw::Integer(number)) => Ok(Value::Number(*number as f64)),
            (Kind::Number, Raw::Float(number)) if number.is_finite() => Ok(Value::Number(*number)),
            (Kind::Text, Raw::Text(text)) => {
                let is_short = text.chars().nth(LONGEST_TEXT).is_none();
                if is_short && text.chars().all(is_plain) {
                    Ok(Value::Text(text.clone()))
                } else {
                    Err(wrong())
                }
            }
            (Kind::Command, Raw::List(list)) if !list.is_empty() => list
                .iter()
                .map(|word| word.as_text().map(ToString::to_string).ok_or_else(wrong))
                .collect::<Result<_, _>>()
                .map(Value::Command),
            (Kind::Sleep, Raw::Text(text)) => SleepMode::ALL
                .into_iter()
                .find(|mode| mode.code() == text)
                .map(Value::Sleep)
                .ok_or_else(wrong),
            (Kind::IdlePolicy, Raw::Text(text)) => IdlePolicy::ALL
                .into_iter()
                .find(|policy| policy.code() == text)
                .map(Value::IdlePolicy)
                .ok_or_else(wrong),
            (Kind::Need, Raw::Text(text)) => {
                Need::ALL.into_iter().find(|need| need.code() == text).map(Value::Need).ok_or_else(wrong)
            }
            (Kind::Reasons, Raw::List(list)) => list
                .iter()
                .map(|word| word.as_text().and_then(PauseReason::from_code).ok_or_else(wrong))
                .collect::<Result<Vec<_>, _>>()
                .map(|reasons| Value::Reasons(PauseReasons::of(reasons))),
            (Kind::Schedule, Raw::Schedule(schedule)) => Ok(Value::Schedule(schedule.clone())),
            _ => Err(wrong()),
        }
    }

    /// The number behind a threshold, in its signal's own unit.
    pub(super) fn as_threshold(&self) -> Option<f64> {
        if let Value::Percent(number) | Value::Number(number) = self {
            Some(*number)
        } else if let Value::Count(count) = self {
            Some(f64::from(*count))
        } else if let Value::Size(bytes) = self {
            #[expect(clippy::cast_precision_loss, reason = "a threshold beyond 2^53 bytes is no threshold")]
            Some(*bytes as f64)
        } else {
            None
        }
    }

    /// Whether this is a value of `kind`, as far as its shape goes.
    pub fn is_of(&self, kind: Kind) -> bool {
        matches!(
            (kind, self),
            (Kind::Flag, Value::Flag(_))
                | (Kind::Duration | Kind::Interval | Kind::DurationOrNever, Value::Duration(_))
                | (Kind::DurationOrNever, Value::Never)
                | (Kind::Count { .. }, Value::Count(_))
                | (Kind::Percent, Value::Percent(_))
                | (Kind::Percents, Value::Percents(_))
                | (Kind::Size, Value::Size(_))
                | (Kind::Number, Value::Number(_))
                | (Kind::Text, Value::Text(_))
                | (Kind::Command, Value::Command(_))
                | (Kind::Sleep, Value::Sleep(_))
                | (Kind::IdlePolicy, Value::IdlePolicy(_))
                | (Kind::Reasons, Value::Reasons(_))
                | (Kind::Need, Value::Need(_))
                | (Kind::Schedule, Value::Schedule(_))
        )
    }

    /// The value as it is written in `drowse.toml`.
    pub fn to_toml(&self) -> String {
        match self {
            Value::Flag(flag) => flag.to_string(),
            Value::Duration(duration) => format!("\"{}\"", Human(*duration)),
            Value::Never => format!("\"{NEVER}\""),
            Value::Count(count) => count.to_string(),
            Value::Percent(percent) => format!("\"{percent}%\""),
            Value::Percents(parts) => list(parts.iter().map(|part| format!("\"{part}%\""))),
            Value::Size(bytes) => format!("\"{}\"", units::format_size(*bytes)),
            Value::Number(number) => format!("{number:?}"),
            Value::Text(text) => format!("{text:?}"),
            Value::Command(words) => list(words.iter().map(|word| format!("{word:?}"))),
            Value::Sleep(mode) => format!("\"{}\"", mode.code()),
            Value::IdlePolicy(policy) => format!("\"{}\"", policy.code()),
            Value::Reasons(reasons) => list(reasons.iter().map(|reason| format!("\"{reason}\""))),
            Value::Need(need) => format!("\"{}\"", need.code()),
            Value::Schedule(schedule) => format!(
                "{{ zone = \"{}\", windows = {} }}",
                schedule.zone,
                list(schedule.windows.iter().map(|window| format!("\"{window}\"")))
            ),
        }
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Duration(duration) => serializer.collect_str(&Human(*duration)),
            Value::Never => serializer.serialize_none(),
            Value::Count(count) => serializer.serialize_u32(*count),
            Value::Percent(percent) => serializer.collect_str(&format_args!("{percent}%")),
            Value::Percents(parts) => serializer.collect_seq(parts.iter().map(|part| format!("{part}%"))),
            Value::Size(bytes) => serializer.serialize_str(&units::format_size(*bytes)),
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Command(words) => words.serialize(serializer),
            Value::Sleep(mode) => mode.serialize(serializer),
            Value::IdlePolicy(policy) => policy.serialize(serializer),
            Value::Reasons(reasons) => reasons.serialize(serializer),
            Value::Need(need) => need.serialize(serializer),
            Value::Schedule(schedule) => schedule.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Raw {
        Raw::Text(text.into())
    }

    #[test]
    fn a_bare_number_is_refused_wherever_a_unit_belongs() {
        for (kind, raw) in [
            (Kind::Duration, Raw::Integer(48)),
            (Kind::DurationOrNever, Raw::Integer(48)),
            (Kind::Interval, text("48")),
            (Kind::Size, Raw::Integer(48)),
            (Kind::Percent, Raw::Integer(48)),
            (Kind::Percent, Raw::Float(0.48)),
        ] {
            let error = Value::read(kind, &raw).unwrap_err().to_string();
            assert!(error.starts_with("a bare number has no unit"), "{kind:?}: {error}");
        }
    }

    #[test]
    fn never_is_a_word_in_toml_and_null_in_json() {
        assert_eq!(Value::read(Kind::DurationOrNever, &text("never")), Ok(Value::Never));
        assert_eq!(Value::read(Kind::DurationOrNever, &Raw::Null), Ok(Value::Never));
        assert!(Value::read(Kind::Duration, &text("never")).is_err());
        assert_eq!(serde_json::to_string(&Value::Never).unwrap(), "null");
        assert_eq!(Value::Never.to_toml(), "\"never\"");
    }

    #[test]
    fn a_zero_timeout_is_refused() {
        assert!(Value::read(Kind::DurationOrNever, &text("0s")).is_err());
        assert!(Value::read(Kind::DurationOrNever, &text("999ms")).is_err());
        assert!(Value::read(Kind::DurationOrNever, &text("1s")).is_ok());
        assert_eq!(Value::read(Kind::Duration, &text("0s")), Ok(Value::Duration(Duration::ZERO)));
    }

    #[test]
    fn choices_name_their_alternatives() {
        assert_eq!(
            Value::read(Kind::Sleep, &text("suspend")).unwrap_err().to_string(),
            "expected \"freeze\", \"stop\" or \"hibernate\", found \"suspend\""
        );
        assert!(Value::read(Kind::IdlePolicy, &text("")).is_err());
        assert!(Value::read(Kind::Reasons, &Raw::List([text("idle")].into())).is_err());
    }

    #[test]
    fn a_text_is_short_and_plain() {
        let read = |words: &str| Value::read(Kind::Text, &text(words));
        for fine in ["", "/workspace/.keep-alive", "/größe/日本語"] {
            assert_eq!(read(fine), Ok(Value::Text(fine.into())));
        }
        for bad in ["/a\u{1b}[2J", "/a\nb", "/a\u{9b}2J", "/a\u{202e}b"] {
            let error = read(bad).unwrap_err().to_string();
            assert!(error.starts_with("expected a text of at most 1024 characters"), "{error}");
            assert!(error.chars().all(is_plain), "{error:?}");
        }
        assert!(read(&"x".repeat(1024)).is_ok());
        let error = read(&"x".repeat(1_000_000)).unwrap_err().to_string();
        assert!(error.len() < 300, "{error}");
    }

    #[test]
    fn warnings_grow_and_stay_below_the_whole() {
        let read =
            |parts: &[&str]| Value::read(Kind::Percents, &Raw::List(parts.iter().map(|p| text(p)).collect()));
        assert_eq!(read(&["80%", "95%"]), Ok(Value::Percents([80.0, 95.0].into())));
        assert_eq!(read(&[]), Ok(Value::Percents([].into())));
        for bad in [&["95%", "80%"][..], &["0%"], &["100%"], &["80%", "80%"]] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
        let error = read(&["95%", "80%"]).unwrap_err().to_string();
        assert!(error.ends_with("found [\"95%\", \"80%\"]"), "{error}");
    }
}
