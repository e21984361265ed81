//! Whether the port of a worker that was started answers.
//!
//! While it does not, nobody knows whether it is still coming up or never will: what is known is for how long it has
//! not, and that is told.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::status::StatusKind;
use drowse_core::units::Rough;
use drowse_core::worker::Power;
use drowse_drivers::Seen;
use tokio::net::TcpStream;

use super::effects::{Job, MARGIN};
use crate::config::Target;
use crate::hands::LOOK_WITHIN;
use crate::shared::{Shared, lock};

/// How long one attempt to connect may take, and the pause between two.
const PROBE_WITHIN: Duration = Duration::from_secs(1);
const PROBE_PAUSE: Duration = Duration::from_millis(50);

/// Ports that have not answered since their workers were started.
#[derive(Debug, Default)]
pub(crate) struct Ports(Mutex<HashMap<WorkerId, Awaited>>);

#[derive(Clone, Copy, Debug)]
struct Awaited {
    /// Since when the worker runs.
    since: Timestamp,
    /// When it was taken to be up all the same.
    given_up_at: Option<Timestamp>,
}

impl Ports {
    fn is_awaited(&self, worker: &WorkerId, now: Timestamp) {
        lock(&self.0).insert(worker.clone(), Awaited { since: now, given_up_at: None });
    }

    fn is_given_up(&self, worker: &WorkerId, now: Timestamp) {
        if let Some(awaited) = lock(&self.0).get_mut(worker) {
            awaited.given_up_at = Some(now);
        }
    }

    /// It has answered, it has ended, it is woken anew, or it is off the books.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.0).remove(worker);
    }

    /// What is known of it, in words; of one that sleeps, nothing.
    pub(crate) fn line(&self, worker: &WorkerId, status: StatusKind, now: Timestamp) -> Option<String> {
        let Awaited { since, given_up_at } = lock(&self.0).get(worker).copied()?;
        match (status, given_up_at) {
            (StatusKind::Waking, _) => Some(format!(
                "it has been started and runs for {}, and its port has not answered yet: it may still be coming up",
                Rough(now.since(since))
            )),
            (StatusKind::Running, Some(at)) => Some(format!(
                "its port did not answer in the first {} of this run, and it was taken to be up: if nobody gets \
                 through, see whether anything listens there",
                Rough(at.since(since))
            )),
            (
                StatusKind::Running
                | StatusKind::Provisioning
                | StatusKind::Pausing
                | StatusKind::Paused
                | StatusKind::Stopping
                | StatusKind::Stopped
                | StatusKind::Draining
                | StatusKind::Terminating
                | StatusKind::Terminated
                | StatusKind::Failed
                | StatusKind::Unknown,
                _,
            ) => None,
        }
    }
}

impl Shared {
    /// Waits until a routed worker accepts connections. A connection proves nothing while a worker is frozen,
    /// but here it runs. `Some`: it ended meanwhile.
    pub(super) async fn answers(&self, job: &Job<'_>) -> Option<Seen> {
        let place = job.subject.spec.places().next().filter(|_| job.subject.worker.is_routed)?;
        let until = job.deadline(self.clock.now()) - MARGIN;
        self.unanswered.is_awaited(job.id, self.clock.now());
        while self.clock.now() < until {
            let target = match place {
                Target::Address(address) => Some(address),
                // Nothing is said there, so it does not matter whose it is by the time of the call.
                Target::Port(port) => {
                    let located = job.driver.locate(job.id, port, LOOK_WITHIN);
                    self.hands.call("locate", located).await.ok().map(|located| located.address)
                }
            };
            if let Some(target) = target {
                let connected = tokio::time::timeout(PROBE_WITHIN, TcpStream::connect(target)).await;
                if matches!(connected, Ok(Ok(_))) {
                    self.unanswered.forget(job.id);
                    return None;
                }
            }
            if let Ok(seen) = self.hands.look(job.id, &job.subject.spec).await
                && matches!(seen.power, Power::Stopped | Power::Gone)
            {
                self.unanswered.forget(job.id);
                return Some(seen);
            }
            self.clock.sleep_until(self.clock.now() + PROBE_PAUSE).await;
        }
        self.unanswered.is_given_up(job.id, self.clock.now());
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_coming_up_is_told_from_one_that_did_not_answer() {
        let (ports, web) = (Ports::default(), WorkerId::new("web").unwrap());
        let at = Timestamp::from_secs;
        assert_eq!(ports.line(&web, StatusKind::Waking, at(0)), None);
        ports.is_awaited(&web, at(0));
        let line = ports.line(&web, StatusKind::Waking, at(12)).unwrap();
        assert!(line.contains("runs for 12s") && line.contains("still be coming up"), "{line}");
        ports.is_given_up(&web, at(59));
        let line = ports.line(&web, StatusKind::Running, at(600)).unwrap();
        assert!(line.contains("in the first 59s of this run"), "{line}");
        assert_eq!(ports.line(&web, StatusKind::Stopped, at(700)), None);
        ports.forget(&web);
        assert_eq!(ports.line(&web, StatusKind::Running, at(800)), None);
    }
}
