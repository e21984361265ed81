//! The verdict: why a worker is awake, why it is not, and when to look again.
//!
//! [`judge`] is pure and reports *all* reasons, never just the first. It returns codes and numbers
//! without allocating, so that a million workers can be judged in a second; sentences are made for
//! display, by [`explain`](fn@explain).

mod baseline;
mod explain;
mod limit;
mod notice;
mod reasons;
mod target;
#[cfg(test)]
mod tests;
mod weigh;

use core::time::Duration;

use serde::{Deserialize, Serialize};

pub use baseline::{Baseline, BaselineSource};
pub use explain::{Explanation, SignalView, explain};
pub use notice::{Warned, Warning, WarningKind};
pub use reasons::Reason;
pub use target::Blocker;
pub use weigh::{Signals, Use};

use crate::clock::Timestamp;
use crate::evidence::{Evidence, Streak};
use crate::hold::{Hold, HoldKind, HoldKinds};
use crate::policy::Policy;
use crate::policy::exemption::{Exempt, Expiry};
use crate::reason::{PauseReason, SleepMode};
use crate::status::{Status, StatusKind};
use crate::worker::Worker;

/// Everything that a verdict looks at.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The worker.
    pub worker: &'a Worker,
    /// What is known about its use.
    pub evidence: &'a Evidence,
    /// Its stored holds, live or over.
    pub holds: &'a [Hold],
    /// When a hold that restarts the clock last ended and was swept.
    pub hold_ended_at: Option<Timestamp>,
    /// What it is exempt from.
    pub exempt: Exempt,
    /// Automatic actions are held back for the whole fleet.
    pub is_braked: bool,
    /// When this check began to read; `None`: somebody looks between checks, and the last readings stand.
    pub check_began_at: Option<Timestamp>,
    /// The warning about idleness that was sent last.
    pub idle_warned: Option<Warned>,
    /// The warning about `max_runtime` that was sent last.
    pub runtime_warned: Option<Warned>,
    /// The warning about a forced schedule that was sent last.
    pub schedule_warned: Option<Warned>,
    /// The fleet has one more worker than it needs and its cooldown is over.
    pub can_scale_down: bool,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing.
    None,
    /// Ask the agent and judge again: nobody is warned or put to sleep on old news.
    AskAgent,
    /// Put it to sleep.
    Sleep { reason: PauseReason },
    /// Observe mode: write down that it would have been put to sleep.
    WouldSleep { reason: PauseReason },
    /// Drain and delete it.
    ScaleDown,
    /// Stop it: it has been frozen for `stop_after`.
    StopAfter,
    /// Delete it: it has been asleep for `terminate_after`.
    TerminateAfter,
}

/// The decision for a worker now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "a verdict reports every condition on its own")]
pub struct Verdict {
    /// When it was made.
    pub at: Timestamp,
    /// It was made in a check, on fresh readings; only then may it be acted on.
    pub is_from_check: bool,
    /// What all signals together say.
    pub used: Use,
    /// Which signal says what.
    pub signals: Signals,
    /// From when idleness is counted.
    pub baseline: Baseline,
    /// For how long it has been idle.
    #[serde(with = "crate::units::duration")]
    pub idle_for: Duration,
    /// How long it must be idle, flap guard and schedule included; `None`: never.
    #[serde(with = "crate::units::optional_duration")]
    pub idle_timeout: Option<Duration>,
    /// By how much the flap guard lengthens the idle timeout.
    pub flap_multiplier: u32,
    /// Quiet checks so far, this one included.
    pub streak: Streak,
    /// How many are needed.
    pub window: u32,
    /// Idle long enough and often enough.
    pub is_idle: bool,
    /// Every layer lets Drowse act.
    pub auto_pause_enabled: bool,
    /// What kinds of holds keep it awake.
    pub holds: HoldKinds,
    /// Until when a snooze or a keep-awake protects it.
    pub snooze_until: Option<Timestamp>,
    /// The fleet's brake is engaged.
    pub is_braked: bool,
    /// It is never touched.
    pub is_protected: bool,
    /// What it is doing.
    pub status: StatusKind,
    /// Idle, enabled, not held, not braked and running.
    pub eligible: bool,
    /// The earliest pause if nothing more happens.
    pub target_pause_at: Option<Timestamp>,
    /// Why there is none.
    pub target_pause_blocked_by: Option<Blocker>,
    /// When `max_runtime` stops it.
    pub runtime_ends_at: Option<Timestamp>,
    /// A warning about idleness that is due.
    pub idle_warning: Option<Warning>,
    /// A warning about `max_runtime` that is due.
    pub runtime_warning: Option<Warning>,
    /// A warning about a forced schedule that is due.
    pub schedule_warning: Option<Warning>,
    /// It has been unknown for so long that somebody should be told.
    pub unknown_alert: bool,
    /// What is to be done now.
    pub action: Action,
    /// When to look again.
    pub next_check_at: Timestamp,
}

