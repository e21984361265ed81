//! What a driver says unasked.
//!
//! Hints make things quick, looks make them right: a hint may be lost, so the loop also scans.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use drowse_core::id::{BootId, WorkerId};
use tokio::sync::Notify;

/// Something that a driver noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A run ended by itself. Told once for each run.
    ///
    /// An end that a stop or a deletion brought about is told in the answer to that call instead.
    Exited {
        /// Whose.
        worker: WorkerId,
        /// Which run.
        boot: BootId,
        /// 128 + signal if it was killed; `None` where nobody can know.
        code: Option<i32>,
    },
    /// It is no longer as it was; look.
    Changed {
        /// Who.
        worker: WorkerId,
    },
    /// Something came or went, or is found elsewhere now, that may concern whoever discovers workers.
    Came,
    /// Hints may have been lost; look at everybody.
    Lost,
}

/// Hints that nobody has fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    queue: VecDeque<Hint>,
    /// Whose `Changed` is in the queue: "look at it" twice is looking once.
    changed: BTreeSet<WorkerId>,
    /// Whether `Came` is in the queue.
    has_come: bool,
}

impl Hints {
    pub(crate) fn push(&self, hint: Hint) {
        let mut waiting = self.lock();
        let is_news = match &hint {
            Hint::Changed { worker } => waiting.changed.insert(worker.clone()),
            Hint::Came => !std::mem::replace(&mut waiting.has_come, true),
            Hint::Exited { .. } | Hint::Lost => true,
        };
        if is_news {
            waiting.queue.push_back(hint);
        }
        drop(waiting);
        self.arrived.notify_one();
    }

    pub(crate) async fn next(&self) -> Hint {
        loop {
            if let Some(hint) = self.pop() {
                return hint;
            }
            // A hint that arrived since the queue was looked at left a permit, so this does not wait.
            self.arrived.notified().await;
        }
    }

    fn pop(&self) -> Option<Hint> {
        let mut waiting = self.lock();
        let hint = waiting.queue.pop_front();
        if let Some(Hint::Changed { worker }) = &hint {
            waiting.changed.remove(worker);
        }
        waiting.has_come &= hint != Some(Hint::Came);
        if !waiting.queue.is_empty() {
            // One permit may stand for several hints, and another caller may wait for the rest.
            self.arrived.notify_one();
        }
        hint
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
