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

use std::collections::{BTreeMap, HashMap};
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

/// How often somebody asks for the notes before they go without.
const TRIES: usize = 50;

#[derive(Debug, Default)]
pub(crate) struct Untold {
    edges: Arc<Mutex<Edges>>,
    /// A lock of its own, which nobody waits for: `None` in it if nobody gets a head start, because nothing would be left
    /// of it if we were killed.
    notes: Mutex<Option<Notes>>,
}

#[derive(Debug, Default)]
struct Edges {
    pending: HashMap<WorkerId, Pending>,
    believed: HashMap<WorkerId, Believed>,
    /// Workers whose rows are open, and how many times.
    open: HashMap<WorkerId, usize>,
    /// How many rows have been opened, and policies changed: the order of commits, because a row is opened under its lock.
    count: u64,
    /// The count when the policy was last changed.
    policy_at: u64,
    /// When the disk was slow, nobody waits for it again before then.
    rests_until: Option<Timestamp>,
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
    /// Its place in the order of commits.
    number: u64,
    /// Something is to be committed, and whether it was is not known yet.
    pub(crate) is_in_doubt: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        let edges = &mut *lock(&self.edges);
        if self.is_in_doubt
            && let Some(believed) = edges.believed.get_mut(&self.worker)
        {
            // It may have been changed, or not: until it is looked at again, nobody gets a head start on it.
            believed.is_thawed_by_a_visit = false;
        }
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
    /// Its row was opened then, for the last time so far.
    opened_at: u64,
    /// What is believed is of then.
    as_of: u64,
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
    pub(crate) standing: Standing,
}

impl Untold {
    /// Has head starts noted in a file; what a former life left in it.
    pub(crate) fn note_in(&self, path: &Path) -> io::Result<BTreeMap<WorkerId, Generation>> {
        let (notes, left) = Notes::open(path)?;
        *lock(&self.notes) = Some(notes);
        Ok(left)
    }

    /// What a former life left has been dealt with.
    pub(crate) fn forget_former(&self) {
        if let Some(notes) = &mut *lock(&self.notes) {
            notes.clear();
        }
    }

    /// The driver by which a visit thaws a worker, as far as is known without waiting.
    pub(crate) fn driver_of(&self, worker: &WorkerId, at: Timestamp) -> Option<DriverKind> {
        let edges = lock(&self.edges);
        let believed = edges.believed.get(worker).filter(|believed| believed.is_thawed_by_a_visit)?;
        edges.rests_until.is_none_or(|until| at >= until).then_some(believed.worker.driver)
    }

    /// The disk kept somebody waiting.
    pub(crate) fn rest_until(&self, until: Timestamp) {
        lock(&self.edges).rests_until = Some(until);
    }

    /// Gives whoever has come a head start, if a thaw is what the rules would answer them with: from here on they
    /// are counted, and it is noted. `None`: everything takes its ordinary course.
    pub(crate) fn go_ahead(&self, worker: &WorkerId, edge: Edge, at: Timestamp) -> Option<Ahead> {
        // Not waited for: whoever has it may be waiting for the disk. A note takes microseconds otherwise.
        let mut notes = (0..TRIES).find_map(|_| {
            let notes = self.notes.try_lock().ok();
            if notes.is_none() {
                std::thread::yield_now();
            }
            notes
        })?;
        let (pending, generation, standing) = {
            let edges = &mut *lock(&self.edges);
            if edges.open.contains_key(worker) || edges.pending.contains_key(worker) {
                return None;
            }
            let believed = edges.believed.get(worker).filter(|believed| believed.is_thawed_by_a_visit)?;
            // Not that it is awake: that is for the books to say.
            let standing = Standing {
                is_awake: false,
                boot: believed.worker.boot.clone(),
                connection_idle: believed.terms.connection_idle,
            };
            let pending = Pending { edge, at, has_woken: true, is_ahead: true };
            edges.pending.insert(worker.clone(), pending);
            (pending, believed.worker.generation, standing)
        };
        // Whoever opens the row meanwhile asks for the worker, which is right in any case.
        if notes.as_mut().is_some_and(|notes| notes.add(worker, generation)) {
            return Some(Ahead { pending, standing });
        }
        drop(notes);
        self.told(worker, pending);
        None
    }

