//! What the doors did while the store could not be told.
//!
//! Nobody waits at a frozen worker because a disk is full or a database restarts: in one process the wake goes
//! ahead on what is believed, the hold is kept here, and the journal learns of both when it can. While an edge is
//! untold, whoever would put the worker to sleep finds it in use, and a look that finds it awake draws no
//! conclusions.

use std::collections::HashMap;
use std::sync::Mutex;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::worker::Worker;
use drowse_wire::control::Edge;

use crate::fleet::Terms;
use crate::shared::lock;
use crate::spec::WorkerSpec;

#[derive(Debug, Default)]
pub(crate) struct Untold {
    edges: Mutex<HashMap<WorkerId, Pending>>,
    believed: Mutex<HashMap<WorkerId, Believed>>,
}

/// The latest edge of a door's count that the store does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) edge: Edge,
    /// Since when.
    pub(crate) at: Timestamp,
    /// The worker was woken for it, or for one before it.
    pub(crate) has_woken: bool,
}

/// A worker with a door, as it was last seen in the store.
#[derive(Clone, Debug)]
pub(crate) struct Believed {
    pub(crate) worker: Worker,
    pub(crate) spec: WorkerSpec,
    pub(crate) terms: Terms,
}

impl Untold {
    /// An edge could not be told.
    pub(crate) fn note(&self, worker: &WorkerId, edge: Edge, at: Timestamp) {
        let mut edges = lock(&self.edges);
        let has_woken = edges.get(worker).is_some_and(|before| before.has_woken);
        edges.insert(worker.clone(), Pending { edge, at, has_woken });
    }

    /// The worker is about to be woken without the store.
    pub(crate) fn wakes(&self, worker: &WorkerId) {
        if let Some(pending) = lock(&self.edges).get_mut(worker) {
            pending.has_woken = true;
        }
    }

    /// The store knows of it; unless another edge has come since.
    pub(crate) fn told(&self, worker: &WorkerId, pending: Pending) {
        let mut edges = lock(&self.edges);
        if edges.get(worker) == Some(&pending) {
            edges.remove(worker);
        }
    }

    pub(crate) fn get(&self, worker: &WorkerId) -> Option<Pending> {
        lock(&self.edges).get(worker).copied()
    }

    pub(crate) fn contains(&self, worker: &WorkerId) -> bool {
        lock(&self.edges).contains_key(worker)
    }

    /// Whether somebody is connected of whom the store does not know.
    pub(crate) fn holds(&self, worker: &WorkerId) -> bool {
        self.get(worker).is_some_and(|pending| pending.edge.count > 0)
    }

    pub(crate) fn all(&self) -> Vec<(WorkerId, Pending)> {
        lock(&self.edges).iter().map(|(worker, pending)| (worker.clone(), *pending)).collect()
    }

    /// A worker was read from the store.
    pub(crate) fn believe(&self, worker: &Worker, spec: &WorkerSpec, terms: Terms) {
        if worker.is_routed {
            let believed = Believed { worker: worker.clone(), spec: spec.clone(), terms };
            lock(&self.believed).insert(worker.id.clone(), believed);
        }
    }

    /// A worker was changed in the store.
    pub(crate) fn know(&self, worker: &Worker) {
        if let Some(believed) = lock(&self.believed).get_mut(&worker.id) {
            believed.worker.clone_from(worker);
        }
    }

    pub(crate) fn believed(&self, worker: &WorkerId) -> Option<Believed> {
        lock(&self.believed).get(worker).cloned()
    }

    /// It is off the books.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.edges).remove(worker);
        lock(&self.believed).remove(worker);
    }
}
