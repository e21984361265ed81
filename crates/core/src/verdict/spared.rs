//! What would have happened to an exempt worker: for the audit, beside the FYI that its people get ahead of it.

use serde::{Deserialize, Serialize};

use super::Verdict;
use super::limit::Limit;
use crate::clock::Timestamp;
use crate::hold::{HoldKind, HoldKinds};
use crate::status::StatusKind;

/// What only an exemption spares a worker. Each with the instant that names the occasion: it is told once for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spared {
    /// It would have been put to sleep, idle since then.
    #[serde(default)]
    pub idle_since: Option<Timestamp>,
    /// It would have been stopped for its `max_runtime`, which was over then.
    #[serde(default)]
    pub runtime_over_at: Option<Timestamp>,
}

impl Spared {
    pub const fn is_nothing(&self) -> bool {
        self.idle_since.is_none() && self.runtime_over_at.is_none()
    }

    /// What is in this that was not told before.
    #[must_use]
    pub fn news(self, told: Spared) -> Spared {
        Spared {
            idle_since: self.idle_since.filter(|since| told.idle_since != Some(*since)),
            runtime_over_at: self.runtime_over_at.filter(|at| told.runtime_over_at != Some(*at)),
        }
    }

    /// What was told, once this is.
    #[must_use]
    pub fn told(self, before: Spared) -> Spared {
        Spared {
            idle_since: self.idle_since.or(before.idle_since),
            runtime_over_at: self.runtime_over_at.or(before.runtime_over_at),
        }
    }
}

/// Only in a check, and only where nothing but the exemption stands in the way.
pub(super) fn spared(verdict: &Verdict, runtime: &Limit) -> Spared {
    let would_act = verdict.is_from_check()
        && verdict.status == StatusKind::Running
        && verdict.auto_pause_enabled
        && !verdict.is_braked
        && !verdict.is_protected;
    if !would_act {
        return Spared::default();
    }
    let mut only_exempt = HoldKinds::default();
    only_exempt.insert(HoldKind::Exemption);
    let is_spared_sleep = verdict.is_idle && verdict.holds == only_exempt;
    Spared { idle_since: is_spared_sleep.then_some(verdict.baseline.at), runtime_over_at: runtime.spared_at }
}
