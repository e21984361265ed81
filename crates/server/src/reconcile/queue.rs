//! Who is being checked, and how the loop is woken.
//!
//! The order and the times are in the store: a claim is what keeps one worker from being in two checks at once,
//! and a nudge is what merges requests for the same worker to the earliest. Here is only the room.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use drowse_core::Timestamp;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

#[derive(Debug)]
pub(crate) struct Queue {
    room: Arc<Room>,
    nudged: Arc<Notify>,
    /// When the loop comes again by itself, in microseconds.
    comes_at: AtomicI64,
    /// How many checks have been finished.
    finished: watch::Sender<u64>,
}

#[derive(Debug)]
struct Room {
    at_once: usize,
    places: Arc<Semaphore>,
    /// The loop found too little of it, and waits for more.
    is_wanted: AtomicBool,
}

impl Room {
    /// For how many there is room, if it is worth a claim.
    fn for_some(&self) -> Option<usize> {
        let free = self.places.available_permits();
        (free >= self.at_once.div_ceil(4)).then_some(free)
    }
}

/// Room for one check, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    permit: Option<OwnedSemaphorePermit>,
    room: Arc<Room>,
    nudged: Arc<Notify>,
    finished: watch::Sender<u64>,
}

impl Queue {
    pub(crate) fn new(at_once: usize) -> Self {
        let places = Arc::new(Semaphore::new(at_once));
        let room = Arc::new(Room { at_once, places, is_wanted: AtomicBool::new(false) });
        Self {
            room,
            nudged: Arc::default(),
            comes_at: AtomicI64::new(i64::MAX),
            finished: watch::Sender::new(0),
        }
    }

    /// For how many more there is room, if it is worth a claim: when many are due, they are claimed by the
    /// dozen and not one for each that is finished. Of room that is not there yet the loop is told.
    pub(crate) fn room_for_some(&self) -> Option<usize> {
        // Said before it looks: who gives back a place after the look finds that it is wanted, and who did before it is
        // counted.
        self.room.is_wanted.store(true, Ordering::SeqCst);
        let room = self.room.for_some();
        if room.is_some() {
            self.room.is_wanted.store(false, Ordering::SeqCst);
        }
        room
    }

    /// Whether a check is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.room.places.available_permits() < self.room.at_once
    }

    /// Room for one more. There may be none left for a check on demand, which goes ahead all the same: somebody
    /// waits for its answer.
    pub(crate) fn place(&self) -> Place {
        Place {
            permit: Arc::clone(&self.room.places).try_acquire_owned().ok(),
            room: Arc::clone(&self.room),
            nudged: Arc::clone(&self.nudged),
            finished: self.finished.clone(),
        }
    }

    /// Something may be due sooner than the loop thinks.
    pub(crate) fn nudge(&self) {
        self.nudged.notify_one();
    }

    /// A worker is due at `at`, as the store knows. A loop that comes by then finds that without a nudge.
    pub(crate) fn nudge_for(&self, at: Timestamp) {
        // Should it be on its way to sleep: whatever it says next, it said after this or is compared with it here.
        if at.as_micros() < self.comes_at.load(Ordering::SeqCst) {
            self.nudge();
        }
    }

    /// The loop looks what is due: whoever is due sooner than it knows has to say so.
    pub(crate) fn is_looking(&self) {
        self.comes_at.store(i64::MAX, Ordering::SeqCst);
    }

    /// The loop has looked, and comes again at `at`.
    pub(crate) fn comes_at(&self, at: Timestamp) {
        self.comes_at.store(at.as_micros(), Ordering::SeqCst);
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
        if self.room.is_wanted.load(Ordering::SeqCst) && self.room.for_some().is_some() {
            self.nudged.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn is_nudged(queue: &Queue) -> bool {
        std::pin::pin!(queue.nudged()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn only_who_is_due_before_the_loop_comes_nudges_it() {
        let (queue, at) = (Queue::new(1), Timestamp::from_secs);
        queue.comes_at(at(10));
        queue.nudge_for(at(11));
        // The loop takes along whoever is due at its very instant.
        queue.nudge_for(at(10));
        assert!(!is_nudged(&queue));
        queue.nudge_for(at(9));
        assert!(is_nudged(&queue));
        // What it sees while it looks may be from before the commit.
        queue.is_looking();
        queue.nudge_for(at(11));
        assert!(is_nudged(&queue));
    }

    #[test]
    fn a_place_that_is_given_back_nudges_once_there_is_room_for_some() {
        let queue = Queue::new(8);
        let mut places: Vec<Place> = (0..8).map(|_| queue.place()).collect();
        assert_eq!(queue.room_for_some(), None);
        drop(places.pop());
        assert!(!is_nudged(&queue), "one is not worth a claim");
        drop(places.pop());
        assert!(is_nudged(&queue));
        assert_eq!(queue.room_for_some(), Some(2));
        drop(places);
        assert!(!is_nudged(&queue), "nobody waits for room");
    }
}
