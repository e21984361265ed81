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

use crate::shared::lock;
use crate::spec::WorkerSpec;

#[derive(Debug, Default)]
pub(crate) struct Untold {
    edges: Mutex<HashMap<WorkerId, Edge>>,
    /// The workers with a door, as they were last seen in the store.
    believed: Mutex<HashMap<WorkerId, (Worker, WorkerSpec)>>,
}

/// The latest edge of a door's count that the store does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    /// How many connections there are.
    pub(crate) count: u64,
    /// Since when.
    pub(crate) at: Timestamp,
    /// The worker was woken for it.
    pub(crate) has_woken: bool,
}

impl Untold {
    /// An edge could not be told.
    pub(crate) fn note(&self, worker: &WorkerId, count: u64, at: Timestamp) {
        let mut edges = lock(&self.edges);
        let has_woken = edges.get(worker).is_some_and(|edge| edge.has_woken);
        edges.insert(worker.clone(), Edge { count, at, has_woken });
    }

    /// The worker is about to be woken without the store.
    pub(crate) fn wakes(&self, worker: &WorkerId) {
        if let Some(edge) = lock(&self.edges).get_mut(worker) {
            edge.has_woken = true;
        }
    }

    /// The store knows of it; unless another edge has come since.
    pub(crate) fn told(&self, worker: &WorkerId, edge: Edge) {
        let mut edges = lock(&self.edges);
        if edges.get(worker) == Some(&edge) {
            edges.remove(worker);
        }
    }

    pub(crate) fn get(&self, worker: &WorkerId) -> Option<Edge> {
        lock(&self.edges).get(worker).copied()
    }

    pub(crate) fn contains(&self, worker: &WorkerId) -> bool {
        lock(&self.edges).contains_key(worker)
    }

    /// Whether somebody is connected of whom the store does not know.
    pub(crate) fn holds(&self, worker: &WorkerId) -> bool {
        self.get(worker).is_some_and(|edge| edge.count > 0)
    }

    pub(crate) fn all(&self) -> Vec<(WorkerId, Edge)> {
        lock(&self.edges).iter().map(|(worker, edge)| (worker.clone(), *edge)).collect()
    }

    /// A worker was read from the store.
    pub(crate) fn believe(&self, worker: &Worker, spec: &WorkerSpec) {
        if worker.is_routed {
            lock(&self.believed).insert(worker.id.clone(), (worker.clone(), spec.clone()));
        }
    }

    /// A worker was changed in the store.
    pub(crate) fn know(&self, worker: &Worker) {
        if let Some((believed, _)) = lock(&self.believed).get_mut(&worker.id) {
            believed.clone_from(worker);
        }
    }

    pub(crate) fn believed(&self, worker: &WorkerId) -> Option<(Worker, WorkerSpec)> {
        lock(&self.believed).get(worker).cloned()
    }

    /// It is off the books.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.edges).remove(worker);
        lock(&self.believed).remove(worker);
    }
}
