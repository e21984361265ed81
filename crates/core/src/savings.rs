//! What sleep has saved, counted from the spans of the power history.
//!
//! Only sleep that Drowse caused counts: a worker that a person switched off saves no less without Drowse.
//! Frozen hours are hours; they are money only if it is known what a frozen worker costs.
//!
//! What must stay true: the same history gives the same answer however its spans are cut and ordered, no
//! instant counts twice, and where spans contradict each other the one that saves least is believed. An
//! instant that no span covers was not observed and counts as nothing.

use alloc::vec::Vec;
use core::iter::Sum;
use core::ops::{Add, Range};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

mod money;
#[cfg(test)]
mod tests;

pub use money::{Money, NotMoney};

/// What a worker's power was for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PowerSpan {
    /// The first instant of it.
    pub from: Timestamp,
    /// The first instant after it; for a span that has not ended, now.
    pub until: Timestamp,
    /// What the power was.
    pub power: Power,
    /// Who put the worker to sleep; sleep of unknown cause does not count.
    pub caused_by: Option<Cause>,
}

/// Whether a worker could work, and what it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// It ran, or was on its way to or from running.
    Running,
    /// It used no processor, and kept its memory and its machine.
    Frozen,
    /// It used nothing.
    Stopped,
}

/// Who put a worker to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A rule: `idle_timeout`, `schedule`, `max_runtime` or `scale_down`.
    Drowse,
    /// A person, through Drowse (`manual`).
    Person,
    /// Somebody or something else, past Drowse (`external`).
    External,
}

/// What an hour of a worker costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    /// An hour in which it runs.
    pub per_hour: Option<Money>,
    /// An hour in which it is frozen.
    pub paused_per_hour: Option<Money>,
}

/// What was saved in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// How long Drowse had it frozen.
    pub frozen_for: Duration,
    /// How long Drowse had it stopped.
    pub stopped_for: Duration,
    /// How long it ran.
    pub running_for: Duration,
    /// How long its power is known; what is missing from the other three was sleep that others caused.
    pub observed_for: Duration,
    /// What the sleep saved; absent if there is no price.
    pub money: Option<Money>,
}

impl Add for Savings {
    type Output = Savings;

    /// Of another worker or another period.
    fn add(self, other: Savings) -> Savings {
        Savings {
            frozen_for: self.frozen_for.saturating_add(other.frozen_for),
            stopped_for: self.stopped_for.saturating_add(other.stopped_for),
            running_for: self.running_for.saturating_add(other.running_for),
            observed_for: self.observed_for.saturating_add(other.observed_for),
            money: match (self.money, other.money) {
                (Some(one), Some(two)) => Some(one + two),
                (one, two) => one.or(two),
            },
        }
    }
}

impl Sum for Savings {
    fn sum<I: Iterator<Item = Savings>>(all: I) -> Savings {
        all.fold(Savings::default(), Add::add)
    }
}

/// What an instant counts as. The order is that of belief where spans overlap: what saves least comes first.
#[derive(Clone, Copy)]
enum Lane {
    Running,
    /// Asleep, and not because of Drowse.
    AsleepAnyway,
    Frozen,
    Stopped,
}

const LANES: [Lane; 4] = [Lane::Running, Lane::AsleepAnyway, Lane::Frozen, Lane::Stopped];

impl PowerSpan {
    fn lane(&self) -> Lane {
        match (self.power, self.caused_by) {
            (Power::Running, _) => Lane::Running,
            (Power::Frozen, Some(Cause::Drowse)) => Lane::Frozen,
            (Power::Stopped, Some(Cause::Drowse)) => Lane::Stopped,
            (Power::Frozen | Power::Stopped, Some(Cause::Person | Cause::External) | None) => {
                Lane::AsleepAnyway
            }
        }
    }
}

/// What one worker's history says about `period`. The spans may come in any order, overlap, and reach
/// beyond the period.
pub fn savings(
    spans: impl IntoIterator<Item = PowerSpan>,
    prices: &Prices,
    period: Range<Timestamp>,
) -> Savings {
    let mut edges: Vec<(Timestamp, Lane, Edge)> = Vec::new();
    for span in spans {
        let (from, until) = (span.from.max(period.start), span.until.min(period.end));
        if from < until {
            edges.push((from, span.lane(), Edge::Begins));
            edges.push((until, span.lane(), Edge::Ends));
        }
    }
    edges.sort_by_key(|(at, _, _)| *at);

    // How many spans of each lane cover the instant. Edges at one instant come in any order, so a count
    // may dip below zero between them, but no time passes there.
    let mut covering = [0_i64; LANES.len()];
    let mut totals = [Duration::ZERO; LANES.len()];
    let mut since = period.start;
    for (at, lane, edge) in edges {
        if at > since {
            if let Some(lane) = LANES.into_iter().find(|lane| covering[*lane as usize] > 0) {
                totals[lane as usize] += at.since(since);
            }
            since = at;
        }
        covering[lane as usize] += match edge {
            Edge::Begins => 1,
            Edge::Ends => -1,
        };
    }

    let [running_for, _, frozen_for, stopped_for] = totals;
    Savings {
        frozen_for,
        stopped_for,
        running_for,
        observed_for: totals.iter().sum(),
        money: prices.of(frozen_for, stopped_for),
    }
}

enum Edge {
    Begins,
    Ends,
}

impl Prices {
    /// What it saved to be frozen and stopped for so long.
    fn of(&self, frozen_for: Duration, stopped_for: Duration) -> Option<Money> {
        let running = self.per_hour?;
        let stopped = running.for_hours(stopped_for);
        // Without a price for it, a frozen worker is taken to cost what a running one does.
        let frozen = self.paused_per_hour.map(|paused| (running - paused).for_hours(frozen_for));
        Some(stopped + frozen.unwrap_or_default())
    }
}
