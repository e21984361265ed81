//! Workers, and the lock that every change of one goes through.

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::journal::Entry;
use drowse_core::machine::Found;
use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::Worker;
use serde_json::Value;

use crate::error::StoreError;
use crate::events::NewEvent;
use crate::holds::Held;
use crate::row::{WorkerRecord, from_json, sleep_at, to_json, worker_id};
use crate::tx::{Tx, View};

/// A worker whose row this transaction has locked: nobody else takes or ends a hold of it or changes its
/// status before the transaction is over, and what is read through this was read after the lock.
#[derive(Debug)]
pub struct Locked<'t> {
    pub(crate) tx: &'t Tx<'t>,
    pub(crate) record: WorkerRecord,
}

/// What became of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registered {
    /// It is on the books.
    New,
    /// It was on the books before, had been removed, and is back. Its generation counts on, so that a late
    /// timer of its former life changes nothing.
    Again,
    /// There is one of that name; nothing has changed.
    Exists,
}

/// What became of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is off the books.
    Removed,
    /// It is frozen, or may be: nothing would ever wake it again. Resume it first.
    Refused { status: StatusKind },
}

/// Which workers to list.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// Only those after this one, by id.
    pub after: Option<WorkerId>,
    /// How many at most.
    pub limit: usize,
    /// Only those with this status.
    pub status: Option<StatusKind>,
}

impl Tx<'_> {
    /// Locks a worker's row. `None`: there is no such worker, or it was removed.
    ///
    /// Several are locked in the order of their ids.
    pub fn lock_worker<'t>(&'t self, id: &WorkerId) -> Result<Option<Locked<'t>>, StoreError> {
        let record = self.lock_row(id)?;
        Ok(record.filter(|record| record.removed_at.is_none()).map(|record| Locked { tx: self, record }))
    }

    fn lock_row(&self, id: &WorkerId) -> Result<Option<WorkerRecord>, StoreError> {
        self.order_worker(id)?;
        self.query_one(self.dialect().lock_worker, &[id.as_str().into()], WorkerRecord::of)
    }

    /// Puts a worker on the books, to be looked at from `next_check_at` on.
    pub fn register(
        &self,
        worker: &Worker,
        site: &str,
        spec: &Value,
        next_check_at: Timestamp,
    ) -> Result<Registered, StoreError> {
        // Locks what it inserts, so the same order as for any lock.
        self.order_worker(&worker.id)?;
        let inserted = self.execute(
            "INSERT INTO worker (id, site, driver, status, generation, doc, spec, deadline, sleep_at,
                next_check_at, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING",
            &[
                worker.id.as_str().into(),
                site.into(),
                worker.driver.code().into(),
                worker.status.kind().code().into(),
                worker.generation.0.into(),
                (&to_json(worker)).into(),
                (&spec.to_string()).into(),
                worker.status.deadline().into(),
                sleep_at(&worker.status).into(),
                next_check_at.into(),
                worker.created_at.into(),
            ],
        )?;
        if inserted == 1 {
            return Ok(Registered::New);
        }
        match self.lock_row(&worker.id)? {
            Some(record) if record.removed_at.is_some() => {
                let generation = record.without_terms().generation.next();
                let mut locked = Locked { tx: self, record };
                locked.reconfigure(site, spec)?;
                self.execute(
                    "UPDATE worker SET removed_at = NULL, driver = $1, created_at = $2, hold_ended_at = NULL
                     WHERE id = $3",
                    &[worker.driver.code().into(), worker.created_at.into(), worker.id.as_str().into()],
                )?;
                locked.record.removed_at = None;
                locked.save(&Worker { generation, ..worker.clone() }, Some(next_check_at))?;
                Ok(Registered::Again)
            }
            Some(_) => Ok(Registered::Exists),
            None => Err(StoreError::NoWorker(worker.id.clone())),
        }
    }
}

