//! How many files may be kept open.
//!
//! Reading a cgroup file that is open takes a sixth of the time of opening it, reading it and closing it. But a process
//! may have only so many open files, often 1,024, and the front door needs one for each side of a connection. So a part
//! of them is for sensors, and containers beyond that are read by opening: slower, and just as right.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, getrlimit};

/// A quarter: a thousand containers on a machine that allows 20,000 files, 80 where it is 1,024.
const SHARE: u64 = 4;

static FREE: LazyLock<AtomicUsize> = LazyLock::new(|| {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    AtomicUsize::new(usize::try_from(allowed / SHARE).unwrap_or(usize::MAX))
});

/// The right to keep some files open; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    of: &'static AtomicUsize,
    files: usize,
}

impl Permit {
    /// `None`: read by opening.
    pub(super) fn take(files: usize) -> Option<Self> {
        Self::take_from(&FREE, files)
    }

    fn take_from(of: &'static AtomicUsize, files: usize) -> Option<Self> {
        // Relaxed: the number alone matters, nothing is published with it.
        of.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(files)).ok()?;
        Some(Self { of, files })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.of.fetch_add(self.files, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_taken_again() {
        static FIVE: AtomicUsize = AtomicUsize::new(5);
        let first = Permit::take_from(&FIVE, 3);
        assert!(first.is_some());
        assert!(Permit::take_from(&FIVE, 3).is_none());
        assert!(Permit::take_from(&FIVE, 2).is_some(), "given back at once, because nobody keeps it");
        drop(first);
        assert!(Permit::take_from(&FIVE, 5).is_some());
    }
}
