//! Evidence of use, and what the checks have made of it.
//!
//! Two tables, because two parties write. `evidence` is what arrives: heartbeats, an agent's activity, bytes
//! through the front door. Each ingesting replica buffers it and flushes it in one statement a second; the row
//! of a worker is never locked for it. `checked` is what the replica that looks after a worker has concluded:
//! samples, streak, the telemetry mark, warnings that were sent.
//!
//! A pause that was judged at T may commit only when every live ingester has flushed up to T; that is
//! `is_flushed` of the checklist. What is flushed after that is found by [`Store::flush_evidence`] itself:
//! *after* its commit it looks which of the touched workers are on their way to sleep. Looking before the
//! commit would miss a pause that commits in between, which in turn does not see the flush.

use std::collections::BTreeMap;

use drowse_core::Timestamp;
use drowse_core::counter::Counters;
use drowse_core::evidence::Evidence;
use drowse_core::id::{BootId, WorkerId};
use drowse_core::status::StatusKind;
use drowse_core::telemetry::Mark;
use drowse_core::verdict::{Spared, Warned};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StoreError;
use crate::row::{from_json, to_json, without_nul, worker_id};
use crate::store::Store;
use crate::tx::{Tx, View};
use crate::workers::Locked;

/// What one source had to say about one worker; of several, the newest is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// About whom.
    pub worker: WorkerId,
    /// Who says so: `agent`, a router. Each has its own row.
    pub source: String,
    /// The run of the worker that it belongs to.
    pub boot: Option<BootId>,
    /// The newest activity in it that counts. Never goes back, whatever arrives late.
    pub activity_at: Option<Timestamp>,
    /// Up to when it says something.
    pub read_at: Timestamp,
    /// What it says; only Rust looks into it.
    pub doc: Value,
}

/// What a check has concluded. It belongs to the present run of the worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// Samples, coverage and streak.
    pub evidence: Evidence,
    /// How far the telemetry has been counted. Stored together with the activity that came with it: what the
    /// mark knows is not told again.
    #[serde(default)]
    pub mark: Mark,
    /// The warning about idleness that was sent last.
    #[serde(default)]
    pub idle_warned: Option<Warned>,
    /// The warning about `max_runtime` that was sent last.
    #[serde(default)]
    pub runtime_warned: Option<Warned>,
    /// The warning about a forced schedule that was sent last.
    #[serde(default)]
    pub schedule_warned: Option<Warned>,
    /// The warning about `stop_after` that was sent last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_warned: Option<Warned>,
    /// The warning about `terminate_after` that was sent last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_warned: Option<Warned>,
    /// What its counters showed, so that a restart of ours breaks no streak.
    #[serde(default, skip_serializing_if = "Counters::is_empty")]
    pub counters: Counters,
    /// Memory in use, in bytes: shown, and judges nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// What it was last told to have been spared.
    #[serde(default, skip_serializing_if = "Spared::is_nothing")]
    pub spared: Spared,
}

/// A worker on its way to sleep, or frozen, that was in use after that was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Which.
    pub worker: WorkerId,
    /// What it is doing.
    pub status: StatusKind,
    /// When it was in use.
    pub activity_at: Timestamp,
}

/// A flush that is committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Workers to be woken.
    pub touched: Vec<Touched>,
}

impl Store {
    /// Writes a batch that `replica` has buffered, and that it has now written everything up to
    /// `flushed_through`. With an empty batch it says only that.
    pub fn flush_evidence(
        &self,
        replica: &str,
        batch: &[Arrival],
        flushed_through: Timestamp,
    ) -> Result<Flushed, StoreError> {
        let rows = merged(batch);
        // Others wait for the one writer of SQLite meanwhile, and a wake can go between two parts. Only the last
        // one says how far it is; who repeats a flush that failed half-way writes the same rows again.
        let (last, parts) = match rows.chunks(self.dialect.flush_at_once).collect::<Vec<_>>().split_last() {
            Some((last, parts)) => (*last, parts.to_vec()),
            None => Default::default(),
        };
        for part in parts {
            self.tx(|t| t.write_evidence(part))?;
        }
        self.tx(|t| {
            t.write_evidence(last)?;
            // In the same transaction: whoever sees the time sees the evidence too.
            t.set_flushed_through(replica, flushed_through)
        })?;
        if batch.is_empty() {
            return Ok(Flushed::default());
        }
        let touched = self.read(|t| t.touched(batch))?;
        Ok(Flushed { touched })
    }
}

