//! A database, open.

use std::cell::RefCell;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::StoreError;
use crate::pool::{Lane, Pool};
use crate::sql::{Connection, Dialect, Mode};
use crate::tx::{Tx, View};
use crate::{Epoch, migrate, postgres, sqlite};

/// How a database is used.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long to wait for a lock that somebody else holds.
    pub lock_for: Duration,
    /// How long a statement may take (PostgreSQL).
    pub statement_for: Duration,
    /// How long a transaction may be silent (PostgreSQL).
    pub idle_for: Duration,
    /// Connections: all of them on PostgreSQL, the readers beside the one writer on SQLite.
    pub connections: usize,
    /// Make the file if it is missing (SQLite).
    pub create: bool,
    /// The largest number of pages of the file (SQLite), so that a journal cannot fill the machine's disk.
    pub sqlite_max_pages: Option<u32>,
    /// The journal's epoch should the database be new or a copy; from the injected generator.
    pub fresh_epoch: Epoch,
}

impl Options {
    pub const fn new(fresh_epoch: Epoch) -> Self {
        Self {
            // A transaction takes milliseconds: who waits for seconds waits for somebody who is stuck.
            lock_for: Duration::from_secs(5),
            statement_for: Duration::from_secs(10),
            idle_for: Duration::from_secs(10),
            connections: 4,
            create: true,
            sqlite_max_pages: None,
            fresh_epoch,
        }
    }
}

/// The memory of Drowse. Cheap to clone; may be used from any number of threads, but not from an async
/// context: a transaction blocks its thread.
#[derive(Clone, Debug)]
pub struct Store {
    writers: Arc<Pool<Connection>>,
    readers: Arc<Pool<Connection>>,
    /// Where the file is (SQLite).
    path: Option<Arc<Path>>,
    pub(crate) dialect: &'static Dialect,
}

impl Store {
    /// Opens `sqlite://FILE` (relative to `folder`) or `postgres://…`, and brings it up to date.
    pub fn open(url: &str, folder: &Path, options: &Options) -> Result<Self, StoreError> {
        if let Some(file) = url.strip_prefix("sqlite://") {
            if file.is_empty() {
                return Err(StoreError::BadUrl { url: url.to_owned() });
            }
            Self::open_sqlite(&folder.join(file), options)
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            Self::open_postgres(url, options)
        } else {
            Err(StoreError::BadUrl { url: url.to_owned() })
        }
    }

