//! The fleet brake: when many workers fall silent at once, the observer is the first suspect.
//!
//! ```text
//!              many gone within one threshold,
//!              our loop stalled, our clock jumped
//!   released ──────────────────────────────────────► engaged
//!       ▲                                               │
//!       └── calm for one threshold, a person, overdue ──┘
//! ```
//!
//! While it is engaged nobody is paused or marked offline automatically. The brake itself keeps no list of
//! workers: each worker's own record says since when it is silent or unknown, so nobody is counted twice, and
//! [`Brake::counts_from`] says from when on that matters. [`GoneTally`] counts the same without a query.

mod tally;

#[cfg(test)]
mod tests;

use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
pub use tally::GoneTally;

/// When the brake engages and lets go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BrakeTerms {
    /// More than this share of the fleet must be gone, in per cent.
    pub fraction_percent: f64,
    /// And at least so many workers. A smaller fleet has only the stall and clock brakes.
    pub min: u32,
    /// Within this time, and for this long it must be calm again: one `stale_after`.
    #[serde(with = "crate::units::duration")]
    pub threshold: Duration,
    /// It lets go after this time even if it is not calm.
    #[serde(with = "crate::units::duration")]
    pub max: Duration,
}

impl Default for BrakeTerms {
    fn default() -> Self {
        Self {
            fraction_percent: 30.0,
            min: 10,
            threshold: Duration::from_secs(90),
            max: Duration::from_mins(30),
        }
    }
}

/// Trouble of our own, which engages the brake whatever the fleet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// Drowse's own loop did not run when it should have: what was not looked at is not silent.
    LoopStalled,
    /// The clock jumped: every age is wrong by the same amount.
    ClockJumped,
}

/// What the brake looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fleet {
    /// Workers that are expected to be seen or heard: awake, and not taken out of service.
    pub total: u32,
    /// Those among them that became silent or unknown at or after [`Brake::counts_from`] and still are. One
    /// that missed its deadline counts although the brake keeps it from being marked.
    pub gone: u32,
    /// Trouble of ours since the last look.
    pub trouble: Option<Trouble>,
}

/// Why the brake is engaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// Too many workers went within one threshold.
    FleetGone {
        /// How many.
        gone: u32,
        /// Of how many.
        total: u32,
    },
    /// Our own loop stalled.
    LoopStalled,
    /// Our clock jumped.
    ClockJumped,
}

/// How the brake was released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Release {
    /// Less than half of what engages it, for a whole threshold.
    Calm,
    /// By a person.
    Person {
        /// Who.
        by: String,
        /// Why.
        why: String,
    },
    /// After `brake_max`, although it is not calm: an alert, and automatic actions at a bounded rate.
    Overdue,
}

/// The brake. The default is one that never engaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Brake {
    /// Automatic actions go ahead.
    Released {
        /// When and how it let go; none if it never engaged.
        last: Option<Released>,
    },
    /// Automatic actions are held back.
    Engaged {
        /// Why.
        cause: Cause,
        /// Since when.
        since: Timestamp,
        /// Workers that went at or after this instant belong to this incident; those that were gone for longer
        /// were gone anyway and must not keep the brake engaged.
        counts_from: Timestamp,
        /// Since when less than half of what engages it is true, without a break.
        calm_since: Option<Timestamp>,
    },
}

/// The end of the last incident.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    /// When.
    pub at: Timestamp,
    /// How.
    #[serde(flatten)]
    pub how: Release,
}

/// What goes into the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Automatic actions are held back from now on.
    Engaged(Cause),
    /// They go ahead again; [`Release::Overdue`] also raises an alert.
    Released(Release),
}

impl Default for Brake {
    fn default() -> Self {
        Self::Released { last: None }
    }
}

impl Brake {
    pub const fn is_engaged(&self) -> bool {
        matches!(self, Self::Engaged { .. })
    }

    /// Which workers count as gone: those that became silent or unknown at this instant or later.
    pub fn counts_from(&self, terms: &BrakeTerms, now: Timestamp) -> Timestamp {
        match self {
            Self::Engaged { counts_from, .. } => *counts_from,
            Self::Released { last } => {
                let window = now.before(terms.threshold);
                // Who was gone when the brake let go has been dealt with: else it would engage again at once.
                last.as_ref().map_or(window, |last| window.max(last.at.after(Duration::from_micros(1))))
            }
        }
    }

