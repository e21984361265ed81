//! What becomes of a worker that sleeps and that nobody wakes: it is stopped, and deleted.
//!
//! Neither happens unannounced. The notice of a stop is what is told at the freeze; where that said nothing, or an
//! earlier time, people are told again. A deletion has a warning of its own.

use super::Snapshot;
use super::limit::Limit;
use super::notice::{Announcement, Warned, WarningKind};
use crate::clock::Timestamp;
use crate::policy::Policy;
use crate::status::{Sleep, Status};

/// What is ahead of a sleeper.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sinking {
    /// `stop_after`.
    pub(super) stop: Limit,
    /// `terminate_after`.
    pub(super) deletion: Limit,
}

impl Sinking {
    pub(super) fn of(snapshot: &Snapshot<'_>, policy: &Policy, is_held: bool, now: Timestamp) -> Self {
        if policy.protected || !policy.auto_pause {
            return Self::default();
        }
        let (frozen_since, sleep) = match &snapshot.worker.status {
            Status::Paused { since, sleep } => (Some(*since), sleep),
            Status::Stopped { sleep, .. } => (None, sleep),
            Status::Provisioning { .. }
            | Status::Running { .. }
            | Status::Pausing { .. }
            | Status::Waking { .. }
            | Status::Stopping { .. }
            | Status::Draining { .. }
            | Status::Terminating { .. }
            | Status::Terminated { .. }
            | Status::Failed { .. }
            | Status::Unknown { .. } => return Self::default(),
        };
        let stop = frozen_since.and_then(|since| stop(snapshot, policy, since, sleep, now));
        // Whoever holds it or is exempt wants it kept, from whatever the exemption is; and what a person or the
        // outside put to sleep is theirs.
        let is_kept = is_held || snapshot.exempt.max_runtime.is_some() || !sleep.reason.is_judged();
        let deletion = (!is_kept).then(|| deletion(snapshot, policy, sleep, now)).flatten();
        Self { stop: stop.unwrap_or_default(), deletion: deletion.unwrap_or_default() }
    }

    /// What is next, with the warning about it.
    pub(super) fn times(&self) -> [Option<Timestamp>; 4] {
        let (stop, deletion) = (&self.stop, &self.deletion);
        [stop.ends_at, stop.next_warning_at, deletion.ends_at, deletion.next_warning_at]
    }
}

fn stop(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    since: Timestamp,
    sleep: &Sleep,
    now: Timestamp,
) -> Option<Limit> {
    let after = policy.stop_after.filter(|_| sleep.reason.sinks_to_stopped())?;
    let told = snapshot.worker.stop_announced_for.map(|deadline| Warned {
        kind: WarningKind::StopAfter,
        deadline,
        first_at: since,
        percent: 100.0,
        is_fyi: false,
    });
    // The one that people heard last is the one that they go by.
    let warned = snapshot.stop_warned.filter(|warned| warned.first_at >= since).or(told);
    Some(announced(WarningKind::StopAfter, since + after, policy.notice(after), warned, now))
}

fn deletion(snapshot: &Snapshot<'_>, policy: &Policy, sleep: &Sleep, now: Timestamp) -> Option<Limit> {
    let after = policy.terminate_after?;
    let warned = snapshot.deletion_warned.filter(|warned| warned.first_at >= sleep.at);
    Some(announced(WarningKind::TerminateAfter, sleep.at + after, policy.notice(after), warned, now))
}

fn announced(
    kind: WarningKind,
    deadline: Timestamp,
    notice: core::time::Duration,
    warned: Option<Warned>,
    now: Timestamp,
) -> Limit {
    let announcement =
        Announcement { kind, deadline, limit: notice, levels: &[], notice, warned, is_fyi: false };
    let plan = announcement.plan(now, now);
    Limit {
        ends_at: Some(plan.happens_at),
        warning: plan.due,
        // Who has been told of this time is not told again.
        next_warning_at: plan.next_at.filter(|_| warned.is_none_or(|warned| !warned.covers(deadline))),
        announced_for: plan.announced_for,
        spared_at: None,
    }
}
