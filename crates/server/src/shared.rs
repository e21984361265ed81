//! What the facade, the loop and the ingest have in common.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::brake::{BrakeTerms, GoneTally};
use drowse_core::id::{BootId, IntentId, WorkerId};
use drowse_core::worker::Worker;
use drowse_store::Store;

use crate::clock::Clock;
use crate::crash::CrashPoints;
use crate::db::Db;
use crate::doubts::Doubts;
use crate::hands::{Drivers, Hands};
use crate::http::SharedPorts;
use crate::ingest::Ingest;
use crate::meters::Meters;
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::policies::{FileLayers, Policies};
use crate::reconcile::{Board, Ports, Queue, STALLED, Work};
use crate::tasks::Tasks;
use crate::untold::Untold;

/// What a fleet is made of.
#[derive(Debug)]
pub struct Parts {
    /// Its memory.
    pub store: Store,
    /// Its hands.
    pub drivers: Drivers,
    /// Its clock.
    pub clock: Clock,
    /// Where its tasks run.
    pub tasks: Tasks,
    /// Where it may be made to die.
    pub crash: CrashPoints,
    /// The name of this run of the program, new with every start.
    pub replica: String,
    /// The names of former runs that are known to be over.
    pub former: Vec<String>,
    /// What the file and the environment say about policy.
    pub file: FileLayers,
    /// When the brake engages.
    pub brake: BrakeTerms,
    /// How many checks are under way at once, at most.
    pub checks_at_once: usize,
    /// Where it is noted whom the front door let go on ahead of the books; `None`: nobody is.
    pub head_starts: Option<PathBuf>,
}

/// More than this many looks at once would only wait for each other.
pub const CHECKS_AT_ONCE: usize = 64;

/// Everything.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) db: Db,
    pub(crate) clock: Clock,
    pub(crate) tasks: Tasks,
    pub(crate) hands: Hands,
    pub(crate) policies: Policies,
    pub(crate) notices: Notices,
    pub(crate) ingest: Ingest,
    pub(crate) metrics: Metrics,
    pub(crate) queue: Queue,
    pub(crate) replica: String,
    pub(crate) former: Vec<String>,
    pub(crate) head_starts: Option<PathBuf>,
    pub(crate) started_at: Timestamp,
    pub(crate) brake_terms: BrakeTerms,
    /// The intents that this run of the program has opened or taken over.
    pub(crate) known: Intents,
    /// The intents whose stop or deletion has been asked for, with the run that it was asked of.
    pub(crate) asked: Asked,
    /// Who runs again and is not yet written down as running.
    pub(crate) awake: Awake,
    /// Who is being acted on just now.
    pub(crate) work: Work,
    /// What people in front of containers were told.
    pub(crate) board: Board,
    /// Whose port has not answered since it was started.
    pub(crate) unanswered: Ports,
    /// What counters showed before.
    pub(crate) meters: Meters,
    /// Workers that are unknown, for the brake.
    pub(crate) gone: Gone,
    /// When a worker of a region was last scaled down.
    pub(crate) scaled_down: Mutex<HashMap<Option<String>, Timestamp>>,
    /// Who leaves the books as soon as it runs.
    pub(crate) leaving: Mutex<BTreeSet<WorkerId>>,
    /// Up to when everything has been taken in and written.
    pub(crate) present: tokio::sync::Mutex<Option<Timestamp>>,
    /// Until when the session of this process's front door is taken for alive, in microseconds.
    pub(crate) session_until: AtomicI64,
    pub(crate) is_ready: AtomicBool,
    /// What the doors could not tell the store.
    pub(crate) untold: Untold,
    pub(crate) doubts: Doubts,
    /// When the loop last found its clock and itself in order, in microseconds.
    pub(crate) looked_at: AtomicI64,
    /// Who is looked for.
    pub(crate) discovery: crate::discover::Discovery,
    /// How long history is kept.
    pub(crate) keep_for: Mutex<Duration>,
    /// Whose door does not open, and why.
    pub(crate) shut_doors: Mutex<BTreeMap<WorkerId, String>>,
    /// Ports that lead to many workers.
    pub(crate) ports: Mutex<SharedPorts>,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            store,
            drivers,
            clock,
            tasks,
            crash,
            replica,
            former,
            file,
            brake,
            checks_at_once,
            head_starts,
        } = parts;
        let started_at = clock.now();
        Self {
            db: Db::new(store, tasks.clone(), crash.clone()),
            hands: Hands::new(drivers, crash),
            policies: Policies::new(file),
            notices: Notices::new(),
            ingest: Ingest::default(),
            metrics: Metrics::default(),
            queue: Queue::new(checks_at_once.max(1)),
            known: Intents::default(),
            asked: Asked::default(),
            awake: Awake::default(),
            work: Work::default(),
            board: Board::default(),
            unanswered: Ports::default(),
            meters: Meters::default(),
            gone: Gone::new(&brake),
            scaled_down: Mutex::default(),
            leaving: Mutex::default(),
            present: tokio::sync::Mutex::default(),
            session_until: AtomicI64::new(started_at.as_micros()),
            is_ready: AtomicBool::new(false),
            untold: Untold::default(),
            doubts: Doubts::default(),
            looked_at: AtomicI64::new(started_at.as_micros()),
            discovery: crate::discover::Discovery::default(),
            keep_for: Mutex::new(crate::config::Journal::default().keep),
            shut_doors: Mutex::default(),
            ports: Mutex::default(),
            brake_terms: brake,
            head_starts,
            clock,
            tasks,
            replica,
            former,
            started_at,
        }
    }
}

