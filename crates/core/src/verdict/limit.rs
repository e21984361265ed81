//! Limits that do not rest on idleness: `max_runtime` and schedules with `force`.

use core::time::Duration;

use super::Snapshot;
use super::notice::{Announcement, Warning, WarningKind};
use crate::clock::Timestamp;
use crate::hold::HoldKind;
use crate::policy::Policy;
use crate::policy::exemption::Expiry;
use crate::schedule::Effect;
use crate::status::Status;

/// What a limit means now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limit {
    /// When it acts, notice included.
    pub(super) ends_at: Option<Timestamp>,
    /// A warning to send now.
    pub(super) warning: Option<Warning>,
    /// When the next one is due.
    pub(super) next_warning_at: Option<Timestamp>,
}

impl Limit {
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.ends_at.is_some_and(|at| now >= at)
    }
}

/// `max_runtime`: it stops active and unknown workers too. Counted from this boot's start, without the
/// time spent frozen. Only protection, an exemption from it, or a person's keep-awake holds it off.
pub(super) fn max_runtime(snapshot: &Snapshot<'_>, policy: &Policy, now: Timestamp) -> Limit {
    let worker = snapshot.worker;
    let (Some(limit), Some(started), Status::Running { .. }, false) =
        (policy.max_runtime, worker.boot_started_at, &worker.status, policy.protected)
    else {
        return Limit::default();
    };
    let base = started + worker.frozen_for + limit;
    let kept_until = snapshot
        .holds
        .iter()
        .filter(|hold| hold.kind == HoldKind::KeepAwake)
        .filter_map(|hold| hold.until)
        .max();
    let extended = kept_until.map_or(base, |until| until.clamp(base, base + policy.runtime_extension_max));
    let announce = |deadline, is_fyi| Announcement {
        kind: WarningKind::MaxRuntime,
        deadline,
        limit,
        levels: &policy.warn_runtime_at,
        notice: policy.notice(limit),
        warned: snapshot.runtime_warned,
        is_fyi,
    };
    match snapshot.exempt.max_runtime {
        None => {
            let plan = announce(extended, false).plan(now);
            let ends_at = if policy.auto_pause { plan.happens_at } else { extended };
            Limit { ends_at: Some(ends_at), warning: plan.due, next_warning_at: plan.next_at }
        }
        // Spared for good: told for information, never stopped.
        Some(Expiry::Never) => {
            let plan = announce(extended, true).plan(now);
            Limit { ends_at: None, warning: plan.due, next_warning_at: plan.next_at }
        }
        // Spared for a time whose end is known: the real warning is sent ahead of that end.
        Some(Expiry::At(end)) => {
            let real = announce(extended.max(end), false).plan(now);
            let fyi = announce(extended, true).plan(now);
            Limit {
                ends_at: Some(real.happens_at),
                warning: real.due.or(fyi.due.filter(|_| end > now)),
                next_warning_at: earlier(real.next_at, fyi.next_at),
            }
        }
    }
}

/// How far ahead a forced window is looked for.
const AHEAD: Duration = Duration::from_hours(24);

/// A sleep window with `force`: once for each opening, so that whoever resumes the worker within the
/// window keeps it.
pub(super) fn forced_schedule(snapshot: &Snapshot<'_>, policy: &Policy, now: Timestamp) -> Limit {
    let (Some(schedule), Status::Running { since }, false) =
        (&policy.schedule, &snapshot.worker.status, policy.protected)
    else {
        return Limit::default();
    };
    // A window that closed again while nobody looked is over.
    let is_open = schedule.at(now).sleep == Some(crate::schedule::Sleep::Forced);
    let Some((opens_at, _)) = schedule
        .openings((*since).max(now - AHEAD), now + AHEAD)
        .filter(|(_, window)| matches!(window.effect, Effect::Sleep { force: true }))
        .find(|(opens_at, _)| *opens_at > now || is_open)
    else {
        return Limit::default();
    };
    let plan = Announcement {
        kind: WarningKind::Schedule,
        deadline: opens_at,
        limit: policy.min_notice,
        levels: &[],
        notice: policy.min_notice,
        warned: snapshot.schedule_warned,
        is_fyi: false,
    }
    .plan(now);
    let ends_at = if policy.auto_pause { plan.happens_at } else { opens_at };
    Limit { ends_at: Some(ends_at), warning: plan.due, next_warning_at: plan.next_at }
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
