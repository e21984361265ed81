//! How many workers are gone, by when they went, in bounded memory.

use alloc::collections::BTreeMap;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Slices per threshold. A count may take in up to one slice too much, never too little.
const SLICES: u32 = 8;

/// Counts the workers that are silent or unknown in slices of time, without knowing them.
///
/// Whoever feeds it keeps `gone_since` with each worker and reports only its changes, so that a worker which
/// is both silent and unknown, or flaps, is counted once. Its size depends on the times of [`BrakeTerms`] and
/// not on the fleet: what is older than an incident can last is forgotten.
///
/// [`BrakeTerms`]: super::BrakeTerms
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoneTally {
    /// The length of a slice, in microseconds.
    slice_us: i64,
    /// How many slices are kept.
    kept: i64,
    /// Workers gone, by the number of the slice in which they went.
    slices: BTreeMap<i64, u32>,
}

impl GoneTally {
    pub fn new(terms: &super::BrakeTerms) -> Self {
        let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        let slice_us = (micros(terms.threshold) / i64::from(SLICES)).max(1);
        // An incident reaches back one threshold and lasts `max`.
        let kept = micros(terms.max) / slice_us + 2 * i64::from(SLICES);
        Self { slice_us, kept, slices: BTreeMap::new() }
    }

    /// A worker became silent or unknown.
    pub fn went(&mut self, at: Timestamp) {
        let slice = self.slice(at);
        *self.slices.entry(slice).or_default() += 1;
        let oldest = self.slices.last_key_value().map_or(slice, |(newest, _)| newest - self.kept);
        self.slices = self.slices.split_off(&oldest);
    }

    /// A worker that was gone since `went_at` is back, asleep, or no more.
    pub fn returned(&mut self, went_at: Timestamp) {
        let slice = self.slice(went_at);
        if let Some(count) = self.slices.get_mut(&slice) {
            *count -= 1;
            if *count == 0 {
                self.slices.remove(&slice);
            }
        }
    }

    /// How many are gone that went at `from` or later.
    pub fn gone_since(&self, from: Timestamp) -> u32 {
        self.slices.range(self.slice(from)..).fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    fn slice(&self, at: Timestamp) -> i64 {
        at.as_micros().div_euclid(self.slice_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::brake::BrakeTerms;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn who_went_and_who_came_back() {
        let mut tally = GoneTally::new(&BrakeTerms::default());
        for went in [1_000, 1_050, 1_080, 1_080] {
            tally.went(at(went));
        }
        assert_eq!(tally.gone_since(at(900)), 4);
        assert_eq!(tally.gone_since(at(1_070)), 2);
        tally.returned(at(1_080));
        assert_eq!(tally.gone_since(at(1_070)), 1);
        tally.returned(at(5));
        assert_eq!(tally.gone_since(at(0)), 3, "one that was forgotten takes nobody with it");
    }

    #[test]
    fn memory_depends_on_time_and_not_on_the_fleet() {
        let mut tally = GoneTally::new(&BrakeTerms::default());
        for went in 0..1_000_000 {
            tally.went(Timestamp::from_micros(went * 10_000));
        }
        // 30 min in slices of 11.25 s, and two thresholds.
        assert!(tally.slices.len() <= 160 + 16 + 1, "{}", tally.slices.len());
        assert!(tally.gone_since(at(9_910)) >= 9_000, "the last 90 s");
    }

    #[test]
    fn a_slice_more_may_be_counted_but_never_less() {
        let mut tally = GoneTally::new(&BrakeTerms::default());
        for went in 0..1_000 {
            tally.went(at(went));
        }
        for from in 0..1_000 {
            let (counted, exact) = (tally.gone_since(at(from)), u32::try_from(1_000 - from).unwrap());
            assert!(counted >= exact && counted <= exact + 12, "{counted} for {exact}");
        }
    }
}
