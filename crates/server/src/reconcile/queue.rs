//! Who is being checked, and how the loop is woken.
//!
//! The order and the times are in the store: a claim is what keeps one worker from being in two checks at once,
//! and a nudge is what merges requests for the same worker to the earliest. Here is only the room.

use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

#[derive(Debug)]
pub(crate) struct Queue {
    at_once: usize,
    room: Arc<Semaphore>,
    nudged: Arc<Notify>,
    /// How many checks have been finished.
    finished: watch::Sender<u64>,
}

/// Room for one check, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    permit: Option<OwnedSemaphorePermit>,
    nudged: Arc<Notify>,
    finished: watch::Sender<u64>,
}

impl Queue {
    pub(crate) fn new(at_once: usize) -> Self {
        let room = Arc::new(Semaphore::new(at_once));
        Self { at_once, room, nudged: Arc::default(), finished: watch::Sender::new(0) }
    }

    /// For how many more there is room, if it is worth a claim: when many are due, they are claimed by the
    /// dozen and not one for each that is finished.
    pub(crate) fn room_for_some(&self) -> Option<usize> {
        let room = self.room.available_permits();
        (room >= self.at_once.div_ceil(4)).then_some(room)
    }

    /// Whether a check is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.room.available_permits() < self.at_once
    }

    /// Room for one more. There may be none left for a check on demand, which goes ahead all the same: somebody
    /// waits for its answer.
    pub(crate) fn place(&self) -> Place {
        Place {
            permit: Arc::clone(&self.room).try_acquire_owned().ok(),
            nudged: Arc::clone(&self.nudged),
            finished: self.finished.clone(),
        }
    }

    /// Something may be due sooner than the loop thinks.
    pub(crate) fn nudge(&self) {
        self.nudged.notify_one();
    }

    /// Waits for a nudge; one that came since the last wait counts.
    pub(crate) async fn nudged(&self) {
        self.nudged.notified().await;
    }

    /// Tells of each check that is finished. Subscribe before you look.
    pub(crate) fn finished(&self) -> watch::Receiver<u64> {
        self.finished.subscribe()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.finished.send_modify(|count| *count += 1);
        self.nudged.notify_one();
    }
}
