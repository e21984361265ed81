//! What the front door asks for: count connections, wake, and tell when the worker answers.
//!
//! While the store answers, counting and waking are one transaction, so that no pause fits in between. While it
//! does not, both go ahead without it; see [`crate::untold`].

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drowse_core::event::Event;
use drowse_core::id::WorkerId;
use drowse_core::refusal::Refusal;
use drowse_core::signal::Signal;
use drowse_core::status::{Status, StatusKind, WakeCause};
use drowse_core::step;
use drowse_core::worker::{Power, Worker};
use drowse_drivers::Acted;
use drowse_store::{Lane, StoreError};

use super::{ControlError, Fleet};
use crate::shared::Shared;
use crate::spec::WorkerSpec;

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

/// How long somebody at the door waits for the store before it goes without.
const STORE_WITHIN: Duration = Duration::from_secs(3);

/// How often whoever waits for a wake looks whether the store is still there to tell of it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long a thaw or a start without the store may take.
const WAKE_WITHIN: Duration = Duration::from_secs(20);

impl Fleet {
    /// Tells of an edge of the count of connections to a worker through this process's front door: 0 → 1 with
    /// `count` 1 before the first connection is served, 1 → 0 with `count` 0 after the last one has ended. What
    /// is in between is for the door alone.
    ///
    /// The first connection is counted and the worker asked for in one transaction, so that no pause fits in
    /// between. Where `wake_from` forbids it, it is refused and counts as nothing. The caller tells its edges
    /// one after the other.
    pub async fn connections(&self, id: &WorkerId, count: u64) -> Result<Worker, ControlError> {
        self.0.edge(id, count, count > 0).await
    }

    /// Counts the first connection, with the store or without it; whether the store knows.
    pub(crate) async fn enter_door(&self, id: &WorkerId) -> Result<bool, ControlError> {
        match self.tell(id, 1).await {
            Ok(()) => Ok(true),
            Err(ControlError::Unavailable(why)) => {
                self.0.may_wake(id, why)?;
                self.0.untold.note(id, 1, self.0.clock.now());
                Ok(false)
            }
            Err(other) => Err(other),
        }
    }

    /// Counts the last connection out. What the store cannot be told now it is told later.
    pub(crate) async fn leave_door(&self, id: &WorkerId) {
        if self.tell(id, 0).await.is_err() {
            self.0.untold.note(id, 0, self.0.clock.now());
        }
    }

    /// Tells the store of an edge, and of what it was not told before.
    async fn tell(&self, id: &WorkerId, count: u64) -> Result<(), ControlError> {
        let gone = || ControlError::Unavailable(StoreError::Unavailable("it does not answer".into()));
        if self.0.cannot_write() {
            return Err(gone());
        }
        let before = self.0.untold.get(id);
        let wakes = count > 0 || before.is_some_and(|edge| edge.has_woken);
        let (shared, worker) = (Arc::clone(&self.0), id.clone());
        // By itself: what it begins is finished, also when nobody waits for it any more.
        let telling = self.0.tasks.spawn(async move { shared.edge(&worker, count, wakes).await });
        tokio::select! {
            biased;
            told = telling => told.unwrap_or_else(|_| Err(gone()))?,
            () = self.0.clock.sleep_until(self.0.clock.now() + STORE_WITHIN) => return Err(gone()),
        };
        if let Some(before) = before {
            self.0.untold.told(id, before);
        }
        Ok(())
    }

    /// Notes bytes of a connection: O(1), written with the next flush. False: nothing can be written just now.
    pub fn saw_bytes(&self, id: &WorkerId) -> bool {
        self.0.saw_bytes(id)
    }

    /// Wakes a worker for a connection and waits until it runs; with the store, until it answers. However many
    /// ask, it is woken once.
    ///
    /// There is no deadline here beyond that of the worker's own transition: whoever asks has one.
    pub async fn wake(&self, id: &WorkerId) -> Result<Worker, WakeRefused> {
        match self.wake_by_the_book(id).await {
            Err(WakeRefused::Control(ControlError::Unavailable(why))) => {
                self.0.wake_without_store(id, why).await
            }
            other => other,
        }
    }

