//! What a person can have done: pause, stop, resume, drain, terminate.

use drowse_core::event::{Event, Request};
use drowse_core::hold::KeepAlive;
use drowse_core::id::WorkerId;
use drowse_core::machine::Answer;
use drowse_core::status::StatusKind;
use drowse_core::worker::Worker;
use drowse_store::Lane;
use serde_json::json;

use super::{ControlError, Fleet};

/// A person's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Who gives it.
    pub by: String,
    /// Why, in their words.
    pub message: String,
    /// Holds and vetoes are overruled.
    pub force: bool,
}

impl Order {
    pub fn new(by: impl Into<String>) -> Self {
        Self { by: by.into(), message: String::new(), force: false }
    }
}

/// What became of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// Whether that is a change.
    pub answer: Answer,
    /// The worker afterwards; what was ordered may be under way.
    pub worker: Worker,
}

impl Fleet {
    /// Puts it to sleep, as its policy says how.
    pub async fn pause(&self, id: &WorkerId, order: Order) -> Result<Done, ControlError> {
        self.order("pause", id, order, Event::PauseRequested).await
    }

    /// Stops it.
    pub async fn stop(&self, id: &WorkerId, order: Order) -> Result<Done, ControlError> {
        self.order("stop", id, order, Event::StopRequested).await
    }

    /// Ends it for good.
    pub async fn terminate(&self, id: &WorkerId, order: Order) -> Result<Done, ControlError> {
        self.order("terminate", id, order, Event::TerminateRequested).await
    }

    /// Lets it take no new work and ends it when nothing holds it any more.
    pub async fn drain(&self, id: &WorkerId, order: Order) -> Result<Done, ControlError> {
        self.order("drain", id, order, Event::DrainRequested).await
    }

    /// Takes a drain back.
    pub async fn undrain(&self, id: &WorkerId, by: &str) -> Result<Done, ControlError> {
        let event = Event::DrainCancelled { by: by.to_owned() };
        self.apply("undrain", Lane::Ordinary, id, event).await
    }

    /// Brings it back. Ahead of checks and flushes: somebody waits.
    pub async fn resume(&self, id: &WorkerId, by: &str, message: &str) -> Result<Done, ControlError> {
        let (by, message) = (by.to_owned(), message.to_owned());
        let (answer, worker) = self
            .0
            .change("resume", Lane::Wake, id, move |change| {
                let answer = change.apply(&Event::ResumeRequested { by: by.clone() })?;
                if !message.is_empty() {
                    change.journal("worker.resume_asked", json!({ "by": by, "message": message }));
                }
                Ok(answer)
            })
            .await?;
        Ok(Done { answer, worker })
    }

    async fn order(
        &self,
        name: &'static str,
        id: &WorkerId,
        order: Order,
        event: fn(Request) -> Event,
    ) -> Result<Done, ControlError> {
        let keep_alive = if order.force { KeepAlive::NotLooked } else { self.keep_alive(id).await? };
        let (answer, worker) = self
            .0
            .change(name, Lane::Ordinary, id, move |change| {
                let mut request = change.request(&order.by, &order.message, order.force)?;
                keep_alive.amend(&mut request.holds);
                change.apply(&event(request))
            })
            .await?;
        Ok(Done { answer, worker })
    }

    /// Its keep-alive file as it is now: somebody may have touched it since the last check.
    async fn keep_alive(&self, id: &WorkerId) -> Result<KeepAlive, ControlError> {
        let Some(subject) = self.0.subject_now(id).await? else { return Ok(KeepAlive::NotLooked) };
        match subject.worker.status.kind() {
            StatusKind::Running | StatusKind::Paused => {
                Ok(self.0.look_for_keep_alive(id, &subject.spec, &subject.resolved.policy).await)
            }
            StatusKind::Provisioning
            | StatusKind::Pausing
            | StatusKind::Waking
            | StatusKind::Stopping
            | StatusKind::Stopped
            | StatusKind::Draining
            | StatusKind::Terminating
            | StatusKind::Terminated
            | StatusKind::Failed
            | StatusKind::Unknown => Ok(KeepAlive::NotLooked),
        }
    }

    async fn apply(
        &self,
        name: &'static str,
        lane: Lane,
        id: &WorkerId,
        event: Event,
    ) -> Result<Done, ControlError> {
        let (answer, worker) = self.0.change(name, lane, id, move |change| change.apply(&event)).await?;
        Ok(Done { answer, worker })
    }
}
