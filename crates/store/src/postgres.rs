//! PostgreSQL: several replicas on one database.
//!
//! READ COMMITTED, with locks where two parties meet. A compare-and-swap beside a look for holds would not
//! fence here: both sides read before either commits, and both commit.
//!
//! Three limits keep one stuck party from stopping the others: for a lock, for a statement, and for a
//! transaction that has fallen silent. A connection that broke is made anew by whoever needs it next.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use ::postgres::error::SqlState;
use ::postgres::fallible_iterator::FallibleIterator;
use ::postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use ::postgres::{Client, Config, NoTls, Statement};
use bytes::BytesMut;

use crate::error::{Cause, StoreError};
use crate::row::without_nul;
use crate::sql::{Append, Dialect, Mode, NO_PARTS, Param, Row};
use crate::store::Options;

// Advisory locks are taken in a space of our own, 0x64726f77 ("drow"): 1 the journal, 2 the fleet,
// 3 migrations, 4 the control plane (for as long as its session lasts). The first three are released after the commit has become visible, which is what the journal's order
// rests on.
pub(crate) const DIALECT: Dialect = Dialect {
    migrations: &[include_str!("../migrations/postgres/0001_first.sql")],
    lock_migration: Some("SELECT pg_advisory_xact_lock(1685221239, 3)"),
    identity: Some("SELECT oid::text FROM pg_database WHERE datname = current_database()"),
    // Not `now()`, which is the beginning of the transaction.
    clock: Some("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"),
    lock_journal: Some("SELECT pg_advisory_xact_lock(1685221239, 1)"),
    lock_fleet: Some("SELECT pg_advisory_xact_lock(1685221239, 2)"),
    share_fleet: Some("SELECT pg_advisory_xact_lock_shared(1685221239, 2)"),
    lock_worker: "SELECT id, site, doc, spec, next_check_at, claim_by, claim_until, claim_gen, policy_epoch,
            hold_ended_at, removed_at, nudge_at
        FROM worker WHERE id = $1 FOR NO KEY UPDATE",
    // MATERIALIZED: else the planner may run the inner part once per row, and claim more than asked for.
    claim_due: "WITH due AS MATERIALIZED (
            SELECT id FROM worker
            WHERE next_check_at <= $3
                AND ($4::text IS NULL OR site IN (SELECT json_array_elements_text($4::text::json)))
            ORDER BY next_check_at LIMIT $5 FOR NO KEY UPDATE SKIP LOCKED)
        UPDATE worker
        SET claim_by = $1, claim_until = $2, claim_gen = claim_gen + 1, next_check_at = $2, nudge_at = NULL
        FROM due WHERE worker.id = due.id
        RETURNING worker.id, worker.claim_gen",
    // In the order of the key, so that two replicas that flush the same workers wait for each other and do
    // not deadlock.
    flush_evidence: "INSERT INTO evidence (worker_id, source, boot, activity_at, read_at, doc)
        SELECT value ->> 0, value ->> 1, value ->> 2, (value ->> 3)::bigint, (value ->> 4)::bigint, value ->> 5
        FROM json_array_elements($1::text::json)
        WHERE EXISTS (SELECT FROM worker WHERE id = value ->> 0 AND removed_at IS NULL)
        ORDER BY 1, 2
        ON CONFLICT (worker_id, source) DO UPDATE SET
            activity_at = CASE
                WHEN evidence.activity_at IS NULL OR excluded.activity_at > evidence.activity_at
                THEN excluded.activity_at ELSE evidence.activity_at END,
            boot = CASE WHEN excluded.read_at >= evidence.read_at THEN excluded.boot ELSE evidence.boot END,
            doc = CASE WHEN excluded.read_at >= evidence.read_at THEN excluded.doc ELSE evidence.doc END,
            read_at = greatest(excluded.read_at, evidence.read_at)",
    // Nobody waits for it, and each commit waits for the disk.
    flush_at_once: 10_000,
    touched: "SELECT w.id, w.status, max(e.activity_at)
        FROM worker w JOIN evidence e ON e.worker_id = w.id
        WHERE w.id IN (SELECT json_array_elements_text($1::text::json)) AND e.activity_at > w.sleep_at
        GROUP BY w.id, w.status ORDER BY w.id",
    append: Append::All(
        "INSERT INTO event (at, worker_id, kind, doc)
        SELECT (value ->> 0)::bigint, value ->> 1, value ->> 2, value ->> 3
        FROM json_array_elements($1::text::json) WITH ORDINALITY AS entry (value, position)
        ORDER BY position",
    ),
};

