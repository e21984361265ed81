//! The earliest pause for idleness if nothing more happens, and the one that a schedule asks for gently.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::limit::{self, Limit};
use super::notice::{Announcement, Warned, Warning, WarningKind};
use super::{Held, Snapshot, Timeout, Use};
use crate::clock::Timestamp;
use crate::evidence::Streak;
use crate::policy::Policy;
use crate::policy::exemption::Expiry;
use crate::reason::{PauseReason, SleepMode};
use crate::schedule::{self, Effect, Schedule};
use crate::status::StatusKind;

/// Why no pause is in sight at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// It is not running.
    NotRunning,
    /// Its idle timeout is "never".
    IdleTimeoutNever,
    /// It is protected.
    Protected,
    /// It is exempt for good.
    PermanentExemption,
    /// Its schedule keeps it awake round the clock.
    ScheduleAlways,
}

impl Blocker {
    pub const fn code(self) -> &'static str {
        match self {
            Blocker::NotRunning => "not_running",
            Blocker::IdleTimeoutNever => "idle_timeout_never",
            Blocker::Protected => "protected",
            Blocker::PermanentExemption => "permanent_exemption",
            Blocker::ScheduleAlways => "schedule_always",
        }
    }
}

/// Says that no pause is in sight, and why.
pub(super) fn blocker(snapshot: &Snapshot<'_>, policy: &Policy) -> Option<Blocker> {
    if snapshot.worker.status.kind() != StatusKind::Running {
        Some(Blocker::NotRunning)
    } else if policy.protected {
        Some(Blocker::Protected)
    } else if policy.idle_timeout.is_none() {
        Some(Blocker::IdleTimeoutNever)
    } else if snapshot.exempt.idle_timeout == Some(Expiry::Never) {
        Some(Blocker::PermanentExemption)
    } else {
        None
    }
}

/// Whether a pause comes with notice.
///
/// Notice comes before a stop, before a deletion, and before a freeze of a worker that has no router port: a
/// routed freeze is back before anybody notices, and is announced when it happens. In observe mode nothing
/// happens, so there is nothing to give notice of.
pub(super) fn needs_notice(snapshot: &Snapshot<'_>, policy: &Policy, deletes: bool) -> bool {
    let worker = snapshot.worker;
    let is_seamless = worker.terms.sleep == SleepMode::Freeze && worker.is_routed && !deletes;
    policy.auto_pause && !is_seamless
}

/// What the earliest pause depends on.
pub(super) struct Aim<'a> {
    pub(super) now: Timestamp,
    pub(super) policy: &'a Policy,
    pub(super) timeout: &'a Timeout,
    pub(super) interval: Duration,
    pub(super) streak: Streak,
    pub(super) used: Use,
    pub(super) baseline: Timestamp,
    pub(super) held: Held,
    /// The schedule, and what it says now.
    pub(super) schedule: Option<(&'a Schedule, schedule::Now)>,
    /// The worker would be deleted rather than put to sleep.
    pub(super) deletes: bool,
    /// Notice is due.
    pub(super) needs_notice: bool,
    pub(super) warned: Option<Warned>,
    /// When the worker is looked at next, whatever comes of this.
    pub(super) next_look_at: Timestamp,
}

/// The earliest pause and the warnings before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) pause_at: Option<Timestamp>,
    pub(super) blocked_by: Option<Blocker>,
    pub(super) warning: Option<Warning>,
    pub(super) next_warning_at: Option<Timestamp>,
    /// For when it stands announced.
    pub(super) announced_for: Option<Timestamp>,
}

/// A schedule repeats every week, give or take a clock change: what has not let go after three never will.
const LONGEST_WAIT: Duration = Duration::from_hours(21 * 24);

