//! The front door while the store does not answer: who may come is decided on what was last known of the worker, and
//! it is woken by asking its driver. See [`crate::untold`] for what is made of that later.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::event::Event;
use drowse_core::id::WorkerId;
use drowse_core::status::{StatusKind, WakeCause};
use drowse_core::step;
use drowse_core::worker::{Power, Worker};
use drowse_drivers::Acted;
use drowse_store::{StoreError, View};
use drowse_wire::control::{Edge, EdgeCause, Standing};

use super::control::standing;
use super::gate::{Terms, check_is_awake};
use super::{ControlError, Fleet, WakeRefused};
use crate::shared::Shared;
use crate::spec::WorkerSpec;
use crate::untold::Believed;

/// How long somebody at the door waits for the store before it goes without.
pub(super) const STORE_WITHIN: Duration = Duration::from_secs(3);

/// How long a thaw or a start without the store may take.
const WAKE_WITHIN: Duration = Duration::from_secs(20);

/// How long a note may take before the disk is in everybody's way, and for how long there are no head starts then. A
/// thread that others push aside takes some milliseconds, too.
const SLOW: Duration = Duration::from_millis(20);
const RESTS_FOR: Duration = Duration::from_secs(2);

impl Fleet {
    /// Tells the store of an edge, and of what it was not told before.
    pub(super) async fn tell(&self, id: &WorkerId, edge: Edge) -> Result<(Worker, Terms), ControlError> {
        self.0.can_write()?;
        let before = self.0.untold.get(id);
        let wakes = edge.cause == EdgeCause::Came || before.is_some_and(|pending| pending.has_woken);
        let (shared, worker) = (Arc::clone(&self.0), id.clone());
        // By itself: what it begins is finished, also when nobody waits for it any more.
        let telling =
            self.0.tasks.spawn(async move { shared.edge(&shared.replica, &worker, edge, wakes).await });
        let gone = || ControlError::Unavailable(StoreError::Unavailable("it does not answer".into()));
        let told = tokio::select! {
            biased;
            told = telling => told.unwrap_or_else(|_| Err(gone())),
            () = self.0.clock.sleep_until(self.0.clock.now() + STORE_WITHIN) => Err(gone()),
        };
        // Also when it was refused: then nothing came of it.
        if let Some(before) = before
            && !matches!(told, Err(ControlError::Unavailable(_)))
        {
            self.0.untold.told(id, before);
        }
        told
    }

    /// Keeps an edge that the store could not be told. Whoever may not come is refused as ever.
    pub(super) fn keep_edge(
        &self,
        id: &WorkerId,
        edge: Edge,
        why: StoreError,
    ) -> Result<Standing, ControlError> {
        let believed = match edge.cause {
            EdgeCause::Came => self.0.may_wake(id, why)?,
            EdgeCause::CameToTheAwake => {
                let believed = self.0.untold.believed(id).ok_or(ControlError::Unavailable(why))?;
                if !self.0.untold.contains(id) {
                    check_is_awake(&believed.worker)?;
                }
                believed
            }
            EdgeCause::Left | EdgeCause::FellSilent => {
                self.0.untold.note(id, edge, self.0.clock.now());
                return self.believed(id, why);
            }
        };
        self.0.untold.note(id, edge, self.0.clock.now());
        // Not that it is awake: whoever came asks for it, and so its driver is asked.
        Ok(Standing { is_awake: false, ..standing(&believed.worker, believed.terms) })
    }

    /// How a worker stood when it was last seen.
    pub(super) fn believed(&self, id: &WorkerId, why: StoreError) -> Result<Standing, ControlError> {
        let believed = self.0.untold.believed(id).ok_or(ControlError::Unavailable(why))?;
        Ok(standing(&believed.worker, believed.terms))
    }

