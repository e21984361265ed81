//! Who looks after which worker just now.
//!
//! A claim is a stamp and not an open lock: one short statement writes it and commits, the work is done
//! outside of any transaction, and the result counts only if the stamp still stands. A claim also moves
//! `next_check_at` to its own end, so that a worker whose replica died becomes due again by itself.

use drowse_core::Timestamp;
use drowse_core::id::{Generation, WorkerId};

use crate::error::StoreError;
use crate::evidence::Checked;
use crate::row::{to_json, worker_id};
use crate::tx::{Tx, View};

/// A worker that is ours to look after for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Which.
    pub worker: WorkerId,
    /// The number of the claim; it is void as soon as the worker has another.
    pub claim_gen: u64,
}

/// What became of the result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// It is stored.
    Written,
    /// The worker has changed its status meanwhile: the result is dropped and the worker due again.
    Overtaken,
    /// Another replica looks after it now: the result is dropped.
    Lost,
}

impl Tx<'_> {
    /// Claims up to `limit` workers that are due and that nobody looks after, the longest overdue first.
    /// `sites`: only those; `None`: all.
    pub fn claim_due(
        &self,
        by: &str,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
        sites: Option<&[&str]>,
    ) -> Result<Vec<Claimed>, StoreError> {
        let sites = sites.map(|sites| to_json(&sites));
        self.query(
            self.dialect().claim_due,
            &[by.into(), until.into(), now.into(), sites.as_deref().into(), limit.into()],
            |row| Ok(Claimed { worker: worker_id(row.text(0)?)?, claim_gen: row.count(1)? }),
        )
    }

    /// Claims one worker, due or not, unless somebody looks after it.
    pub fn claim(
        &self,
        worker: &WorkerId,
        by: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Claimed>, StoreError> {
        self.order_worker(worker)?;
        self.query_one(
            "UPDATE worker
             SET claim_by = $1, claim_until = $2, claim_gen = claim_gen + 1, next_check_at = $2, nudge_at = NULL
             WHERE id = $3 AND removed_at IS NULL AND (claim_until IS NULL OR claim_until <= $4)
             RETURNING claim_gen",
            &[by.into(), until.into(), worker.as_str().into(), now.into()],
            |row| Ok(Claimed { worker: worker.clone(), claim_gen: row.count(0)? }),
        )
    }

    /// Keeps a claim for longer; false if it is lost.
    pub fn renew_claim(&self, claimed: &Claimed, until: Timestamp) -> Result<bool, StoreError> {
        self.order_worker(&claimed.worker)?;
        let renewed = self.execute(
            "UPDATE worker SET claim_until = $1, next_check_at = $1
             WHERE id = $2 AND claim_gen = $3 AND claim_until IS NOT NULL",
            &[until.into(), claimed.worker.as_str().into(), claimed.claim_gen.into()],
        )?;
        Ok(renewed == 1)
    }

    /// Stores the result of a check and ends its claim. `next_check_at`: `None` for a worker that need not be
    /// looked at again. Whoever nudged the worker during the check gets an earlier look.
    pub fn finish_check(
        &self,
        claimed: &Claimed,
        generation: Generation,
        checked: Option<&Checked>,
        policy_epoch: u64,
        next_check_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Finished, StoreError> {
        self.order_worker(&claimed.worker)?;
        let id = claimed.worker.as_str();
        let written = self.execute(
            "UPDATE worker SET claim_by = NULL, claim_until = NULL, nudge_at = NULL, policy_epoch = $1,
                next_check_at = CASE
                    WHEN nudge_at IS NOT NULL AND (CAST($2 AS BIGINT) IS NULL OR nudge_at < $2)
                    THEN nudge_at ELSE $2 END
             WHERE id = $3 AND claim_gen = $4 AND claim_until IS NOT NULL AND generation = $5",
            &[
                policy_epoch.into(),
                next_check_at.into(),
                id.into(),
                claimed.claim_gen.into(),
                generation.0.into(),
            ],
        )?;
        if written == 1 {
            if let Some(checked) = checked {
                self.save_checked(&claimed.worker, checked)?;
            }
            return Ok(Finished::Written);
        }
        let released = self.execute(
            "UPDATE worker SET claim_by = NULL, claim_until = NULL, nudge_at = NULL, next_check_at = $1
             WHERE id = $2 AND claim_gen = $3 AND claim_until IS NOT NULL",
            &[now.into(), id.into(), claimed.claim_gen.into()],
        )?;
        Ok(if released == 1 { Finished::Overtaken } else { Finished::Lost })
    }

    /// Has a worker looked at no later than `at`, also if a check is under way and would set a later time.
    pub fn nudge(&self, worker: &WorkerId, at: Timestamp) -> Result<(), StoreError> {
        self.order_worker(worker)?;
        // During a claim `next_check_at` stays: a worker that is due and cannot be claimed would make every
        // replica spin until the check is over.
        self.execute(
            "UPDATE worker SET
                next_check_at = CASE
                    WHEN claim_until IS NOT NULL OR next_check_at < $1 THEN next_check_at ELSE $1 END,
                nudge_at = CASE WHEN nudge_at < $1 THEN nudge_at ELSE $1 END
             WHERE id = $2 AND removed_at IS NULL",
            &[at.into(), worker.as_str().into()],
        )?;
        Ok(())
    }

    /// Nudges up to `limit` workers that were last judged under an older policy and come after `after`, by id; the
    /// last of them. To be called, a transaction each, until it answers `None`.
    pub fn nudge_outdated(
        &self,
        after: Option<&WorkerId>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Option<WorkerId>, StoreError> {
        // `+`: by id, where the last one left off, and not by the epoch, which is the same for all of them.
        let mut outdated = self.query(
            "SELECT id FROM worker
             WHERE id > $1 AND +policy_epoch < (SELECT policy_epoch FROM fleet) AND +next_check_at > $2
                AND (nudge_at IS NULL OR nudge_at > $2)
             ORDER BY id LIMIT $3",
            &[after.map_or("", WorkerId::as_str).into(), now.into(), limit.into()],
            |row| worker_id(row.text(0)?),
        )?;
        self.nudge_all(&outdated, now)?;
        Ok(outdated.pop())
    }

    /// Nudges several in the order of their ids, which need not be that of a database that sorts by a language: one
    /// statement for all would lock them in any order.
    pub fn nudge_all(&self, workers: &[WorkerId], at: Timestamp) -> Result<(), StoreError> {
        let mut sorted: Vec<&WorkerId> = workers.iter().collect();
        sorted.sort_unstable();
        sorted.into_iter().try_for_each(|worker| self.nudge(worker, at))
    }
}

impl View<'_> {
    /// When the next worker is due.
    pub fn next_due_at(&self) -> Result<Option<Timestamp>, StoreError> {
        let found = self.query_one(
            "SELECT next_check_at FROM worker WHERE next_check_at IS NOT NULL ORDER BY next_check_at LIMIT 1",
            &[],
            |row| row.at(0),
        )?;
        Ok(found)
    }
}