impl Aim<'_> {
    /// The earliest pause for idleness.
    pub(super) fn idle(&self) -> Taken {
        let Some(usual) = self.timeout.with(None) else {
            return Taken::default();
        };
        let Some((schedule, now)) = self.schedule else {
            return self.announced(self.deadline(usual), usual);
        };
        // Before this no window can let it sleep, so that a long hold is not walked through day by day.
        let start = self.start().max(self.held.until.unwrap_or(self.now));
        let shortest = shortest(schedule, self.timeout).unwrap_or(usual);
        let mut from = self.now.max(self.deadline(shortest)).max(start);
        let mut window = if from == self.now { now } else { schedule.at(from) };
        let give_up_at = self.deadline(usual).max(from) + LONGEST_WAIT;
        while from < give_up_at {
            let until = window.next_change_at;
            if let (None, Some(timeout)) = (window.keep_awake_until, self.timeout.with(window.idle_timeout)) {
                let deadline = self.deadline(timeout);
                // The deadline is the key of the warnings: a check that comes a moment late must not move
                // it, so what is over by now stays where it was.
                let deadline = if from > self.now { deadline.max(from) } else { deadline };
                let taken = self.announced(deadline, timeout);
                if until.is_none_or(|until| taken.pause_at.is_some_and(|at| at < until)) {
                    return taken;
                }
            }
            match until {
                Some(next) => from = next,
                None => break,
            }
            window = schedule.at(from);
        }
        Taken { blocked_by: Some(Blocker::ScheduleAlways), ..Taken::default() }
    }

    /// The pause at the opening of a window that puts to sleep whoever is quiet and not held.
    pub(super) fn gentle(&self, snapshot: &Snapshot<'_>) -> Taken {
        let held_until = self.held.until.max(self.held.restarts_at).unwrap_or(self.now).max(self.now);
        limit::first_sleep(snapshot, self.policy, schedule::Sleep::Gentle, held_until, |announcement| {
            let deadline = announcement.deadline;
            // As for idleness, what is over by now keeps its key.
            let deadline = if held_until > self.now { deadline.max(held_until) } else { deadline };
            let taken = self.planned(deadline, &Announcement { deadline, ..announcement });
            (taken.pause_at.unwrap_or(deadline), taken)
        })
        .unwrap_or_default()
    }

    /// From when the clock runs: now at the earliest while something that restarts it holds the worker.
    fn start(&self) -> Timestamp {
        self.baseline.max(self.held.restarts_at.unwrap_or(self.baseline))
    }

    /// When idleness and holds let it sleep. The window is not in it: see [`Aim::idle`].
    fn deadline(&self, timeout: Duration) -> Timestamp {
        (self.start() + timeout).max(self.held.until.unwrap_or(Timestamp::EPOCH))
    }

    /// When the streak can fill its window. Every look at which it may rise is taken.
    fn window_full_at(&self) -> Timestamp {
        let missing = self.policy.window.saturating_sub(self.streak.count);
        if missing == 0 {
            return self.now;
        }
        let next = self.streak.counted_at.map_or(self.now, |counted| (counted + self.interval).max(self.now));
        next + self.interval.saturating_mul(missing - 1)
    }

    fn announced(&self, deadline: Timestamp, timeout: Duration) -> Taken {
        self.planned(deadline, &self.announcement(deadline, timeout, false))
    }

    fn planned(&self, deadline: Timestamp, announcement: &Announcement<'_>) -> Taken {
        // Whoever is active or unknown now can be found quiet at the next look at the earliest.
        let quiet_at = if self.used == Use::Quiet { self.now } else { self.next_look_at };
        let ready_at = self.window_full_at().max(quiet_at);
        if !self.needs_notice {
            return Taken { pause_at: Some(deadline.max(ready_at)), ..Taken::default() };
        }
        let plan = announcement.plan(self.now, quiet_at);
        Taken {
            pause_at: Some(plan.happens_at.max(ready_at)),
            blocked_by: None,
            // Nobody is told of a time while something holds the worker that has no end.
            warning: plan.due.filter(|_| self.used == Use::Quiet && !self.held.is_open_ended),
            next_warning_at: plan.next_at,
            announced_for: plan.announced_for.filter(|_| !self.held.is_open_ended),
        }
    }

    fn announcement(&self, deadline: Timestamp, timeout: Duration, is_fyi: bool) -> Announcement<'_> {
        Announcement {
            kind: if self.deletes { WarningKind::ScaleDown } else { WarningKind::Idle },
            deadline,
            limit: timeout,
            levels: &self.policy.warn_at,
            notice: self.policy.notice(timeout),
            warned: self.warned,
            is_fyi,
        }
    }

    /// The exempt are told what would have happened, for information. In earnest they are warned after the
    /// end, which restarts the clock.
    fn fyi(&self, taken: Taken) -> Taken {
        let shortened = self.schedule.and_then(|(_, now)| now.idle_timeout);
        let Some(timeout) = self.timeout.with(shortened).filter(|_| self.needs_notice) else {
            return Taken { warning: None, next_warning_at: None, announced_for: None, ..taken };
        };
        let plan = self.announcement(self.baseline + timeout, timeout, true).plan(self.now, self.now);
        Taken {
            warning: plan.due.filter(|_| self.used == Use::Quiet),
            next_warning_at: plan.next_at,
            announced_for: plan.announced_for,
            ..taken
        }
    }
}

