//! A clock that stands still until it is set.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use drowse_core::Timestamp;
use tokio::sync::oneshot;

pub(super) struct Manual(Mutex<Still>);

struct Still {
    now: Timestamp,
    /// Who waits until when. They are woken in the order of their times, and of their coming: a test that is run
    /// again takes the same way.
    waits: BTreeMap<(Timestamp, u64), oneshot::Sender<()>>,
    next_wait: u64,
}

impl Manual {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self(Mutex::new(Still { now, waits: BTreeMap::new(), next_wait: 0 }))
    }

    fn lock(&self) -> MutexGuard<'_, Still> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.lock().now
    }

    /// The earliest instant for which somebody waits.
    pub(super) fn next_wait(&self) -> Option<Timestamp> {
        self.lock().waits.keys().next().map(|(at, _)| *at)
    }

    pub(super) fn set(&self, now: Timestamp) {
        let mut still = self.lock();
        still.now = still.now.max(now);
        while let Some(first) = still.waits.first_entry()
            && first.key().0 <= now
        {
            // Whoever has stopped waiting is not there to be told.
            let _ = first.remove().send(());
        }
    }

    pub(super) async fn wait_until(&self, at: Timestamp) {
        let (told, wait) = {
            let mut still = self.lock();
            if still.now >= at {
                return;
            }
            let (tell, told) = oneshot::channel();
            let key = (at, still.next_wait);
            still.next_wait += 1;
            still.waits.insert(key, tell);
            (told, Wait { manual: self, key })
        };
        // The other end is kept in the list until the time has come.
        let _ = told.await;
        drop(wait);
    }
}

/// An entry in the list of those who wait, for as long as they do.
struct Wait<'a> {
    manual: &'a Manual,
    key: (Timestamp, u64),
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.manual.lock().waits.remove(&self.key);
    }
}