impl Locked<'_> {
    /// The worker, as it was found under the lock and changed since.
    pub const fn record(&self) -> &WorkerRecord {
        &self.record
    }

    pub const fn id(&self) -> &WorkerId {
        self.record.id()
    }

    /// Stores what [`drowse_core::step`] made of the worker. `look_by`: it is looked at no later than that.
    pub fn save(&mut self, worker: &Worker, look_by: Option<Timestamp>) -> Result<(), StoreError> {
        let sooner = |before: Option<Timestamp>| before.into_iter().chain(look_by).min();
        let WorkerRecord { next_check_at, nudge_at, .. } = self.record;
        // As for a nudge: during a claim the time of the next check belongs to the claim.
        let (next_check_at, nudge_at) = match self.record.claim_until {
            Some(_) => (next_check_at, sooner(nudge_at)),
            None => (sooner(next_check_at), nudge_at),
        };
        self.tx.execute(
            "UPDATE worker SET status = $1, generation = $2, doc = $3, deadline = $4, sleep_at = $5,
                next_check_at = $6, nudge_at = $7
             WHERE id = $8",
            &[
                worker.status.kind().code().into(),
                worker.generation.0.into(),
                (&to_json(worker)).into(),
                worker.status.deadline().into(),
                sleep_at(&worker.status).into(),
                next_check_at.into(),
                nudge_at.into(),
                self.id().as_str().into(),
            ],
        )?;
        (self.record.next_check_at, self.record.nudge_at) = (next_check_at, nudge_at);
        self.record.replace_worker(worker.clone());
        Ok(())
    }

    /// Changes where it is reached and how it was configured.
    pub fn reconfigure(&mut self, site: &str, spec: &Value) -> Result<(), StoreError> {
        self.tx.execute(
            "UPDATE worker SET site = $1, spec = $2 WHERE id = $3",
            &[site.into(), (&spec.to_string()).into(), self.id().as_str().into()],
        )?;
        (self.record.site, self.record.spec) = (site.to_owned(), spec.clone());
        Ok(())
    }

    /// Takes it off the books; its journal stays. Refused where it may be frozen.
    pub fn remove(self, now: Timestamp) -> Result<Removal, StoreError> {
        let status = self.record.status();
        if may_be_frozen(status) {
            return Ok(Removal::Refused { status: status.kind() });
        }
        let id = self.id().as_str();
        // A new number: whoever has claimed it can no longer write a result.
        self.tx.execute(
            "UPDATE worker SET removed_at = $1, next_check_at = NULL, nudge_at = NULL, claim_by = NULL,
                claim_until = NULL, claim_gen = claim_gen + 1
             WHERE id = $2",
            &[now.into(), id.into()],
        )?;
        for statement in [
            "DELETE FROM hold WHERE worker_id = $1",
            "DELETE FROM lease_book WHERE worker_id = $1",
            "DELETE FROM evidence WHERE worker_id = $1",
            "DELETE FROM checked WHERE worker_id = $1",
            "DELETE FROM liveness WHERE worker_id = $1",
        ] {
            self.tx.execute(statement, &[id.into()])?;
        }
        Ok(Removal::Removed)
    }

    /// Writes what a step noted into the journal.
    pub fn append(&self, entries: &[Entry], now: Timestamp) {
        for entry in entries {
            self.tx.append(NewEvent::of(entry, self.id(), now));
        }
    }

    /// The commit checklist, read under the lock: what must still be as it was judged at `judged_at`.
    ///
    /// Whether an exemption or a keep-awake spares the worker is for the caller to fill in, by policy.
    pub fn found(&self, judged_at: Timestamp, now: Timestamp) -> Result<Found, StoreError> {
        // Holds and evidence before the fleet, as the order of locks has it.
        self.found_beside(&self.held()?, judged_at, now)
    }

    /// The same, when what holds it has been read already, under the same lock.
    pub fn found_beside(
        &self,
        held: &Held,
        judged_at: Timestamp,
        now: Timestamp,
    ) -> Result<Found, StoreError> {
        let is_held = held.is_held(now);
        let activity_at = self.tx.activity_at(self.id())?;
        // No live ingester at all is an outage of ours, and no reason to pause anything.
        let is_flushed = self.tx.flushed_through(now)?.is_some_and(|through| through >= judged_at);
        self.tx.share_fleet()?;
        let (policy_epoch, brake) = self.tx.fleet()?;
        Ok(Found {
            policy_epoch,
            claim: self.record.claim_gen,
            activity_at,
            is_held,
            is_flushed,
            is_braked: brake.is_engaged(),
            is_spared: false,
        })
    }
}