    async fn wake_by_the_book(&self, id: &WorkerId) -> Result<Worker, WakeRefused> {
        // Before the first look: what changes in between is not missed.
        let mut changes = self.0.notices.worker(id);
        let asked_at = self.0.clock.now();
        self.0.can_write()?;
        let event = Event::WakeRequested { cause: WakeCause::Connection };
        let (_, mut worker) =
            self.0.change("wake", Lane::Wake, id, move |change| change.apply(&event)).await?;
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
                    worker = self.picture(id).await?.0.worker;
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
}

impl Shared {
    /// Writes an edge: the count, the wake, and that both are activity.
    async fn edge(self: &Arc<Self>, id: &WorkerId, count: u64, wakes: bool) -> Result<Worker, ControlError> {
        let epoch = self.edges.fetch_add(1, Ordering::Relaxed);
        let session = self.replica.clone();
        let ((), worker) = self
            .change("connections", Lane::Wake, id, move |change| {
                if wakes {
                    change.apply(&Event::WakeRequested { cause: WakeCause::Connection })?;
                }
                change.locked.set_connections(&session, epoch, count, change.now)?;
                // A connection and its close are activity.
                let mut checked = change.tx.checked(change.locked.id())?;
                checked.evidence.note_activity(change.now, Signal::Connections, change.now);
                change.locked.save_checked(&checked)?;
                change.tx.nudge(change.locked.id(), change.now)?;
                Ok(())
            })
            .await?;
        Ok(worker)
    }

    /// Tells the store what the doors could not.
    pub(crate) async fn tell_edges(self: &Arc<Self>) -> Result<(), StoreError> {
        for (worker, edge) in self.untold.all() {
            match self.edge(&worker, edge.count, edge.count > 0 || edge.has_woken).await {
                Err(ControlError::Unavailable(error)) => return Err(error),
                // What may not be woken now was allowed to be by what was believed: the next look finds it.
                Ok(_) | Err(_) => self.untold.told(&worker, edge),
            }
        }
        Ok(())
    }

    fn can_write(&self) -> Result<(), ControlError> {
        if self.cannot_write() {
            let why = StoreError::Unavailable("it could not be written to".into());
            return Err(ControlError::Unavailable(why));
        }
        Ok(())
    }

    /// The worker as it was last known, if a connection may wake it as such. `why` there is no store to ask.
    fn may_wake(&self, id: &WorkerId, why: StoreError) -> Result<(Worker, WorkerSpec), ControlError> {
        let Some((worker, spec)) = self.untold.believed(id) else {
            return Err(ControlError::Unavailable(why));
        };
        let event = Event::WakeRequested { cause: WakeCause::Connection };
        step(&worker, &event, self.clock.now())?;
        Ok((worker, spec))
    }

    /// Wakes it by what is believed and what its driver shows. The store learns of it later, and then everything
    /// takes its ordinary course: the worker is woken, and is found awake already.
    async fn wake_without_store(
        self: &Arc<Self>,
        id: &WorkerId,
        why: StoreError,
    ) -> Result<Worker, WakeRefused> {
        let (worker, spec) = self.may_wake(id, why)?;
        let did_not = |message: String| WakeRefused::DidNotComeUp { status: worker.status.kind(), message };
        // A stop that is under way cannot be taken back, and nobody could write down that it was followed by a
        // start.
        if worker.status.kind() == StatusKind::Stopping {
            return Err(did_not("it is being stopped, and the database does not answer".to_owned()));
        }
        // Before the driver is asked: a look that finds it awake must know that it was us.
        self.untold.wakes(id);
        let driver = self.hands.of(id, &spec).await.map_err(ControlError::from)?;
        let seen = self.hands.look(id, &spec).await.map_err(ControlError::from)?;
        let woken = match seen.power {
            Power::Running => return Ok(worker),
            Power::Paused => self.hands.call("thaw", driver.thaw(id, WAKE_WITHIN)).await,
            Power::Stopped => self.hands.call("start", driver.start(id, WAKE_WITHIN)).await,
            Power::Gone => return Err(did_not("it is gone".to_owned())),
        };
        match woken.map_err(ControlError::from)? {
            Acted::Done(_) | Acted::AlreadyTrue(_) | Acted::Started { .. } => Ok(worker),
        }
    }
}
