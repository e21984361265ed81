//! What is known about the use of a worker in its present run.
//!
//! Readings are recorded here as they come in, pulled or pushed. `last_activity_at` only ever grows;
//! missing data never overwrites it. Coverage is kept with each signal: since when it could be read
//! without a break.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::signal::{Measured, PerSignal, Reading, Sample, Signal, UnknownCause};

/// One read of one signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    /// What it says.
    pub reading: Reading,
    /// Up to when it says so.
    pub read_at: Timestamp,
    /// The number behind it.
    pub measured: Option<Measured>,
    /// The source also tells about the time since it was last read: a history, a counter whose whole
    /// difference is quiet, an agent that says since when, a router that is back.
    pub tells_gap: bool,
}

impl Read {
    pub const fn quiet(read_at: Timestamp) -> Self {
        Self { reading: Reading::Quiet, read_at, measured: None, tells_gap: false }
    }

    pub const fn active(at: Timestamp, read_at: Timestamp) -> Self {
        Self { reading: Reading::Active { at }, read_at, measured: None, tells_gap: false }
    }

    pub const fn unknown(cause: UnknownCause, read_at: Timestamp) -> Self {
        Self { reading: Reading::unknown(cause), read_at, measured: None, tells_gap: false }
    }

    #[must_use]
    pub const fn telling_gap(mut self) -> Self {
        self.tells_gap = true;
        self
    }
}

/// Consecutive quiet checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    /// How many so far.
    pub count: u32,
    /// The last check that counted, up or down. One that comes sooner than an interval after it may
    /// reset the streak but not raise it: three looks in a second are not three looks.
    pub counted_at: Option<Timestamp>,
}

impl Streak {
    #[must_use]
    pub fn after_quiet(self, now: Timestamp, interval: Duration) -> Streak {
        match self.counted_at {
            Some(counted_at) if now < counted_at + interval => self,
            Some(_) | None => Streak { count: self.count.saturating_add(1), counted_at: Some(now) },
        }
    }

    #[must_use]
    pub const fn reset(now: Timestamp) -> Streak {
        Streak { count: 0, counted_at: Some(now) }
    }

    /// The streak once it is known that the worker was in use at `activity`: what was told between two
    /// checks breaks it as what a check finds does.
    #[must_use]
    pub fn broken_by(self, activity: Option<Timestamp>) -> Streak {
        match activity {
            Some(at) if self.counted_at.is_none_or(|counted| at > counted) => Streak::reset(at),
            Some(_) | None => self,
        }
    }
}

/// Since when a worker has been unknown, and whether somebody was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownFor {
    /// The first failed read.
    pub since: Timestamp,
    /// The last alert about it.
    pub alerted_at: Option<Timestamp>,
}

/// The evidence of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The latest sample of each signal.
    samples: PerSignal<Option<Sample>>,
    /// Where coverage began before the gap that each signal is in, should a later read repair it.
    before_gap: PerSignal<Option<Timestamp>>,
    last_activity_at: Option<Timestamp>,
    last_activity_by: Option<Signal>,
    /// Quiet checks so far.
    pub streak: Streak,
    /// The last check.
    pub last_check_at: Option<Timestamp>,
    /// Set while the worker is unknown.
    pub unknown: Option<UnknownFor>,
}

impl Evidence {
    /// The latest sample of a signal.
    pub const fn sample(&self, signal: Signal) -> Option<&Sample> {
        self.samples[signal as usize].as_ref()
    }

    /// When the worker was last in use, by anything that counts.
    pub const fn last_activity_at(&self) -> Option<Timestamp> {
        self.last_activity_at
    }

    /// Which signal said so.
    pub const fn last_activity_by(&self) -> Option<Signal> {
        self.last_activity_by
    }

    /// Notes that the worker was in use. Never goes back, never into the future.
    pub fn note_activity(&mut self, at: Timestamp, by: Signal, now: Timestamp) {
        let at = at.min(now);
        if self.last_activity_at.is_none_or(|last| at > last) {
            self.last_activity_at = Some(at);
            self.last_activity_by = Some(by);
        }
    }

    /// Records a read. `counts` is false for what is shown but not counted (`leases_only`); `interval` is
    /// how often the signal is read, to tell a missed check from an ordinary wait.
    pub fn record(&mut self, signal: Signal, read: Read, counts: bool, interval: Duration, now: Timestamp) {
        let mut reading = read.reading;
        if let Reading::Active { at } = &mut reading {
            *at = (*at).min(now);
            if counts {
                self.note_activity(*at, signal, now);
            }
        }
        // A clock that is ahead of ours must not make every later read look old.
        let read = Read { read_at: read.read_at.min(now), ..read };
        let index = signal as usize;
        // A push that was overtaken by a newer one still proves activity, and nothing else.
        if self.samples[index].is_some_and(|old| read.read_at < old.read_at) {
            return;
        }
        let covered_since = self.cover(index, &read, interval);
        self.samples[index] =
            Some(Sample { reading, read_at: read.read_at, covered_since, measured: read.measured });
    }

