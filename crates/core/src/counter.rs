//! Running totals turned into readings: processor time and network bytes.
//!
//! A first sample is only a baseline. A total that went backwards says nothing about the time between.
//! After a gap, the whole difference may still prove that nothing happened, and only then is the gap
//! repaired.

use alloc::collections::BTreeMap;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::evidence::Read;
use crate::id::BootId;
use crate::policy::Policy;
use crate::signal::{Measured, Reading, Signal, UnknownCause};

/// A running total at one instant, of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Total {
    /// Microseconds of processor time, or bytes.
    pub value: u64,
    /// When it was read.
    pub at: Timestamp,
}

/// Which total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// Microseconds of processor time; shown as a percentage, 100 % is one core.
    Cpu,
    /// Bytes received and sent; shown as bytes in the time between the two samples.
    Network,
}

impl Meter {
    pub const fn signal(self) -> Signal {
        match self {
            Meter::Cpu => Signal::Cpu,
            Meter::Network => Signal::Network,
        }
    }

    /// The measured value and its threshold for a difference over `elapsed`.
    #[expect(clippy::cast_precision_loss, reason = "2^53 µs are 285 years")]
    fn measure(self, delta: u64, elapsed: Duration, policy: &Policy) -> Measured {
        let value = match self {
            Meter::Cpu => delta as f64 / elapsed.as_micros().max(1) as f64 * 100.0,
            Meter::Network => delta as f64,
        };
        Measured { value, active_above: policy.threshold(self.signal(), elapsed) }
    }

    /// Reads the signal from two totals of the same run. `interval` is how often it is read.
    pub fn read(self, before: Option<&Total>, after: &Total, policy: &Policy, interval: Duration) -> Read {
        let Some(before) = before else {
            return Read::unknown(UnknownCause::FirstSample, after.at);
        };
        let Some(delta) = after.value.checked_sub(before.value) else {
            return Read::unknown(UnknownCause::WentBackwards, after.at);
        };
        let elapsed = after.at.since(before.at);
        if elapsed.is_zero() {
            return Read::unknown(UnknownCause::ProbeFailed, after.at);
        }
        let measured = self.measure(delta, elapsed, policy);
        // Over a gap: would all of it be quiet had it happened within a single interval? Then it does not
        // matter when it happened.
        let squeezed = self.measure(delta, interval.max(Duration::from_micros(1)).min(elapsed), policy);
        Read {
            reading: measured.reading(after.at),
            read_at: after.at,
            measured: Some(measured),
            tells_gap: squeezed.reading(after.at) == Reading::Quiet,
        }
    }
}

impl Meter {
    /// The same after an absence of ours: nobody looked meanwhile, so a difference counts only if it proves something.
    /// Either there was use, or no two checks were missed and all of it would be quiet had it happened within a single
    /// interval; else it is a first sample. Over a longer absence other signals, which count nothing, were not seen.
    pub fn read_after_absence(
        self,
        before: &Total,
        after: &Total,
        policy: &Policy,
        interval: Duration,
    ) -> Read {
        let read = self.read(Some(before), after, policy, interval);
        let is_short = after.at < before.at + interval * 2;
        if read.reading == Reading::Quiet && !(is_short && read.tells_gap) {
            return Read::unknown(UnknownCause::FirstSample, after.at);
        }
        read
    }
}

/// What a new total is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// This is the first.
    Nothing,
    /// This one.
    Total(Total),
    /// The first was read a moment ago.
    TooSoon { since: Timestamp },
}

/// What the counters of one run showed before, so that two totals make a reading.
///
/// A reading spans a good part of an interval however soon a check follows another: half a millisecond of work in the
/// millisecond after a nudge is not "50 % busy".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Of which run.
    boot: Option<BootId>,
    of: BTreeMap<Signal, Gauge>,
}

/// The two latest totals, at least half an interval apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Gauge {
    older: Option<Total>,
    newer: Total,
}

