//! The verdict: why a worker is awake, why it is not, and when to look again.
//!
//! [`judge`] is pure and reports *all* reasons, never just the first. It returns codes and numbers
//! without allocating, so that a million workers can be judged in a second; sentences are made for
//! display, by [`explain`](fn@explain).

mod action;
mod asleep;
mod baseline;
mod explain;
mod limit;
mod next;
mod notice;
mod reasons;
mod sink;
mod spared;
mod target;
mod weigh;

use core::time::Duration;

use serde::{Deserialize, Serialize};

pub use action::Action;
pub use baseline::{Baseline, BaselineSource};
pub use explain::{Explanation, SignalView, explain};
pub use notice::{Announced, Warned, Warning, WarningKind};
pub use reasons::Reason;
use sink::Sinking;
pub use spared::Spared;
pub use target::Blocker;
use target::Sleeps;
pub use weigh::{Signals, Use};

use crate::clock::Timestamp;
use crate::evidence::{Evidence, Streak, UnknownFor};
use crate::hold::{Hold, HoldKind, HoldKinds};
use crate::policy::Policy;
use crate::policy::exemption::{Exempt, Expiry};
use crate::reason::PauseReason;
use crate::schedule;
use crate::status::StatusKind;
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
    /// The driver showed it in this check, as it is believed to be. What sleeps sinks no deeper unseen.
    pub is_seen: bool,
    /// The warning about idleness that was sent last.
    pub idle_warned: Option<Warned>,
    /// The warning about `max_runtime` that was sent last.
    pub runtime_warned: Option<Warned>,
    /// The warning about a window that puts to sleep that was sent last.
    pub schedule_warned: Option<Warned>,
    /// The warning about `stop_after` that was sent last.
    pub stop_warned: Option<Warned>,
    /// The warning about `terminate_after` that was sent last.
    pub deletion_warned: Option<Warned>,
    /// The fleet has one more worker than it needs and its cooldown is over.
    pub can_scale_down: bool,
}

/// The decision for a worker now.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "a verdict reports every condition on its own")]
pub struct Verdict {
    /// When it was made.
    pub at: Timestamp,
    /// The beginning of the check that it was made in, on fresh readings; `None`: between checks, and nobody may act
    /// on it.
    pub check_began_at: Option<Timestamp>,
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
    /// The earliest pause if nothing more happens: for idleness, by its schedule, or by `max_runtime`.
    pub target_pause_at: Option<Timestamp>,
    /// What that pause will be for.
    pub target_pause_reason: Option<PauseReason>,
    /// Why there is none.
    pub target_pause_blocked_by: Option<Blocker>,
    /// When `max_runtime` stops it.
    pub runtime_ends_at: Option<Timestamp>,
    /// Its policy has a `max_runtime`, and it is exempt from it.
    pub is_runtime_exempt: bool,
    /// When a window of its schedule puts it to sleep.
    pub schedule_sleeps_at: Option<Timestamp>,
    /// A warning about idleness that is due.
    pub idle_warning: Option<Warning>,
    /// A warning about `max_runtime` that is due.
    pub runtime_warning: Option<Warning>,
    /// A warning about a window that puts to sleep that is due.
    pub schedule_warning: Option<Warning>,
    /// When `stop_after` stops it: it is frozen.
    #[serde(default)]
    pub stops_at: Option<Timestamp>,
    /// When `terminate_after` deletes it: it is asleep, and nobody keeps it.
    #[serde(default)]
    pub deletes_at: Option<Timestamp>,
    /// A warning about `stop_after` that is due.
    #[serde(default)]
    pub stop_warning: Option<Warning>,
    /// A warning about `terminate_after` that is due.
    #[serde(default)]
    pub deletion_warning: Option<Warning>,
    /// What people were told of all that, and is still so.
    #[serde(default)]
    pub announced: Announced,
    /// What only an exemption spares it.
    #[serde(default)]
    pub spared: Spared,
    /// It has been unknown for so long that somebody should be told.
    pub unknown_alert: bool,
    /// What is to be done now.
    pub action: Action,
    /// That rests on a limit or on a schedule with `force`: activity and holds do not undo it.
    pub is_forced: bool,
    /// When to look again.
    pub next_check_at: Timestamp,
}

/// How often somebody is told that a worker is still unknown.
const ALERT_AGAIN_AFTER: Duration = Duration::from_hours(24);

