//! Why a worker sleeps, and how that goes on, in words.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Reason, Verdict};
use crate::clock::Timestamp;
use crate::status::{Sleep, Status, StatusKind};
use crate::units::Rough;
use crate::worker::Worker;

/// A sleep in words.
pub(super) struct Asleep {
    /// Since when, by whom, for what, and in whose words.
    pub(super) summary: String,
    /// What happens next, and what wakes it.
    pub(super) goes_on: Vec<String>,
}

/// `None`: it does not sleep.
pub(super) fn asleep(worker: &Worker, verdict: &Verdict) -> Option<Asleep> {
    let now = verdict.at;
    let (what, since, sleep, is_frozen) = match &worker.status {
        Status::Paused { since, sleep } => ("paused", *since, sleep, true),
        Status::Stopped { since, sleep } => ("stopped", *since, sleep, false),
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => return None,
    };
    let Sleep { reason, by, message, .. } = sleep;
    let words = if message.is_empty() { String::new() } else { format!(": {message}") };
    let summary = format!(
        "{what} for {}, since {}, by {by} ({reason}){words}",
        Rough(now.since(since)),
        since.to_the_second()
    );
    let ahead = [(verdict.stops_at, "stopped"), (verdict.deletes_at, "deleted")];
    let next = ahead.into_iter().filter_map(|(at, what)| {
        let at = at?;
        Some(format!("it is {what} {} ({}), unless it is woken", rough_in(at, now), at.to_the_second()))
    });
    Some(Asleep { summary, goes_on: next.chain([wakes(worker, sleep, is_frozen)]).collect() })
}

/// `in 5m`, or `now`.
fn rough_in(at: Timestamp, now: Timestamp) -> String {
    if at <= now { "now".to_string() } else { format!("in {}", Rough(at.since(now))) }
}

fn wakes(worker: &Worker, sleep: &Sleep, is_frozen: bool) -> String {
    let id = &worker.id;
    if !worker.in_service {
        return "nothing wakes it: it is out of service".to_string();
    }
    if !worker.terms.wake_from.contains(sleep.reason) {
        let reason = sleep.reason;
        return format!(
            "no connection wakes it (wake_from is without {reason}); a person does: drowse resume {id}"
        );
    }
    match (worker.is_routed, is_frozen) {
        (true, _) => format!("whoever connects wakes it, and so does: drowse resume {id}"),
        (false, true) => format!("a lease wakes it, and so does: drowse resume {id}"),
        (false, false) => format!("this wakes it: drowse resume {id}"),
    }
}

/// Whether a reason is about the use of a worker. Nobody looks at what sleeps, so there it says nothing.
pub(super) fn is_about_use(reason: Reason) -> bool {
    match reason {
        Reason::RecentActivity { .. }
        | Reason::UnknownSignal { .. }
        | Reason::NoEvidence
        | Reason::NotIdleYet
        | Reason::WindowNotFull
        | Reason::IdleTimeoutExceeded => true,
        Reason::IdleTimeoutNever
        | Reason::ObserveMode
        | Reason::InSnoozePeriod
        | Reason::Held { .. }
        | Reason::Brake
        | Reason::NotRunning { .. }
        | Reason::Protected
        | Reason::NoticeRunning
        | Reason::AgentNotAsked
        | Reason::FlapGuard
        | Reason::MaxRuntimeExceeded
        | Reason::ExemptFromMaxRuntime
        | Reason::ScheduleSleep => false,
    }
}

impl Verdict {
    /// Those of its reasons that say something about a worker in its status.
    pub fn telling_reasons(&self) -> impl Iterator<Item = Reason> + '_ {
        let is_asleep = matches!(self.status, StatusKind::Paused | StatusKind::Stopped);
        self.reasons().filter(move |reason| !(is_asleep && is_about_use(*reason)))
    }
}
