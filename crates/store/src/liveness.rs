//! Whether a worker is heard. Rows are written on transitions only; healthy heartbeats are evidence.

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::liveness::{Reliability, Seen};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::row::{from_json, to_json, worker_id};
use crate::tx::View;
use crate::workers::Locked;

/// What is recorded about whether a worker is heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// When it was heard, and what is recorded.
    pub seen: Seen,
    /// How well it has kept to it.
    pub reliability: Reliability,
}

impl Locked<'_> {
    /// Stores a transition. `due_at`: when it will have been silent for too long.
    pub fn save_heard(&mut self, heard: &Heard, due_at: Option<Timestamp>) -> Result<(), StoreError> {
        self.tx.execute(
            "INSERT INTO liveness (worker_id, due_at, doc) VALUES ($1, $2, $3)
             ON CONFLICT (worker_id) DO UPDATE SET due_at = excluded.due_at, doc = excluded.doc",
            &[self.id().as_str().into(), due_at.into(), (&to_json(heard)).into()],
        )?;
        Ok(())
    }
}

impl View<'_> {
    /// `None` for a worker that never enrolled.
    pub fn heard(&self, worker: &WorkerId) -> Result<Option<Heard>, StoreError> {
        self.query_one("SELECT doc FROM liveness WHERE worker_id = $1", &[worker.as_str().into()], |row| {
            from_json(row.text(0)?, "liveness", worker.as_str())
        })
    }

    /// Workers that may have been silent for too long by `now`, the longest first.
    pub fn maybe_stale(&self, now: Timestamp, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        self.query(
            "SELECT worker_id FROM liveness WHERE due_at <= $1 ORDER BY due_at LIMIT $2",
            &[now.into(), limit.into()],
            |row| worker_id(row.text(0)?),
        )
    }
}
