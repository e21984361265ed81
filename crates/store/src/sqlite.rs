//! SQLite: one file, one writer, readers beside it.
//!
//! Write transactions begin with `BEGIN IMMEDIATE`, so they are one after the other from their first
//! statement on, also across processes: a lock on a worker's row needs no statement of its own. WAL lets
//! readers go on meanwhile. `synchronous = NORMAL`: what was committed survives `kill -9`; a power failure may
//! lose the last second but damages nothing.

use std::path::Path;
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, ErrorCode, OpenFlags, ToSql};

use crate::checkpoint::Log;
use crate::error::{Cause, StoreError};
use crate::sql::{Append, Dialect, Mode, Param, Row};
use crate::store::Options;

pub(crate) const DIALECT: Dialect = Dialect {
    migrations: &[include_str!("../migrations/sqlite/0001_first.sql")],
    lock_migration: None,
    identity: None,
    clock: None,
    lock_journal: None,
    lock_fleet: None,
    share_fleet: None,
    lock_worker: "SELECT id, site, doc, spec, next_check_at, claim_by, claim_until, claim_gen, policy_epoch,
            hold_ended_at, removed_at, nudge_at
        FROM worker WHERE id = $1",
    claim_due: "UPDATE worker
        SET claim_by = $1, claim_until = $2, claim_gen = claim_gen + 1, next_check_at = $2, nudge_at = NULL
        WHERE id IN (
            SELECT id FROM worker
            WHERE next_check_at <= $3
                AND ($4 IS NULL OR site IN (SELECT value FROM json_each($4)))
            ORDER BY next_check_at LIMIT $5)
        RETURNING id, claim_gen",
    flush_evidence: "INSERT INTO evidence (worker_id, source, boot, activity_at, read_at, doc)
        SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
        FROM json_each($1)
        WHERE EXISTS (SELECT 1 FROM worker WHERE id = value ->> 0 AND removed_at IS NULL)
        ON CONFLICT (worker_id, source) DO UPDATE SET
            activity_at = CASE
                WHEN evidence.activity_at IS NULL OR excluded.activity_at > evidence.activity_at
                THEN excluded.activity_at ELSE evidence.activity_at END,
            boot = CASE WHEN excluded.read_at >= evidence.read_at THEN excluded.boot ELSE evidence.boot END,
            doc = CASE WHEN excluded.read_at >= evidence.read_at THEN excluded.doc ELSE evidence.doc END,
            read_at = max(excluded.read_at, evidence.read_at)",
    // About 5 ms of the one writer.
    flush_at_once: 500,
    touched: "SELECT w.id, w.status, max(e.activity_at)
        FROM worker w JOIN evidence e ON e.worker_id = w.id
        WHERE w.id IN (SELECT value FROM json_each($1)) AND e.activity_at > w.sleep_at
        GROUP BY w.id, w.status ORDER BY w.id",
    append: Append::Each("INSERT INTO event (at, worker_id, kind, doc) VALUES ($1, $2, $3, $4)"),
};

/// How often it is tried to switch a new file to WAL beside others that want the same.
const WAL_ATTEMPTS: u32 = 20;

#[derive(Debug)]
pub(crate) struct Connection {
    inner: rusqlite::Connection,
}

