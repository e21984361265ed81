//! What the front door asks for: count connections, wake, and tell when the worker answers.
//!
//! While the store answers, counting and waking are one transaction, so that no pause fits in between. What becomes
//! of those who come while it does not is in `outage`.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::event::Event;
use drowse_core::id::WorkerId;
use drowse_core::refusal::Refusal;
use drowse_core::status::{Status, StatusKind, WakeCause};
use drowse_core::worker::Worker;
use drowse_store::{Lane, StoreError, View};
use drowse_wire::control::{Edge, EdgeCause};

use super::{ControlError, Fleet};
use crate::shared::Shared;

/// Why a worker did not wake.
#[derive(Debug, thiserror::Error)]
pub enum WakeRefused {
    /// It may not be woken by a connection, or cannot be.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It was being woken, and this is what became of it instead.
    #[error("it did not come up: it is {status}")]
    DidNotComeUp { status: StatusKind, message: String },
    /// Anything else.
    #[error(transparent)]
    Control(ControlError),
}

impl From<ControlError> for WakeRefused {
    fn from(error: ControlError) -> Self {
        if let ControlError::Refused(refusal) = error { Self::Refused(refusal) } else { Self::Control(error) }
    }
}

/// What the policy says to the front door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// After how much silence a connection stops counting; `None`: never.
    pub connection_idle: Option<Duration>,
}

/// How often whoever waits for a wake looks whether the store is still there to tell of it.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Fleet {
    /// Tells of an edge of the count of connections to a worker through this process's front door: from 0 before
    /// the first connection is served, to 0 after the last one has ended. What is in between is for the door
    /// alone.
    ///
    /// The first connection is counted and the worker asked for in one transaction, so that no pause fits in
    /// between. Where `wake_from` forbids it, it is refused and counts as nothing. The caller tells its edges
    /// one after the other.
    pub async fn connections(&self, id: &WorkerId, edge: Edge) -> Result<(Worker, Terms), ControlError> {
        self.0.edge(&self.0.replica, id, edge, edge.cause == EdgeCause::Came).await
    }

    /// Notes bytes of a connection: O(1), written with the next flush. False: nothing can be written just now.
    pub fn saw_bytes(&self, id: &WorkerId) -> bool {
        self.0.saw_bytes(id)
    }

    /// Wakes a worker for a connection and waits until it answers. However many ask, it is woken once.
    ///
    /// There is no deadline here beyond that of the worker's own transition: whoever asks has one. While nothing
    /// can be written down there is no telling, and this fails.
    pub async fn wake(&self, id: &WorkerId) -> Result<Worker, WakeRefused> {
        // Before the first look: what changes in between is not missed.
        let mut changes = self.0.notices.worker(id);
        let asked_at = self.0.clock.now();
        self.0.can_write()?;
        let mut worker = self.glance(id).await?;
        if !is_wanted(&worker.status) {
            let event = Event::WakeRequested { cause: WakeCause::Connection };
            (_, worker) = self.0.change("wake", Lane::Wake, id, move |change| change.apply(&event)).await?;
        }
        let was_awake = matches!(worker.status, Status::Running { .. });
        loop {
            let message = match &worker.status {
                Status::Running { .. } => {
                    if !was_awake {
                        self.0.metrics.woke(self.0.clock.now().since(asked_at));
                    }
                    return Ok(worker);
                }
                // On its way, or on its way to sleep with our wake noted down.
                Status::Waking { .. }
                | Status::Provisioning { .. }
                | Status::Pausing { wake: Some(_), .. }
                | Status::Stopping { wake: Some(_), .. } => {
                    tokio::select! {
                        biased;
                        () = changes.next() => {}
                        // It may have woken long ago, and nobody could write that down.
                        () = self.0.clock.sleep_until(self.0.clock.now() + LOOK_EVERY) => self.0.can_write()?,
                    }
                    worker = self.glance(id).await?;
                    continue;
                }
                Status::Failed { message, .. } => message.clone(),
                Status::Pausing { .. }
                | Status::Paused { .. }
                | Status::Stopping { .. }
                | Status::Stopped { .. }
                | Status::Draining { .. }
                | Status::Terminating { .. }
                | Status::Terminated { .. }
                | Status::Unknown { .. } => String::new(),
            };
            return Err(WakeRefused::DidNotComeUp { status: worker.status.kind(), message });
        }
    }

    /// The worker, to see what it is doing. One that the driver says is awake is, written down or not.
    pub(crate) async fn glance(&self, id: &WorkerId) -> Result<Worker, ControlError> {
        // Before the store: if it is written down by now, the store says so.
        let awake = self.0.awake.of(id);
        let id = id.clone();
        let read = move |view: &View<'_>| {
            let record = view.worker(&id)?.filter(|record| record.removed_at.is_none());
            record.map(|record| record.without_terms().clone()).ok_or(ControlError::NotFound(id))
        };
        let worker = self.0.db.glance(read).await?;
        let is_awake = |(intent, _): &(_, _)| worker.status.intent() == Some(*intent);
        Ok(awake.filter(is_awake).map_or(worker, |(_, awake)| awake))
    }
}

