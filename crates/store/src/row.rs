//! From rows to types and back.

use std::borrow::Cow;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::policy::Policy;
use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::{Terms, Worker};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::StoreError;
use crate::sql::Row;

/// A worker as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerRecord {
    worker: Worker,
    /// The host, docker endpoint, or EC2 account and region that it is reached through.
    pub site: String,
    /// How it was configured; only its driver and the server look into it.
    pub spec: Value,
    /// When it is looked at next; `None`: not at all.
    pub next_check_at: Option<Timestamp>,
    /// Which replica looks after it.
    pub claim_by: Option<String>,
    /// Until when.
    pub claim_until: Option<Timestamp>,
    /// The number of its latest claim.
    pub claim_gen: u64,
    /// The epoch of the policy under which it was last judged.
    pub policy_epoch: u64,
    /// When a hold that restarts the idle clock last ended, leases apart.
    pub hold_ended_at: Option<Timestamp>,
    /// When it was taken off the books.
    pub removed_at: Option<Timestamp>,
    /// Somebody asked, during the present claim, that it be looked at no later than this.
    pub(crate) nudge_at: Option<Timestamp>,
}

impl WorkerRecord {
    /// When it is looked at after a check that asks for `next`: whoever nudged it meanwhile gets an earlier look.
    pub fn due_by(&self, next: Timestamp) -> Timestamp {
        self.nudge_at.map_or(next, |nudged| nudged.min(next))
    }

    /// The columns of [`crate::sql::Dialect::lock_worker`].
    pub(crate) fn of(row: &Row<'_>) -> Result<Self, StoreError> {
        let id = row.text(0)?;
        Ok(Self {
            worker: from_json(row.text(2)?, "state", id)?,
            site: row.text(1)?.to_owned(),
            spec: from_json(row.text(3)?, "configuration", id)?,
            next_check_at: row.opt_at(4)?,
            claim_by: row.opt_text(5)?.map(str::to_owned),
            claim_until: row.opt_at(6)?,
            claim_gen: row.count(7)?,
            policy_epoch: row.count(8)?,
            hold_ended_at: row.opt_at(9)?,
            removed_at: row.opt_at(10)?,
            nudge_at: row.opt_at(11)?,
        })
    }

    /// The worker, under the policy that applies to it now. Its terms are not stored: a policy that changed
    /// while nobody looked must not find old ones.
    #[must_use]
    pub fn worker(&self, policy: &Policy) -> Worker {
        let terms = Terms::of(policy, self.worker.can);
        Worker { terms, ..self.worker.clone() }
    }

    /// The worker without terms: to be shown, or to select its policy, and never to be stepped.
    pub const fn without_terms(&self) -> &Worker {
        &self.worker
    }

    pub const fn id(&self) -> &WorkerId {
        &self.worker.id
    }

    pub const fn status(&self) -> &Status {
        &self.worker.status
    }

    pub(crate) fn replace_worker(&mut self, worker: Worker) {
        self.worker = worker;
    }
}

/// When the sleep was decided that activity could still undo, as the flush of evidence asks.
pub(crate) const fn sleep_at(status: &Status) -> Option<Timestamp> {
    match (status.kind(), status.sleep()) {
        (StatusKind::Pausing | StatusKind::Paused | StatusKind::Stopping, Some(sleep)) => Some(sleep.at),
        _ => None,
    }
}

pub(crate) fn from_json<T: DeserializeOwned>(
    text: &str,
    what: &'static str,
    of: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|source| StoreError::Unreadable { what, of: of.to_owned(), source })
}

pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("our own types have no maps with keys that are no text")
}

/// A worker's id from a column. What is stored was an id when it was written.
pub(crate) fn worker_id(text: &str) -> Result<WorkerId, StoreError> {
    WorkerId::new(text).map_err(|error| StoreError::Corrupt(error.into()))
}

/// A text that goes into the database inside a JSON array. PostgreSQL's text cannot hold the character NUL, and
/// what an agent or a person writes may.
///
/// Documents go in as text that is JSON, where it stands as an escape and nobody takes that apart.
pub(crate) fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}
