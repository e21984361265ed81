//! Tells those who wait that something has been written down.
//!
//! Only a hint: whoever is told looks at the store. Subscribe before you look, or what is written in between
//! is missed.

use drowse_core::id::WorkerId;
use drowse_store::StoreError;
use tokio::sync::{broadcast, watch};

/// How many changes a slow listener may be behind before it is told that it lost some.
const BEHIND: usize = 4_096;

/// Where changes are announced.
#[derive(Debug)]
pub(crate) struct Notices {
    journal: watch::Sender<u64>,
    books: watch::Sender<u64>,
    workers: broadcast::Sender<WorkerId>,
    store: watch::Sender<Option<String>>,
}

impl Notices {
    pub(crate) fn new() -> Self {
        Self {
            journal: watch::Sender::new(0),
            books: watch::Sender::new(0),
            workers: broadcast::Sender::new(BEHIND),
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

    /// A worker has changed.
    pub(crate) fn worker_changed(&self, id: &WorkerId) {
        // Nobody listens: nobody waits.
        let _ = self.workers.send(id.clone());
        self.journal_advanced();
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
        Changes { id: id.clone(), workers: self.workers.subscribe() }
    }
}

/// The changes of one worker.
#[derive(Debug)]
pub(crate) struct Changes {
    id: WorkerId,
    workers: broadcast::Receiver<WorkerId>,
}

impl Changes {
    /// Waits for the next; also returns when some were lost.
    pub(crate) async fn next(&mut self) {
        loop {
            match self.workers.recv().await {
                Ok(id) if id == self.id => return,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
