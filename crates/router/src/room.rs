//! How many connections a machine takes, and who gets the last places.
//!
//! Below the mark everybody is let in. Above it a worker gets no more than its share of all places: one worker's
//! visitors, however many, do not keep out those of the others. At a port that leads to many workers nobody knows yet
//! whose visitor somebody is, so there it is the share of those who come from the same place.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::queue::Source;
use crate::router::lock;

/// The places of all pumps together.
#[derive(Debug)]
pub(crate) struct Room {
    places: usize,
    taken: AtomicUsize,
    /// Workers, and places that visitors come from, that have at least one.
    workers: AtomicUsize,
}

/// How many each source has at the ports where people are listened to first.
#[derive(Debug, Default)]
pub(crate) struct Sources(Mutex<HashMap<Source, Arc<AtomicUsize>>>);

impl Sources {
    pub(crate) fn of(&self, from: IpAddr) -> Arc<AtomicUsize> {
        Arc::clone(lock(&self.0).entry(Source::of(from)).or_default())
    }

    /// One of them has given its place back.
    pub(crate) fn left(&self, from: IpAddr) {
        // Whoever is about to take a place has a handle on the count: it is kept until nobody does.
        let is_over =
            |held: &Arc<AtomicUsize>| Arc::strong_count(held) == 1 && held.load(Ordering::Acquire) == 0;
        let sources = &mut *lock(&self.0);
        if sources.get(&Source::of(from)).is_some_and(is_over) {
            sources.remove(&Source::of(from));
        }
    }
}

/// From where on the share counts: the last sixteenth is for those who have little.
const fn mark(places: usize) -> usize {
    places - places / 16
}

impl Room {
    pub(crate) const fn new(places: usize) -> Self {
        Self { places, taken: AtomicUsize::new(0), workers: AtomicUsize::new(0) }
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Takes a place for a worker that has `held`. False: there is none for it.
    pub(crate) fn take(&self, held: &AtomicUsize) -> bool {
        let taken = self.taken.fetch_add(1, Ordering::AcqRel);
        let has = held.fetch_add(1, Ordering::AcqRel);
        let workers = if has == 0 {
            self.workers.fetch_add(1, Ordering::AcqRel) + 1
        } else {
            self.workers.load(Ordering::Acquire)
        };
        let may = may_take(self.places, taken, has, workers);
        if !may {
            self.give_back(held);
        }
        may
    }

    pub(crate) fn give_back(&self, held: &AtomicUsize) {
        if held.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.workers.fetch_sub(1, Ordering::AcqRel);
        }
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

fn may_take(places: usize, taken: usize, has: usize, workers: usize) -> bool {
    // As if there were one more: whoever comes next finds a place.
    taken < places && (taken < mark(places) || has < places / (workers + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_alone_may_have_all_but_what_is_kept_for_the_next() {
        let (room, held) = (Room::new(100), AtomicUsize::new(0));
        let let_in = (0..200).filter(|_| room.take(&held)).count();
        assert_eq!((let_in, room.taken()), (94, 94));
        assert!(room.take(&AtomicUsize::new(0)), "whoever comes next finds a place");
    }

    #[test]
    fn a_greedy_worker_stops_at_the_mark_as_soon_as_there_is_another() {
        let room = Room::new(100);
        let (greedy, modest) = (AtomicUsize::new(0), AtomicUsize::new(0));
        assert!(room.take(&modest));
        assert_eq!((0..200).filter(|_| room.take(&greedy)).count(), 93);
        assert_eq!((0..200).filter(|_| room.take(&modest)).count(), 6, "and the rest is the other's");
        assert_eq!(room.taken(), 100);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let (room, held) = (Room::new(2), AtomicUsize::new(0));
        assert!(room.take(&held) && room.take(&held) && !room.take(&held));
        room.give_back(&held);
        assert!(room.take(&held));
        room.give_back(&held);
        room.give_back(&held);
        assert_eq!((room.taken(), room.workers.load(Ordering::Acquire)), (0, 0));
    }
}