fn is_apart(older: Total, at: Timestamp, interval: Duration) -> bool {
    at >= older.at + interval / 2
}

impl Counters {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Of which run they are.
    pub const fn boot(&self) -> Option<&BootId> {
        self.boot.as_ref()
    }

    /// When the newest of them was read.
    pub fn newest_at(&self) -> Option<Timestamp> {
        self.of.values().map(|gauge| gauge.newer.at).max()
    }

    /// What a total of this run that was read at that time is compared with.
    pub fn before(&self, boot: Option<&BootId>, signal: Signal, at: Timestamp, interval: Duration) -> Before {
        match self.of.get(&signal).filter(|_| self.boot.as_ref() == boot) {
            None => Before::Nothing,
            Some(gauge) if is_apart(gauge.newer, at, interval) => Before::Total(gauge.newer),
            Some(Gauge { older: Some(older), .. }) => Before::Total(*older),
            Some(Gauge { older: None, newer }) => Before::TooSoon { since: newer.at },
        }
    }

    /// What is known once these totals are. One that went backwards, and one of another run, is a new beginning.
    #[must_use]
    pub fn after(
        &self,
        boot: Option<&BootId>,
        totals: impl IntoIterator<Item = (Signal, Total)>,
        interval: Duration,
    ) -> Self {
        let mut after = self.clone();
        if after.boot.as_ref() != boot {
            after = Self { boot: boot.cloned(), of: BTreeMap::new() };
        }
        for (signal, total) in totals {
            let known = after.of.get(&signal).copied().filter(|gauge| total.value >= gauge.newer.value);
            let gauge = match known {
                None => Gauge { older: None, newer: total },
                Some(gauge) if is_apart(gauge.newer, total.at, interval) => {
                    Gauge { older: Some(gauge.newer), newer: total }
                }
                Some(gauge) => gauge,
            };
            after.of.insert(signal, gauge);
        }
        after
    }