    fn open_sqlite(path: &Path, options: &Options) -> Result<Self, StoreError> {
        if options.create {
            keep_to_ourselves(path);
        }
        let connect = || sqlite::Connection::open(path, options).map(Connection::Sqlite);
        let mut writer = connect()?;
        migrate::bring_up(&mut writer, options.fresh_epoch)?;
        let readers = (0..options.connections.max(1)).map(|_| connect()).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            writers: Arc::new(Pool::new(vec![writer])),
            readers: Arc::new(Pool::new(readers)),
            path: Some(path.into()),
            dialect: &sqlite::DIALECT,
        })
    }

    fn open_postgres(url: &str, options: &Options) -> Result<Self, StoreError> {
        // A migration may wait for that of another replica, and takes longer than a transaction.
        let patient = Options { lock_for: MIGRATION_FOR, statement_for: MIGRATION_FOR, ..options.clone() };
        let mut first = Connection::Postgres(Box::new(postgres::Connection::new(url, &patient)?));
        migrate::bring_up(&mut first, options.fresh_epoch)?;
        let connections = (0..options.connections.max(1))
            .map(|_| Ok(Connection::Postgres(Box::new(postgres::Connection::new(url, options)?))))
            .collect::<Result<Vec<_>, StoreError>>()?;
        let pool = Arc::new(Pool::new(connections));
        Ok(Self { writers: Arc::clone(&pool), readers: pool, path: None, dialect: &postgres::DIALECT })
    }

    /// Runs `work` in a transaction: all of it is done, or nothing.
    ///
    /// It is committed when `work` answers `Ok`, and rolled back when it answers `Err` or panics. Inside of it,
    /// another transaction of the same store is refused.
    pub fn tx<T, E: From<StoreError>>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
        self.tx_in(Lane::Ordinary, work)
    }

    /// The same, in a lane: a wake goes ahead of checks and flushes.
    pub fn tx_in<T, E: From<StoreError>>(
        &self,
        lane: Lane,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let _inside = Inside::enter(self)?;
        let mut connection = self.writers.take(lane);
        connection.begin(Mode::Write)?;
        let tx = Tx::new(&connection);
        let value = work(&tx)?;
        tx.commit()?;
        Ok(value)
    }

    /// Runs `work` on one consistent view of the database.
    pub fn read<T, E: From<StoreError>>(&self, work: impl FnOnce(&View<'_>) -> Result<T, E>) -> Result<T, E> {
        let _inside = Inside::enter(self)?;
        let mut connection = self.readers.take(Lane::Ordinary);
        connection.begin(Mode::Read)?;
        let view = View::new(&connection);
        let value = work(&view)?;
        view.end()?;
        Ok(value)
    }

    /// How many transactions wait for their turn.
    pub fn waiting(&self) -> usize {
        self.writers.waiting()
    }

    /// Writes a copy that is whole at one instant, while everything goes on (SQLite).
    ///
    /// The copy knows that it is one: when it is opened, its journal gets a new epoch, so that nobody
    /// takes an event of its future for one they have seen.
    pub fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let Some(from) = &self.path else {
            return Err(StoreError::Unsupported("use pg_dump to back up PostgreSQL"));
        };
        if to.exists() {
            return Err(StoreError::Exists(to.to_owned()));
        }
        // Under another name until it is whole: whoever finds the file finds a good one.
        let mut partial = to.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let _ = std::fs::remove_file(&partial);
        let copied = copy(from, &partial).and_then(|()| {
            std::fs::rename(&partial, to).map_err(|error| StoreError::Unavailable(error.into()))
        });
        if copied.is_err() {
            let _ = std::fs::remove_file(&partial);
        }
        copied
    }
}

thread_local! {
    /// The stores of which this thread is inside a transaction.
    static INSIDE: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// That this thread is inside a transaction of a store.
///
/// A second one would wait for the connection that the first one has: always on SQLite, and on PostgreSQL once
/// as many threads do so as there are connections. So it is refused, before anybody has to find out.
struct Inside(usize);

impl Inside {
    fn enter(store: &Store) -> Result<Self, StoreError> {
        let which = Arc::as_ptr(&store.writers).addr();
        INSIDE.with_borrow_mut(|inside| {
            if inside.contains(&which) {
                return Err(StoreError::Nested);
            }
            inside.push(which);
            Ok(Self(which))
        })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.with_borrow_mut(|inside| inside.retain(|which| *which != self.0));
    }
}

/// Makes the file, empty, for its owner alone: SQLite would let everybody read it. What stands beside it gets the
/// same mode. One that is there stays as it is, and what cannot be made is told by SQLite.
fn keep_to_ourselves(path: &Path) {
    let _ = std::fs::File::options().create_new(true).write(true).mode(0o600).open(path);
}

fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    // A connection of its own: it takes seconds, and nobody should wait for it.
    let options = Options { create: false, ..Options::new(Epoch(0)) };
    sqlite::Connection::open(from, &options)?.copy_to(to)?;
    let copy = Connection::Sqlite(sqlite::Connection::open(to, &options)?);
    migrate::mark_as_copy(&copy)?;
    // One file, without a log beside it.
    copy.batch("PRAGMA journal_mode = DELETE;")
}

/// A migration of a large journal takes minutes.
const MIGRATION_FOR: Duration = Duration::from_mins(10);