/// How often somebody is told that a worker is still unknown.
const ALERT_AGAIN_AFTER: Duration = Duration::from_hours(24);

/// Decides about one worker: why awake, why not, when next.
pub fn judge(snapshot: &Snapshot<'_>, policy: &Policy, now: Timestamp) -> Verdict {
    let worker = snapshot.worker;
    let status = worker.status.kind();
    let needs = policy.needs(worker.nature());
    let interval = policy.interval(&needs);
    let (signals, used) = weigh::weigh(snapshot, policy, &needs);
    let streak = weigh::streak(snapshot, used, interval, now);

    let window_now = policy.schedule.as_ref().map(|schedule| schedule.at(now));
    let flap_multiplier = if policy.flap_guard { worker.flap.multiplier() } else { 1 };
    let timeout = Timeout { policy: policy.idle_timeout, flap_multiplier };
    let idle_timeout = timeout.with(window_now.as_ref().and_then(|window| window.idle_timeout));

    let (holds, held) = live_holds(snapshot, policy, window_now.as_ref(), now);
    let baseline = baseline::baseline(snapshot, &needs, now);
    let idle_for = now.since(baseline.at);
    // `>=`: a worker that has been quiet for exactly the timeout is idle. The page's countdown reaches
    // zero at the same moment.
    let is_idle = used == Use::Quiet
        && streak.count >= policy.window
        && idle_timeout.is_some_and(|timeout| idle_for >= timeout);
    let is_running = status == StatusKind::Running;
    let is_clear = !snapshot.is_braked && !policy.protected;
    let eligible = is_idle && policy.auto_pause && holds.is_empty() && is_clear && is_running;

    let aim = target::Aim {
        now,
        timeout: &timeout,
        interval,
        window: policy.window,
        streak,
        used,
        baseline: baseline.at,
        held,
        schedule: policy.schedule.as_deref(),
        notice: target::needs_notice(worker, policy, snapshot).then_some(policy),
        warned: snapshot.idle_warned,
        exempt: snapshot.exempt,
    };
    let blocker = target::blocker(snapshot, policy);
    let idle = if blocker.is_none() { aim.take() } else { target::Taken::default() };
    let runtime = limit::max_runtime(snapshot, policy, now);
    let forced = limit::forced_schedule(snapshot, policy, now);

    // FYI for the exempt, a real warning for the others; neither on old news, nor while braked.
    let warns = snapshot.check_began_at.is_some() && is_running && policy.auto_pause && is_clear;
    let idle_warning = if used == Use::Quiet { aim.fyi(policy).or(idle.warning) } else { None };
    let is_due = eligible && idle.pause_at.is_some_and(|at| at <= now);

    let mut verdict = Verdict {
        at: now,
        is_from_check: snapshot.check_began_at.is_some(),
        used,
        signals,
        baseline,
        idle_for,
        idle_timeout,
        flap_multiplier,
        streak,
        window: policy.window,
        is_idle,
        auto_pause_enabled: policy.auto_pause,
        holds,
        snooze_until: held.snooze_until,
        is_braked: snapshot.is_braked,
        is_protected: policy.protected,
        status,
        eligible,
        target_pause_at: idle.pause_at,
        target_pause_blocked_by: blocker.or(idle.blocked_by),
        runtime_ends_at: runtime.ends_at,
        idle_warning: idle_warning.filter(|_| warns),
        runtime_warning: runtime.warning.filter(|_| warns),
        schedule_warning: forced.warning.filter(|_| warns),
        unknown_alert: alert_due_at(snapshot, policy, used, now).is_some_and(|due| due <= now),
        action: Action::None,
        next_check_at: now,
    };
    verdict.action = decide(snapshot, policy, &verdict, is_due, &runtime, &forced, now);
    if verdict.action == Action::AskAgent {
        verdict.idle_warning = None;
    }
    verdict.next_check_at = next_check(
        snapshot,
        &verdict,
        interval,
        [
            idle.next_warning_at,
            runtime.next_warning_at,
            forced.next_warning_at,
            forced.ends_at,
            held.next_end_at,
            window_now.and_then(|window| window.next_change_at),
            alert_due_at(snapshot, policy, used, now),
        ],
        now,
    );
    verdict
}

