//! What went through to one worker: open connections and bytes moved, counted without a lock.
//!
//! Bytes are activity, and the control plane is told of them, but not of each: whoever moves some sets a mark,
//! and the housekeeper tells of all marks a few times a second. That loses nothing, because an open connection
//! holds the worker by itself; and it adds nothing, because with the last connection the mark is taken away: what
//! is told after that would be a use that was over.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One worker's counts, for as long as the router lives.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    let_through: AtomicU64,
    turned_away: AtomicU64,
    to_worker: AtomicU64,
    to_client: AtomicU64,
    has_moved: AtomicBool,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often somebody was let through since the router began: a connection, an HTTP request, or one of them again,
    /// after silence or a call that failed.
    pub let_through: u64,
    /// How often somebody was turned away.
    pub turned_away: u64,
    /// Bytes from clients, of HTTP those of bodies.
    pub to_worker: u64,
    /// Bytes from the worker, of HTTP those of bodies.
    pub to_client: u64,
    /// Connections that are open now or wait, and count.
    pub open: u64,
}

impl Tally {
    pub(crate) fn let_through(&self) {
        self.let_through.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes went through. True: nobody has heard of any since the last time they were told of.
    pub(crate) fn moved(&self, to_worker: u64, to_client: u64) -> bool {
        if to_worker > 0 {
            self.to_worker.fetch_add(to_worker, Ordering::Relaxed);
        }
        if to_client > 0 {
            self.to_client.fetch_add(to_client, Ordering::Relaxed);
        }
        // A look before the write: while bytes flow the mark is set already and stays in everybody's cache.
        !self.has_moved.load(Ordering::Relaxed) && !self.has_moved.swap(true, Ordering::Relaxed)
    }

    /// Takes the mark away; whether there was one.
    pub(crate) fn take_mark(&self) -> bool {
        self.has_moved.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn counts(&self, open: u64) -> Counts {
        Counts {
            let_through: self.let_through.load(Ordering::Relaxed),
            turned_away: self.turned_away.load(Ordering::Relaxed),
            to_worker: self.to_worker.load(Ordering::Relaxed),
            to_client: self.to_client.load(Ordering::Relaxed),
            open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_bytes_after_a_telling_are_news() {
        let tally = Tally::default();
        assert!(!tally.take_mark());
        assert!(tally.moved(10, 0));
        assert!(!tally.moved(0, 20));
        assert!(tally.take_mark());
        assert!(!tally.take_mark());
        assert!(tally.moved(1, 0));
        let counts = tally.counts(0);
        assert_eq!((counts.to_worker, counts.to_client), (11, 20));
    }
}
