//! Weekly windows in the local time of a named zone.
//!
//! A window keeps a worker awake, shortens its idle timeout or puts it to sleep:
//!
//! ```toml
//! schedule = { zone = "Europe/Berlin", windows = [
//!     { days = "mon-fri", from = "08:00", until = "18:00", keep_awake = true, wake = true },
//!     { days = "daily", hours = "22:00-06:00", idle_timeout = "10m" },
//!     { days = "sat,sun", from = "00:00", until = "24:00", sleep = true, force = true },
//! ] }
//! ```
//!
//! `hours = "22:00-06:00"` is short for `from` and `until`. A window belongs to the days on which it
//! opens. One whose `until` is not after its `from` goes over midnight, so equal times mean a whole day
//! from that time on. Whole days that follow one another are one window that opens once: the weekend
//! above does not put anybody to sleep again on Sunday.
//!
//! What must stay true:
//!
//! - A window includes the instant at which it opens and not the one at which it closes.
//! - Where the clock is put forward, what would open or close in the hour that is skipped does so at the
//!   jump; a window that lies wholly in it does not happen.
//! - Where the clock is put back, the hour that comes twice counts as awake. A `keep_awake` window opens at
//!   the first of two equal times and closes at the second; the others open at the second and close at the
//!   first, and do not happen if that leaves nothing of them.
//! - Windows only report. That a `keep_awake` window is a hold, which a gentle sleep heeds and a forced one
//!   does not, is a rule of the verdict.

mod parse;
#[cfg(test)]
mod tests;
mod window;
mod zone;

pub use parse::{Hours, ScheduleError};
pub use window::{Days, Effect, TimeOfDay, Window};
pub use zone::Zone;

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use window::{Occurrences, Span};

/// How far [`Schedule::at`] looks ahead: three weeks.
///
/// A schedule repeats every week. A single clock change can swallow one opening or one break of it, so a
/// change may be two weeks away; what has not come after three does not come.
const HORIZON: Duration = Duration::from_hours(21 * 24);

/// The weekly windows of a policy and the zone whose clock they follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The zone in whose local time the windows are written.
    pub zone: Zone,
    /// The windows, in the order of the file; they may overlap.
    pub windows: Vec<Window>,
}

/// What a schedule says at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// When the open `keep_awake` windows and those that follow without a break are over.
    ///
    /// [`Timestamp::MAX`] if they never are; absent if none is open.
    pub keep_awake_until: Option<Timestamp>,
    /// One of the open `keep_awake` windows also wakes.
    pub wake: bool,
    /// The shortest idle timeout of the open windows that set one.
    pub idle_timeout: Option<Duration>,
    /// A window in which the worker should sleep is open; of several the firmest counts.
    pub sleep: Option<Sleep>,
    /// The next instant at which something above changes.
    ///
    /// Absent if nothing changes within three weeks, which is never unless windows that meet in an hour
    /// that comes twice each year leave that hour out.
    pub next_change_at: Option<Timestamp>,
}

/// How firmly a window puts a worker to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sleep {
    /// Only a worker that is idle and not held.
    Gentle,
    /// Whatever it does and whoever holds it.
    Forced,
}

impl Now {
    /// The idle timeout that counts: the shorter of the policy's and the windows'.
    ///
    /// `None` is the policy's "never", and stays so: a window shortens the timeout that there is. A worker
    /// that may sleep at night only has a timeout and a `keep_awake` window by day.
    pub fn shortened(&self, policy: Option<Duration>) -> Option<Duration> {
        let policy = policy?;
        Some(self.idle_timeout.map_or(policy, |window| window.min(policy)))
    }
}

impl Schedule {
    /// What the schedule says at `now`, and when it will say something else.
    pub fn at(&self, now: Timestamp) -> Now {
        let horizon = now + HORIZON;
        let mut cursors: Vec<Cursor<'_>> =
            self.spans(now, horizon).map(|(window, spans)| Cursor::new(window.effect, spans, now)).collect();
        let open = Open::of(&cursors, now);

        let mut at = now;
        let next_change_at = loop {
            let Some(next) = cursors.iter().filter_map(|cursor| cursor.boundary(at)).min() else {
                break None;
            };
            if next >= horizon {
                break None;
            }
            at = next;
            advance(&mut cursors, at);
            if Open::of(&cursors, at) != open {
                break Some(at);
            }
        };
        Now {
            keep_awake_until: open.keep_awake.then(|| awake_until(&mut cursors, at, horizon)),
            wake: open.wake,
            idle_timeout: open.idle_timeout,
            sleep: open.sleep,
            next_change_at,
        }
    }