impl Connection {
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if options.create {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        }
        let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
            Some(ErrorCode::CannotOpen) => {
                StoreError::Missing { name: path.display().to_string(), source: error.into() }
            }
            _ => self::error(error),
        };
        let inner = rusqlite::Connection::open_with_flags(path, flags).map_err(failed)?;
        inner.busy_timeout(options.lock_for).map_err(error)?;
        // A plan that depends on the values of parameters is made anew for each of them, and a third of all
        // time went into that.
        inner.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(error)?;
        // Room for every statement of this crate.
        inner.set_prepared_statement_cache_capacity(128);
        let connection = Self { inner };
        connection.switch_to_wal()?;
        // What a part of a transaction may have to take back is kept in memory and not in a file beside it.
        connection.batch(
            "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;
             PRAGMA cache_size = -16000;",
        )?;
        if let Some(pages) = options.sqlite_max_pages {
            connection.batch(&format!("PRAGMA max_page_count = {pages};"))?;
        }
        Ok(connection)
    }

    /// Tells of the growth of the log after each commit, in the place of SQLite's own checkpoints.
    pub(crate) fn tell_of_log(&mut self, log: Arc<Log>) -> Result<(), StoreError> {
        let hook = move |wal: &mut rusqlite::hooks::Wal, pages| {
            if log.grew(pages) {
                // Failed: it is tried again after the next commit. The commit itself is done.
                let _ = wal.checkpoint();
            }
            Ok(())
        };
        self.inner.wal_hook(Some(hook)).map_err(error)
    }

    /// Moves what is in the log into the file, as far as nobody needs it there.
    pub(crate) fn checkpoint(&self) -> Result<(), StoreError> {
        self.inner.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(error)
    }

    /// Two processes that open a new file at once both want to switch it, and SQLite does not wait for
    /// a lock there. So whoever is refused waits for the other's end the ordinary way and looks again.
    fn switch_to_wal(&self) -> Result<(), StoreError> {
        let mut attempt = 0;
        loop {
            let mode = self.inner.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
            match mode.map_err(error) {
                Ok(mode) if mode == "wal" => return Ok(()),
                Ok(mode) => return Err(StoreError::Statement(format!("journal_mode stays {mode}").into())),
                Err(StoreError::Busy(_)) if attempt < WAL_ATTEMPTS => {
                    attempt += 1;
                    let waited = self.batch("BEGIN IMMEDIATE; ROLLBACK;");
                    if !matches!(waited, Err(StoreError::Busy(_))) {
                        waited?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn begin(&self, mode: Mode) -> Result<(), StoreError> {
        self.control(match mode {
            Mode::Read => "BEGIN",
            Mode::Write => "BEGIN IMMEDIATE",
            Mode::Part => "SAVEPOINT part",
        })
    }

    pub(crate) fn commit(&self) -> Result<(), StoreError> {
        self.control("COMMIT")
    }

    pub(crate) fn keep_part(&self) -> Result<(), StoreError> {
        self.control("RELEASE part")
    }

    pub(crate) fn take_part_back(&self) {
        if self.is_in_transaction() {
            let taken_back = self.control("ROLLBACK TO part").and_then(|()| self.control("RELEASE part"));
            if taken_back.is_err() {
                // Half of it must not be kept with what others did: then nothing is.
                self.rollback();
            }
        }
    }

    pub(crate) fn is_in_transaction(&self) -> bool {
        !self.inner.is_autocommit()
    }

    /// A statement of every transaction: prepared once.
    fn control(&self, sql: &'static str) -> Result<(), StoreError> {
        self.execute(sql, &[]).map(|_| ())
    }

    pub(crate) fn rollback(&self) {
        // Some errors, such as a full disk, have rolled back already.
        if self.is_in_transaction() {
            let _ = self.batch("ROLLBACK");
        }
    }

    pub(crate) fn batch(&self, sql: &str) -> Result<(), StoreError> {
        self.inner.execute_batch(sql).map_err(error)
    }

    pub(crate) fn execute(&self, sql: &'static str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.bound(sql, params)?;
        let changed = statement.raw_execute().map_err(error)?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }

    pub(crate) fn query(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self.bound(sql, params)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(error)? {
            each(&Row::Sqlite(row))?;
        }
        Ok(())
    }

    fn bound(&self, sql: &str, params: &[Param<'_>]) -> Result<CachedStatement<'_>, StoreError> {
        let mut statement = self.inner.prepare_cached(sql).map_err(error)?;
        debug_assert_eq!(statement.parameter_count(), params.len(), "{sql}");
        for (index, param) in params.iter().enumerate() {
            let number = index + 1;
            debug_assert_eq!(
                statement.parameter_name(number),
                Some(format!("${number}").as_str()),
                "parameters must first appear in the order of their numbers: {sql}"
            );
            statement.raw_bind_parameter(number, param).map_err(error)?;
        }
        Ok(statement)
    }

    /// Writes a copy that is whole at one instant, while others go on reading and writing.
    pub(crate) fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let path = path.to_string_lossy();
        self.execute("VACUUM INTO $1", &[Param::Text(Some(&path))]).map(|_| ())
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Param::Int(Some(value)) => ValueRef::Integer(*value),
            Param::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Param::Bytes(bytes) => ValueRef::Blob(bytes),
            Param::Int(None) | Param::Text(None) => ValueRef::Null,
        }))
    }
}

/// An error of SQLite by what a caller does about it.
pub(crate) fn error(error: rusqlite::Error) -> StoreError {
    // The file through which readers and the writer find each other could not be made as long as it must be.
    let is_full = error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE);
    if is_full {
        return StoreError::Full(error.into());
    }
    let sort = error.sqlite_error_code().map_or(StoreError::Statement as fn(Cause) -> StoreError, sort);
    sort(error.into())
}

fn sort(code: ErrorCode) -> fn(Cause) -> StoreError {
    // Lists and not a `match`: the engine may grow codes, and they are no business of ours.
    let busy = [
        ErrorCode::DatabaseBusy,
        ErrorCode::DatabaseLocked,
        ErrorCode::FileLockingProtocolFailed,
        ErrorCode::SchemaChanged,
    ];
    let gone = [ErrorCode::SystemIoFailure, ErrorCode::CannotOpen, ErrorCode::OutOfMemory];
    let denied = [ErrorCode::PermissionDenied, ErrorCode::AuthorizationForStatementDenied];
    let damaged = [ErrorCode::DatabaseCorrupt, ErrorCode::NotADatabase];
    if busy.contains(&code) {
        StoreError::Busy
    } else if gone.contains(&code) {
        StoreError::Unavailable
    } else if code == ErrorCode::DiskFull {
        StoreError::Full
    } else if code == ErrorCode::ReadOnly {
        StoreError::ReadOnly
    } else if damaged.contains(&code) {
        StoreError::Corrupt
    } else if denied.contains(&code) {
        StoreError::Denied
    } else if code == ErrorCode::ConstraintViolation {
        StoreError::Constraint
    } else {
        StoreError::Statement
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    fn sorted(code: i32) -> StoreError {
        error(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn errors_are_sorted_by_what_a_caller_does() {
        assert!(matches!(sorted(ffi::SQLITE_BUSY), StoreError::Busy(_)));
        assert!(matches!(sorted(ffi::SQLITE_BUSY_SNAPSHOT), StoreError::Busy(_)));
        assert!(matches!(sorted(ffi::SQLITE_FULL), StoreError::Full(_)));
        assert!(matches!(sorted(SQLITE_IOERR_SHMSIZE), StoreError::Full(_)));
        assert!(matches!(sorted(ffi::SQLITE_READONLY), StoreError::ReadOnly(_)));
        assert!(matches!(sorted(ffi::SQLITE_READONLY_DIRECTORY), StoreError::ReadOnly(_)));
        assert!(matches!(sorted(ffi::SQLITE_NOTADB), StoreError::Corrupt(_)));
        assert!(matches!(sorted(ffi::SQLITE_CORRUPT), StoreError::Corrupt(_)));
        assert!(matches!(sorted(ffi::SQLITE_IOERR_WRITE), StoreError::Unavailable(_)));
        assert!(matches!(sorted(ffi::SQLITE_CONSTRAINT_UNIQUE), StoreError::Constraint(_)));
        assert!(matches!(sorted(ffi::SQLITE_ERROR), StoreError::Statement(_)));
        assert!(sorted(ffi::SQLITE_BUSY).is_worth_retrying());
        assert!(sorted(ffi::SQLITE_FULL).is_outage() && !sorted(ffi::SQLITE_BUSY).is_outage());
    }
}