/// Whether nobody has to ask for it: it runs, or somebody has asked.
const fn is_wanted(status: &Status) -> bool {
    match status {
        Status::Running { .. }
        | Status::Waking { .. }
        | Status::Provisioning { .. }
        | Status::Pausing { wake: Some(_), .. }
        | Status::Stopping { wake: Some(_), .. } => true,
        Status::Pausing { wake: None, .. }
        | Status::Stopping { wake: None, .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => false,
    }
}

impl Shared {
    /// Writes an edge of a router's session: the count, the wake, and that both are activity.
    pub(super) async fn edge(
        self: &Arc<Self>,
        session: &str,
        id: &WorkerId,
        edge: Edge,
        wakes: bool,
    ) -> Result<(Worker, Terms), ControlError> {
        let session = session.to_owned();
        let (terms, worker) = self
            .change_here("connections", Lane::Wake, id, move |change| {
                if wakes {
                    change.apply(&Event::WakeRequested { cause: WakeCause::Connection })?;
                } else if edge.cause == EdgeCause::CameToTheAwake {
                    check_is_awake(&change.worker())?;
                }
                change.locked.set_connections(&session, edge.epoch, edge.count, change.now)?;
                if edge.count == 0 && change.worker().status.kind() == StatusKind::Draining {
                    // It goes as soon as nothing holds it. Anybody else is looked at in good time: a hold that
                    // begins or ends puts no deadline forward.
                    change.tx.nudge(change.locked.id(), change.now)?;
                }
                Ok(Terms { connection_idle: change.resolved.policy.connection_idle })
            })
            .await?;
        if edge.cause != EdgeCause::FellSilent {
            // A connection and its close are activity.
            self.saw_bytes(id);
        }
        Ok((worker, terms))
    }

    pub(super) fn can_write(&self) -> Result<(), ControlError> {
        if self.cannot_write() {
            let why = StoreError::Unavailable("it could not be written to".into());
            return Err(ControlError::Unavailable(why));
        }
        Ok(())
    }
}

/// Whether somebody may come who may not wake it. Where nobody who comes may, they hear who put it to sleep.
pub(super) fn check_is_awake(worker: &Worker) -> Result<(), Refusal> {
    let status = &worker.status;
    match status {
        Status::Running { .. }
        | Status::Waking { .. }
        | Status::Provisioning { .. }
        | Status::Pausing { wake: Some(_), .. }
        | Status::Stopping { wake: Some(_), .. } => Ok(()),
        Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Stopping { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => Err(match status.sleep() {
            Some(sleep) if !worker.terms.wake_from.contains(sleep.reason) => {
                Refusal::WakeNotAllowed { sleep: sleep.clone() }
            }
            Some(_) | None => Refusal::WrongStatus { status: status.kind(), wanted: "woken from there" },
        }),
    }
}