    /// Looks at the fleet.
    #[must_use]
    pub fn update(&self, fleet: &Fleet, terms: &BrakeTerms, now: Timestamp) -> (Brake, Option<Change>) {
        match *self {
            Self::Released { .. } => match cause(fleet, terms) {
                Some(cause) => {
                    let counts_from = self.counts_from(terms, now);
                    let calm_since = is_calm(fleet, terms).then_some(now);
                    let engaged = Self::Engaged { cause, since: now, counts_from, calm_since };
                    (engaged, Some(Change::Engaged(cause)))
                }
                None => (self.clone(), None),
            },
            Self::Engaged { cause, since, counts_from, calm_since } => {
                // New trouble of ours starts the wait anew, however calm the fleet is.
                let calm_since = match (is_calm(fleet, terms), fleet.trouble) {
                    (true, None) => Some(calm_since.unwrap_or(now)),
                    (true, Some(_)) => Some(now),
                    (false, _) => None,
                };
                // After a jump of the clock nobody can say how long it has been engaged: it begins anew.
                let since = if fleet.trouble == Some(Trouble::ClockJumped) { now } else { since };
                // `>=`: what has lasted one threshold has lasted it. Calm goes first: it needs no alert.
                if calm_since.is_some_and(|calm| lasted(calm, terms.threshold, now)) {
                    released(Release::Calm, now)
                } else if lasted(since, terms.max, now) {
                    released(Release::Overdue, now)
                } else {
                    (Self::Engaged { cause, since, counts_from, calm_since }, None)
                }
            }
        }
    }

    /// A person lets go. None if it is not engaged.
    #[must_use]
    pub fn release(&self, by: String, why: String, now: Timestamp) -> Option<(Brake, Change)> {
        match self {
            Self::Released { .. } => None,
            Self::Engaged { .. } => {
                let how = Release::Person { by, why };
                Some((
                    Self::Released { last: Some(Released { at: now, how: how.clone() }) },
                    Change::Released(how),
                ))
            }
        }
    }

    /// When to look again even if nothing is heard; none while released.
    pub fn deadline(&self, terms: &BrakeTerms) -> Option<Timestamp> {
        match self {
            Self::Released { .. } => None,
            Self::Engaged { since, calm_since, .. } => {
                let overdue_at = since.after(terms.max);
                Some(calm_since.map_or(overdue_at, |calm| overdue_at.min(calm.after(terms.threshold))))
            }
        }
    }

    /// How many more automatic actions (pauses, and workers marked offline) may be done now, of a fleet of
    /// `total`, when `done` were done since the release. None if there is no bound.
    ///
    /// Only an overdue release is bounded: nobody has said that the observer is right. A minute's share may be
    /// done at once, the next one a minute later; after all of it the whole fleet could have been acted on
    /// and the bound ends by itself.
    pub fn allowance(&self, total: u32, done: u32, now: Timestamp) -> Option<u32> {
        match self {
            Self::Engaged { .. } => Some(0),
            Self::Released { last: Some(Released { at, how: Release::Overdue }) } => {
                let minutes = now.since(*at).as_secs() / 60;
                let granted = u64::from(rate_per_minute(total)).saturating_mul(minutes.saturating_add(1));
                let granted = u32::try_from(granted).unwrap_or(u32::MAX);
                (granted < total).then(|| granted.saturating_sub(done))
            }
            Self::Released { .. } => None,
        }
    }
}

/// Automatic actions per minute after an overdue release: a twentieth of the fleet, at least one. So a
/// person who answers the alert within five minutes finds three quarters of the fleet untouched.
pub const fn rate_per_minute(total: u32) -> u32 {
    let share = total.div_ceil(20);
    if share == 0 { 1 } else { share }
}

fn released(how: Release, now: Timestamp) -> (Brake, Option<Change>) {
    (Brake::Released { last: Some(Released { at: now, how: how.clone() }) }, Some(Change::Released(how)))
}

fn lasted(since: Timestamp, length: Duration, now: Timestamp) -> bool {
    now >= since.after(length)
}

fn cause(fleet: &Fleet, terms: &BrakeTerms) -> Option<Cause> {
    match fleet.trouble {
        Some(Trouble::LoopStalled) => Some(Cause::LoopStalled),
        Some(Trouble::ClockJumped) => Some(Cause::ClockJumped),
        None => {
            let Fleet { total, gone, .. } = *fleet;
            let is_many = gone >= terms.min && is_more_than(gone, terms.fraction_percent, total);
            is_many.then_some(Cause::FleetGone { gone, total })
        }
    }
}

/// Strictly more than that share: exactly 30 % does not engage.
fn is_more_than(gone: u32, percent: f64, total: u32) -> bool {
    f64::from(gone) * 100.0 > f64::from(total) * percent
}

/// Under half of what engages it, by either measure.
fn is_calm(fleet: &Fleet, terms: &BrakeTerms) -> bool {
    // A small fleet never engages by its number, so that its number does not keep it engaged either.
    let is_small = fleet.total < terms.min;
    let doubled = fleet.gone.saturating_mul(2);
    is_small
        || doubled < terms.min
        || f64::from(doubled) * 100.0 < f64::from(fleet.total) * terms.fraction_percent
}
