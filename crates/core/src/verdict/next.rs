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

impl Regular {
    /// The next regular look: an interval after the last check.
    fn at(&self, snapshot: &Snapshot<'_>, now: Timestamp) -> Timestamp {
        let last =
            if snapshot.check_began_at.is_some() { Some(now) } else { snapshot.evidence.last_check_at };
        let next = last.map_or(now, |last| last + self.interval);
        if next > now { next } else { now + self.interval }
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