/// A server that says nothing for so long is asked whether it is still there.
const SILENT_FOR: Duration = Duration::from_secs(5);

/// One connection, or the place of one.
pub(crate) struct Connection {
    config: Config,
    setup: String,
    live: RefCell<Option<Live>>,
}

struct Live {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Connection {
    /// The place of a connection; nothing is connected yet.
    pub(crate) fn new(url: &str, options: &Options) -> Result<Self, StoreError> {
        let mut config: Config =
            url.parse().map_err(|_| StoreError::BadUrl { url: without_password(url) })?;
        // A network that drops packets without a word must not keep a statement for ever.
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(options.statement_for);
        }
        config.keepalives_idle(SILENT_FOR).keepalives_interval(SILENT_FOR).keepalives_retries(2);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(options.statement_for);
        }
        if config.get_application_name().is_none() {
            config.application_name("drowse");
        }
        let millis = |duration: Duration| duration.as_millis().max(1);
        let setup = format!(
            "SET lock_timeout = {}; SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}; \
             SET default_transaction_isolation = 'read committed'",
            millis(options.lock_for),
            millis(options.statement_for),
            millis(options.idle_for),
        );
        Ok(Self { config, setup, live: RefCell::new(None) })
    }

    pub(crate) fn begin(&mut self, mode: Mode) -> Result<(), StoreError> {
        let begin = match mode {
            // One snapshot for all that is read.
            Mode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Mode::Write => "BEGIN",
            Mode::Part => return Err(NO_PARTS),
        };
        if self.live.get_mut().as_ref().is_some_and(|live| !live.client.is_closed()) {
            match self.batch(begin) {
                // The server went away since the last use. Nothing was begun, so a new connection will do.
                Err(StoreError::Unavailable(_)) => {}
                outcome => return outcome,
            }
        }
        *self.live.get_mut() = None;
        let mut client = self.config.connect(NoTls).map_err(|error| self.cannot_connect(error))?;
        client.batch_execute(&self.setup).map_err(error)?;
        *self.live.get_mut() = Some(Live { client, statements: HashMap::new() });
        self.batch(begin)
    }

    fn cannot_connect(&self, cause: ::postgres::Error) -> StoreError {
        match cause.code() {
            Some(code) if *code == SqlState::INVALID_CATALOG_NAME => StoreError::Missing {
                name: self.config.get_dbname().unwrap_or_default().to_owned(),
                source: cause.into(),
            },
            Some(_) => error(cause),
            // Without a code it is the way to the server that failed.
            None => StoreError::Unavailable(cause.into()),
        }
    }

    pub(crate) fn commit(&self) -> Result<(), StoreError> {
        let outcome = self.batch("COMMIT");
        if let Err(StoreError::Unavailable(cause)) = outcome {
            return Err(StoreError::CommitUnknown(cause));
        }
        outcome
    }

    pub(crate) fn rollback(&self) {
        let _ = self.batch("ROLLBACK");
    }

    pub(crate) fn batch(&self, sql: &str) -> Result<(), StoreError> {
        self.with(|live| live.client.batch_execute(sql))
    }

    pub(crate) fn execute(&self, sql: &'static str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.with(|live| {
            let statement = live.prepared(sql)?;
            let params: Vec<&(dyn ToSql + Sync)> = params.iter().map(|param| param as _).collect();
            live.client.execute(&statement, &params)
        })
    }

    pub(crate) fn query(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
        each: &mut dyn FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut outcome = Ok(());
        self.with(|live| {
            let statement = live.prepared(sql)?;
            let mut rows =
                live.client.query_raw(&statement, params.iter().map(|param| param as &dyn ToSql))?;
            // To the end even after an error: the connection must be ready for the next statement.
            while let Some(row) = rows.next()? {
                if outcome.is_ok() {
                    outcome = each(&Row::Postgres(&row));
                }
            }
            Ok(())
        })?;
        outcome
    }

    fn with<T>(&self, work: impl FnOnce(&mut Live) -> Result<T, ::postgres::Error>) -> Result<T, StoreError> {
        let mut live = self.live.borrow_mut();
        let live = live.as_mut().ok_or_else(|| StoreError::Unavailable("it is not connected".into()))?;
        work(live).map_err(|cause| {
            if live.client.is_closed() { StoreError::Unavailable(cause.into()) } else { error(cause) }
        })
    }
}

/// The session that holds the lock of the control plane, and does nothing else.
pub(crate) struct Session(Connection);

/// A machine that went away is found dead by its silence, within half a minute.
const SHORT_KEEPALIVE: &str =
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 4";