    /// A worker's row is open to be changed. With what has to be written down first.
    pub(crate) fn open(&self, worker: &WorkerId) -> (Open, Option<Pending>) {
        let edges = &mut *lock(&self.edges);
        edges.count += 1;
        let number = edges.count;
        *edges.open.entry(worker.clone()).or_default() += 1;
        if let Some(believed) = edges.believed.get_mut(worker) {
            believed.opened_at = number;
        }
        let ahead = edges.pending.get(worker).copied().filter(|pending| pending.is_ahead);
        (Open { edges: Arc::clone(&self.edges), worker: worker.clone(), number, is_in_doubt: false }, ahead)
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
        let is_all = {
            let edges = &mut lock(&self.edges).pending;
            if edges.get(worker) == Some(&told) {
                edges.remove(worker);
            }
            edges.is_empty()
        };
        // One that somebody writes into just now is not for us to empty.
        if is_all
            && let Ok(mut notes) = self.notes.try_lock()
            && let Some(notes) = &mut *notes
            && lock(&self.edges).pending.is_empty()
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

    /// How far the order of commits has come: to be asked before a worker is read.
    pub(crate) fn count(&self) -> u64 {
        lock(&self.edges).count
    }

    /// A worker was read from the store, not before `count`.
    pub(crate) fn believe(
        &self,
        worker: &Worker,
        spec: &WorkerSpec,
        terms: Terms,
        count: u64,
        now: Timestamp,
    ) {
        if !worker.is_routed {
            return;
        }
        let edges = &mut *lock(&self.edges);
        let is_current = match edges.believed.get(&worker.id) {
            // Its row was opened since: whoever did that tells what came of it.
            Some(known) if known.opened_at > count => return,
            Some(_) => edges.policy_at <= count,
            // Whose row was opened meanwhile nobody has kept.
            None => edges.count == count,
        };
        let is_thawed_by_a_visit = is_current && is_thawed_by_a_visit(worker, now);
        let believed = Believed {
            worker: worker.clone(),
            spec: spec.clone(),
            terms,
            is_thawed_by_a_visit,
            opened_at: count,
            as_of: count,
        };
        edges.believed.insert(worker.id.clone(), believed);
    }

    /// A worker was changed in the store. Those who changed it may come here in another order than they did that.
    pub(crate) fn know(&self, worker: &Worker, open: &mut Open, now: Timestamp) {
        open.is_in_doubt = false;
        let edges = &mut *lock(&self.edges);
        let is_of_this_policy = edges.policy_at < open.number;
        if let Some(believed) = edges.believed.get_mut(&worker.id).filter(|known| known.as_of < open.number) {
            believed.worker.clone_from(worker);
            believed.as_of = open.number;
            believed.is_thawed_by_a_visit = is_of_this_policy && is_thawed_by_a_visit(worker, now);
        }
    }

    /// The policy was changed: until a worker is looked at again, nobody knows what it says of it.
    pub(crate) fn policy_changed(&self) {
        let edges = &mut *lock(&self.edges);
        edges.count += 1;
        edges.policy_at = edges.count;
        for believed in edges.believed.values_mut() {
            believed.is_thawed_by_a_visit = false;
        }
    }

    pub(crate) fn believed(&self, worker: &WorkerId) -> Option<Believed> {
        lock(&self.edges).believed.get(worker).cloned()
    }

    /// It is off the books.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        let edges = &mut *lock(&self.edges);
        edges.pending.remove(worker);
        edges.believed.remove(worker);
    }
}
