//! The synchronous transaction.
//!
//! [`View`] reads; [`Tx`] reads and writes. What a transaction writes into the journal is kept until its end:
//! the lock that keeps the journal in order is the last one taken, and is held for two statements only.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;

use drowse_core::id::WorkerId;

use crate::error::StoreError;
use crate::events::NewEvent;
use crate::sql::{Connection, Dialect, Param, Row};

/// One consistent view of the database.
pub struct View<'c> {
    connection: &'c Connection,
    state: Cell<State>,
    extent: Extent,
}

/// What ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// A transaction of the engine.
    Whole,
    /// A part of one that several share.
    Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A statement failed. PostgreSQL would answer a commit now with a silent rollback.
    Failed,
    Over,
}

impl<'c> View<'c> {
    /// Of a connection on which a transaction has begun.
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection, state: Cell::new(State::Open), extent: Extent::Whole }
    }

    pub(crate) fn dialect(&self) -> &'static Dialect {
        self.connection.dialect()
    }

    pub(crate) fn execute(&self, sql: &'static str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.noting(self.connection.execute(sql, params))
    }

    pub(crate) fn query<T>(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
        mut map: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        let outcome = self.connection.query(sql, params, &mut |row| {
            found.push(map(row)?);
            Ok(())
        });
        self.noting(outcome)?;
        Ok(found)
    }

    pub(crate) fn query_one<T>(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
        map: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.query(sql, params, map)?.into_iter().next())
    }

    fn noting<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if outcome.is_err() {
            self.state.set(State::Failed);
        }
        outcome
    }

    pub(crate) fn end(&self) -> Result<(), StoreError> {
        if self.state.get() == State::Failed {
            return Err(StoreError::Failed);
        }
        let outcome = match self.extent {
            Extent::Whole => self.connection.commit(),
            Extent::Part => self.connection.keep_part(),
        };
        if outcome.is_ok() {
            self.state.set(State::Over);
        }
        outcome
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        if self.state.get() != State::Over {
            match self.extent {
                Extent::Whole => self.connection.rollback(),
                Extent::Part => self.connection.take_part_back(),
            }
        }
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("state", &self.state.get()).finish_non_exhaustive()
    }
}

/// A transaction that may write.
#[derive(Debug)]
pub struct Tx<'c> {
    view: View<'c>,
    locked: RefCell<BTreeSet<WorkerId>>,
    has_fleet: Cell<bool>,
    journal: RefCell<Vec<NewEvent>>,
}

impl<'c> Deref for Tx<'c> {
    type Target = View<'c>;
    fn deref(&self) -> &View<'c> {
        &self.view
    }
}

impl<'c> Tx<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self {
            view: View::new(connection),
            locked: RefCell::default(),
            has_fleet: Cell::new(false),
            journal: RefCell::default(),
        }
    }

    /// A transaction that shares the commit of others, on a connection on which its part has begun.
    pub(crate) fn part(connection: &'c Connection) -> Self {
        let mut tx = Self::new(connection);
        tx.view.extent = Extent::Part;
        tx
    }

    /// Writes an entry into the journal, when the transaction commits.
    pub fn append(&self, event: NewEvent) {
        self.journal.borrow_mut().push(event);
    }

    /// Refuses a lock on a worker that could deadlock with another transaction: with one that locks `a` and
    /// then `b` while this one has `b` and wants `a`. True if this transaction has that lock already.
    ///
    /// SQLite has no such locks. It is refused there too, or nobody would notice before production.
    pub(crate) fn order_worker(&self, id: &WorkerId) -> Result<bool, StoreError> {
        let mut locked = self.locked.borrow_mut();
        if locked.contains(id) {
            return Ok(true);
        }
        let held = match locked.last().filter(|last| *last > id) {
            Some(last) => Some(last.to_string()),
            None if self.has_fleet.get() => Some("the fleet".to_owned()),
            None => None,
        };
        if let Some(held) = held {
            return Err(StoreError::LockOrder { wanted: id.to_string(), held });
        }
        locked.insert(id.clone());
        Ok(false)
    }

    /// What this transaction reads of policy, exemptions and brake stays so until its end.
    pub(crate) fn share_fleet(&self) -> Result<(), StoreError> {
        self.lock_fleet_by(self.dialect().share_fleet)
    }

    /// Nobody relies on policy, exemptions and brake while they are changed.
    pub(crate) fn lock_fleet(&self) -> Result<(), StoreError> {
        self.lock_fleet_by(self.dialect().lock_fleet)
    }

    fn lock_fleet_by(&self, statement: Option<&'static str>) -> Result<(), StoreError> {
        self.has_fleet.set(true);
        self.lock(statement)
    }

    fn lock(&self, statement: Option<&'static str>) -> Result<(), StoreError> {
        match statement {
            Some(statement) => self.query(statement, &[], |_| Ok(())).map(|_| ()),
            None => Ok(()),
        }
    }

    pub(crate) fn commit(self) -> Result<(), StoreError> {
        let journal = self.journal.take();
        if !journal.is_empty() && self.view.state.get() == State::Open {
            // Last: from here to the commit everybody else who writes into the journal waits.
            self.lock(self.dialect().lock_journal)?;
            self.view.insert_events(&journal)?;
        }
        self.view.end()
    }
}