    /// The openings after `after` up to and including `until` of the windows that wake or put to sleep, in
    /// order of time.
    ///
    /// A loop that asks with its last and its present time acts once for each opening. After a long
    /// absence some of the windows may have closed again: [`Schedule::at`] says which are open.
    pub fn openings(&self, after: Timestamp, until: Timestamp) -> impl Iterator<Item = (Timestamp, &Window)> {
        let mut openings: Vec<(Timestamp, &Window)> = self
            .spans(after, until)
            .filter(|(window, _)| window.effect.acts_at_opening())
            .flat_map(|(window, spans)| spans.map(move |span| (span.from, window)))
            .filter(|(at, _)| after < *at && *at <= until)
            .collect();
        // Stable, so that windows that open together stay in the order of the file.
        openings.sort_by_key(|(at, _)| *at);
        openings.into_iter()
    }

    /// Each window with all its openings that touch the time between `from` and `until`.
    fn spans(&self, from: Timestamp, until: Timestamp) -> impl Iterator<Item = (&Window, Occurrences<'_>)> {
        let (first, last) = (self.zone.date(from), self.zone.date(until));
        self.windows.iter().map(move |window| (window, window.occurrences(&self.zone, first, last)))
    }
}

/// What is open at an instant, all windows together.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Open {
    keep_awake: bool,
    wake: bool,
    idle_timeout: Option<Duration>,
    sleep: Option<Sleep>,
}

impl Open {
    fn of(cursors: &[Cursor<'_>], at: Timestamp) -> Self {
        let mut open = Self::default();
        for cursor in cursors.iter().filter(|cursor| cursor.is_open(at)) {
            match cursor.effect {
                Effect::KeepAwake { wake } => {
                    open.keep_awake = true;
                    open.wake |= wake;
                }
                Effect::IdleTimeout(timeout) => {
                    open.idle_timeout = Some(open.idle_timeout.map_or(timeout, |other| other.min(timeout)));
                }
                Effect::Sleep { force } => {
                    open.sleep = open.sleep.max(Some(if force { Sleep::Forced } else { Sleep::Gentle }));
                }
            }
        }
        open
    }
}

/// A place in the openings of one window that only moves forward, so that each is computed once.
struct Cursor<'a> {
    effect: Effect,
    /// The first opening that is not over.
    span: Option<Span>,
    later: Occurrences<'a>,
}

impl<'a> Cursor<'a> {
    fn new(effect: Effect, mut later: Occurrences<'a>, at: Timestamp) -> Self {
        let mut cursor = Self { effect, span: later.next(), later };
        cursor.advance(at);
        cursor
    }

    fn advance(&mut self, at: Timestamp) {
        while self.span.is_some_and(|span| span.until <= at) {
            self.span = self.later.next();
        }
    }

    fn is_open(&self, at: Timestamp) -> bool {
        self.span.is_some_and(|span| span.from <= at)
    }

    /// When this window next opens or closes.
    fn boundary(&self, at: Timestamp) -> Option<Timestamp> {
        self.span.map(|span| if span.from <= at { span.until } else { span.from })
    }
}

fn advance(cursors: &mut [Cursor<'_>], at: Timestamp) {
    for cursor in cursors {
        cursor.advance(at);
    }
}

/// The end of the unbroken `keep_awake` time that reaches up to `at`.
fn awake_until(cursors: &mut [Cursor<'_>], mut at: Timestamp, horizon: Timestamp) -> Timestamp {
    loop {
        let open = cursors
            .iter()
            .filter(|cursor| matches!(cursor.effect, Effect::KeepAwake { .. }) && cursor.is_open(at))
            .filter_map(|cursor| cursor.boundary(at));
        match open.max() {
            None => return at,
            Some(until) if until >= horizon => return Timestamp::MAX,
            Some(until) => at = until,
        }
        advance(cursors, at);
    }
}
