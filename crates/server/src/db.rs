//! The store from an async context.
//!
//! A transaction blocks its thread, so as a rule it is run elsewhere: posted to the thread that writes, where
//! the engine has one, or on a thread of its own. What is short is done right here if nobody is in the way: a
//! turn of another thread costs more than a few statements, and somebody waits at a door for it.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use drowse_store::{Lane, Store, StoreError, Tx, View};
use tokio::sync::oneshot;

use crate::crash::{CrashPoint, CrashPoints};
use crate::tasks::{Blocking, Tasks};

/// The store, with the threads that wait for it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Db {
    /// `None`: it is another's by now. Whoever uses it holds the lock, so that it is not given away under them.
    store: Arc<RwLock<Option<Store>>>,
    tasks: Tasks,
    crash: CrashPoints,
}

/// The store, for as long as it is used.
struct Lent<'a>(RwLockReadGuard<'a, Option<Store>>);

impl Lent<'_> {
    fn store(&self) -> Result<&Store, StoreError> {
        self.0.as_ref().ok_or_else(|| StoreError::Unavailable("another Drowse has it".into()))
    }
}

impl Db {
    pub(crate) fn new(store: Store, tasks: Tasks, crash: CrashPoints) -> Self {
        Self { store: Arc::new(RwLock::new(Some(store))), tasks, crash }
    }

    fn lent(&self) -> Lent<'_> {
        // A panic while it is held cannot leave it half changed.
        Lent(self.store.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets go of the store, as soon as nobody uses it: it answers nobody from then on.
    pub(crate) async fn let_go(&self) {
        let db = self.clone();
        let gone = move || drop(db.store.write().unwrap_or_else(PoisonError::into_inner).take());
        self.tasks.block(gone).await;
    }

    /// Runs a transaction. `name` is that of its crash points.
    pub(crate) async fn tx<T, E>(
        &self,
        name: &'static str,
        lane: Lane,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        self.crash.pass(CrashPoint::BeforeCommit(name)).await;
        let value = self.write(lane, work).await;
        self.crash.pass(CrashPoint::AfterCommit(name)).await;
        value
    }

    async fn write<T, E>(
        &self,
        lane: Lane,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        if self.tasks.blocking() == Blocking::Inline {
            return self.lent().store()?.tx_in(lane, work);
        }
        let work = match lane {
            Lane::Wake => match self.lent().store()?.tx_if_free(work) {
                Ok(value) => return value,
                Err(work) => work,
            },
            // Others can wait for a turn, and share a commit.
            Lane::Ordinary | Lane::Unhurried | Lane::Late => work,
        };
        let (tell, told) = oneshot::channel();
        let reply = move |outcome| {
            // Whoever asked may have gone; it is done all the same.
            let _ = tell.send(outcome);
        };
        let posted = self.lent().store()?.post(lane, work, reply);
        match posted {
            Ok(()) => match told.await {
                Ok(Ok(value)) => value,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // The writer is gone, and so is everything else.
                Err(_) => std::future::pending().await,
            },
            Err((work, _)) => {
                let db = self.clone();
                self.tasks.block(move || db.lent().store()?.tx_in(lane, work)).await
            }
        }
    }

    /// Reads one consistent view.
    pub(crate) async fn read<T, E>(
        &self,
        work: impl FnOnce(&View<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let db = self.clone();
        self.tasks.block(move || db.lent().store()?.read(work)).await
    }

    /// Reads a few rows: right here, where the database is in this process.
    pub(crate) async fn glance<T, E>(
        &self,
        work: impl FnOnce(&View<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let looked = self.lent().store()?.read_if_embedded(work);
        match looked {
            Ok(value) => value,
            Err(work) => self.read(work).await,
        }
    }

    /// Anything else that writes.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.crash.pass(CrashPoint::BeforeCommit(name)).await;
        let db = self.clone();
        let value = self.tasks.block(move || work(db.lent().store()?)).await;
        self.crash.pass(CrashPoint::AfterCommit(name)).await;
        value
    }
}