/// The shortest timeout that any window of a schedule sets.
fn shortest(schedule: &Schedule, timeout: &Timeout) -> Option<Duration> {
    let windows = schedule.windows.iter().filter_map(|window| match window.effect {
        Effect::IdleTimeout(shortened) => Some(shortened),
        Effect::KeepAwake { .. } | Effect::Sleep { .. } => None,
    });
    timeout.with(windows.min())
}

/// The two sleeps that rest on nobody using the worker.
pub(super) struct Sleeps {
    /// For idleness.
    pub(super) idle: Taken,
    /// By a window that puts to sleep who is quiet and not held.
    pub(super) gentle: Taken,
}

impl Sleeps {
    /// Both, and when to look next for all but the pause itself.
    pub(super) fn foresee(
        snapshot: &Snapshot<'_>,
        policy: &Policy,
        mut aim: Aim<'_>,
        blocker: Option<Blocker>,
    ) -> (Self, Timestamp) {
        let sleeps = Self::find(snapshot, policy, &aim, blocker);
        let Some(warns_at) = sleeps.next_warning_at(aim.now).filter(|at| *at < aim.next_look_at) else {
            return (sleeps, aim.next_look_at);
        };
        aim.next_look_at = warns_at;
        if aim.used == Use::Quiet {
            return (sleeps, warns_at);
        }
        // A warning that is due before the next look is itself a look, at which the worker may be quiet.
        (Self::find(snapshot, policy, &aim, blocker), warns_at)
    }

    /// The earliest pause of all, with its reason; of those that fall together, the one that is acted on.
    pub(super) fn earliest(
        &self,
        runtime: &Limit,
        forced: &Limit,
        deletes: bool,
        now: Timestamp,
    ) -> Option<(Timestamp, PauseReason)> {
        let idle = if deletes { PauseReason::ScaleDown } else { PauseReason::IdleTimeout };
        [
            (runtime.ends_at, PauseReason::MaxRuntime),
            (forced.ends_at, PauseReason::Schedule),
            (self.idle.pause_at, idle),
            (self.gentle.pause_at, PauseReason::Schedule),
        ]
        .into_iter()
        // What is overdue is due now, and of several the strongest is acted on.
        .filter_map(|(at, reason)| Some((at?.max(now), reason)))
        .min_by_key(|(at, _)| *at)
    }

    fn find(snapshot: &Snapshot<'_>, policy: &Policy, aim: &Aim<'_>, blocker: Option<Blocker>) -> Self {
        let mut idle = if blocker.is_none() { aim.idle() } else { Taken::default() };
        if snapshot.exempt.idle_timeout.is_some() {
            idle = aim.fyi(idle);
        }
        let is_spared = snapshot.exempt.idle_timeout == Some(Expiry::Never);
        let gentle = if policy.schedule.is_none() || is_spared {
            Taken::default()
        } else {
            // The schedule never deletes.
            Aim { needs_notice: needs_notice(snapshot, policy, false), ..*aim }.gentle(snapshot)
        };
        Self { idle, gentle }
    }

    fn next_warning_at(&self, now: Timestamp) -> Option<Timestamp> {
        [self.idle.next_warning_at, self.gentle.next_warning_at]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .min()
    }
}
