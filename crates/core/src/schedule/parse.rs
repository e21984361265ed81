//! Days, times and windows as people write them.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::window::{Days, Effect, TimeOfDay, Window};
use crate::units::{self, Human};

/// What was wrong with a schedule and what would have been right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// No zone has this name.
    #[error("expected the name of a time zone such as \"Europe/Berlin\" or \"UTC\", found {found:?}{}", did_you_mean(.suggestion.as_deref()))]
    UnknownZone { found: String, suggestion: Option<String> },
    /// Not days of the week.
    #[error("expected days such as \"mon-fri\", \"sat,sun\" or \"daily\", found {found:?}")]
    NotDays { found: String },
    /// Not a time of day.
    #[error("expected a time such as \"08:00\", found {found:?}")]
    NotATime { found: String },
    /// Not two times of day.
    #[error("expected hours such as \"08:00-18:30\", found {found:?}")]
    NotHours { found: String },
    /// A window that opens when the day is over.
    #[error("a window cannot open at 24:00: write \"00:00\" and the next day")]
    OpensAtEndOfDay,
    /// It is not said when the window is open.
    #[error("expected from and until, or hours such as \"08:00-18:30\"")]
    NoHours,
    /// It is said twice when the window is open.
    #[error("expected either hours or from and until, found both")]
    HoursTwice,
    /// A window that does nothing.
    #[error("expected one of keep_awake = true, idle_timeout and sleep = true, found none")]
    NoEffect,
    /// A window that does more than one thing; two windows can have the same hours.
    #[error("expected one of keep_awake = true, idle_timeout and sleep = true, found several")]
    SeveralEffects,
    /// `wake` in a window that does not keep awake.
    #[error("wake = true needs keep_awake = true")]
    WakeWithoutKeepAwake,
    /// `force` in a window that does not put to sleep.
    #[error("force = true needs sleep = true")]
    ForceWithoutSleep,
    /// An idle timeout that is over before it begins.
    #[error("expected an idle_timeout longer than 0s; to put a worker to sleep write sleep = true")]
    NoIdleTimeout,
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

/// From Monday on, as [`Days`] counts.
const DAY_NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl FromStr for Days {
    type Err = ScheduleError;

    /// Reads `daily`, `mon-fri`, `sat,sun`, `mon,wed-fri`, in any case; `sat-mon` goes over the week's end.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let not_days = || ScheduleError::NotDays { found: text.to_string() };
        if text.trim().eq_ignore_ascii_case("daily") {
            return Ok(Days::DAILY);
        }
        text.split(',')
            .map(|part| {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                Some(Days::range(day(first)?, day(last)?))
            })
            // `split` gives at least one part, so the days are never none.
            .reduce(|all, part| Some(all?.and(part?)))
            .flatten()
            .ok_or_else(not_days)
    }
}

fn day(name: &str) -> Option<u8> {
    let name = name.trim();
    (0u8..).zip(DAY_NAMES).find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(index, _)| index)
}

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Days::DAILY {
            return f.write_str("daily");
        }
        let mut separator = "";
        let mut index = 0;
        while index < 7 {
            let run = (index..7).take_while(|day| self.has(*day)).count();
            let names = &DAY_NAMES[usize::from(index)..usize::from(index) + run];
            match names {
                [] => {}
                [day] => write!(f, "{separator}{day}")?,
                // Two days are a pair, not a range: "sat,sun".
                [first, last] => write!(f, "{separator}{first},{last}")?,
                [first, .., last] => write!(f, "{separator}{first}-{last}")?,
            }
            if !names.is_empty() {
                separator = ",";
            }
            index += u8::try_from(names.len().max(1)).unwrap_or(7);
        }
        Ok(())
    }
}

impl FromStr for TimeOfDay {
    type Err = ScheduleError;