    /// The evidence of the next run: what was read belongs to the old one, what was done stays done.
    #[must_use]
    pub fn next_run(&self) -> Evidence {
        Evidence {
            last_activity_at: self.last_activity_at,
            last_activity_by: self.last_activity_by,
            ..Evidence::default()
        }
    }

    /// The worker is back from a freeze: the quiet checks before it count no longer.
    ///
    /// The next one counts an interval later at the earliest, so that a vetoed or undone pause is not tried
    /// again in the same breath.
    pub fn thawed(&mut self, now: Timestamp) {
        self.streak = Streak::reset(now);
        self.unknown = None;
    }

    /// Since when the signal is covered, given a new read.
    fn cover(&mut self, index: usize, read: &Read, interval: Duration) -> Option<Timestamp> {
        let old = self.samples[index];
        let covered = old.and_then(|sample| sample.covered_since);
        match read.reading {
            // Coverage of a counter begins with its first sample. One that went backwards is a first sample
            // again, and no later difference can tell what was lost, so that nothing repairs this gap.
            Reading::Unknown { cause: UnknownCause::FirstSample | UnknownCause::WentBackwards } => {
                self.before_gap[index] = None;
                Some(read.read_at)
            }
            Reading::Unknown { .. } => {
                self.before_gap[index] = covered.or(self.before_gap[index]);
                None
            }
            Reading::Active { .. } | Reading::Quiet => {
                let before = self.before_gap[index].take();
                if let (Some(sample), Some(since)) = (old, covered) {
                    // A whole check was missed: nobody looked, unless the source tells.
                    let missed = read.read_at >= sample.read_at + interval * 2;
                    Some(if missed && !read.tells_gap { read.read_at } else { since })
                } else {
                    let repaired = before.filter(|_| read.tells_gap);
                    Some(repaired.unwrap_or(read.read_at))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_mins(1);

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn covered(evidence: &Evidence) -> Option<Timestamp> {
        evidence.sample(Signal::Cpu).and_then(|sample| sample.covered_since)
    }

    #[test]
    fn last_activity_never_goes_back_and_never_into_the_future() {
        let mut evidence = Evidence::default();
        evidence.record(Signal::Cpu, Read::active(at(100), at(100)), true, INTERVAL, at(100));
        evidence.record(Signal::Cpu, Read::active(at(50), at(160)), true, INTERVAL, at(160));
        assert_eq!(evidence.last_activity_at(), Some(at(100)));
        evidence.record(
            Signal::Tcp,
            Read::unknown(UnknownCause::ProbeFailed, at(170)),
            true,
            INTERVAL,
            at(170),
        );
        assert_eq!(evidence.last_activity_at(), Some(at(100)), "missing data overwrote activity");
        evidence.record(Signal::Cpu, Read::active(at(9_999), at(200)), true, INTERVAL, at(200));
        assert_eq!(evidence.last_activity_at(), Some(at(200)));
    }

    #[test]
    fn a_gap_ends_coverage_unless_the_source_tells_about_it() {
        for (read, expected) in [(Read::quiet(at(180)), at(180)), (Read::quiet(at(180)).telling_gap(), at(0))]
        {
            let mut evidence = Evidence::default();
            evidence.record(Signal::Cpu, Read::quiet(at(0)), true, INTERVAL, at(0));
            evidence.record(Signal::Cpu, Read::quiet(at(60)), true, INTERVAL, at(60));
            assert_eq!(covered(&evidence), Some(at(0)));
            let failed = Read::unknown(UnknownCause::ProbeFailed, at(120));
            evidence.record(Signal::Cpu, failed, true, INTERVAL, at(120));
            evidence.record(Signal::Cpu, failed, true, INTERVAL, at(130));
            assert_eq!(covered(&evidence), None);
            evidence.record(Signal::Cpu, read, true, INTERVAL, at(180));
            assert_eq!(covered(&evidence), Some(expected));
        }
    }

    #[test]
    fn a_missed_check_ends_coverage_too() {
        let mut evidence = Evidence::default();
        evidence.record(Signal::Cpu, Read::quiet(at(0)), true, INTERVAL, at(0));
        evidence.record(Signal::Cpu, Read::quiet(at(119)), true, INTERVAL, at(119));
        assert_eq!(covered(&evidence), Some(at(0)));
        evidence.record(Signal::Cpu, Read::quiet(at(239)), true, INTERVAL, at(239));
        assert_eq!(covered(&evidence), Some(at(239)));
    }

    #[test]
    fn what_is_shown_but_not_counted_is_no_activity() {
        let mut evidence = Evidence::default();
        evidence.record(Signal::Activity, Read::active(at(5), at(5)), false, INTERVAL, at(5));
        assert_eq!(evidence.last_activity_at(), None);
        assert!(evidence.sample(Signal::Activity).is_some());
    }

    #[test]
    fn the_streak_rises_once_an_interval_and_falls_at_once() {
        let streak = Streak::default().after_quiet(at(0), INTERVAL);
        assert_eq!(streak.count, 1);
        assert_eq!(streak.after_quiet(at(59), INTERVAL).count, 1);
        assert_eq!(streak.after_quiet(at(60), INTERVAL).count, 2);
        assert_eq!(Streak::reset(at(61)).after_quiet(at(62), INTERVAL).count, 0);
    }
}
