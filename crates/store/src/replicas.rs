//! The processes that share the database.

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use serde_json::Value;

use crate::error::StoreError;
use crate::row::{from_json, worker_id};
use crate::store::Store;
use crate::tx::{Tx, View};
use crate::workers::Locked;

/// How many workers are taken over from a dead replica in one transaction.
const AT_ONCE: usize = 200;

/// A process that uses the database.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// Its name, new with every start.
    pub id: String,
    /// Its roles, sites and address; only Rust looks into it.
    pub doc: Value,
    /// When it started.
    pub started_at: Timestamp,
    /// It is taken for dead from then on, unless it says otherwise before.
    pub alive_until: Timestamp,
    /// It has written all evidence up to then; `None`: it takes none in.
    pub flushed_through: Option<Timestamp>,
}

impl Tx<'_> {
    /// Announces a replica, or says that it is still alive. `flushed_through` never goes back.
    pub fn announce_replica(&self, replica: &Replica) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO replica (id, doc, started_at, alive_until, flushed_through) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (id) DO UPDATE SET doc = excluded.doc, alive_until = excluded.alive_until,
                flushed_through = CASE
                    WHEN replica.flushed_through IS NULL OR excluded.flushed_through > replica.flushed_through
                    THEN excluded.flushed_through ELSE replica.flushed_through END",
            &[
                (&replica.id).into(),
                (&replica.doc.to_string()).into(),
                replica.started_at.into(),
                replica.alive_until.into(),
                replica.flushed_through.into(),
            ],
        )?;
        Ok(())
    }

    /// A replica that leaves cleanly has nothing left to flush, and nobody waits for it.
    pub fn forget_replica(&self, id: &str) -> Result<(), StoreError> {
        self.execute("DELETE FROM replica WHERE id = $1", &[id.into()])?;
        Ok(())
    }

    /// Forgets replicas that have been dead since before `before`; how many.
    pub fn forget_dead_replicas(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.execute("DELETE FROM replica WHERE alive_until < $1", &[before.into()])
    }

    pub(crate) fn set_flushed_through(&self, replica: &str, through: Timestamp) -> Result<(), StoreError> {
        let written = self.execute(
            "UPDATE replica SET flushed_through = CASE
                WHEN flushed_through > $1 THEN flushed_through ELSE $1 END
             WHERE id = $2",
            &[through.into(), replica.into()],
        )?;
        if written == 1 {
            return Ok(());
        }
        // Nobody would wait for its evidence, so it must not be told that all is well.
        Err(StoreError::Constraint(format!("replica {replica} flushes without having been announced").into()))
    }
}

impl Store {
    /// A replica is known to be dead, by more than its silence: what it had claimed is free, the connections
    /// through it have ended, at the latest now, and nobody waits for its evidence.
    ///
    /// Its row stays: it tells up to when evidence was taken in.
    pub fn bury_replica(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut after = String::new();
        loop {
            let mut left = self.read(|t| t.left_by(id, &after, AT_ONCE))?;
            let Some(last) = left.last() else { break };
            last.as_str().clone_into(&mut after);
            // A database may sort texts by a language; locks are taken in our own order.
            left.sort_unstable();
            self.tx(|t| {
                for worker in &left {
                    if let Some(mut locked) = t.lock_worker(worker)? {
                        locked.take_over(id, now)?;
                    }
                }
                Ok::<_, StoreError>(())
            })?;
        }
        self.tx(|t| {
            for statement in [
                "UPDATE replica SET alive_until = $1 WHERE id = $2 AND alive_until > $1",
                "UPDATE router_session SET alive_until = $1 WHERE id = $2 AND alive_until > $1",
            ] {
                t.execute(statement, &[now.into(), id.into()])?;
            }
            Ok(())
        })
    }
}

impl Locked<'_> {
    /// Whatever a dead replica had to do with this worker is over.
    fn take_over(&mut self, dead: &str, now: Timestamp) -> Result<(), StoreError> {
        let open = self.tx.connections(self.id())?;
        for row in open.into_iter().filter(|row| row.session == dead && row.count > 0) {
            self.set_connections(dead, row.epoch + 1, 0, now)?;
        }
        // A new number: a result that is still on its way is void.
        self.tx.execute(
            "UPDATE worker SET claim_by = NULL, claim_until = NULL, claim_gen = claim_gen + 1, next_check_at = $1
             WHERE id = $2 AND claim_by = $3",
            &[now.into(), self.id().as_str().into(), dead.into()],
        )?;
        Ok(())
    }
}

impl View<'_> {
    /// Workers that a replica has claimed or has connections to, by id.
    fn left_by(&self, replica: &str, after: &str, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        self.query(
            "SELECT id FROM worker WHERE claim_by = $1 AND id > $2
             UNION
             SELECT worker_id FROM hold WHERE kind = 'connection' AND owner = $1 AND count > 0 AND worker_id > $2
             ORDER BY 1 LIMIT $3",
            &[replica.into(), after.into(), limit.into()],
            |row| worker_id(row.text(0)?),
        )
    }

    /// Up to when the evidence of **every** live ingester is written; `None` if there is none.
    pub fn flushed_through(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let found = self.query_one(
            "SELECT min(flushed_through) FROM replica WHERE flushed_through IS NOT NULL AND alive_until > $1",
            &[now.into()],
            |row| row.opt_at(0),
        )?;
        Ok(found.flatten())
    }

    /// Up to when **anybody** has taken evidence in, dead replicas included: what came after is an outage of
    /// ours.
    pub fn ingested_through(&self) -> Result<Option<Timestamp>, StoreError> {
        let found = self.query_one("SELECT max(flushed_through) FROM replica", &[], |row| row.opt_at(0))?;
        Ok(found.flatten())
    }

    pub fn replicas(&self) -> Result<Vec<Replica>, StoreError> {
        self.query(
            "SELECT id, doc, started_at, alive_until, flushed_through FROM replica ORDER BY id",
            &[],
            |row| {
                let id = row.text(0)?;
                Ok(Replica {
                    id: id.to_owned(),
                    doc: from_json(row.text(1)?, "replica", id)?,
                    started_at: row.at(2)?,
                    alive_until: row.at(3)?,
                    flushed_through: row.opt_at(4)?,
                })
            },
        )
    }
}
