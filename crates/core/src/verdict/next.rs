//! When to look again.

use core::time::Duration;

use super::Snapshot;
use crate::clock::Timestamp;
use crate::evidence::Streak;
use crate::policy::Policy;
use crate::status::Status;

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
    others: [Option<Timestamp>; 7],
    now: Timestamp,
) -> Timestamp {
    let status = &snapshot.worker.status;
    let (sinks_at, ends_at) = match status {
        Status::Paused { since, sleep } => (
            policy.stop_after.filter(|_| sleep.reason.sinks_to_stopped()).map(|after| *since + after),
            policy.terminate_after.map(|after| sleep.at + after),
        ),
        Status::Stopped { sleep, .. } => (None, policy.terminate_after.map(|after| sleep.at + after)),
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => (None, None),
    };
    others
        .into_iter()
        .chain([sinks_at, ends_at, status.deadline(), regular.rises_at(policy)])
        .flatten()
        .filter(|at| *at > now)
        .fold(regular.at(snapshot, now), Timestamp::min)
}
