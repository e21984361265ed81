//! What is to be done about a worker now.

use serde::{Deserialize, Serialize};

use super::limit::Limit;
use super::{Sleeps, Snapshot, Use, Verdict, target};
use crate::policy::Policy;
use crate::reason::PauseReason;
use crate::status::Status;

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

/// Decides, and holds back what must wait for the agent.
pub(super) fn decide(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    verdict: &mut Verdict,
    sleeps: &Sleeps,
    limits: [&Limit; 2],
    agent_is_behind: bool,
) {
    verdict.action = strongest(snapshot, policy, verdict, sleeps, limits, agent_is_behind);
    let acts = matches!(verdict.action, Action::Sleep { .. } | Action::WouldSleep { .. });
    verdict.is_forced = acts && limits.iter().any(|limit| limit.is_due(verdict.at));
    if verdict.action == Action::AskAgent {
        verdict.idle_warning = None;
        verdict.schedule_warning = verdict.schedule_warning.and(limits[1].warning);
    }
}

/// What is to be done, the strongest first: a limit, then idleness, then sinking deeper.
fn strongest(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    verdict: &Verdict,
    sleeps: &Sleeps,
    [runtime, forced]: [&Limit; 2],
    agent_is_behind: bool,
) -> Action {
    let now = verdict.at;
    let worker = snapshot.worker;
    let may_act = !policy.protected && !snapshot.is_braked;
    match &worker.status {
        // Somebody may have started it: who was not seen asleep in this check is not acted on.
        Status::Paused { .. } | Status::Stopped { .. }
            if !may_act || !policy.auto_pause || !snapshot.is_seen =>
        {
            Action::None
        }
        Status::Paused { .. } | Status::Stopped { .. } if verdict.deletes_at.is_some_and(|at| now >= at) => {
            Action::TerminateAfter
        }
        Status::Paused { .. } => {
            let sinks = verdict.stops_at.is_some_and(|at| now >= at);
            // A frozen worker with a live hold stays frozen rather than lose its memory.
            if sinks && verdict.holds.is_empty() { Action::StopAfter } else { Action::None }
        }
        Status::Running { .. } if verdict.is_from_check() && may_act => {
            let asleep = |reason| {
                if policy.auto_pause { Action::Sleep { reason } } else { Action::WouldSleep { reason } }
            };
            let is_free = verdict.used == Use::Quiet
                && verdict.streak.count >= verdict.window
                && verdict.holds.is_empty();
            let is_due = |taken: &target::Taken| is_free && taken.pause_at.is_some_and(|at| at <= now);
            let idle = is_due(&sleeps.idle) && verdict.is_idle;
            let gentle = is_due(&sleeps.gentle);
            let warns = verdict.idle_warning.is_some_and(|warning| !warning.is_fyi)
                || (sleeps.gentle.warning.is_some() && policy.auto_pause);
            if runtime.is_due(now) {
                asleep(PauseReason::MaxRuntime)
            } else if forced.is_due(now) {
                asleep(PauseReason::Schedule)
            } else if (idle || gentle || warns) && agent_is_behind {
                Action::AskAgent
            } else if idle && policy.scale_down && snapshot.can_scale_down {
                if policy.auto_pause { Action::ScaleDown } else { asleep(PauseReason::ScaleDown) }
            } else if idle {
                asleep(PauseReason::IdleTimeout)
            } else if gentle {
                asleep(PauseReason::Schedule)
            } else {
                Action::None
            }
        }
        Status::Running { .. }
        | Status::Stopped { .. }
        | Status::Provisioning { .. }
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
