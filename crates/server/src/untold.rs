//! What the doors did that the store has not been told.
//!
//! Nobody waits at a frozen worker because a disk is full or a database restarts: in one process the wake goes
//! ahead on what is believed, the hold is kept here, and the journal learns of both when it can. While an edge is
//! untold, whoever would put the worker to sleep finds it in use, and a look that finds it awake draws no
//! conclusions.
//!
//! Nor does anybody wait for the store when it answers, if one word to the kernel will do: see
//! `docs/decisions/0013-a-head-start.md`. Whoever then opens the worker's row to change it writes down first what the
//! door did; and while the row is open, nobody gets a head start. So nothing is ever decided on a row that a door has
//! overtaken.

mod notes;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use drowse_core::Timestamp;
use drowse_core::effect::Effect;
use drowse_core::event::Event;
use drowse_core::id::{Generation, WorkerId};
use drowse_core::signal::DriverKind;
use drowse_core::status::{StatusKind, WakeCause};
use drowse_core::step;
use drowse_core::worker::Worker;
use drowse_wire::control::{Edge, Standing};

use self::notes::Notes;
use crate::fleet::Terms;
use crate::shared::lock;
use crate::spec::WorkerSpec;

#[derive(Debug, Default)]
pub(crate) struct Untold {
    edges: Arc<Mutex<Edges>>,
    believed: Mutex<HashMap<WorkerId, Believed>>,
}

#[derive(Debug, Default)]
struct Edges {
    pending: HashMap<WorkerId, Pending>,
    /// Workers whose rows are open, and how many times.
    open: HashMap<WorkerId, usize>,
    /// `None`: nobody gets a head start, because nothing would be left of it if we were killed.
    notes: Option<Notes>,
}

/// The latest edge of a door's count that the store does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) edge: Edge,
    /// Since when.
    pub(crate) at: Timestamp,
    /// The worker was woken for it, or for one before it.
    pub(crate) has_woken: bool,
    /// It goes on ahead of the books, which are there to be written: whoever opens them does that first.
    pub(crate) is_ahead: bool,
}

/// A worker's row is open to be changed. Until this is dropped nobody gets a head start.
#[derive(Debug)]
pub(crate) struct Open {
    edges: Arc<Mutex<Edges>>,
    worker: WorkerId,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut edges = lock(&self.edges);
        if let Some(times) = edges.open.get_mut(&self.worker) {
            *times -= 1;
            if *times == 0 {
                edges.open.remove(&self.worker);
            }
        }
    }
}

/// A worker with a door, as it was last seen in the store.
#[derive(Clone, Debug)]
pub(crate) struct Believed {
    pub(crate) worker: Worker,
    pub(crate) spec: WorkerSpec,
    pub(crate) terms: Terms,
    /// Whether a thaw is what the rules would answer somebody with who comes now.
    is_thawed_by_a_visit: bool,
}

impl Believed {
    fn new(worker: &Worker, spec: &WorkerSpec, terms: Terms, now: Timestamp) -> Self {
        let is_thawed_by_a_visit = is_thawed_by_a_visit(worker, now);
        Self { worker: worker.clone(), spec: spec.clone(), terms, is_thawed_by_a_visit }
    }
}

/// Asked when a worker is brought up to date and not when somebody comes, who would wait for the answer.
fn is_thawed_by_a_visit(worker: &Worker, now: Timestamp) -> bool {
    let event = Event::WakeRequested { cause: WakeCause::Connection };
    worker.status.kind() == StatusKind::Paused
        && step(worker, &event, now)
            .is_ok_and(|step| step.effects.iter().any(|effect| matches!(effect, Effect::Thaw { .. })))
}

/// Somebody goes on ahead of the books.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub(crate) pending: Pending,
    pub(crate) driver: DriverKind,
    pub(crate) standing: Standing,
}

impl Untold {
    /// Has head starts noted in a file; what a former life left in it.
    pub(crate) fn note_in(&self, path: &Path) -> io::Result<Vec<(WorkerId, Generation)>> {
        let (notes, left) = Notes::open(path)?;
        lock(&self.edges).notes = Some(notes);
        Ok(left)
    }

    /// What a former life left has been dealt with.
    pub(crate) fn forget_former(&self) {
        let mut edges = lock(&self.edges);
        if edges.pending.is_empty()
            && let Some(notes) = &mut edges.notes
        {
            notes.clear();
        }
    }

