//! Running totals turned into readings: processor time and network bytes.
//!
//! A first sample is only a baseline. A total that went backwards says nothing about the time between.
//! After a gap, the whole difference may still prove that nothing happened, and only then is the gap
//! repaired.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::evidence::Read;
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
}