/// The idle timeout under the flap guard and the schedule.
struct Timeout {
    policy: Option<Duration>,
    flap_multiplier: u32,
}

impl Timeout {
    /// The timeout while a window shortens it to `shortened`. A window never lengthens it, and "never"
    /// stays never.
    fn with(&self, shortened: Option<Duration>) -> Option<Duration> {
        let timeout = self.policy?.min(shortened.unwrap_or(Duration::MAX));
        Some(timeout.saturating_mul(self.flap_multiplier))
    }
}

/// What the live holds mean for the time of the next pause.
#[derive(Clone, Copy, Default)]
struct Held {
    /// The clock starts afresh no sooner than this.
    restarts_at: Option<Timestamp>,
    /// Sleep is held back until this.
    until: Option<Timestamp>,
    /// Until when a snooze or a keep-awake protects it.
    snooze_until: Option<Timestamp>,
    /// The next end of a hold that is known.
    next_end_at: Option<Timestamp>,
}

impl Held {
    fn add(&mut self, kind: HoldKind, until: Option<Timestamp>, now: Timestamp) {
        // A hold whose end nobody knows counts as ending now: the target is the *earliest* pause.
        let end = until.unwrap_or(now);
        if kind.end_restarts_clock() {
            self.restarts_at = self.restarts_at.max(Some(end));
        } else {
            self.until = self.until.max(Some(end));
        }
        if matches!(kind, HoldKind::Snooze | HoldKind::KeepAwake) {
            self.snooze_until = self.snooze_until.max(until);
        }
        if let Some(end) = until {
            self.next_end_at = Some(self.next_end_at.map_or(end, |next| next.min(end)));
        }
    }
}

/// The holds that are live at `now`: the stored ones, and those that follow from policy.
fn live_holds(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    window: Option<&crate::schedule::Now>,
    now: Timestamp,
) -> (HoldKinds, Held) {
    let mut kinds = HoldKinds::default();
    let mut held = Held::default();
    for hold in snapshot.holds.iter().filter(|hold| hold.is_live(now)) {
        kinds.insert(hold.kind);
        held.add(hold.kind, hold.until, now);
    }
    if let Some(expiry) = snapshot.exempt.idle_timeout {
        kinds.insert(HoldKind::Exemption);
        let end = if let Expiry::At(end) = expiry { Some(end) } else { None };
        held.add(HoldKind::Exemption, end, now);
    }
    if let Some(started) = snapshot.worker.boot_started_at {
        let end = started + policy.startup_grace;
        if end > now {
            kinds.insert(HoldKind::StartupGrace);
            held.add(HoldKind::StartupGrace, Some(end), now);
        }
    }
    if let Some(until) = window.and_then(|window| window.keep_awake_until) {
        kinds.insert(HoldKind::Schedule);
        held.add(HoldKind::Schedule, Some(until), now);
    }
    (kinds, held)
}

