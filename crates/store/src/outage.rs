//! Outages of ours, after which leases get their time again.
//!
//! Whoever wanted to renew a lease meanwhile was not heard. A hundred thousand books cannot be rewritten before
//! anything else goes on, so an outage is noted in one row, and from then on every book has been put right by
//! the time that anybody has read it; [`Store::settle_outages`] writes that down when there is time. Doing it
//! twice is doing it once.

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::lease::LeaseBook;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::row::{from_json, to_json, worker_id};
use crate::store::Store;
use crate::tx::{Tx, View};

/// Where they are noted.
const OUTAGES: &str = "outages";

/// How many books are written in one transaction: a wake may have to wait for it.
const BOOKS_AT_ONCE: usize = 50;

/// A stretch in which nobody was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Outage {
    away_since: Timestamp,
    resumed_at: Timestamp,
}

/// All that are not settled, in the order in which they happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outages(Vec<Outage>);

impl Outages {
    /// Gives the leases their time again; true if anything changed.
    pub(crate) fn put_right(&self, leases: &mut LeaseBook) -> bool {
        let mut has_changed = false;
        for Outage { away_since, resumed_at } in &self.0 {
            has_changed |= leases.resume_after_outage(*away_since, *resumed_at);
        }
        has_changed
    }

    /// What had ended by then has ended, whatever is put right.
    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.0.iter().map(|outage| outage.away_since).min()
    }
}

impl View<'_> {
    pub(crate) fn outages(&self) -> Result<Outages, StoreError> {
        outages_of(self.meta(OUTAGES)?.as_deref())
    }

    /// The leases of a worker, and whether they are stored like that.
    pub(crate) fn lease_book(&self, worker: &WorkerId) -> Result<(LeaseBook, bool), StoreError> {
        let found = self.query_one(
            "SELECT doc, (SELECT value FROM meta WHERE key = 'outages') FROM lease_book WHERE worker_id = $1",
            &[worker.as_str().into()],
            |row| {
                let mut leases: LeaseBook = from_json(row.text(0)?, "leases", worker.as_str())?;
                let is_changed = outages_of(row.opt_text(1)?)?.put_right(&mut leases);
                Ok((leases, !is_changed))
            },
        )?;
        Ok(found.unwrap_or_else(|| (LeaseBook::default(), true)))
    }
}

fn outages_of(text: Option<&str>) -> Result<Outages, StoreError> {
    text.map_or_else(|| Ok(Outages::default()), |text| from_json(text, "outages", "the fleet"))
}

impl Tx<'_> {
    /// Nobody was heard from `away_since` on: no lease that was alive then ends before its own TTL has passed once
    /// more. To be called before anything expires.
    pub fn note_outage(&self, away_since: Timestamp, resumed_at: Timestamp) -> Result<(), StoreError> {
        self.lock_fleet()?;
        let mut outages = self.outages()?;
        let outage = Outage { away_since, resumed_at };
        if !outages.0.contains(&outage) {
            outages.0.push(outage);
            self.set_meta(OUTAGES, &to_json(&outages))?;
        }
        Ok(())
    }

    fn forget_outages(&self, settled: &Outages) -> Result<(), StoreError> {
        self.lock_fleet()?;
        let mut outages = self.outages()?;
        outages.0.retain(|outage| !settled.0.contains(outage));
        self.set_meta(OUTAGES, &to_json(&outages))
    }
}

impl Store {
    /// Notes an outage and settles it; how many workers it concerned.
    pub fn resume_leases(&self, away_since: Timestamp, resumed_at: Timestamp) -> Result<usize, StoreError> {
        self.tx(|t| t.note_outage(away_since, resumed_at))?;
        self.settle_outages()
    }

    /// Writes down what the outages have changed, a few books at a time; how many workers they concerned.
    pub fn settle_outages(&self) -> Result<usize, StoreError> {
        let outages = self.read(|t| {
            let outages = t.outages()?;
            Ok::<_, StoreError>(outages)
        })?;
        let Some(first) = outages.first() else {
            return Ok(0);
        };
        let mut changed = 0;
        let mut after = String::new();
        loop {
            let mut ids = self.read(|t| {
                t.query(
                    "SELECT worker_id FROM lease_book WHERE worker_id > $1 AND ends_at > $2
                     ORDER BY worker_id LIMIT $3",
                    &[(&after).into(), first.into(), BOOKS_AT_ONCE.into()],
                    |row| worker_id(row.text(0)?),
                )
            })?;
            let Some(last) = ids.last() else { break };
            last.as_str().clone_into(&mut after);
            // A database may sort texts by a language; locks are taken in our own order.
            ids.sort_unstable();
            changed += self.tx(|t| {
                let mut changed = 0;
                for id in &ids {
                    if let Some(mut locked) = t.lock_worker(id)?
                        && let (leases, false) = t.lease_book(id)?
                    {
                        locked.save_leases(&leases)?;
                        changed += 1;
                    }
                }
                Ok::<_, StoreError>(changed)
            })?;
        }
        self.tx(|t| t.forget_outages(&outages))?;
        Ok(changed)
    }
}