impl Session {
    pub(crate) fn new(url: &str, options: &Options) -> Result<Self, StoreError> {
        Connection::new(url, options).map(Self)
    }

    /// Whether the lock is ours: taken before in this session, or now. A session that broke has lost it.
    pub(crate) fn lock(&mut self) -> Result<bool, StoreError> {
        self.0.begin(Mode::Write)?;
        let is_ours = self.is_one(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 1685221239 AND objid = 4
                AND pid = pg_backend_pid()
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        );
        let is_ours = is_ours.and_then(|is_ours| {
            if is_ours {
                return Ok(true);
            }
            self.0.batch(SHORT_KEEPALIVE)?;
            self.is_one("SELECT pg_try_advisory_lock(1685221239, 4)::int::bigint")
        });
        match &is_ours {
            Ok(_) => self.0.commit()?,
            Err(_) => self.0.rollback(),
        }
        is_ours
    }

    fn is_one(&self, sql: &'static str) -> Result<bool, StoreError> {
        let mut value = 0;
        self.0.query(sql, &[], &mut |row| {
            value = row.int(0)?;
            Ok(())
        })?;
        Ok(value == 1)
    }
}

impl fmt::Debug for Connection {
    /// Without the configuration, which holds the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Live {
    fn prepared(&mut self, sql: &'static str) -> Result<Statement, ::postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }
}

/// The address without what stands between `:` and `@`: it is shown in an error.
fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
        Some((scheme, (user, rest))) => {
            format!("{scheme}://{}@{rest}", user.split(':').next().unwrap_or_default())
        }
        None => url.to_owned(),
    }
}

impl ToSql for Param<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Cause> {
        match self {
            Param::Int(value) => value.to_sql(ty, out),
            Param::Text(value) => value.map(without_nul).to_sql(ty, out),
            Param::Bytes(value) => value.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(ty)
    }

    to_sql_checked!();
}

/// An error of PostgreSQL by what a caller does about it.
pub(crate) fn error(error: ::postgres::Error) -> StoreError {
    let Some(code) = error.code() else {
        let is_transport =
            error.is_closed() || error.source().is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
        return if is_transport {
            StoreError::Unavailable(error.into())
        } else {
            StoreError::Statement(error.into())
        };
    };
    sort(code)(error.into())
}

fn sort(code: &SqlState) -> fn(Cause) -> StoreError {
    let busy = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::QUERY_CANCELED,
        SqlState::TOO_MANY_CONNECTIONS,
    ];
    let gone = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::SYSTEM_ERROR,
        SqlState::IO_ERROR,
    ];
    let damaged = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED];
    let denied = [SqlState::INSUFFICIENT_PRIVILEGE];
    // The first two characters are the class.
    let class = code.code().get(..2).unwrap_or_default();
    if busy.contains(code) {
        StoreError::Busy
    } else if gone.contains(code) || class == "08" {
        StoreError::Unavailable
    } else if *code == SqlState::DISK_FULL {
        StoreError::Full
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        StoreError::ReadOnly
    } else if damaged.contains(code) {
        StoreError::Corrupt
    } else if denied.contains(code) || class == "28" {
        StoreError::Denied
    } else if class == "23" {
        StoreError::Constraint
    } else {
        StoreError::Statement
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sorted_by_what_a_caller_does() {
        let sorted = |code: &str| sort(&SqlState::from_code(code))("why".into());
        assert!(matches!(sorted("40P01"), StoreError::Busy(_)));
        assert!(matches!(sorted("55P03"), StoreError::Busy(_)));
        assert!(matches!(sorted("57014"), StoreError::Busy(_)));
        assert!(matches!(sorted("53100"), StoreError::Full(_)));
        assert!(matches!(sorted("25006"), StoreError::ReadOnly(_)));
        assert!(matches!(sorted("57P01"), StoreError::Unavailable(_)));
        assert!(matches!(sorted("57P03"), StoreError::Unavailable(_)));
        assert!(matches!(sorted("08006"), StoreError::Unavailable(_)));
        assert!(matches!(sorted("28P01"), StoreError::Denied(_)));
        assert!(matches!(sorted("42501"), StoreError::Denied(_)));
        assert!(matches!(sorted("23505"), StoreError::Constraint(_)));
        assert!(matches!(sorted("XX001"), StoreError::Corrupt(_)));
        assert!(matches!(sorted("42601"), StoreError::Statement(_)));
    }

    #[test]
    fn an_error_does_not_show_the_password() {
        assert_eq!(without_password("postgres://me:p@ss@db:5432/x"), "postgres://me@db:5432/x");
        assert_eq!(without_password("postgres://db/x"), "postgres://db/x");
    }
}
