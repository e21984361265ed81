//! Statements, parameters and rows, the same for both engines.
//!
//! Parameters are written `$1`, `$2`, … and appear for the first time in that order: SQLite numbers them by
//! first appearance. Numbers are `i64`, also where they mean yes or no; documents are text.

use drowse_core::Timestamp;

use crate::error::StoreError;
use crate::{postgres, sqlite};

/// A value for a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Param<'a> {
    Int(Option<i64>),
    Text(Option<&'a str>),
    Bytes(&'a [u8]),
}

impl From<i64> for Param<'_> {
    fn from(value: i64) -> Self {
        Param::Int(Some(value))
    }
}

impl From<Timestamp> for Param<'_> {
    fn from(value: Timestamp) -> Self {
        Param::Int(Some(value.as_micros()))
    }
}

impl From<Option<Timestamp>> for Param<'_> {
    fn from(value: Option<Timestamp>) -> Self {
        Param::Int(value.map(Timestamp::as_micros))
    }
}

impl From<u64> for Param<'_> {
    /// Counters and generations: none gets past `i64::MAX` in the life of the universe.
    fn from(value: u64) -> Self {
        Param::Int(Some(i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl From<usize> for Param<'_> {
    fn from(value: usize) -> Self {
        Param::Int(Some(i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(value: &'a str) -> Self {
        Param::Text(Some(value))
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(value: &'a String) -> Self {
        Param::Text(Some(value))
    }
}

impl<'a> From<Option<&'a str>> for Param<'a> {
    fn from(value: Option<&'a str>) -> Self {
        Param::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(value: &'a [u8]) -> Self {
        Param::Bytes(value)
    }
}

/// A row of an answer.
#[derive(Debug)]
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r ::postgres::Row),
}

impl Row<'_> {
    pub(crate) fn int(&self, index: usize) -> Result<i64, StoreError> {
        match self {
            Row::Sqlite(row) => row.get(index).map_err(sqlite::error),
            Row::Postgres(row) => row.try_get(index).map_err(postgres::error),
        }
    }

    pub(crate) fn opt_int(&self, index: usize) -> Result<Option<i64>, StoreError> {
        match self {
            Row::Sqlite(row) => row.get(index).map_err(sqlite::error),
            Row::Postgres(row) => row.try_get(index).map_err(postgres::error),
        }
    }

    /// A counter, which is never negative.
    pub(crate) fn count(&self, index: usize) -> Result<u64, StoreError> {
        self.int(index).map(|value| u64::try_from(value).unwrap_or_default())
    }

    pub(crate) fn at(&self, index: usize) -> Result<Timestamp, StoreError> {
        self.int(index).map(Timestamp::from_micros)
    }

    pub(crate) fn opt_at(&self, index: usize) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.opt_int(index)?.map(Timestamp::from_micros))
    }

    pub(crate) fn text(&self, index: usize) -> Result<&str, StoreError> {
        self.opt_text(index).map(Option::unwrap_or_default)
    }

    pub(crate) fn opt_text(&self, index: usize) -> Result<Option<&str>, StoreError> {
        match self {
            Row::Sqlite(row) => {
                let value = row.get_ref(index).map_err(sqlite::error)?;
                value.as_str_or_null().map_err(|error| sqlite::error(error.into()))
            }
            Row::Postgres(row) => row.try_get(index).map_err(postgres::error),
        }
    }
}

/// What a transaction may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
    /// A part of a transaction that has begun (SQLite).
    Part,
}

/// One connection to a database.
#[derive(Debug)]
pub(crate) enum Connection {
    Sqlite(sqlite::Connection),
    Postgres(Box<postgres::Connection>),
}

impl Connection {
    /// Begins a transaction, connecting again first if the server had gone away.
    pub(crate) fn begin(&mut self, mode: Mode) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.begin(mode),
            Connection::Postgres(connection) => connection.begin(mode),
        }
    }

    pub(crate) fn commit(&self) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.commit(),
            Connection::Postgres(connection) => connection.commit(),
        }
    }

    /// Keeps a part, should the whole be kept.
    pub(crate) fn keep_part(&self) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.keep_part(),
            Connection::Postgres(_) => Err(NO_PARTS),
        }
    }

    /// Takes a part back; the whole goes on.
    pub(crate) fn take_part_back(&self) {
        match self {
            Connection::Sqlite(connection) => connection.take_part_back(),
            Connection::Postgres(_) => {}
        }
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        match self {
            Connection::Sqlite(connection) => connection.is_in_transaction(),
            Connection::Postgres(_) => false,
        }
    }

    /// Never fails: a connection that cannot roll back is broken, and its server rolls back by itself.
    pub(crate) fn rollback(&self) {
        match self {
            Connection::Sqlite(connection) => connection.rollback(),
            Connection::Postgres(connection) => connection.rollback(),
        }
    }

    /// Several statements without parameters, as in a migration.
    pub(crate) fn batch(&self, sql: &str) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.batch(sql),
            Connection::Postgres(connection) => connection.batch(sql),
        }
    }

    /// How many rows it changed.
    pub(crate) fn execute(&self, sql: &'static str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.execute(sql, params),
            Connection::Postgres(connection) => connection.execute(sql, params),
        }
    }

    /// Hands each row of the answer to `each`, which must not use the connection.
    pub(crate) fn query(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Connection::Sqlite(connection) => connection.query(sql, params, each),
            Connection::Postgres(connection) => connection.query(sql, params, each),
        }
    }

    pub(crate) const fn dialect(&self) -> &'static Dialect {
        match self {
            Connection::Sqlite(_) => &sqlite::DIALECT,
            Connection::Postgres(_) => &postgres::DIALECT,
        }
    }
}

/// PostgreSQL has many writers and needs none.
pub(crate) const NO_PARTS: StoreError = StoreError::Unsupported("transactions in parts are for one writer");

/// The statement that appends to the journal: what saves a round trip to a server is work for nothing without one.
#[derive(Debug)]
pub(crate) enum Append {
    /// A row each: its time, worker, kind and document.
    Each(&'static str),
    /// `$1` rows as a JSON array of arrays.
    All(&'static str),
}

/// The statements in which the engines differ. Whatever is not here is one text for both.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The migrations, in order.
    pub(crate) migrations: &'static [&'static str],
    /// Keeps a second process from migrating at the same time.
    pub(crate) lock_migration: Option<&'static str>,
    /// Which database this is; another answer than last time means that it was restored elsewhere.
    pub(crate) identity: Option<&'static str>,
    /// What time it is for the database.
    pub(crate) clock: Option<&'static str>,
    /// Keeps journal ids in commit order.
    pub(crate) lock_journal: Option<&'static str>,
    /// Taken by who changes policy, exemptions or the brake.
    pub(crate) lock_fleet: Option<&'static str>,
    /// Taken by who relies on them.
    pub(crate) share_fleet: Option<&'static str>,
    /// `$1` id. A worker's row, so that nobody else changes it before the end of the transaction.
    pub(crate) lock_worker: &'static str,
    /// `$1` by, `$2` until, `$3` now, `$4` sites as a JSON array or null for all, `$5` how many. Who is claimed is
    /// not due before the end of the claim, so due is all it asks.
    pub(crate) claim_due: &'static str,
    /// `$1` rows as a JSON array of arrays.
    pub(crate) flush_evidence: &'static str,
    /// How many of them in one transaction.
    pub(crate) flush_at_once: usize,
    /// `$1` worker ids as a JSON array.
    pub(crate) touched: &'static str,
    /// How entries get into the journal.
    pub(crate) append: Append,
}