/// Whether nothing would wake it if we forgot it now.
fn may_be_frozen(status: &Status) -> bool {
    match status {
        Status::Pausing { .. }
        | Status::Paused { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Terminating { .. }
        | Status::Unknown { sleep: Some(_), .. } => true,
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { sleep: None, .. } => false,
    }
}

impl View<'_> {
    /// A worker, removed ones included.
    pub fn worker(&self, id: &WorkerId) -> Result<Option<WorkerRecord>, StoreError> {
        self.query_one(
            "SELECT id, site, doc, spec, next_check_at, claim_by, claim_until, claim_gen, policy_epoch,
                hold_ended_at, removed_at, nudge_at
             FROM worker WHERE id = $1",
            &[id.as_str().into()],
            WorkerRecord::of,
        )
    }

    /// Workers on the books, by id, a page at a time.
    pub fn workers(&self, listing: &Listing) -> Result<Vec<WorkerRecord>, StoreError> {
        self.query(
            "SELECT id, site, doc, spec, next_check_at, claim_by, claim_until, claim_gen, policy_epoch,
                hold_ended_at, removed_at, nudge_at
             FROM worker
             WHERE id > $1 AND removed_at IS NULL AND (CAST($2 AS TEXT) IS NULL OR status = $2)
             ORDER BY id LIMIT $3",
            &[
                listing.after.as_ref().map_or("", WorkerId::as_str).into(),
                listing.status.map(StatusKind::code).into(),
                listing.limit.into(),
            ],
            WorkerRecord::of,
        )
    }

    /// The ids of all workers on the books that have a status, in order.
    pub fn ids_with(&self, status: StatusKind) -> Result<Vec<WorkerId>, StoreError> {
        self.query(
            "SELECT id FROM worker WHERE status = $1 AND removed_at IS NULL ORDER BY id",
            &[status.code().into()],
            |row| worker_id(row.text(0)?),
        )
    }

    /// How the workers on the books are configured whose configuration contains `text` as it is written: a
    /// pre-filter, so that only few are read in full.
    pub fn specs_with(&self, text: &str) -> Result<Vec<(WorkerId, Value)>, StoreError> {
        let pattern = format!("%{}%", text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"));
        self.query(
            "SELECT id, spec FROM worker WHERE removed_at IS NULL AND spec LIKE $1 ESCAPE '\\' ORDER BY id",
            &[(&pattern).into()],
            |row| {
                let id = worker_id(row.text(0)?)?;
                let spec = from_json(row.text(1)?, "configuration", id.as_str())?;
                Ok((id, spec))
            },
        )
    }

    /// How many workers there are of each status.
    pub fn count_by_status(&self) -> Result<Vec<(StatusKind, u64)>, StoreError> {
        self.query(
            "SELECT status, count(*) FROM worker WHERE removed_at IS NULL GROUP BY status ORDER BY status",
            &[],
            |row| {
                let code = row.text(0)?;
                let kind = StatusKind::from_code(code)
                    .ok_or_else(|| StoreError::Corrupt(format!("unknown status {code}").into()))?;
                Ok((kind, row.count(1)?))
            },
        )
    }

    /// Workers whose transition should have been over by `now`.
    pub fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        self.query(
            "SELECT id FROM worker WHERE deadline <= $1 AND removed_at IS NULL ORDER BY deadline LIMIT $2",
            &[now.into(), limit.into()],
            |row| worker_id(row.text(0)?),
        )
    }
}
