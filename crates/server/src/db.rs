//! The store from an async context: a transaction blocks its thread, so it gets one of its own.

use drowse_store::{Lane, Store, StoreError, Tx, View};

use crate::crash::{CrashPoint, CrashPoints};
use crate::tasks::Tasks;

/// The store, with the threads that wait for it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Db {
    store: Store,
    tasks: Tasks,
    crash: CrashPoints,
}

impl Db {
    pub(crate) const fn new(store: Store, tasks: Tasks, crash: CrashPoints) -> Self {
        Self { store, tasks, crash }
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
        self.run(name, move |store| store.tx_in(lane, work)).await
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
        let store = self.store.clone();
        self.tasks.block(move || store.read(work)).await
    }

    /// Anything else that writes.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Store) -> T + Send + 'static,
    ) -> T {
        self.crash.pass(CrashPoint::BeforeCommit(name)).await;
        let store = self.store.clone();
        let value = self.tasks.block(move || work(&store)).await;
        self.crash.pass(CrashPoint::AfterCommit(name)).await;
        value
    }
}
