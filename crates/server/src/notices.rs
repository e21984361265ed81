//! Tells those who wait that something has been written down.
//!
//! Only a hint: whoever is told looks at the store. Subscribe before you look, or what is written in between
//! is missed. Whoever waits for one worker hears of no other: when a whole fleet falls asleep, thousands wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use drowse_core::id::WorkerId;
use drowse_store::StoreError;
use tokio::sync::watch;

use crate::shared::lock;

/// Where changes are announced.
#[derive(Debug)]
pub(crate) struct Notices {
    journal: watch::Sender<u64>,
    books: watch::Sender<u64>,
    workers: Arc<Bells>,
    store: watch::Sender<Option<String>>,
}

/// One for each worker that somebody waits for.
type Bells = Mutex<HashMap<WorkerId, watch::Sender<()>>>;

impl Notices {
    pub(crate) fn new() -> Self {
        Self {
            journal: watch::Sender::new(0),
            books: watch::Sender::new(0),
            workers: Arc::default(),
            store: watch::Sender::new(None),
        }
    }

    /// The journal has grown.
    pub(crate) fn journal_advanced(&self) {
        self.journal.send_modify(|count| *count += 1);
    }

    /// A worker came onto the books or left them.
    pub(crate) fn books_changed(&self) {
        self.books.send_modify(|count| *count += 1);
    }

    pub(crate) fn books(&self) -> watch::Receiver<u64> {
        self.books.subscribe()
    }

    /// A worker has changed, and the journal says so.
    pub(crate) fn worker_changed(&self, id: &WorkerId) {
        self.ring(id);
        self.journal_advanced();
    }

    /// Something about a worker is so that those who wait for it want to know.
    pub(crate) fn ring(&self, id: &WorkerId) {
        if let Some(bell) = lock(&self.workers).get(id) {
            bell.send_replace(());
        }
    }

    /// Whether the store can be written to, and why not.
    pub(crate) fn store_is(&self, failure: Option<&StoreError>) {
        let told = failure.map(|error| {
            let source = std::error::Error::source(error).map(|source| format!(": {source}"));
            format!("{error}{}", source.unwrap_or_default())
        });
        self.store.send_if_modified(|now| {
            // Another reason is no news: what matters is that there is one.
            let is_news = now.is_some() != told.is_some();
            if is_news {
                *now = told;
            }
            is_news
        });
    }

    pub(crate) fn store(&self) -> watch::Receiver<Option<String>> {
        self.store.subscribe()
    }

    pub(crate) fn journal(&self) -> watch::Receiver<u64> {
        self.journal.subscribe()
    }

    pub(crate) fn worker(&self, id: &WorkerId) -> Changes {
        let rung = lock(&self.workers).entry(id.clone()).or_default().subscribe();
        Changes { id: id.clone(), workers: Arc::clone(&self.workers), rung }
    }
}

/// The changes of one worker.
#[derive(Debug)]
pub(crate) struct Changes {
    id: WorkerId,
    workers: Arc<Bells>,
    rung: watch::Receiver<()>,
}

impl Changes {
    /// Waits for the next.
    pub(crate) async fn next(&mut self) {
        // The bell stays for as long as anybody listens.
        let _ = self.rung.changed().await;
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        let mut workers = lock(&self.workers);
        // Nobody but us, who are leaving. Under the lock: who comes now finds it or makes another.
        if workers.get(&self.id).is_some_and(|bell| bell.receiver_count() <= 1) {
            workers.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> WorkerId {
        WorkerId::new(name).unwrap()
    }

    #[tokio::test]
    async fn only_those_who_wait_for_a_worker_hear_of_it() {
        let notices = Notices::new();
        let (mut one, mut also, other) =
            (notices.worker(&id("a")), notices.worker(&id("a")), notices.worker(&id("b")));
        notices.worker_changed(&id("a"));
        one.next().await;
        also.next().await;
        assert!(!other.rung.has_changed().unwrap());
    }

    #[tokio::test]
    async fn a_bell_is_there_for_as_long_as_somebody_listens() {
        let notices = Notices::new();
        let (one, mut also) = (notices.worker(&id("a")), notices.worker(&id("a")));
        drop(one);
        notices.ring(&id("a"));
        also.next().await;
        drop(also);
        assert!(lock(&notices.workers).is_empty(), "nobody listens any more");
        notices.ring(&id("a"));
    }
}