/// Decides about one worker: why awake, why not, when next.
#[expect(clippy::too_many_lines, reason = "a line for each thing that a verdict reports")]
pub fn judge(snapshot: &Snapshot<'_>, policy: &Policy, now: Timestamp) -> Verdict {
    let snapshot = &Snapshot { exempt: snapshot.exempt.at(now), ..*snapshot };
    let worker = snapshot.worker;
    let status = worker.status.kind();
    let needs = policy.needs(worker.nature());
    let interval = policy.interval(&needs);
    let look = weigh::Look::new(snapshot, policy, interval, now);
    let weigh::Weighed { signals, used, covered_since } = weigh::weigh(snapshot.evidence, look, &needs);
    let streak = weigh::streak(snapshot, used, interval, now);

    let window_now = policy.schedule.as_ref().map(|schedule| schedule.at(now));
    let flap_multiplier = if policy.flap_guard { worker.flap.multiplier() } else { 1 };
    let timeout = Timeout { policy: policy.idle_timeout, flap_multiplier };
    let idle_timeout = timeout.with(window_now.as_ref().and_then(|window| window.idle_timeout));

    let (holds, held) = live_holds(snapshot, policy, window_now.as_ref(), now);
    let baseline = baseline::baseline(snapshot, covered_since, now);
    let idle_for = now.since(baseline.at);
    // `>=`: a worker that has been quiet for exactly the timeout is idle. The page's countdown reaches
    // zero at the same moment.
    let is_idle = used == Use::Quiet
        && streak.count >= policy.window
        && idle_timeout.is_some_and(|timeout| idle_for >= timeout);
    let is_running = status == StatusKind::Running;
    let is_clear = !snapshot.is_braked && !policy.protected;
    let eligible = is_idle && policy.auto_pause && holds.is_empty() && is_clear && is_running;

    let runtime = limit::max_runtime(snapshot, policy, now);
    let forced = limit::forced_schedule(snapshot, policy, now);
    let sinking = Sinking::of(snapshot, policy, !holds.is_empty(), now);
    let alert_due_at = alert_due_at(snapshot, policy, used, now);
    let next_look_at = next::look(
        snapshot,
        policy,
        &next::Regular { interval, streak, is_running },
        [
            runtime.ends_at,
            runtime.next_warning_at,
            forced.ends_at,
            forced.next_warning_at,
            held.next_end_at,
            window_now.and_then(|window| window.next_change_at),
            alert_due_at,
        ]
        .into_iter()
        .chain(sinking.times()),
        now,
    );
    let deletes = policy.scale_down && snapshot.can_scale_down;
    let aim = target::Aim {
        now,
        policy,
        timeout: &timeout,
        interval,
        streak,
        used,
        baseline: baseline.at,
        held,
        schedule: policy.schedule.as_deref().zip(window_now),
        deletes,
        needs_notice: target::needs_notice(snapshot, policy, deletes),
        warned: snapshot.idle_warned,
        next_look_at,
    };
    let blocker = target::blocker(snapshot, policy);
    let (sleeps, next_check_at) = Sleeps::foresee(snapshot, policy, aim, blocker);
    let target = sleeps.earliest(&runtime, &forced, deletes, now);
    let target_pause_at = target.map(|(at, _)| at);

    // FYI for the exempt, a real warning for the others; neither on old news, nor while braked.
    let warns = snapshot.check_began_at.is_some() && is_running && policy.auto_pause && is_clear;
    // Who was not seen asleep in this check may be awake.
    let warns_asleep = snapshot.is_seen && is_clear;
    let mut verdict = Verdict {
        at: now,
        check_began_at: snapshot.check_began_at,
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
        target_pause_at,
        target_pause_reason: target.map(|(_, reason)| reason),
        target_pause_blocked_by: blocker.or(sleeps.idle.blocked_by).filter(|_| target.is_none()),
        runtime_ends_at: runtime.ends_at,
        is_runtime_exempt: policy.max_runtime.is_some() && snapshot.exempt.max_runtime.is_some(),
        schedule_sleeps_at: sooner(forced.ends_at, sleeps.gentle.pause_at),
        idle_warning: sleeps.idle.warning.filter(|_| warns),
        runtime_warning: runtime.warning.filter(|_| warns),
        schedule_warning: forced.warning.or(sleeps.gentle.warning).filter(|_| warns),
        stops_at: sinking.stop.ends_at,
        deletes_at: sinking.deletion.ends_at,
        stop_warning: sinking.stop.warning.filter(|_| warns_asleep),
        deletion_warning: sinking.deletion.warning.filter(|_| warns_asleep),
        announced: Announced {
            idle: sleeps.idle.announced_for,
            runtime: runtime.announced_for.filter(|_| policy.auto_pause),
            schedule: sooner(forced.announced_for.filter(|_| policy.auto_pause), sleeps.gentle.announced_for),
            stop: sinking.stop.announced_for,
            deletion: sinking.deletion.announced_for,
        },
        spared: Spared::default(),
        unknown_alert: alert_due_at.is_some_and(|due| due <= now),
        action: Action::None,
        is_forced: false,
        next_check_at: sooner(target_pause_at.filter(|at| *at > now), Some(next_check_at))
            .unwrap_or(next_check_at),
    };
    verdict.spared = spared::spared(&verdict, &runtime);
    let agent_is_behind = weigh::agent_is_behind(snapshot, &needs);
    action::decide(snapshot, policy, &mut verdict, &sleeps, [&runtime, &forced], agent_is_behind);
    verdict
}

/// The sooner of two times, where they are known.
fn sooner(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
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
    /// A hold has no known end.
    is_open_ended: bool,
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
        match until {
            Some(end) => self.next_end_at = Some(self.next_end_at.map_or(end, |next| next.min(end))),
            None => self.is_open_ended = true,
        }
    }
}

/// The holds that are live at `now`: the stored ones, and those that follow from policy.
fn live_holds(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    window: Option<&schedule::Now>,
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

impl Verdict {
    /// It was made in a check, on fresh readings; only then may it be acted on.
    pub const fn is_from_check(&self) -> bool {
        self.check_began_at.is_some()
    }

    /// Writes down what a check found: the streak, when it was, and since when the worker is unknown.
    ///
    /// A look between checks leaves no trace.
    pub fn note(&self, evidence: &mut Evidence) {
        if !self.is_from_check() {
            return;
        }
        evidence.streak = self.streak;
        evidence.last_check_at = Some(self.at);
        // A worker that sleeps is not read, and nobody need be told.
        let is_unknown = self.used == Use::Unknown && self.status == StatusKind::Running;
        evidence.unknown = is_unknown.then(|| {
            let before = evidence.unknown.unwrap_or(UnknownFor { since: self.at, alerted_at: None });
            UnknownFor {
                alerted_at: if self.unknown_alert { Some(self.at) } else { before.alerted_at },
                ..before
            }
        });
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
