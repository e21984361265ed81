//! Warnings, keyed by the deadline that they warn of.
//!
//! A bump moves the deadline, and with it every warning is armed again. A deadline that moves *nearer*
//! does not take back what was announced: nobody is put to sleep before the time they were told.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// What a warning is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// It will be put to sleep for idleness.
    Idle,
    /// It will be deleted, because the fleet is larger than it need be.
    ScaleDown,
    /// It will be stopped, because it has run for long enough.
    MaxRuntime,
    /// It will be stopped by its schedule.
    Schedule,
    /// It is frozen and will be stopped.
    StopAfter,
    /// It is asleep and will be deleted.
    TerminateAfter,
}

/// A warning that is due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The deadline it belongs to, which is its key.
    pub deadline: Timestamp,
    /// When what it warns of will happen, notice included.
    pub happens_at: Timestamp,
    /// How much of the limit is over.
    pub percent: f64,
    /// For information only: the worker is exempt, and nothing will happen.
    pub is_fyi: bool,
}

impl Warning {
    /// What to remember when it has been sent at `now`.
    pub fn sent(&self, before: Option<Warned>, now: Timestamp) -> Warned {
        let stands =
            before.filter(|warned| !self.is_fyi && warned.stands_for(self.kind, self.deadline, false));
        Warned {
            kind: self.kind,
            deadline: stands.map_or(self.happens_at, |warned| warned.deadline),
            first_at: stands.map_or(now, |warned| warned.first_at),
            percent: self.percent,
            is_fyi: self.is_fyi,
        }
    }
}

/// The warning that was sent last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warned {
    /// What it was about.
    pub kind: WarningKind,
    /// The time that was announced.
    pub deadline: Timestamp,
    /// When the first warning about it was sent.
    pub first_at: Timestamp,
    /// The last level that was sent.
    pub percent: f64,
    /// It was for information only, which is no warning.
    pub is_fyi: bool,
}

impl Warned {
    /// Whether it covers `deadline`: the time that was announced is no sooner than that.
    pub fn covers(&self, deadline: Timestamp) -> bool {
        self.deadline >= deadline
    }

    /// Whether people who got it have been told of this.
    fn stands_for(&self, kind: WarningKind, deadline: Timestamp, is_fyi: bool) -> bool {
        // Who was told of a deletion has been told of a sleep; who was told of a sleep has not been told
        // of a deletion.
        let says_enough = self.kind == WarningKind::ScaleDown || kind != WarningKind::ScaleDown;
        self.is_fyi == is_fyi && says_enough && self.covers(deadline)
    }
}

/// What people were told and what is still so, by what it was about.
///
/// Each is the time of what was announced. `None`: nobody was told, or it is off, or later than they were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    /// A sleep for idleness, or a deletion because the fleet is larger than it need be.
    pub idle: Option<Timestamp>,
    /// A stop by `max_runtime`.
    pub runtime: Option<Timestamp>,
    /// A stop by its schedule.
    pub schedule: Option<Timestamp>,
    /// A stop by `stop_after`.
    pub stop: Option<Timestamp>,
    /// A deletion by `terminate_after`.
    pub deletion: Option<Timestamp>,
}

impl Announced {
    /// For when something of this kind is announced.
    pub const fn of(&self, kind: WarningKind) -> Option<Timestamp> {
        match kind {
            WarningKind::Idle | WarningKind::ScaleDown => self.idle,
            WarningKind::MaxRuntime => self.runtime,
            WarningKind::Schedule => self.schedule,
            WarningKind::StopAfter => self.stop,
            WarningKind::TerminateAfter => self.deletion,
        }
    }
}

/// Something that will happen, and of which people must be told in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announcement<'a> {
    pub(super) kind: WarningKind,
    /// When it is due.
    pub(super) deadline: Timestamp,
    /// The limit that ends at the deadline.
    pub(super) limit: Duration,
    /// At which parts of the limit people are told.
    pub(super) levels: &'a [f64],
    /// The least time between the first warning and the event.
    pub(super) notice: Duration,
    /// What was sent already.
    pub(super) warned: Option<Warned>,
    /// For information only.
    pub(super) is_fyi: bool,
}

/// What an announcement means now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    /// The earliest time at which it may happen.
    pub(super) happens_at: Timestamp,
    /// A warning to send now.
    pub(super) due: Option<Warning>,
    /// When the next one is due.
    pub(super) next_at: Option<Timestamp>,
    /// For when it stands announced; `None`: nobody was told, or it is off or later than they were told.
    pub(super) announced_for: Option<Timestamp>,
}

impl Announcement<'_> {
    /// When a level is reached.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a part of a limit; 2^53 µs are 285 years"
    )]
    fn at(&self, percent: f64) -> Timestamp {
        let left = ((100.0 - percent) / 100.0).clamp(0.0, 1.0);
        self.deadline - Duration::from_micros((self.limit.as_micros() as f64 * left) as u64)
    }

    /// The level of the notice itself, where the first of the others would come too late for it.
    fn notice_level(&self) -> Option<(f64, Timestamp)> {
        let at_notice = self.deadline - self.notice;
        let comes_late = self.levels.first().is_none_or(|first| self.at(*first) > at_notice);
        (comes_late && !self.notice.is_zero()).then(|| {
            let whole = self.limit.as_secs_f64();
            let left = if whole > 0.0 { self.notice.as_secs_f64() / whole * 100.0 } else { 100.0 };
            (100.0 - left, at_notice)
        })
    }

    fn levels(&self) -> impl Iterator<Item = (f64, Timestamp)> + '_ {
        self.notice_level().into_iter().chain(self.levels.iter().map(|level| (*level, self.at(*level))))
    }

    /// When people are told first.
    pub(super) fn first_at(&self) -> Timestamp {
        self.levels().next().map_or(self.deadline, |(_, at)| at)
    }

    /// The plan at `now`. `heard_at` is the earliest time at which a warning that is due can be sent: now,
    /// unless nobody may be warned in this look.
    pub(super) fn plan(&self, now: Timestamp, heard_at: Timestamp) -> Plan {
        let stands = self.warned.filter(|warned| warned.stands_for(self.kind, self.deadline, self.is_fyi));
        let sent = stands.map_or(f64::MIN, |warned| warned.percent);
        let mut first_at = None;
        let mut due = None;
        let mut next_at = None;
        for (percent, at) in self.levels() {
            first_at = first_at.or(Some(at));
            if at > now {
                next_at = Some(next_at.map_or(at, |next: Timestamp| next.min(at)));
            } else if percent > sent {
                // Several levels may be overdue after an outage: people are told once, with the latest.
                due = Some(percent);
            }
        }
        let happens_at = match stands {
            // Never sooner than announced, and never without notice.
            Some(warned) => self.deadline.max(warned.deadline).max(warned.first_at + self.notice),
            None => self.deadline.max(first_at.unwrap_or(self.deadline).max(heard_at) + self.notice),
        };
        // Nobody is told of what happens this very moment.
        let due = due.filter(|_| self.is_fyi || happens_at > now).map(|percent| Warning {
            kind: self.kind,
            deadline: self.deadline,
            happens_at,
            percent,
            is_fyi: self.is_fyi,
        });
        Plan { happens_at, due, next_at, announced_for: stands.map(|_| happens_at) }
    }
}
