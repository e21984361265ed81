//! Moving what was committed from SQLite's log into its file, beside the writer instead of inside a commit.
//!
//! SQLite would do it in the commit that fills the log, and somebody's wake would wait for the disk. Here a
//! thread with a connection of its own does it; nobody waits for that. Only while commits come faster than it
//! can follow does the log grow, and from a size on the writer helps, as it always would.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::StoreError;
use crate::sqlite;
use crate::store::Options;

/// Pages of 4 KiB in the log after which it is worth the while; SQLite's own default.
const WORTH_WHILE: i32 = 1_000;

/// Pages in the log that are too many: 40 MiB on disk, and readers search longer.
const TOO_MANY: i32 = 10_000;

/// The thread.
pub(crate) struct Checkpointer {
    log: Arc<Log>,
    thread: Option<JoinHandle<()>>,
}

/// What the writer tells of the log.
#[derive(Default)]
pub(crate) struct Log {
    due: Mutex<Due>,
    bell: Condvar,
    /// How many pages the log had when it was last taken care of.
    done: AtomicI32,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Due {
    #[default]
    No,
    Yes,
    Closed,
}

impl Log {
    /// After each commit: how many pages there are. True if the writer must see to it itself.
    pub(crate) fn grew(&self, pages: i32) -> bool {
        let done = self.done.load(Ordering::Relaxed);
        // Fewer than there were: it has begun anew.
        let new = if pages < done { pages } else { pages - done };
        if pages >= TOO_MANY {
            self.done.store(0, Ordering::Relaxed);
            return true;
        }
        if new >= WORTH_WHILE {
            self.done.store(pages, Ordering::Relaxed);
            self.ring(Due::Yes);
        }
        false
    }

    fn ring(&self, due: Due) {
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = due;
        self.bell.notify_one();
    }

    /// Waits until there is something to do; false: nothing ever will be.
    fn wait(&self) -> bool {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *due {
                Due::Yes => {
                    *due = Due::No;
                    return true;
                }
                Due::Closed => return false,
                Due::No => due = self.bell.wait(due).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Checkpointer {
    pub(crate) fn start(path: &Path, options: &Options, log: Arc<Log>) -> Result<Self, StoreError> {
        let connection = sqlite::Connection::open(path, options)?;
        let told = Arc::clone(&log);
        let thread = thread::Builder::new()
            .name("drowse-log".to_owned())
            .spawn(move || {
                while told.wait() {
                    // Failed or not to the end, it is tried again after the next thousand pages.
                    let _ = connection.checkpoint();
                }
            })
            .map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Self { log, thread: Some(thread) })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.log.ring(Due::Closed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Checkpointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpointer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_due(log: &Log) -> bool {
        let mut due = log.due.lock().unwrap();
        std::mem::take(&mut *due) == Due::Yes
    }

    #[test]
    fn every_thousand_pages_it_is_due() {
        let log = Log::default();
        assert!(!log.grew(999) && !is_due(&log));
        assert!(!log.grew(1_000) && is_due(&log));
        assert!(!log.grew(1_999) && !is_due(&log), "what was told once is not told again");
        assert!(!log.grew(2_000) && is_due(&log));
        assert!(!log.grew(10) && !is_due(&log), "the log has begun anew");
        assert!(!log.grew(1_010) && is_due(&log));
    }

    #[test]
    fn the_writer_helps_when_the_log_gets_too_long() {
        let log = Log::default();
        assert!(!log.grew(9_999));
        assert!(log.grew(10_000));
        assert!(!log.grew(5), "and it begins anew");
    }
}