/// What is to be done, the strongest first: a limit, then idleness, then sinking deeper.
fn decide(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    verdict: &Verdict,
    is_due: bool,
    runtime: &limit::Limit,
    forced: &limit::Limit,
    now: Timestamp,
) -> Action {
    let worker = snapshot.worker;
    match &worker.status {
        Status::Paused { since, sleep } => {
            let sinks = sleep.reason.sinks_to_stopped()
                && worker.terms.sleep == SleepMode::Freeze
                && policy.stop_after.is_some_and(|after| now >= *since + after);
            let ends = policy.terminate_after.is_some_and(|after| now >= sleep.at + after);
            match (ends, sinks) {
                (_, _) if policy.protected || !policy.auto_pause || snapshot.is_braked => Action::None,
                (true, _) => Action::TerminateAfter,
                (false, true) if verdict.holds_back_sinking() => Action::None,
                (false, true) => Action::StopAfter,
                (false, false) => Action::None,
            }
        }
        Status::Stopped { sleep, .. } => {
            let ends = policy.terminate_after.is_some_and(|after| now >= sleep.at + after);
            if ends && policy.auto_pause && !policy.protected && !snapshot.is_braked {
                Action::TerminateAfter
            } else {
                Action::None
            }
        }
        Status::Running { .. } => {
            if !verdict.is_from_check || policy.protected || snapshot.is_braked {
                return Action::None;
            }
            let asleep = |reason| {
                if policy.auto_pause { Action::Sleep { reason } } else { Action::WouldSleep { reason } }
            };
            if runtime.is_due(now) {
                return asleep(PauseReason::MaxRuntime);
            }
            if forced.is_due(now) {
                return asleep(PauseReason::Schedule);
            }
            // In observe mode nothing is warned of, so there is no notice to wait for.
            let would = verdict.is_idle && !policy.auto_pause && verdict.holds.is_empty();
            let gentle = policy.schedule.as_ref().is_some_and(|schedule| {
                verdict.used == Use::Quiet
                    && verdict.streak.count >= verdict.window
                    && verdict.holds.is_empty()
                    && schedule.at(now).sleep == Some(crate::schedule::Sleep::Gentle)
            });
            let acts = is_due || would || gentle;
            if (acts || verdict.idle_warning.is_some_and(|warning| !warning.is_fyi))
                && weigh::agent_is_behind(snapshot, policy)
            {
                Action::AskAgent
            } else if is_due && policy.scale_down && snapshot.can_scale_down {
                Action::ScaleDown
            } else if is_due || would {
                asleep(PauseReason::IdleTimeout)
            } else if gentle {
                asleep(PauseReason::Schedule)
            } else {
                Action::None
            }
        }
        Status::Provisioning { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => Action::None,
    }
}

impl Verdict {
    /// A frozen worker with a live hold stays frozen rather than lose its memory.
    fn holds_back_sinking(&self) -> bool {
        !self.holds.is_empty()
    }
}

/// When somebody should be told that the worker is unknown.
fn alert_due_at(snapshot: &Snapshot<'_>, policy: &Policy, used: Use, now: Timestamp) -> Option<Timestamp> {
    if used != Use::Unknown || snapshot.worker.status.kind() != StatusKind::Running {
        return None;
    }
    let (since, alerted_at) =
        snapshot.evidence.unknown.map_or((now, None), |unknown| (unknown.since, unknown.alerted_at));
    Some(alerted_at.map_or(since + policy.unknown_alert_after, |alerted| alerted + ALERT_AGAIN_AFTER))
}

/// The earliest of everything that could change the verdict; always after `now`.
fn next_check(
    snapshot: &Snapshot<'_>,
    verdict: &Verdict,
    interval: Duration,
    others: [Option<Timestamp>; 7],
    now: Timestamp,
) -> Timestamp {
    let worker = snapshot.worker;
    let last_check = if verdict.is_from_check { Some(now) } else { snapshot.evidence.last_check_at };
    let regular = last_check.map_or(now, |last| last + interval);
    let regular = if regular > now { regular } else { now + interval };
    let sleep_ends = worker.status.sleep().map(|sleep| (sleep, worker.status.since()));
    let sinks_at = match (&worker.status, sleep_ends) {
        (Status::Paused { .. }, Some((sleep, since))) if sleep.reason.sinks_to_stopped() => {
            worker.terms.stop_after.map(|after| since + after)
        }
        (_, _) => None,
    };
    let ends_at = sleep_ends
        .filter(|_| matches!(verdict.status, StatusKind::Paused | StatusKind::Stopped))
        .and_then(|(sleep, _)| worker.terms.terminate_after.map(|after| sleep.at + after));
    others
        .into_iter()
        .chain([
            verdict.target_pause_at,
            verdict.runtime_ends_at,
            sinks_at,
            ends_at,
            worker.status.deadline(),
        ])
        .flatten()
        .filter(|at| *at > now)
        .fold(regular, Timestamp::min)
}
