//! What counters showed before, of every worker that this replica looks after.
//!
//! Stored with each check too, so that a restart of ours breaks no streak; here is what a hook used that ran since then.

use std::collections::HashMap;
use std::sync::Mutex;

use drowse_core::counter::{Counters, Total};
use drowse_core::id::{BootId, WorkerId};
use drowse_core::signal::{PerSignal, Signal};

use crate::shared::lock;

/// The totals that one look has read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// Of which run.
    pub(crate) boot: Option<BootId>,
    pub(crate) of: PerSignal<Option<Total>>,
}

impl Totals {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Signal, Total)> + '_ {
        Signal::ALL.into_iter().filter_map(|signal| Some((signal, self.of[signal as usize]?)))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Meters(Mutex<HashMap<WorkerId, Counters>>);

impl Meters {
    /// What this replica has read of a worker. `None`: nothing, or another one has read it since; what is stored counts.
    pub(crate) fn of(&self, worker: &WorkerId, stored: &Counters) -> Option<Counters> {
        lock(&self.0).get(worker).filter(|own| own.newest_at() >= stored.newest_at()).cloned()
    }

    /// The check that led to these is written. Only then: the use that a dropped check saw is seen again by the next.
    pub(crate) fn keep(&self, worker: &WorkerId, counters: &Counters) {
        if !counters.is_empty() {
            lock(&self.0).insert(worker.clone(), counters.clone());
        }
    }

    /// What was used between these two is nobody's use: it is as if the counters had not moved.
    pub(crate) fn discard(&self, worker: &WorkerId, from: &Totals, until: &Totals) {
        let mut all = lock(&self.0);
        let is_same = |counters: &&mut Counters| {
            counters.boot() == from.boot.as_ref() && counters.boot() == until.boot.as_ref()
        };
        let Some(counters) = all.get_mut(worker).filter(is_same) else { return };
        for (signal, from) in from.iter() {
            if let Some(until) = until.of[signal as usize] {
                counters.discard(signal, until.value.saturating_sub(from.value));
            }
        }
    }

    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.0).remove(worker);
    }
}