    /// Gives whoever has come a head start, if a thaw is what the rules would answer them with: from here on they
    /// are counted, and it is noted. `None`: everything takes its ordinary course.
    pub(crate) fn go_ahead(&self, worker: &WorkerId, edge: Edge, at: Timestamp) -> Option<Ahead> {
        let edges = &mut *lock(&self.edges);
        if edges.open.contains_key(worker) || edges.pending.contains_key(worker) {
            return None;
        }
        // Under the other lock too: what is believed is brought up to date before a row is closed again.
        let known = lock(&self.believed);
        let believed = known.get(worker).filter(|believed| believed.is_thawed_by_a_visit)?;
        edges.notes.as_mut()?.add(worker, believed.worker.generation).ok()?;
        let pending = Pending { edge, at, has_woken: true, is_ahead: true };
        edges.pending.insert(worker.clone(), pending);
        // Not that it is awake: that is for the books to say.
        let standing = Standing {
            is_awake: false,
            boot: believed.worker.boot.clone(),
            connection_idle: believed.terms.connection_idle,
        };
        Some(Ahead { pending, driver: believed.worker.driver, standing })
    }

    /// A worker's row is open to be changed. With what has to be written down first.
    pub(crate) fn open(&self, worker: &WorkerId) -> (Open, Option<Pending>) {
        let mut edges = lock(&self.edges);
        *edges.open.entry(worker.clone()).or_default() += 1;
        let ahead = edges.pending.get(worker).copied().filter(|pending| pending.is_ahead);
        (Open { edges: Arc::clone(&self.edges), worker: worker.clone() }, ahead)
    }

    /// An edge could not be told.
    pub(crate) fn note(&self, worker: &WorkerId, edge: Edge, at: Timestamp) {
        let edges = &mut lock(&self.edges).pending;
        let before = edges.get(worker);
        let has_woken = before.is_some_and(|before| before.has_woken);
        let is_ahead = before.is_some_and(|before| before.is_ahead);
        edges.insert(worker.clone(), Pending { edge, at, has_woken, is_ahead });
    }

    /// The worker is about to be woken without the store.
    pub(crate) fn wakes(&self, worker: &WorkerId) {
        if let Some(pending) = lock(&self.edges).pending.get_mut(worker) {
            pending.has_woken = true;
        }
    }

    /// The store knows of it, or nothing came of it; unless another edge has come since.
    pub(crate) fn told(&self, worker: &WorkerId, told: Pending) {
        let edges = &mut *lock(&self.edges);
        if edges.pending.get(worker) == Some(&told) {
            edges.pending.remove(worker);
        }
        if edges.pending.is_empty()
            && let Some(notes) = &mut edges.notes
        {
            notes.rest();
        }
    }

    pub(crate) fn get(&self, worker: &WorkerId) -> Option<Pending> {
        lock(&self.edges).pending.get(worker).copied()
    }

    pub(crate) fn contains(&self, worker: &WorkerId) -> bool {
        lock(&self.edges).pending.contains_key(worker)
    }

    /// Whether somebody is connected of whom the store does not know.
    pub(crate) fn holds(&self, worker: &WorkerId) -> bool {
        self.get(worker).is_some_and(|pending| pending.edge.count > 0)
    }

    pub(crate) fn all(&self) -> Vec<(WorkerId, Pending)> {
        lock(&self.edges).pending.iter().map(|(worker, pending)| (worker.clone(), *pending)).collect()
    }

    /// A worker was read from the store.
    pub(crate) fn believe(&self, worker: &Worker, spec: &WorkerSpec, terms: Terms, now: Timestamp) {
        if !worker.is_routed {
            return;
        }
        let mut known = lock(&self.believed);
        // A check may have read it before a change that has been told of since.
        if known.get(&worker.id).is_none_or(|known| known.worker.generation <= worker.generation) {
            known.insert(worker.id.clone(), Believed::new(worker, spec, terms, now));
        }
    }

    /// A worker was changed in the store.
    pub(crate) fn know(&self, worker: &Worker, now: Timestamp) {
        if let Some(believed) = lock(&self.believed).get_mut(&worker.id) {
            believed.worker.clone_from(worker);
            believed.is_thawed_by_a_visit = is_thawed_by_a_visit(worker, now);
        }
    }

    /// It may have been changed, or not: until it is looked at again, nobody gets a head start on it.
    pub(crate) fn doubt(&self, worker: &WorkerId) {
        if let Some(believed) = lock(&self.believed).get_mut(worker) {
            believed.is_thawed_by_a_visit = false;
        }
    }

    /// The policy was changed: until a worker is looked at again, nobody knows what it says of it.
    pub(crate) fn policy_changed(&self) {
        for believed in lock(&self.believed).values_mut() {
            believed.is_thawed_by_a_visit = false;
        }
    }

    pub(crate) fn believed(&self, worker: &WorkerId) -> Option<Believed> {
        lock(&self.believed).get(worker).cloned()
    }

    /// It is off the books.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.edges).pending.remove(worker);
        lock(&self.believed).remove(worker);
    }
}
