//! The earliest pause if nothing more happens.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::notice::{Announcement, Plan, Warned, Warning, WarningKind};
use super::{Held, Snapshot, Timeout, Use};
use crate::clock::Timestamp;
use crate::evidence::Streak;
use crate::policy::Policy;
use crate::policy::exemption::{Exempt, Expiry};
use crate::reason::SleepMode;
use crate::schedule::Schedule;
use crate::status::StatusKind;
use crate::worker::Worker;

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

/// Notice comes before a stop, before a scale-down, and before a freeze of a worker that has no router
/// port: a routed freeze is back before anybody notices, and is announced when it happens. In observe mode
/// nothing happens, so there is nothing to give notice of.
pub(super) fn needs_notice(worker: &Worker, policy: &Policy, snapshot: &Snapshot<'_>) -> bool {
    let deletes = policy.scale_down && snapshot.can_scale_down;
    let is_seamless = worker.terms.sleep == SleepMode::Freeze && worker.is_routed && !deletes;
    policy.auto_pause && !is_seamless
}

/// What the earliest pause depends on.
pub(super) struct Aim<'a> {
    pub(super) now: Timestamp,
    pub(super) timeout: &'a Timeout,
    pub(super) interval: Duration,
    pub(super) window: u32,
    pub(super) streak: Streak,
    pub(super) used: Use,
    pub(super) baseline: Timestamp,
    pub(super) held: Held,
    pub(super) schedule: Option<&'a Schedule>,
    /// The policy whose notice applies; `None` where none is due.
    pub(super) notice: Option<&'a Policy>,
    pub(super) warned: Option<Warned>,
    pub(super) exempt: Exempt,
}

/// The earliest pause and the warnings before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) pause_at: Option<Timestamp>,
    pub(super) blocked_by: Option<Blocker>,
    pub(super) warning: Option<Warning>,
    pub(super) next_warning_at: Option<Timestamp>,
}

/// A schedule that has not let go after this many changes never will.
const MOST_CHANGES: usize = 64;

impl Aim<'_> {
    pub(super) fn take(&self) -> Taken {
        let mut from = self.now;
        for _ in 0..MOST_CHANGES {
            let window = self.schedule.map(|schedule| schedule.at(from));
            let until = window.and_then(|window| window.next_change_at);
            let keeps_awake = window.is_some_and(|window| window.keep_awake_until.is_some());
            let timeout = self.timeout.with(window.and_then(|window| window.idle_timeout));
            if let (false, Some(timeout)) = (keeps_awake, timeout) {
                let deadline = self.deadline(timeout).max(from);
                let taken = self.announced(deadline, timeout);
                if until.is_none_or(|until| taken.pause_at.is_some_and(|at| at < until)) {
                    return taken;
                }
            }
            match until {
                Some(next) => from = next,
                None => break,
            }
        }
        Taken { blocked_by: Some(Blocker::ScheduleAlways), ..Taken::default() }
    }

    /// When idleness and holds let it sleep. This is the key of its warnings, so the window is not in it:
    /// a check that comes a moment late must not arm them again.
    fn deadline(&self, timeout: Duration) -> Timestamp {
        // Whoever is active or unknown now starts the clock now at the earliest.
        let starts_now = (self.used != Use::Quiet).then_some(self.now);
        let start = self.baseline.max(self.held.restarts_at.max(starts_now).unwrap_or(self.baseline));
        (start + timeout).max(self.held.until.unwrap_or(Timestamp::EPOCH))
    }

    /// When the streak can fill its window.
    fn window_full_at(&self) -> Timestamp {
        let missing = self.window.saturating_sub(self.streak.count);
        if missing == 0 {
            return self.now;
        }
        let next = self.streak.counted_at.map_or(self.now, |counted| (counted + self.interval).max(self.now));
        next + self.interval.saturating_mul(missing - 1)
    }

    fn announced(&self, deadline: Timestamp, timeout: Duration) -> Taken {
        let full_at = self.window_full_at();
        let Some(policy) = self.notice else {
            return Taken { pause_at: Some(deadline.max(full_at).max(self.now)), ..Taken::default() };
        };
        let plan = self.plan(policy, deadline, timeout, false);
        Taken {
            pause_at: Some(plan.happens_at.max(full_at).max(self.now)),
            blocked_by: None,
            warning: plan.due,
            next_warning_at: plan.next_at,
        }
    }

    fn plan(&self, policy: &Policy, deadline: Timestamp, timeout: Duration, is_fyi: bool) -> Plan {
        let kind = if policy.scale_down { WarningKind::ScaleDown } else { WarningKind::Idle };
        Announcement {
            kind,
            deadline,
            limit: timeout,
            levels: &policy.warn_at,
            notice: policy.notice(timeout),
            warned: self.warned,
            is_fyi,
        }
        .plan(self.now)
    }

    /// The exempt are told what would have happened, for information.
    pub(super) fn fyi(&self, policy: &Policy) -> Option<Warning> {
        self.exempt.idle_timeout?;
        let timeout = self.timeout.with(None)?;
        self.plan(policy, self.baseline + timeout, timeout, true).due
    }
}
