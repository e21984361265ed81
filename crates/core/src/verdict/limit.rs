//! Limits that do not rest on idleness: `max_runtime` and schedules with `force`.

use core::time::Duration;

use super::notice::{Announcement, Warning, WarningKind};
use super::{Snapshot, sooner};
use crate::clock::Timestamp;
use crate::hold::HoldKind;
use crate::policy::Policy;
use crate::policy::exemption::Expiry;
use crate::schedule::{self, Effect, Schedule};
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
    /// For when it stands announced.
    pub(super) announced_for: Option<Timestamp>,
    /// It would have acted at that time, which is over, but for an exemption.
    pub(super) spared_at: Option<Timestamp>,
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
        .map(|hold| hold.until.unwrap_or(Timestamp::MAX))
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
    let real = |deadline| {
        let plan = announce(deadline, false).plan(now, now);
        // In observe mode nobody is warned, so there is no notice to wait for.
        let ends_at = if policy.auto_pause { plan.happens_at } else { deadline };
        Limit {
            ends_at: Some(ends_at),
            warning: plan.due,
            next_warning_at: plan.next_at,
            announced_for: plan.announced_for,
            spared_at: None,
        }
    };
    let spared_at = (now >= extended).then_some(extended);
    let fyi = || {
        let plan = announce(extended, true).plan(now, now);
        Limit {
            ends_at: None,
            warning: plan.due,
            next_warning_at: plan.next_at,
            announced_for: plan.announced_for,
            spared_at,
        }
    };
    match snapshot.exempt.max_runtime {
        None => real(extended),
        // Spared for good: told for information, never stopped.
        Some(Expiry::Never) => fyi(),
        // Spared for a time whose end is known: the real warning is sent ahead of that end, and from then on
        // there is no more talk of mere information.
        Some(Expiry::At(end)) => {
            let limit = Limit { spared_at, ..real(extended.max(end)) };
            if announce(extended.max(end), false).first_at() <= now {
                return limit;
            }
            let fyi = fyi();
            Limit {
                warning: fyi.warning,
                next_warning_at: sooner(limit.next_warning_at, fyi.next_warning_at),
                announced_for: limit.announced_for.or(fyi.announced_for),
                ..limit
            }
        }
    }
}

/// How far a window that puts to sleep is looked for: every weekly window opens within it.
const WEEK: Duration = Duration::from_hours(8 * 24);

/// When windows of this firmness put the worker to sleep that may sleep from `from` on: at the opening of
/// the one that is open then, and at those that follow.
///
/// Once for each opening, so that whoever resumes the worker within the window keeps it.
fn sleep_openings(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    sleep: schedule::Sleep,
    from: Timestamp,
) -> impl Iterator<Item = Timestamp> {
    let wanted = Effect::Sleep { force: sleep == schedule::Sleep::Forced };
    let schedule = policy.schedule.as_ref().filter(|schedule| {
        !policy.protected && schedule.windows.iter().any(|window| window.effect == wanted)
    });
    let running_since = match &snapshot.worker.status {
        Status::Running { since } => schedule.zip(Some(*since)),
        Status::Provisioning { .. }
        | Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => None,
    };
    running_since.into_iter().flat_map(move |(schedule, since)| {
        // A window that closed again while nobody looked is over.
        let is_open = schedule.at(from).sleep == Some(sleep);
        let after = if is_open { since.max(from - WEEK) } else { from };
        let of_kind = move |after, until| {
            let openings = schedule.openings(after, until).filter(move |(_, window)| window.effect == wanted);
            openings.map(|(opens_at, _)| opens_at)
        };
        of_kind(after, from).last().into_iter().chain(of_kind(from, from + WEEK))
    })
}

/// The first sleep of a window that is still open by then, with its announcement and plan.
pub(super) fn first_sleep<P>(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    sleep: schedule::Sleep,
    from: Timestamp,
    plan: impl Fn(Announcement<'static>) -> (Timestamp, P),
) -> Option<P> {
    sleep_openings(snapshot, policy, sleep, from).find_map(|opens_at| {
        let announcement = Announcement {
            kind: WarningKind::Schedule,
            deadline: opens_at,
            limit: policy.min_notice,
            levels: &[],
            notice: policy.min_notice,
            warned: snapshot.schedule_warned,
            is_fyi: false,
        };
        let (sleeps_at, planned) = plan(announcement);
        let is_open = |schedule: &Schedule| schedule.at(sleeps_at).sleep == Some(sleep);
        policy.schedule.as_deref().is_some_and(is_open).then_some(planned)
    })
}

/// A sleep window with `force`: whatever the worker does and whoever holds it.
pub(super) fn forced_schedule(snapshot: &Snapshot<'_>, policy: &Policy, now: Timestamp) -> Limit {
    first_sleep(snapshot, policy, schedule::Sleep::Forced, now, |announcement| {
        let plan = announcement.plan(now, now);
        let ends_at = if policy.auto_pause { plan.happens_at } else { announcement.deadline };
        let limit = Limit {
            ends_at: Some(ends_at),
            warning: plan.due,
            next_warning_at: plan.next_at,
            announced_for: plan.announced_for,
            spared_at: None,
        };
        (ends_at.max(now), limit)
    })
    .unwrap_or_default()
}