    /// Reads `08:00` up to `24:00`. Two digits each: "8:5" could be five past eight or ten to nine.
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let two_digits = |text: &str| -> Option<u8> {
            (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
        };
        text.trim()
            .split_once(':')
            .and_then(|(hour, minute)| TimeOfDay::new(two_digits(hour)?, two_digits(minute)?))
            .ok_or_else(|| ScheduleError::NotATime { found: text.to_string() })
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour(), self.minute())
    }
}

/// The two ends of a window in one text: `08:00-18:30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// When the window opens.
    pub from: TimeOfDay,
    /// When it closes.
    pub until: TimeOfDay,
}

impl FromStr for Hours {
    type Err = ScheduleError;
    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let ends = text
            .split_once('-')
            .and_then(|(from, until)| Some(Self { from: from.parse().ok()?, until: until.parse().ok()? }));
        ends.ok_or_else(|| ScheduleError::NotHours { found: text.to_string() })
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.until)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}-{} ", self.days, self.from, self.until)?;
        match self.effect {
            Effect::KeepAwake { wake: false } => f.write_str("keep awake"),
            Effect::KeepAwake { wake: true } => f.write_str("keep awake, wake"),
            Effect::IdleTimeout(timeout) => write!(f, "idle timeout {}", Human(timeout)),
            Effect::Sleep { force: false } => f.write_str("sleep"),
            Effect::Sleep { force: true } => f.write_str("sleep, force"),
        }
    }
}

macro_rules! text_in_serde {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <Cow<'de, str>>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
text_in_serde!(Days, TimeOfDay, Hours);

/// A window as the configuration file has it.
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the file; Effect is what they become")]
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowText {
    days: Days,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<TimeOfDay>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<TimeOfDay>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hours: Option<Hours>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    keep_awake: bool,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    wake: bool,
    #[serde(default, with = "units::optional_duration", skip_serializing_if = "Option::is_none")]
    idle_timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    sleep: bool,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    force: bool,
}

impl TryFrom<WindowText> for Window {
    type Error = ScheduleError;

    fn try_from(text: WindowText) -> Result<Self, ScheduleError> {
        let Hours { from, until } = match (text.hours, text.from, text.until) {
            (Some(hours), None, None) => hours,
            (None, Some(from), Some(until)) => Hours { from, until },
            (Some(_), _, _) => return Err(ScheduleError::HoursTwice),
            (None, _, _) => return Err(ScheduleError::NoHours),
        };
        if from == TimeOfDay::END {
            return Err(ScheduleError::OpensAtEndOfDay);
        }
        if text.wake && !text.keep_awake {
            return Err(ScheduleError::WakeWithoutKeepAwake);
        }
        if text.force && !text.sleep {
            return Err(ScheduleError::ForceWithoutSleep);
        }
        let effect = match (text.keep_awake, text.idle_timeout, text.sleep) {
            (true, None, false) => Effect::KeepAwake { wake: text.wake },
            (false, Some(Duration::ZERO), false) => return Err(ScheduleError::NoIdleTimeout),
            (false, Some(timeout), false) => Effect::IdleTimeout(timeout),
            (false, None, true) => Effect::Sleep { force: text.force },
            (false, None, false) => return Err(ScheduleError::NoEffect),
            _ => return Err(ScheduleError::SeveralEffects),
        };
        Ok(Self { days: text.days, from, until, effect })
    }
}

impl From<Window> for WindowText {
    fn from(window: Window) -> Self {
        let mut text = Self {
            days: window.days,
            from: Some(window.from),
            until: Some(window.until),
            hours: None,
            keep_awake: false,
            wake: false,
            idle_timeout: None,
            sleep: false,
            force: false,
        };
        match window.effect {
            Effect::KeepAwake { wake } => (text.keep_awake, text.wake) = (true, wake),
            Effect::IdleTimeout(timeout) => text.idle_timeout = Some(timeout),
            Effect::Sleep { force } => (text.sleep, text.force) = (true, force),
        }
        text
    }
}
