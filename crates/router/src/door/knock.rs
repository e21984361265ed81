//! Somebody who knocks at a door and waits there.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Door, Pass};
use crate::queue::Ticket;
use crate::turned::Turned;

/// What became of somebody who knocked.
#[derive(Debug)]
pub(crate) enum Knocked {
    Passed(Pass),
    Waits(Waits),
    Turned(Turned),
}

impl Knocked {
    /// To the end of the wait.
    pub(crate) async fn settled(self) -> Result<Pass, Turned> {
        match self {
            Self::Passed(pass) => Ok(pass),
            Self::Turned(why) => Err(why),
            Self::Waits(mut waits) => waits.told().await,
        }
    }
}

/// A place in the queue. Whoever stops waiting, by dropping it, counts no more.
#[derive(Debug)]
pub(crate) struct Waits {
    pub(super) door: Arc<Door>,
    pub(super) ticket: Ticket,
    pub(super) told: oneshot::Receiver<Result<Pass, Turned>>,
}

impl Waits {
    /// Waits until it is decided. To be called until then, and not after.
    pub(crate) async fn told(&mut self) -> Result<Pass, Turned> {
        (&mut self.told).await.unwrap_or(Err(Turned::Ending))
    }

    /// How many are before them.
    pub(crate) fn ahead(&self) -> usize {
        self.door.lock().gate.ahead_of(self.ticket).unwrap_or_default()
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        if let Some(router) = self.door.router.upgrade() {
            self.door.give_up(self.ticket, router.now());
        }
    }
}
