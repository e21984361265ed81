//! What is counted while Drowse runs. Numbers only; how they are shown is for others.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::journal::Entry;
use drowse_core::reason::{PauseReason, ResumeReason};

/// A person's resume within this time of a sleep says that the sleep was wrong.
const REGRETTED_WITHIN: Duration = Duration::from_mins(10);

/// Upper bounds of the buckets of a distribution, in seconds; beyond the last is one more.
pub const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0, 600.0];

/// How durations are distributed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// How many fell into each bucket, the last being beyond all bounds. Not cumulative.
    pub buckets: [u64; BUCKETS.len() + 1],
    /// All of them together, in seconds.
    pub sum: f64,
    /// How many.
    pub count: u64,
    /// The longest, in seconds.
    pub longest: f64,
}

impl Distribution {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let index = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        self.buckets[index] += 1;
        self.sum += seconds;
        self.count += 1;
        self.longest = self.longest.max(seconds);
    }
}

/// Everything that is counted, at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Sleeps by reason, frozen or stopped.
    pub pauses: BTreeMap<PauseReason, u64>,
    /// Resumes by reason.
    pub resumes: BTreeMap<ResumeReason, u64>,
    /// Sleeps that a person took back within ten minutes.
    pub regretted: u64,
    /// Times at which observe mode would have put a worker to sleep.
    pub would_pause: u64,
    /// Warnings that were sent.
    pub warnings: u64,
    /// Alerts about workers that are unknown for too long.
    pub unknown_alerts: u64,
    /// Checks that were finished.
    pub checks: u64,
    /// Checks whose result was dropped because something else came first.
    pub overtaken: u64,
    /// Checks that failed for want of the store.
    pub failed_checks: u64,
    /// Calls of drivers that were refused or not answered.
    pub driver_errors: u64,
    /// From being due to being claimed.
    pub tick_lag: Distribution,
    /// From a wake to the worker being ready.
    pub wake_seconds: Distribution,
    /// Flushes of buffered evidence that failed.
    pub failed_flushes: u64,
}

/// Where it is counted.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Mutex<Snapshot>);

impl Metrics {
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Snapshot)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn lag(&self, lag: Duration) {
        self.count(|counted| counted.tick_lag.add(lag));
    }

    pub(crate) fn woke(&self, after: Duration) {
        self.count(|counted| counted.wake_seconds.add(after));
    }

    /// Counts what a step noted. `slept_at`: when the worker had last been put to sleep.
    pub(crate) fn journalled(&self, entries: &[Entry], slept_at: Option<Timestamp>, now: Timestamp) {
        self.count(|counted| {
            for entry in entries {
                if let Entry::Paused { reason, .. } | Entry::Stopped { reason, .. } = entry {
                    *counted.pauses.entry(*reason).or_default() += 1;
                } else if let Entry::Resumed { reason, .. } = entry {
                    *counted.resumes.entry(*reason).or_default() += 1;
                    let is_recent = slept_at.is_some_and(|at| now.since(at) <= REGRETTED_WITHIN);
                    if *reason == ResumeReason::Manual && is_recent {
                        counted.regretted += 1;
                    }
                }
            }
        });
    }
}