impl Tx<'_> {
    /// Says that `replica` has written everything up to `flushed_through`, because nothing had arrived.
    pub fn say_flushed(&self, replica: &str, flushed_through: Timestamp) -> Result<(), StoreError> {
        self.set_flushed_through(replica, flushed_through)
    }

    fn write_evidence(&self, rows: &[Arrival]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> = rows.iter().map(Arrival::columns).collect();
        self.execute(self.dialect().flush_evidence, &[(&to_json(&rows)).into()])?;
        Ok(())
    }

    pub(crate) fn save_checked(&self, worker: &WorkerId, checked: &Checked) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO checked (worker_id, activity_at, doc) VALUES ($1, $2, $3)
             ON CONFLICT (worker_id) DO UPDATE SET activity_at = excluded.activity_at, doc = excluded.doc",
            &[worker.as_str().into(), checked.evidence.last_activity_at().into(), (&to_json(checked)).into()],
        )?;
        Ok(())
    }
}

impl Locked<'_> {
    /// Stores what is known about its use outside of a check: when a new run begins, it begins afresh.
    pub fn save_checked(&mut self, checked: &Checked) -> Result<(), StoreError> {
        self.tx.save_checked(self.id(), checked)
    }
}

impl View<'_> {
    /// The workers of a batch that were in use after it was decided to put them to sleep.
    fn touched(&self, batch: &[Arrival]) -> Result<Vec<Touched>, StoreError> {
        let mut ids: Vec<_> =
            batch.iter().filter(|row| row.activity_at.is_some()).map(|row| row.worker.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        self.query(self.dialect().touched, &[(&to_json(&ids)).into()], |row| {
            let code = row.text(1)?;
            let status = StatusKind::from_code(code)
                .ok_or_else(|| StoreError::Corrupt(format!("unknown status {code}").into()))?;
            Ok(Touched { worker: worker_id(row.text(0)?)?, status, activity_at: row.at(2)? })
        })
    }

    /// What has arrived about a worker, by source.
    pub fn arrivals(&self, worker: &WorkerId) -> Result<Vec<Arrival>, StoreError> {
        self.query(
            "SELECT source, boot, activity_at, read_at, doc FROM evidence WHERE worker_id = $1 ORDER BY source",
            &[worker.as_str().into()],
            |row| {
                Ok(Arrival {
                    worker: worker.clone(),
                    source: row.text(0)?.to_owned(),
                    boot: row.opt_text(1)?.map(BootId::new),
                    activity_at: row.opt_at(2)?,
                    read_at: row.at(3)?,
                    doc: from_json(row.text(4)?, "evidence", worker.as_str())?,
                })
            },
        )
    }

    /// What the checks have concluded about a worker; the default if it was never checked.
    pub fn checked(&self, worker: &WorkerId) -> Result<Checked, StoreError> {
        let found = self.query_one(
            "SELECT doc FROM checked WHERE worker_id = $1",
            &[worker.as_str().into()],
            |row| from_json(row.text(0)?, "check", worker.as_str()),
        )?;
        Ok(found.unwrap_or_default())
    }

    /// The newest counted activity of a worker, from either table.
    pub fn activity_at(&self, worker: &WorkerId) -> Result<Option<Timestamp>, StoreError> {
        let found = self.query_one(
            "SELECT max(activity_at) FROM (
                SELECT activity_at FROM evidence WHERE worker_id = $1
                UNION ALL SELECT activity_at FROM checked WHERE worker_id = $1) AS activity",
            &[worker.as_str().into()],
            |row| row.opt_at(0),
        )?;
        Ok(found.flatten())
    }
}

/// One row for each key, in the order of the keys: PostgreSQL refuses a statement with the same row twice, and
/// two replicas that write the same rows in another order wait for each other.
fn merged(batch: &[Arrival]) -> Vec<Arrival> {
    let mut rows: BTreeMap<(&WorkerId, &str), Arrival> = BTreeMap::new();
    for arrival in batch {
        rows.entry((&arrival.worker, &arrival.source))
            .and_modify(|kept| kept.merge(arrival))
            .or_insert_with(|| arrival.clone());
    }
    rows.into_values().collect()
}

impl Arrival {
    /// Takes in what arrived later.
    fn merge(&mut self, other: &Arrival) {
        let activity_at = self.activity_at.max(other.activity_at);
        if other.read_at >= self.read_at {
            self.clone_from(other);
        }
        self.activity_at = activity_at;
    }

    fn columns(&self) -> impl Serialize + '_ {
        (
            &self.worker,
            without_nul(&self.source),
            self.boot.as_ref().map(|boot| without_nul(&boot.0)),
            self.activity_at.map(Timestamp::as_micros),
            self.read_at.as_micros(),
            self.doc.to_string(),
        )
    }
}
