//! When to look again.

use core::time::Duration;

use super::Snapshot;
use crate::clock::Timestamp;
use crate::evidence::Streak;
use crate::policy::Policy;

/// What the regular looks go by.
pub(super) struct Regular {
    pub(super) interval: Duration,
    pub(super) streak: Streak,
    pub(super) is_running: bool,
}

/// What part of an interval a regular look may come later, so that it comes together with others.
const SHARED: u32 = 30;

/// Between the instants at which regular looks are made, for intervals that are long enough. Whole numbers of them make a
/// second, so that whoever is looked at on the second stays there.
const STEPS: [Duration; 4] = [
    // Nobody waits longer than that for company: it is how often the loop comes anyway.
    Duration::from_secs(1),
    Duration::from_millis(500),
    Duration::from_millis(200),
    // Who is checked more often than every 3 s has no time to spare: a check that comes two intervals after the last one
    // has missed what was between.
    Duration::from_millis(100),
];

/// The instants that all regular looks with this interval share: what they cost besides looking (a turn of the loop, a
/// claim, a commit) is paid once for all of them.
fn shared(at: Timestamp, interval: Duration) -> Timestamp {
    let step = STEPS.into_iter().find(|step| *step * SHARED <= interval);
    // Up and never down: a check sooner than an interval after the last one does not count.
    step.map_or(at, |step| at.up_to_whole(step))
}

impl Regular {
    /// The next regular look: an interval after the last check, and a little more for company.
    fn at(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Timestamp {
        let last =
            if snapshot.check_began_at.is_some() { Some(now) } else { snapshot.evidence.last_check_at };
        let next = last.map_or(now, |last| shared(last + self.interval, self.interval));
        if next > now { next } else { shared(now + self.interval, self.interval) }
    }

    /// When the streak may rise next. A look in between, for a warning or the end of a hold, puts off the
    /// regular one and does not count itself; the window must not fill later for that.
    fn rises_at(&self, policy: &Policy) -> Option<Timestamp> {
        let is_filling = self.is_running && self.streak.count < policy.window;
        self.streak.counted_at.filter(|_| is_filling).map(|counted| counted + self.interval)
    }
}

/// The next look, but for what idleness itself asks for; always after `now`.
pub(super) fn look(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    regular: &Regular,
    others: impl IntoIterator<Item = Option<Timestamp>>,
    now: Timestamp,
) -> Timestamp {
    others
        .into_iter()
        .chain([snapshot.worker.status.deadline(), regular.rises_at(policy)])
        .flatten()
        .filter(|at| *at > now)
        .fold(regular.at(snapshot, now), Timestamp::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_looks_come_together_and_never_early() {
        let at = |micros| Timestamp::from_micros(micros);
        for (interval_ms, due, shared_at) in [
            (30_000, 61_000_000, 61_000_000),
            (30_000, 61_000_001, 62_000_000),
            (30_000, 61_999_999, 62_000_000),
            // One tick shorter, and a second is too long to wait.
            (29_999, 61_000_001, 61_500_000),
            (3_000, 61_000_001, 61_100_000),
            // Too often for company.
            (2_999, 61_000_001, 61_000_001),
            // Seldom: not later for it.
            (1_800_000, 61_000_001, 62_000_000),
        ] {
            let interval = Duration::from_millis(interval_ms);
            assert_eq!(shared(at(due), interval), at(shared_at), "{interval_ms} ms, {due}");
        }
    }
}
