//! How many connections a machine takes, and who gets the last places.
//!
//! As long as there is plenty of room everybody is let in. The last places are for those who have little: a worker gets
//! one only if it has less than a quarter of what is left, so that something is left for whoever comes next, however
//! greedy those are who came before. At a port that leads to many workers nobody knows yet
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
    /// What the workers themselves take of them.
    aside: AtomicUsize,
    taken: AtomicUsize,
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

/// How many of the places are for those who have little: the last sixteenth.
const fn reserve(places: usize) -> usize {
    places / 16
}

impl Room {
    pub(crate) const fn new(places: usize) -> Self {
        Self { places, aside: AtomicUsize::new(0), taken: AtomicUsize::new(0) }
    }

    /// There is a worker more. It needs about as many files as a connection: one to hear of its end, and one of its
    /// freezer.
    pub(crate) fn set_aside(&self) {
        self.aside.fetch_add(1, Ordering::AcqRel);
    }

    /// There is one less.
    pub(crate) fn set_aside_no_more(&self) {
        self.aside.fetch_sub(1, Ordering::AcqRel);
    }

    /// Where a limit of files is low, half of it is for connections all the same: whoever has workers without end and
    /// no files is to hear of it from those, and not find every door shut.
    fn places(&self) -> usize {
        self.places - self.aside.load(Ordering::Acquire).min(self.places / 2)
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// Takes a place for a worker that has `held`. False: there is none for it.
    pub(crate) fn take(&self, held: &AtomicUsize) -> bool {
        let taken = self.taken.fetch_add(1, Ordering::AcqRel);
        let has = held.fetch_add(1, Ordering::AcqRel);
        let may = may_take(self.places(), taken, has);
        if !may {
            self.give_back(held);
        }
        may
    }

    pub(crate) fn give_back(&self, held: &AtomicUsize) {
        held.fetch_sub(1, Ordering::AcqRel);
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

fn may_take(places: usize, taken: usize, has: usize) -> bool {
    let left = places.saturating_sub(taken);
    // Whoever has none gets one as long as there is any.
    left > reserve(places) || left > 0 && has < (left / 4).max(1)
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
        let room = Room::new(1_600);
        let (greedy, modest) = (AtomicUsize::new(0), AtomicUsize::new(0));
        assert!(room.take(&modest));
        assert_eq!((0..2_000).filter(|_| room.take(&greedy)).count(), 1_499);
        assert_eq!((0..2_000).filter(|_| room.take(&modest)).count(), 19, "a quarter of what is left then");
        assert_eq!(room.taken(), 1_519);
    }

    #[test]
    fn a_few_do_not_take_what_is_kept_for_the_others() {
        let room = Room::new(1_600);
        let held: Vec<AtomicUsize> = (0..10).map(|_| AtomicUsize::new(0)).collect();
        for greedy in &held {
            while room.take(greedy) {}
            let next = AtomicUsize::new(0);
            assert!(room.take(&next), "whoever comes next finds a place");
            room.give_back(&next);
        }
        assert_eq!(1_600 - room.taken(), 15);
    }

    #[test]
    fn what_workers_take_themselves_is_not_for_connections() {
        let room = Room::new(160);
        for _ in 0..16 {
            room.set_aside();
        }
        let held = AtomicUsize::new(0);
        assert_eq!((0..200).filter(|_| room.take(&held)).count(), 135, "all but 16, and the reserve");
        room.set_aside_no_more();
        assert!(room.take(&held) && !room.take(&held), "there is one worker less");
        room.set_aside();
        for _ in 0..1_000 {
            room.set_aside();
        }
        let room = Room { taken: AtomicUsize::new(0), ..room };
        assert_eq!((0..200).filter(|_| room.take(&AtomicUsize::new(0))).count(), 80);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let (room, held) = (Room::new(2), AtomicUsize::new(0));
        assert!(room.take(&held) && room.take(&held) && !room.take(&held));
        room.give_back(&held);
        assert!(room.take(&held));
        room.give_back(&held);
        room.give_back(&held);
        assert_eq!((room.taken(), held.load(Ordering::Acquire)), (0, 0));
    }
}