impl Shared {
    /// Whether the loop has not come when it should have: what it did not see is no reason to act.
    ///
    /// Asked when a decision is committed. A check that was under way when everything stood still goes on at the same
    /// moment as the loop, which is about to put the brake on.
    pub(crate) fn is_stalled(&self, now: Timestamp) -> bool {
        let looked_at = Timestamp::from_micros(self.looked_at.load(Ordering::Acquire));
        now.since(looked_at) >= STALLED
    }
}

/// One intent of each worker.
#[derive(Debug, Default)]
pub(crate) struct Intents(Mutex<HashMap<WorkerId, IntentId>>);

impl Intents {
    pub(crate) fn insert(&self, worker: &WorkerId, intent: IntentId) {
        lock(&self.0).insert(worker.clone(), intent);
    }

    pub(crate) fn contains(&self, worker: &WorkerId, intent: IntentId) -> bool {
        lock(&self.0).get(worker) == Some(&intent)
    }

    /// It is off the books.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.0).remove(worker);
    }
}

/// An intent, the run that the driver was asked to end for it, and when that was.
type Order = (IntentId, Option<BootId>, Timestamp);

/// Which run the driver was asked to end, by the intent that it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Asked(Mutex<HashMap<WorkerId, Order>>);

impl Asked {
    pub(crate) fn insert(&self, worker: &WorkerId, intent: IntentId, run: Option<BootId>, at: Timestamp) {
        lock(&self.0).insert(worker.clone(), (intent, run, at));
    }

    /// The run, where the driver tells; nothing if it has not been asked yet.
    #[expect(
        clippy::option_option,
        reason = "not asked, and asked of a run that has no name, are not the same"
    )]
    pub(crate) fn run(&self, worker: &WorkerId, intent: IntentId) -> Option<Option<BootId>> {
        lock(&self.0).get(worker).filter(|(asked, ..)| *asked == intent).map(|(_, run, _)| run.clone())
    }

    /// When it was asked first.
    pub(crate) fn at(&self, worker: &WorkerId, intent: IntentId) -> Option<Timestamp> {
        lock(&self.0).get(worker).filter(|(asked, ..)| *asked == intent).map(|(.., at)| *at)
    }

    /// It is off the books.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.0).remove(worker);
    }
}

/// Workers that the driver has said run again, by the intent that woke them, until that is written down.
#[derive(Debug, Default)]
pub(crate) struct Awake(Mutex<HashMap<WorkerId, (IntentId, Worker)>>);

impl Awake {
    pub(crate) fn insert(&self, intent: IntentId, worker: Worker) {
        lock(&self.0).insert(worker.id.clone(), (intent, worker));
    }

    pub(crate) fn remove(&self, worker: &WorkerId) {
        lock(&self.0).remove(worker);
    }

    /// The worker as it will be, and the intent that has woken it.
    pub(crate) fn of(&self, worker: &WorkerId) -> Option<(IntentId, Worker)> {
        lock(&self.0).get(worker).cloned()
    }
}

/// Which workers are unknown since when.
#[derive(Debug)]
pub(crate) struct Gone(Mutex<(HashMap<WorkerId, Timestamp>, GoneTally)>);

impl Gone {
    fn new(terms: &BrakeTerms) -> Self {
        Self(Mutex::new((HashMap::new(), GoneTally::new(terms))))
    }

    /// What a check found.
    pub(crate) fn note(&self, worker: &WorkerId, gone_since: Option<Timestamp>) {
        let (since, tally) = &mut *lock(&self.0);
        match (since.get(worker).copied(), gone_since) {
            (None, Some(at)) => {
                since.insert(worker.clone(), at);
                tally.went(at);
            }
            (Some(at), None) => {
                since.remove(worker);
                tally.returned(at);
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    pub(crate) fn since(&self, from: Timestamp) -> u32 {
        lock(&self.0).1.gone_since(from)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
