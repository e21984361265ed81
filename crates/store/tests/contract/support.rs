//! What the tests share: a database on each engine, workers, and parties that meet statement by statement.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::event::Event;
use drowse_core::evidence::Evidence;
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::id::{BootId, WorkerId};
use drowse_core::machine::{Fence, Found, Judged, Step};
use drowse_core::policy::Policy;
use drowse_core::reason::PauseReason;
use drowse_core::refusal::Refusal;
use drowse_core::signal::DriverKind;
use drowse_core::status::Status;
use drowse_core::worker::Worker;
use drowse_store::{Epoch, Locked, Options, Replica, Store, StoreError, Tx, WorkerRecord};
use serde_json::json;

use super::cluster::{self, Cluster};

pub(crate) const EPOCH: Epoch = Epoch(0xe0);

pub(crate) fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(1_000_000 + secs)
}

pub(crate) fn id(name: &str) -> WorkerId {
    WorkerId::new(name).unwrap()
}

/// One database, that any number of stores may open.
pub(crate) enum Database {
    Sqlite(tempfile::TempDir),
    Postgres { cluster: Arc<Cluster>, name: String },
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        Database::Sqlite(tempfile::tempdir().unwrap())
    }

    pub(crate) fn postgres() -> Self {
        let cluster = cluster::running();
        let name = cluster.database();
        Database::Postgres { cluster, name }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Database::Sqlite(_) => "sqlite://drowse.db".to_owned(),
            Database::Postgres { cluster, name } => cluster.url(name),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        match self {
            Database::Sqlite(folder) => folder.path(),
            Database::Postgres { .. } => Path::new("/"),
        }
    }

    pub(crate) fn open(&self) -> Store {
        self.open_with(&options()).unwrap()
    }

    pub(crate) fn open_with(&self, options: &Options) -> Result<Store, StoreError> {
        Store::open(&self.url(), self.folder(), options)
    }

    /// A statement past the store, as an operator or an older program would.
    pub(crate) fn sql(&self, text: &str) {
        match self {
            Database::Sqlite(folder) => {
                rusqlite::Connection::open(folder.path().join("drowse.db"))
                    .unwrap()
                    .execute_batch(text)
                    .unwrap();
            }
            Database::Postgres { cluster, name } => cluster.connect(name).batch_execute(text).unwrap(),
        }
    }

    pub(crate) const fn is_postgres(&self) -> bool {
        matches!(self, Database::Postgres { .. })
    }
}

pub(crate) fn options() -> Options {
    Options { connections: 6, ..Options::new(EPOCH) }
}

/// Runs a test on both engines.
pub(crate) fn on_both(test: impl Fn(&Database)) {
    test(&Database::sqlite());
    test(&Database::postgres());
}

pub(crate) fn running(name: &str) -> Worker {
    let mut worker = Worker::registered(id(name), DriverKind::Process, &Policy::default(), at(0));
    worker.status = Status::Running { since: at(0) };
    worker.boot = Some(BootId::new("boot-1"));
    worker.boot_started_at = Some(at(0));
    worker
}

/// Registers a running worker that is due at `at(100)`, and an ingester that has flushed everything so far.
pub(crate) fn with_worker(database: &Database, name: &str) -> Store {
    let store = database.open();
    register(&store, name);
    ingester(&store, "ingester", at(1_000));
    store
}

pub(crate) fn register(store: &Store, name: &str) {
    store.tx(|t| t.register(&running(name), "here", &json!({}), at(100))).unwrap();
}

pub(crate) fn ingester(store: &Store, name: &str, flushed_through: Timestamp) {
    let replica = Replica {
        id: name.to_owned(),
        doc: json!({}),
        started_at: at(0),
        alive_until: at(1_000_000),
        flushed_through: Some(flushed_through),
    };
    store.tx(|t| t.announce_replica(&replica)).unwrap();
}

pub(crate) fn record(store: &Store, name: &str) -> WorkerRecord {
    store.read(|t| t.worker(&id(name))).unwrap().unwrap()
}

pub(crate) fn keep_awake(owner: &str) -> Hold {
    Hold {
        kind: HoldKind::KeepAwake,
        owner: owner.to_owned(),
        reason: "demo".to_owned(),
        since: at(0),
        until: None,
    }
}

/// Why a decision was not committed.
#[derive(Debug)]
pub(crate) enum NotDone {
    #[expect(dead_code, reason = "shown when a test fails")]
    Store(StoreError),
    Refused(Refusal),
}

impl From<StoreError> for NotDone {
    fn from(error: StoreError) -> Self {
        NotDone::Store(error)
    }
}

impl From<Refusal> for NotDone {
    fn from(refusal: Refusal) -> Self {
        NotDone::Refused(refusal)
    }
}

