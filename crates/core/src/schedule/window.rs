//! One weekly window, and the spans of time in which it is open.

use core::time::Duration;

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Weekday};
use serde::{Deserialize, Serialize};

use super::parse::WindowText;
use super::zone::{Twice, Zone};
use crate::Timestamp;

/// A stretch of local time that comes back every week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "WindowText", into = "WindowText")]
pub struct Window {
    /// The days on which it opens.
    pub days: Days,
    /// When it opens.
    pub from: TimeOfDay,
    /// When it closes; on the next day if that is not after `from`.
    pub until: TimeOfDay,
    /// What it does while it is open.
    pub effect: Effect,
}

/// What a window does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Holds the worker awake.
    KeepAwake {
        /// Also starts, at the opening, what sleeps for a reason in `wake_from`.
        wake: bool,
    },
    /// Shortens the idle timeout to this; a policy that is shorter already stays.
    IdleTimeout(Duration),
    /// Puts the worker to sleep at the opening, with reason `schedule`.
    Sleep {
        /// Regardless of activity and holds.
        force: bool,
    },
}

impl Effect {
    /// Whether the opening itself is something to act on, once.
    pub(super) fn acts_at_opening(self) -> bool {
        match self {
            Effect::KeepAwake { wake } => wake,
            Effect::IdleTimeout(_) => false,
            Effect::Sleep { .. } => true,
        }
    }

    fn keeps_awake(self) -> bool {
        matches!(self, Effect::KeepAwake { .. })
    }
}

/// Days of the week; at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Days(u8);

impl Days {
    /// Every day.
    pub const DAILY: Days = Days(0b111_1111);

    /// From the first day to the last, over the week's end if need be; Monday is 0.
    pub(super) fn range(first: u8, last: u8) -> Self {
        let mut days = 1 << last;
        let mut day = first;
        while day != last {
            days |= 1 << day;
            day = (day + 1) % 7;
        }
        Self(days)
    }

    pub(super) fn and(self, other: Days) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the `index`th day is among them; Monday is 0.
    pub(super) fn has(self, index: u8) -> bool {
        self.0 & (1 << index) != 0
    }

    fn contains(self, day: Weekday) -> bool {
        self.0 & (1 << day.to_monday_zero_offset()) != 0
    }
}

/// A time on the clock, to the minute; 24:00 is the end of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// 00:00, when the day begins.
    pub const START: TimeOfDay = TimeOfDay(0);
    /// 24:00, when it ends.
    pub const END: TimeOfDay = TimeOfDay(24 * 60);

    /// `None` if a clock never shows this.
    pub fn new(hour: u8, minute: u8) -> Option<Self> {
        let time = Self(u16::from(hour) * 60 + u16::from(minute));
        (minute < 60 && time <= Self::END).then_some(time)
    }

    pub fn hour(self) -> u16 {
        self.0 / 60
    }

    pub fn minute(self) -> u16 {
        self.0 % 60
    }

    /// This time of `date`; `None` beyond the last day that can be written.
    fn on(self, date: Date) -> Option<DateTime> {
        let date = if self == Self::END { date.tomorrow().ok()? } else { date };
        let minutes = i64::from(self.0 % Self::END.0);
        date.at(0, 0, 0, 0).checked_add(minutes.minutes()).ok()
    }
}

/// One opening of a window; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// The first instant at which it is open.
    pub(super) from: Timestamp,
    /// The first instant at which it is closed again.
    pub(super) until: Timestamp,
}

impl Window {
    /// All openings that touch the days from `first` to `last`, and perhaps some around them.
    pub(super) fn occurrences<'a>(&'a self, zone: &'a Zone, first: Date, last: Date) -> Occurrences<'a> {
        // An opening reaches into the next day, and a clock change can carry it one further. Six whole
        // days can be one opening.
        let back = if self.is_whole_day() { 8 } else { 2 };
        // Just after midnight a clock can be put back to the day before, while a window of the new day is
        // already open.
        let last = last.saturating_add(1.day());
        Occurrences { window: self, zone, next: Some(first.saturating_sub(back.days())), last }
    }

    /// Whether it closes on the day after the one on which it opens.
    fn goes_over_midnight(&self) -> bool {
        self.until <= self.from
    }

    /// Whether it closes at the very time at which it opens, and so meets its next day.
    fn is_whole_day(&self) -> bool {
        self.from.0 % TimeOfDay::END.0 == self.until.0 % TimeOfDay::END.0
    }

    /// If the window opens on `date`: the last day of that opening, which is the same day unless whole
    /// days follow one another.
    fn last_day_of_opening(&self, date: Date) -> Option<Date> {
        if !self.days.contains(date.weekday()) {
            return None;
        }
        if !self.is_whole_day() {
            return Some(date);
        }
        if self.days.contains(date.weekday().previous()) {
            return None;
        }
        let mut last = date;
        while self.days.contains(last.weekday().next()) {
            last = last.tomorrow().ok()?;
        }
        Some(last)
    }

    fn span(&self, zone: &Zone, first: Date, last: Date) -> Option<Span> {
        let closing = if self.goes_over_midnight() { last.tomorrow().ok()? } else { last };
        let (opens, closes) = if self.effect.keeps_awake() {
            (Twice::First, Twice::SecondAsEnd)
        } else {
            (Twice::Second, Twice::First)
        };
        let from = zone.instant(self.from.on(first)?, opens);
        let until = zone.instant(self.until.on(closing)?, closes);
        (from < until).then_some(Span { from, until })
    }
}

/// The openings of one window, in order of time.
pub(super) struct Occurrences<'a> {
    window: &'a Window,
    zone: &'a Zone,
    /// The day to look at next.
    next: Option<Date>,
    last: Date,
}

impl Iterator for Occurrences<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        if self.window.is_whole_day() && self.window.days == Days::DAILY {
            // It has always been open: there is no opening, and no clock change can make a break in it.
            self.next.take()?;
            return Some(Span { from: Timestamp::from_micros(i64::MIN), until: Timestamp::MAX });
        }
        while let Some(date) = self.next.filter(|date| *date <= self.last) {
            self.next = date.tomorrow().ok();
            let span = self
                .window
                .last_day_of_opening(date)
                .and_then(|last| self.window.span(self.zone, date, last));
            if span.is_some() {
                return span;
            }
        }
        None
    }
}