    /// So much of a signal was nobody's use: it is as if the counter had not moved.
    pub fn discard(&mut self, signal: Signal, used: u64) {
        if let Some(gauge) = self.of.get_mut(&signal) {
            gauge.newer.value += used;
            if let Some(older) = &mut gauge.older {
                older.value += used;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(value: u64, secs: i64) -> Total {
        Total { value, at: Timestamp::from_secs(secs) }
    }

    fn cpu(before: Option<Total>, after: Total) -> Read {
        Meter::Cpu.read(before.as_ref(), &after, &Policy::default(), Duration::from_mins(1))
    }

    #[test]
    fn a_first_sample_is_only_a_baseline() {
        assert_eq!(cpu(None, total(9_000_000, 0)).reading, Reading::unknown(UnknownCause::FirstSample));
    }

    #[test]
    fn a_total_that_went_backwards_is_unknown() {
        let read = cpu(Some(total(5, 0)), total(4, 60));
        assert_eq!(read.reading, Reading::unknown(UnknownCause::WentBackwards));
    }

    #[test]
    fn two_per_cent_of_a_core_is_quiet_and_a_microsecond_more_is_not() {
        // 2 % of 60 s are 1.2 s.
        assert_eq!(cpu(Some(total(0, 0)), total(1_200_000, 60)).reading, Reading::Quiet);
        let more = cpu(Some(total(0, 0)), total(1_200_001, 60));
        assert_eq!(more.reading, Reading::Active { at: Timestamp::from_secs(60) });
    }

    #[test]
    fn a_gap_is_told_only_if_all_of_it_would_be_quiet_in_one_interval() {
        assert!(cpu(Some(total(0, 0)), total(1_200_000, 3_600)).tells_gap);
        let more = cpu(Some(total(0, 0)), total(1_200_001, 3_600));
        assert_eq!(more.reading, Reading::Quiet, "on average it was quiet");
        assert!(!more.tells_gap, "but a minute of work may hide in the hour");
    }

    #[test]
    fn network_is_a_difference_scaled_to_the_interval_with_a_floor() {
        let read = |bytes: u64, secs| {
            let interval = Duration::from_mins(1);
            Meter::Network.read(Some(&total(7, 0)), &total(7 + bytes, secs), &Policy::default(), interval)
        };
        assert_eq!(read(1 << 20, 300).reading, Reading::Quiet);
        assert!(matches!(read((1 << 20) + 1, 300).reading, Reading::Active { .. }));
        assert!(matches!(read(1 << 20, 150).reading, Reading::Active { .. }));
        // 1 MiB per 5 min would be 35 bytes in 10 ms; the floor is 512.
        let floor = Meter::Network.read(
            Some(&total(0, 0)),
            &Total { value: 512, at: Timestamp::from_micros(10_000) },
            &Policy::default(),
            Duration::from_secs(1),
        );
        assert_eq!(floor.reading, Reading::Quiet);
    }

    #[test]
    fn after_an_absence_a_difference_counts_only_if_it_proves_something() {
        let read = |value, secs| {
            let policy = Policy::default();
            Meter::Cpu.read_after_absence(&total(0, 0), &total(value, secs), &policy, Duration::from_mins(1))
        };
        assert_eq!(read(1_200_000, 90).reading, Reading::Quiet, "quiet for a single interval");
        // Quiet on average over a minute and a half, and busy if it was all in one minute.
        assert_eq!(read(1_200_001, 90).reading, Reading::unknown(UnknownCause::FirstSample));
        assert!(matches!(read(1_800_001, 90).reading, Reading::Active { .. }));
        assert_eq!(read(0, 119).reading, Reading::Quiet);
        assert_eq!(
            read(0, 120).reading,
            Reading::unknown(UnknownCause::FirstSample),
            "two checks were missed"
        );
    }

    const INTERVAL: Duration = Duration::from_secs(10);

    fn boot(name: &str) -> BootId {
        BootId::new(name)
    }

    fn keep(counters: &Counters, run: &str, kept: Total) -> Counters {
        counters.after(Some(&boot(run)), [(Signal::Cpu, kept)], INTERVAL)
    }

    fn before(counters: &Counters, run: &str, secs: i64) -> Before {
        counters.before(Some(&boot(run)), Signal::Cpu, Timestamp::from_secs(secs), INTERVAL)
    }

    #[test]
    fn a_reading_spans_a_good_part_of_an_interval() {
        let counters = Counters::default();
        assert_eq!(before(&counters, "a", 0), Before::Nothing);
        let counters = keep(&counters, "a", total(1, 0));
        assert_eq!(before(&counters, "a", 1), Before::TooSoon { since: Timestamp::from_secs(0) });
        assert_eq!(before(&counters, "a", 5), Before::Total(total(1, 0)));
        let counters = keep(&counters, "a", total(2, 10));
        assert_eq!(before(&counters, "a", 11), Before::Total(total(1, 0)), "a check a second later");
        let counters = keep(&counters, "a", total(3, 11));
        assert_eq!(before(&counters, "a", 20), Before::Total(total(2, 10)), "which takes nobody's place");
        let counters = keep(&counters, "a", total(1, 30));
        assert_eq!(before(&counters, "a", 40), Before::Total(total(1, 30)), "it went backwards");
    }

    #[test]
    fn what_a_hook_used_is_nobodys_use() {
        let mut counters = keep(&Counters::default(), "a", total(100, 0));
        counters.discard(Signal::Cpu, 50);
        counters.discard(Signal::Network, 50);
        assert_eq!(before(&counters, "a", 10), Before::Total(total(150, 0)));
    }

    #[test]
    fn totals_of_different_runs_have_nothing_to_do_with_each_other() {
        let counters = keep(&Counters::default(), "a", total(1, 0));
        assert_eq!(before(&counters, "b", 10), Before::Nothing);
        let counters = keep(&counters, "b", total(0, 10));
        assert_eq!(before(&counters, "b", 20), Before::Total(total(0, 10)));
    }
}
