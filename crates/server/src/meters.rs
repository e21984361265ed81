//! What counters showed before, so that two totals make a reading.
//!
//! In memory only: after a restart of ours the first sample is a baseline, and coverage begins with it. What
//! happened while nobody looked is nobody's idle time.
//!
//! A total is kept only when the check that read it is: the use that a dropped check saw is seen again by the
//! next. And a reading spans a good part of an interval however soon a check follows another: half a millisecond
//! of work in the millisecond after a nudge is not "50 % busy".

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::counter::Total;
use drowse_core::id::{BootId, WorkerId};
use drowse_core::signal::{PerSignal, Signal};

use crate::shared::lock;

/// The totals that one check has read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// Of which run.
    pub(crate) boot: Option<BootId>,
    pub(crate) of: PerSignal<Option<Total>>,
}

/// What a new total is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// This is the first.
    Nothing,
    /// This one.
    Total(Total),
    /// The first was read a moment ago.
    TooSoon { since: Timestamp },
}

#[derive(Debug, Default)]
pub(crate) struct Meters(Mutex<HashMap<WorkerId, Run>>);

#[derive(Debug, Default)]
struct Run {
    boot: Option<BootId>,
    of: PerSignal<Gauge>,
}

/// The two latest totals, at least half an interval apart.
#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    older: Option<Total>,
    newer: Option<Total>,
}

fn is_apart(older: Total, at: Timestamp, interval: Duration) -> bool {
    at >= older.at + interval / 2
}

impl Meters {
    pub(crate) fn before(
        &self,
        worker: &WorkerId,
        boot: Option<&BootId>,
        signal: Signal,
        at: Timestamp,
        interval: Duration,
    ) -> Before {
        let runs = lock(&self.0);
        let Some(run) = runs.get(worker).filter(|run| run.boot.as_ref() == boot) else {
            return Before::Nothing;
        };
        match run.of[signal as usize] {
            Gauge { newer: Some(newer), .. } if is_apart(newer, at, interval) => Before::Total(newer),
            Gauge { older: Some(older), .. } => Before::Total(older),
            Gauge { newer: Some(newer), older: None } => Before::TooSoon { since: newer.at },
            Gauge { newer: None, older: None } => Before::Nothing,
        }
    }

    /// The check that read these totals is written.
    pub(crate) fn keep(&self, worker: &WorkerId, totals: &Totals, interval: Duration) {
        if totals.of.iter().all(Option::is_none) {
            return;
        }
        let mut runs = lock(&self.0);
        let run = runs.entry(worker.clone()).or_default();
        if run.boot != totals.boot {
            *run = Run { boot: totals.boot.clone(), ..Run::default() };
        }
        for (gauge, total) in run.of.iter_mut().zip(totals.of) {
            let Some(total) = total else { continue };
            // A total that went backwards is a new beginning.
            let is_behind = gauge.newer.is_some_and(|newer| total.value < newer.value);
            if is_behind {
                *gauge = Gauge::default();
            }
            if gauge.newer.is_none_or(|newer| is_apart(newer, total.at, interval)) {
                *gauge = Gauge { older: gauge.newer, newer: Some(total) };
            }
        }
    }

    /// What was used between these two is nobody's use: it is as if the counters had not moved.
    pub(crate) fn discard(&self, worker: &WorkerId, from: &Totals, until: &Totals) {
        let mut runs = lock(&self.0);
        let Some(run) = runs.get_mut(worker).filter(|run| run.boot == from.boot && run.boot == until.boot)
        else {
            return;
        };
        for ((gauge, from), until) in run.of.iter_mut().zip(from.of).zip(until.of) {
            let (Some(from), Some(until)) = (from, until) else { continue };
            let used = until.value.saturating_sub(from.value);
            for total in [&mut gauge.older, &mut gauge.newer].into_iter().flatten() {
                total.value += used;
            }
        }
    }

    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.0).remove(worker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(10);

    fn total(value: u64, secs: i64) -> Total {
        Total { value, at: Timestamp::from_secs(secs) }
    }

    struct Bench {
        meters: Meters,
        worker: WorkerId,
    }

    impl Bench {
        fn new() -> Self {
            Self { meters: Meters::default(), worker: WorkerId::new("w").unwrap() }
        }

        fn keep(&self, boot: &str, kept: Total) {
            let mut totals = Totals { boot: Some(BootId::new(boot)), ..Totals::default() };
            totals.of[Signal::Cpu as usize] = Some(kept);
            self.meters.keep(&self.worker, &totals, INTERVAL);
        }

        fn before(&self, boot: &str, secs: i64) -> Before {
            let boot = BootId::new(boot);
            self.meters.before(&self.worker, Some(&boot), Signal::Cpu, Timestamp::from_secs(secs), INTERVAL)
        }
    }

    #[test]
    fn a_reading_spans_a_good_part_of_an_interval() {
        let bench = Bench::new();
        assert_eq!(bench.before("a", 0), Before::Nothing);
        bench.keep("a", total(1, 0));
        assert_eq!(bench.before("a", 1), Before::TooSoon { since: Timestamp::from_secs(0) });
        assert_eq!(bench.before("a", 5), Before::Total(total(1, 0)));
        bench.keep("a", total(2, 10));
        assert_eq!(bench.before("a", 11), Before::Total(total(1, 0)), "a check a second later");
        bench.keep("a", total(3, 11));
        assert_eq!(bench.before("a", 20), Before::Total(total(2, 10)), "which takes nobody's place");
    }

    #[test]
    fn what_a_hook_used_is_nobodys_use() {
        let bench = Bench::new();
        bench.keep("a", total(100, 0));
        let of = |value| {
            let mut totals = Totals { boot: Some(BootId::new("a")), ..Totals::default() };
            totals.of[Signal::Cpu as usize] = Some(total(value, 5));
            totals
        };
        bench.meters.discard(&bench.worker, &of(110), &of(160));
        assert_eq!(bench.before("a", 10), Before::Total(total(150, 0)));
        let other = Totals { boot: Some(BootId::new("b")), ..of(900) };
        bench.meters.discard(&bench.worker, &of(160), &other);
        assert_eq!(bench.before("a", 10), Before::Total(total(150, 0)), "of another run");
    }

    #[test]
    fn totals_of_different_runs_have_nothing_to_do_with_each_other() {
        let bench = Bench::new();
        bench.keep("a", total(1, 0));
        assert_eq!(bench.before("b", 10), Before::Nothing);
        bench.keep("b", total(0, 10));
        assert_eq!(bench.before("b", 20), Before::Total(total(0, 10)));
    }
}