    /// How a worker is configured, or was when the store last answered.
    pub(super) async fn spec_of(&self, id: &WorkerId) -> Result<WorkerSpec, ControlError> {
        let worker = id.clone();
        let read = move |view: &View<'_>| {
            let record = view.worker(&worker)?.filter(|record| record.removed_at.is_none());
            record.map(|record| record.spec.clone()).ok_or(ControlError::NotFound(worker))
        };
        match self.0.db.glance(read).await {
            Ok(spec) => {
                serde_json::from_value(spec).map_err(|error| ControlError::invalid("spec", error.to_string()))
            }
            Err(ControlError::Unavailable(why)) => {
                Ok(self.0.untold.believed(id).ok_or(ControlError::Unavailable(why))?.spec)
            }
            Err(other) => Err(other),
        }
    }

    /// Wakes it by what is believed and what its driver shows. The store learns of it later, and then everything
    /// takes its ordinary course: the worker is woken, and is found awake already.
    pub(super) async fn wake_without_store(
        &self,
        id: &WorkerId,
        why: StoreError,
    ) -> Result<Worker, WakeRefused> {
        let Believed { worker, spec, .. } = self.0.may_wake(id, why)?;
        let did_not = |message: String| WakeRefused::DidNotComeUp { status: worker.status.kind(), message };
        // A stop that is under way cannot be taken back, and nobody could write down that it was followed by a
        // start.
        if worker.status.kind() == StatusKind::Stopping {
            return Err(did_not("it is being stopped, and the database does not answer".to_owned()));
        }
        // Before the driver is asked: a look that finds it awake must know that it was us.
        self.0.untold.wakes(id);
        let hands = &self.0.hands;
        let driver = hands.of(id, &spec).await.map_err(ControlError::from)?;
        let seen = hands.look(id, &spec).await.map_err(ControlError::from)?;
        let woken = match seen.power {
            Power::Running => return Ok(worker),
            Power::Paused => hands.call("thaw", driver.thaw(id, WAKE_WITHIN)).await,
            Power::Stopped => hands.call("start", driver.start(id, WAKE_WITHIN)).await,
            Power::Gone => return Err(did_not("it is gone".to_owned())),
        };
        match woken.map_err(ControlError::from)? {
            Acted::Done(seen) | Acted::AlreadyTrue(seen) => Ok(Worker { boot: seen.boot, ..worker }),
            Acted::Started { .. } => Ok(worker),
        }
    }
}

impl Shared {
    /// Lets a frozen worker go on before the books know: whoever changes it next writes that down first, and the edge
    /// that the door tells now does at the latest.
    pub(super) fn head_start(
        &self,
        id: &WorkerId,
        edge: Edge,
        counted: &mut dyn FnMut(),
    ) -> Option<Standing> {
        if self.cannot_write() {
            return None;
        }
        let driver = self.untold.driver_of(id, self.clock.now())?;
        let mut ahead = None;
        // Noted when there is nothing left but to say the word: whom nobody thaws leaves no note.
        let is_thawed = self.hands.thaw_at_once(id, driver, &mut || {
            let at = self.clock.now();
            ahead = self.untold.go_ahead(id, edge, at);
            let noted_at = self.clock.now();
            if noted_at.since(at) > SLOW {
                // A pump has other things to do than to wait for a disk.
                self.untold.rest_until(noted_at + RESTS_FOR);
            }
            if ahead.is_some() {
                counted();
            }
            ahead.is_some()
        });
        let ahead = ahead?;
        if !is_thawed {
            self.untold.told(id, ahead.pending);
            return None;
        }
        Some(ahead.standing)
    }

    /// The worker as it was last known, if a connection may wake it as such. `why` there is no store to ask.
    fn may_wake(&self, id: &WorkerId, why: StoreError) -> Result<Believed, ControlError> {
        let believed = self.untold.believed(id).ok_or(ControlError::Unavailable(why))?;
        let event = Event::WakeRequested { cause: WakeCause::Connection };
        step(&believed.worker, &event, self.clock.now())?;
        Ok(believed)
    }

    /// Tells the store what the doors could not.
    pub(crate) async fn tell_edges(self: &Arc<Self>) -> Result<(), StoreError> {
        for (worker, pending) in self.untold.all() {
            // Its door has told it meanwhile.
            if self.untold.get(&worker) != Some(pending) {
                continue;
            }
            let edge = pending.edge;
            let wakes = edge.cause == EdgeCause::Came || pending.has_woken;
            match self.edge(&self.replica, &worker, edge, wakes).await {
                Err(ControlError::Unavailable(error)) if error.is_outage() => return Err(error),
                // It concerns this one, and nobody else waits for it.
                Err(ControlError::Unavailable(error)) => {
                    tracing::warn!(%worker, %error, "that somebody is connected cannot be written down");
                }
                // What may not be woken now was allowed to be by what was believed: the next look finds it.
                Ok(_) | Err(_) => self.untold.told(&worker, pending),
            }
        }
        Ok(())
    }
}
