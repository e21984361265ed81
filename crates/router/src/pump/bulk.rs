//! Whether one direction of a connection carries bulk, by what the reads of it found.
//!
//! Little is copied, much goes through a pipe, and of very much is only looked for from time to time: most of what a
//! GiB costs are wake-ups, of this thread by each packet and of both peers by each batch it passes on, and whoever
//! comes less often finds more.

/// After so many full buffers in a row it is bulk.
const AFTER: u8 = 2;

/// And after so many small batches in a row it is no more. One alone says nothing: whoever is quick finds little, and
/// would go back to copying for it.
const TRICKLE_AFTER: u8 = 16;

/// After so much it gathers. Its end then comes a fraction of a millisecond later, which is little beside what so much
/// takes.
const GATHERS_AFTER: usize = 16 << 20;

/// And after so many looks in a row that found nothing it does so no more: a sender that shares its processor with the
/// receiver pauses all the time, and whoever has ended is asked in vain for a few milliseconds.
const PAUSED_AFTER: u8 = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gathers {
    #[default]
    No,
    /// The source is not watched.
    Yes { empty_looks: u8 },
    /// And it was its turn to be looked at; nothing has been found yet.
    Looks { empty_looks: u8 },
}

/// What one direction has carried lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bulk {
    full_reads: u8,
    small_batches: u8,
    passed: usize,
    gathers: Gathers,
}

impl Bulk {
    /// Whether a pipe is better than a buffer.
    pub(super) fn is_bulk(&self) -> bool {
        self.full_reads >= AFTER
    }

    /// Whether the source is to be looked at from time to time, and not watched.
    pub(super) fn gathers(&self) -> bool {
        self.gathers != Gathers::No
    }

    /// A buffer was filled.
    pub(super) fn filled_buffer(&mut self) {
        self.full_reads = self.full_reads.saturating_add(1);
        self.found();
    }

    /// A buffer was not filled: there is no more.
    pub(super) fn found_little(&mut self) {
        *self = Self::default();
    }

    /// A batch went into a pipe.
    pub(super) fn found_batch(&mut self, len: usize, is_small: bool) {
        self.found();
        self.passed = self.passed.saturating_add(len);
        self.small_batches = if is_small { self.small_batches + 1 } else { 0 };
        if self.small_batches >= TRICKLE_AFTER {
            *self = Self::default();
        } else if self.passed >= GATHERS_AFTER && !self.gathers() {
            self.gathers = Gathers::Yes { empty_looks: 0 };
        }
    }

    fn found(&mut self) {
        if self.gathers() {
            self.gathers = Gathers::Yes { empty_looks: 0 };
        }
    }

    /// It is the source's turn to be looked at.
    pub(super) fn looks(&mut self) {
        if let Gathers::Yes { empty_looks } = self.gathers {
            self.gathers = Gathers::Looks { empty_looks };
        }
    }

    /// Nothing more is there.
    pub(super) fn found_end_of_batch(&mut self) {
        match self.gathers {
            Gathers::Looks { empty_looks } if empty_looks + 1 >= PAUSED_AFTER => self.watches(),
            Gathers::Looks { empty_looks } => self.gathers = Gathers::Yes { empty_looks: empty_looks + 1 },
            Gathers::Yes { .. } | Gathers::No => {}
        }
    }

    /// The source is watched again.
    pub(super) fn watches(&mut self) {
        (self.passed, self.gathers) = (0, Gathers::No);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const BATCH: usize = 512 << 10;

    pub(crate) fn gathering() -> Bulk {
        let mut bulk = Bulk::default();
        (0..AFTER).for_each(|_| bulk.filled_buffer());
        while !bulk.gathers() {
            assert!(bulk.is_bulk());
            bulk.found_batch(BATCH, false);
            bulk.found_end_of_batch();
        }
        bulk
    }

    #[test]
    fn full_buffers_in_a_row_are_bulk() {
        let mut bulk = Bulk::default();
        bulk.filled_buffer();
        bulk.found_little();
        bulk.filled_buffer();
        assert!(!bulk.is_bulk(), "they were not in a row");
        bulk.filled_buffer();
        assert!(bulk.is_bulk());
    }

    #[test]
    fn small_batches_in_a_row_are_none() {
        let mut bulk = gathering();
        for _ in 1..TRICKLE_AFTER {
            bulk.found_batch(1, true);
        }
        assert!(bulk.is_bulk());
        bulk.found_batch(BATCH, false);
        bulk.found_batch(1, true);
        assert!(bulk.is_bulk(), "they were not in a row");
        for _ in 1..TRICKLE_AFTER {
            bulk.found_batch(1, true);
        }
        assert!(!bulk.is_bulk());
        assert!(!bulk.gathers());
    }

    #[test]
    fn who_gathers_does_so_until_there_is_a_pause() {
        let mut bulk = gathering();
        bulk.found_end_of_batch();
        assert!(bulk.gathers(), "that was no look");
        for _ in 0..100 {
            for _ in 1..PAUSED_AFTER {
                bulk.looks();
                bulk.found_end_of_batch();
            }
            bulk.looks();
            bulk.found_batch(BATCH, false);
            bulk.found_end_of_batch();
            assert!(bulk.gathers());
        }
        for _ in 0..PAUSED_AFTER {
            assert!(bulk.gathers());
            bulk.looks();
            bulk.found_end_of_batch();
        }
        assert!(!bulk.gathers());
        assert!(bulk.is_bulk(), "it may go on");
        bulk.found_batch(BATCH, false);
        assert!(!bulk.gathers(), "but it has to prove itself again");
    }

    #[test]
    fn who_does_not_gather_is_not_looked_at() {
        let mut bulk = Bulk::default();
        bulk.looks();
        assert!(!bulk.gathers());
    }
}
