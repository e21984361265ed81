//! What is being done to whom: one thing at a time for each worker, in the order in which it was decided.
//!
//! A freeze that was decided before a thaw must not reach the driver after it. So the effects of a worker wait in
//! line, and one task takes them from there. Whoever only waits inside that task (for a hook, for a back-off)
//! is told when something newer stands behind it, and lets it pass.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use drowse_core::effect::Effect;
use drowse_core::id::WorkerId;
use tokio::sync::Notify;

use super::Subject;
use crate::shared::{Shared, lock};

#[derive(Debug, Default)]
pub(crate) struct Work(Mutex<HashMap<WorkerId, Line>>);

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Effect>,
    is_newer: Arc<Notify>,
}

impl Work {
    /// Puts an effect into line. True if somebody must be sent to do it.
    fn push(&self, worker: &WorkerId, effect: Effect) -> bool {
        let mut lines = lock(&self.0);
        if let Some(line) = lines.get_mut(worker) {
            line.waiting.push_back(effect);
            line.is_newer.notify_one();
            return false;
        }
        let line = lines.entry(worker.clone()).or_default();
        line.waiting.push_back(effect);
        true
    }

    /// The next effect, with what tells of a newer one; `None`: all is done, and the line is gone.
    fn next(&self, worker: &WorkerId) -> Option<(Effect, Arc<Notify>)> {
        let mut lines = lock(&self.0);
        let line = lines.get_mut(worker)?;
        let Some(effect) = line.waiting.pop_front() else {
            lines.remove(worker);
            return None;
        };
        // A fresh one: a permit that stands for this effect must not hurry it along.
        line.is_newer = Arc::default();
        if !line.waiting.is_empty() {
            line.is_newer.notify_one();
        }
        Some((effect, Arc::clone(&line.is_newer)))
    }

    /// Whether anybody is acted on just now.
    pub(crate) fn is_any(&self) -> bool {
        !lock(&self.0).is_empty()
    }

    /// Whether somebody acts on this worker just now.
    pub(super) fn is_busy(&self, worker: &WorkerId) -> bool {
        lock(&self.0).contains_key(worker)
    }
}

impl Shared {
    /// Has an effect done, after what was decided before it.
    ///
    /// `fresh`: the worker as the transaction left it that decided this.
    pub(crate) fn perform(self: &Arc<Self>, worker: &WorkerId, effect: Effect, fresh: Option<Subject>) {
        if !self.work.push(worker, effect) {
            return;
        }
        let (shared, worker, mut fresh) = (Arc::clone(self), worker.clone(), fresh);
        self.tasks.spawn(async move {
            while let Some((effect, is_newer)) = shared.work.next(&worker) {
                // Only the first is done at once.
                Box::pin(shared.carry_out(&worker, effect, fresh.take(), &is_newer)).await;
            }
        });
    }
}
