//! A front door in another process: that of the Drowse before this one, which carries its connections to their end.
//!
//! It is a guest of this fleet. What it counts hangs on a router session of its own, which neither the end of its fleet
//! nor that of a host of it ends: it is renewed while the guest is here, ended when the guest has left, and where nobody
//! knows of it any more, it expires as that of any router, and its connections are unknown for a while.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_store::{Lane, RouterSession, StoreError};
use drowse_wire::control::{Awake, Edge, EdgeCause, Refused, Standing};

use super::control::{awake, refused, standing};
use super::outage::STORE_WITHIN;
use super::{ControlError, Fleet};
use crate::ingest::{ALIVE_FOR, BEFORE_THE_END};

/// For how long a guest may rely on what it was told last, from the moment it asked.
pub const GUEST_FOR: Duration = ALIVE_FOR.checked_sub(BEFORE_THE_END).expect("a session outlives its margin");

/// How long what the drivers are at may take before it is left to whoever follows.
const ACTS_FOR: Duration = Duration::from_secs(1);

/// How often it is looked whether they are done.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Connections to a worker that a door carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// To whom.
    pub worker: WorkerId,
    /// The number of the edge that was told last.
    pub epoch: u64,
    /// How many there were at that edge.
    pub count: u64,
}

impl Fleet {
    /// Stops deciding for good, and hangs the connections through this process's door on a session of their own, which
    /// is good for [`GUEST_FOR`]. To be called when the loop has ended and the door asks nothing any more.
    ///
    /// Nothing is written afterwards, and the drivers are left alone but for finding addresses.
    pub async fn hand_on(&self, session: &str) -> Result<Vec<Carried>, ControlError> {
        let shared = &self.0;
        // What takes a moment is done to its end; a slow start is taken over as after any other end.
        let deadline = shared.clock.now() + ACTS_FOR;
        while shared.work.is_any() && shared.clock.now() < deadline {
            shared.clock.sleep_until(shared.clock.now() + LOOK_EVERY).await;
        }
        // What the door did ahead of the books, and what went through it.
        shared.tell_edges().await?;
        if !shared.untold.all().is_empty() {
            // Nobody would tell it again: it would be carried and not counted.
            return Err(StoreError::Unavailable(
                "that somebody is connected could not be written down".into(),
            )
            .into());
        }
        shared.flush().await?;
        shared.tasks.end().await;
        for driver in shared.hands.drivers().iter() {
            driver.rest();
        }
        let (from, now) = (shared.replica.clone(), shared.clock.now());
        let to = RouterSession { id: session.to_owned(), started_at: now, alive_until: now + ALIVE_FOR };
        let moved = shared.db.run("hand-on", move |store| store.move_connections(&from, &to)).await?;
        let carried =
            moved.into_iter().map(|(worker, row)| Carried { worker, epoch: row.epoch, count: row.count });
        Ok(carried.collect())
    }

    /// Lets go of the store: another Drowse may have it.
    pub async fn leave_store(&self) {
        self.0.db.let_go().await;
    }

    /// Begins or renews the session of a guest. From the moment it asked, it is good for [`GUEST_FOR`].
    pub async fn renew_guest(&self, session: &str) -> Result<(), ControlError> {
        let now = self.0.clock.now();
        let session = RouterSession { id: session.to_owned(), started_at: now, alive_until: now + ALIVE_FOR };
        let renew = move |tx: &drowse_store::Tx<'_>| tx.renew_session(&session);
        Ok(self.0.db.tx::<_, StoreError>("guest", Lane::Wake, renew).await?)
    }

    /// A guest says again what it carries: nothing is woken for it, and it is no activity. A worker that is off the books
    /// holds nobody.
    pub async fn guest_carries(&self, session: &str, carried: Carried) -> Result<(), ControlError> {
        let Carried { worker, epoch, count } = carried;
        let session = session.to_owned();
        let told = self.0.change("guest", Lane::Wake, &worker, move |change| {
            change.locked.set_connections(&session, epoch, count, change.now)?;
            Ok(())
        });
        match told.await {
            Ok(_) | Err(ControlError::NotFound(_)) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// An edge of a guest's count, as [`Control::connections`] of this process's own door; but while it cannot be
    /// written, nobody can tell.
    ///
    /// [`Control::connections`]: drowse_wire::control::Control::connections
    pub async fn guest_connections(
        &self,
        session: &str,
        worker: &WorkerId,
        edge: Edge,
    ) -> Result<Standing, Refused> {
        let told = async {
            self.0.can_write()?;
            let (shared, session, id) = (Arc::clone(&self.0), session.to_owned(), worker.clone());
            let wakes = edge.cause == EdgeCause::Came;
            // By itself: what it begins is finished, also when nobody waits for it any more.
            let telling = self.0.tasks.spawn(async move { shared.edge(&session, &id, edge, wakes).await });
            let gone = || ControlError::Unavailable(StoreError::Unavailable("it does not answer".into()));
            tokio::select! {
                biased;
                told = telling => told.unwrap_or_else(|_| Err(gone())),
                () = self.0.clock.sleep_until(self.0.clock.now() + STORE_WITHIN) => Err(gone()),
            }
        };
        told.await.map(|(worker, terms)| standing(&worker, terms)).map_err(refused)
    }

    /// As [`Control::wake`] of this process's own door; but while nothing can be written, nobody can tell.
    ///
    /// [`Control::wake`]: drowse_wire::control::Control::wake
    pub async fn guest_wake(&self, worker: &WorkerId) -> Result<Awake, Refused> {
        awake(self.wake(worker).await)
    }

    /// A guest has left, and with it everybody whom it carried.
    pub async fn guest_left(&self, session: &str) -> Result<(), ControlError> {
        let (session, now) = (session.to_owned(), self.0.clock.now());
        Ok(self.0.db.run("guest-left", move |store| store.end_session(&session, now)).await?)
    }
}