/// What a check made of a record, before it tries to commit.
pub(crate) fn judged(record: &WorkerRecord, policy_epoch: u64) -> Judged {
    let worker = record.without_terms();
    Judged {
        generation: worker.generation,
        boot: worker.boot.clone(),
        policy_epoch,
        claim: record.claim_gen,
        activity_at: None,
    }
}

/// What a check judges on, read from the store.
pub(crate) fn judge(store: &Store, name: &str) -> Judged {
    judged(&record(store, name), store.read(|t| t.policy_epoch()).unwrap())
}

/// Commits what was judged at `now` for idleness, the way the loop does.
pub(crate) fn pause(t: &Tx<'_>, name: &str, judged: &Judged, now: Timestamp) -> Result<(), NotDone> {
    let mut locked = t.lock_worker(&id(name))?.expect("it is on the books");
    let found = locked.found(now, now)?;
    commit_pause(&mut locked, judged, found, now)
}

pub(crate) fn commit_pause(
    locked: &mut Locked<'_>,
    judged: &Judged,
    found: Found,
    now: Timestamp,
) -> Result<(), NotDone> {
    let event = Event::IdleConfirmed { fence: Fence { judged: judged.clone(), found } };
    step(locked, &event, now)
}

pub(crate) fn step(locked: &mut Locked<'_>, event: &Event, now: Timestamp) -> Result<(), NotDone> {
    let worker = locked.record().worker(&Policy::default());
    let Step { worker, entries, .. } = drowse_core::step(&worker, event, now)?;
    locked.save(&worker, worker.status.deadline())?;
    locked.append(&entries, now);
    Ok(())
}

/// Brings a worker to `paused` without asking anybody.
pub(crate) fn put_to_sleep(store: &Store, name: &str, reason: PauseReason, now: Timestamp) {
    store
        .tx(|t| {
            let mut locked = t.lock_worker(&id(name))?.expect("it is on the books");
            let mut worker = locked.record().worker(&Policy::default());
            let by = "drowse".to_owned();
            let sleep =
                drowse_core::status::Sleep { reason, by, message: String::new(), at: now, forced: false };
            worker.status = Status::Paused { since: now, sleep };
            worker.generation = worker.generation.next();
            locked.save(&worker, None)
        })
        .unwrap();
}

pub(crate) fn evidence(last_activity_at: Option<Timestamp>) -> Evidence {
    let mut evidence = Evidence::default();
    if let Some(at) = last_activity_at {
        evidence.note_activity(at, drowse_core::signal::Signal::Cpu, at);
    }
    evidence
}

/// A party of an interleaving: a thread that stops before each of its steps until it is let go on.
pub(crate) struct Party<T> {
    go: Sender<()>,
    reached: Receiver<&'static str>,
    thread: JoinHandle<T>,
}

/// What a party uses to stop.
pub(crate) struct Steps {
    go: Receiver<()>,
    reached: Sender<&'static str>,
}

impl Steps {
    /// Says which point is reached, and waits to be let go on.
    pub(crate) fn stop(&self, point: &'static str) {
        self.reached.send(point).unwrap();
        self.go.recv().unwrap();
    }
}

/// However slow the machine: nothing here takes longer unless it hangs.
const LONG: Duration = Duration::from_mins(1);

impl<T: Send + 'static> Party<T> {
    pub(crate) fn start(work: impl FnOnce(&Steps) -> T + Send + 'static) -> Self {
        let (go, wait) = channel();
        let (say, reached) = channel();
        let thread = std::thread::spawn(move || work(&Steps { go: wait, reached: say }));
        Self { go, reached, thread }
    }

    /// Waits until it has stopped at `point`.
    pub(crate) fn reaches(&self, point: &'static str) {
        assert_eq!(self.reached.recv_timeout(LONG), Ok(point));
    }

    /// Lets it go on.
    pub(crate) fn go_on(&self) {
        self.go.send(()).unwrap();
    }

    /// Lets it go on from its last stop, and waits for its end.
    pub(crate) fn finish(self) -> T {
        let _ = self.go.send(());
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(self) -> T {
        drop(self.go);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Waits until `count` parties stand at a lock of the database, or at the one writer of a SQLite store.
pub(crate) fn until_blocked(database: &Database, store: &Store, count: usize) {
    let mut admin = match database {
        Database::Sqlite(_) => None,
        Database::Postgres { cluster, .. } => Some(cluster.admin()),
    };
    for _ in 0..100_000 {
        let blocked = match (&mut admin, database) {
            (Some(admin), Database::Postgres { name, .. }) => {
                let sql =
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND wait_event_type = 'Lock'";
                usize::try_from(admin.query_one(sql, &[name]).unwrap().get::<_, i64>(0)).unwrap()
            }
            (_, _) => store.waiting(),
        };
        if blocked >= count {
            return;
        }
        std::thread::yield_now();
    }
    panic!("nobody waits");
}
