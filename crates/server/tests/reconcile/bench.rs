//! A whole program in one thread: the real loop, facade, store and rules, a simulated driver, and a clock that
//! stands still until the test moves it.
//!
//! Everything that the program does runs in its tasks, so that it can be made to die at a crash point: the task
//! never goes on, the test throws all of them away and starts another program on the same database, in the same
//! world.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::brake::BrakeTerms;
use drowse_core::id::WorkerId;
use drowse_core::policy::{Key, Level, PolicyBook, PolicyLayer, Selectors, Source, Value};
use drowse_core::signal::DriverKind;
use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::{Capabilities, Power, Worker};
use drowse_drivers::Driver;
use drowse_drivers::sim::{self, Sim};
use drowse_server::crash::{CrashPoint, CrashPoints};
use drowse_server::fleet::EventFilterOwned;
use drowse_server::policies::FileLayers;
use drowse_server::spec::{DriverSpec, NewWorker, WorkerSpec};
use drowse_server::tasks::{Blocking, Tasks};
use drowse_server::{CHECKS_AT_ONCE, Clock, ControlError, Drivers, Fleet, Parts, Reconciler};
use drowse_store::{Epoch, Options, Store, StoredEvent};
use drowse_wire::control::{Edge, EdgeCause};
use tokio::task::JoinHandle;

use super::driver::Scripted;

/// When everything begins.
pub(crate) const START: i64 = 1_800_000_000;

/// A tick that is due again at once, this often at one instant, is a loop that spins.
const MOST_TICKS: usize = 200;

/// An edge of a count of connections, numbered in the order in which they are made.
pub(crate) fn edge(count: u64) -> Edge {
    static EPOCHS: AtomicU64 = AtomicU64::new(1);
    let cause = if count > 0 { EdgeCause::Came } else { EdgeCause::Left };
    Edge { epoch: EPOCHS.fetch_add(1, Ordering::Relaxed), count, cause }
}

/// Where the program dies, and whether it has.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    is_dead: AtomicBool,
    /// How many more points it passes; negative: all.
    left: AtomicI64,
    pub(crate) died_at: Mutex<Option<CrashPoint>>,
    /// Dies at this point, the next time it is passed.
    pub(crate) at: Mutex<Option<CrashPoint>>,
    pub(crate) passed: Mutex<std::collections::BTreeSet<CrashPoint>>,
}

impl Fate {
    fn pass(&self, point: CrashPoint) -> bool {
        if self.is_dead.load(Ordering::Relaxed) {
            return true;
        }
        self.passed.lock().unwrap().insert(point);
        let is_counted_out =
            self.left.load(Ordering::Relaxed) >= 0 && self.left.fetch_sub(1, Ordering::Relaxed) == 0;
        let dies = is_counted_out || *self.at.lock().unwrap() == Some(point);
        if dies {
            self.is_dead.store(true, Ordering::Relaxed);
            *self.died_at.lock().unwrap() = Some(point);
        }
        dies
    }
}

pub(crate) struct Program {
    pub(crate) fleet: Fleet,
    reconciler: Reconciler,
    tasks: Tasks,
    runtime: tokio::runtime::Runtime,
    next: Timestamp,
}

pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) clock: Clock,
    pub(crate) sim: Arc<Sim>,
    pub(crate) scripted: Arc<Scripted>,
    pub(crate) fate: Arc<Fate>,
    pub(crate) layers: Vec<PolicyLayer>,
    program: Option<Program>,
    lives: u32,
}

/// The global layer of a test: ten seconds, and nothing else out of the ordinary.
pub(crate) fn global(seconds: u64) -> PolicyLayer {
    PolicyLayer::new(Level::Global, None, Source::File)
        .with(Key::IdleTimeout, Value::Duration(Duration::from_secs(seconds)))
}

pub(crate) fn id(name: &str) -> WorkerId {
    WorkerId::new(name).unwrap()
}

impl Bench {
    pub(crate) fn new(seed: u64, layers: Vec<PolicyLayer>) -> Self {
        Self::with(Sim::new(seed, Timestamp::from_secs(START)), layers)
    }

    /// Where others start and stop workers too.
    pub(crate) fn shared(seed: u64, layers: Vec<PolicyLayer>) -> Self {
        let capabilities = Capabilities { is_shared: true, ..Capabilities::of(DriverKind::Sim) };
        let sim = Sim::new(seed, Timestamp::from_secs(START)).with_capabilities(capabilities);
        Self::with(sim, layers)
    }

    fn with(sim: Sim, layers: Vec<PolicyLayer>) -> Self {
        let now = Timestamp::from_secs(START);
        let sim = Arc::new(sim);
        let fate = Fate::default();
        fate.left.store(-1, Ordering::Relaxed);
        let mut bench = Self {
            folder: tempfile::tempdir().unwrap(),
            clock: Clock::manual(now),
            scripted: Arc::new(Scripted::new(Arc::clone(&sim))),
            sim,
            fate: Arc::new(fate),
            layers,
            program: None,
            lives: 0,
        };
        bench.start();
        bench
    }

    /// A program begins its life.
    pub(crate) fn start(&mut self) {
        self.lives += 1;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let tasks = Tasks::new(Blocking::Inline);
        let options = Options { connections: 1, ..Options::new(Epoch(7)) };
        let store = Store::open("sqlite://drowse.db", self.folder.path(), &options).unwrap();
        let fate = Arc::clone(&self.fate);
        let driver: Arc<dyn Driver> = Arc::clone(&self.scripted) as Arc<dyn Driver>;
        let fleet = Fleet::new(Parts {
            store,
            drivers: Drivers::default().with(driver),
            clock: self.clock.clone(),
            tasks: tasks.clone(),
            crash: CrashPoints::new(move |point| fate.pass(point)),
            replica: format!("life-{}", self.lives),
            former: Vec::new(),
            file: FileLayers { policy: PolicyBook::new(self.layers.clone()), exemptions: Vec::new() },
            brake: BrakeTerms::default(),
            checks_at_once: CHECKS_AT_ONCE,
            head_starts: Some(self.folder.path().join("head-starts")),
        });
        let reconciler = Reconciler::new(&fleet);
        let next = self.clock.now();
        self.program = Some(Program { fleet, reconciler, tasks, runtime, next });
        let reconciler = self.program().reconciler.clone();
        self.run(async move { reconciler.start().await }).map(Result::unwrap);
        self.tick();
    }

    /// The program is killed, and another one takes its place.
    ///
    /// `leaves`: what it had asked of the driver goes on without it.
    pub(crate) fn restart(&mut self, leaves: bool) {
        let program = self.program.take().unwrap();
        if leaves {
            std::mem::forget(program);
        } else {
            drop(program);
        }
        *self.fate.at.lock().unwrap() = None;
        self.fate.left.store(-1, Ordering::Relaxed);
        self.fate.is_dead.store(false, Ordering::Relaxed);
        self.start();
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.fate.is_dead.load(Ordering::Relaxed)
    }

    /// The program dies after passing so many more crash points.
    pub(crate) fn die_after(&self, points: i64) {
        self.fate.left.store(points, Ordering::Relaxed);
    }

    pub(crate) fn program(&self) -> &Program {
        self.program.as_ref().unwrap()
    }

    /// Where the database is.
    pub(crate) fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("drowse.db")
    }

    pub(crate) fn fleet(&self) -> Fleet {
        self.program().fleet.clone()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Starts something in the program and lets everybody go on until nobody can.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let program = self.program();
        let guard = program.runtime.enter();
        let handle = program.tasks.spawn(work);
        drop(guard);
        self.settle();
        handle
    }

    /// Does something in the program; `None` if it did not come to an end at this instant.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let handle = self.spawn(work);
        self.finished(handle)
    }

    /// What something that was started has come to, if it has.
    pub(crate) fn finished<T: Send + 'static>(&self, handle: JoinHandle<T>) -> Option<T> {
        let is_finished = handle.is_finished();
        is_finished.then(|| self.program().runtime.block_on(handle).expect("a task panicked"))
    }

    /// Lets everybody go on until nobody can at this instant.
    pub(crate) fn settle(&self) {
        let program = self.program();
        program.runtime.block_on(async {
            loop {
                let before = program.tasks.polls();
                for _ in 0..3 {
                    tokio::task::yield_now().await;
                }
                if program.tasks.polls() == before {
                    return;
                }
            }
        });
    }

    /// Lets the loop do all that is due at this instant.
    pub(crate) fn tick(&mut self) {
        let now = self.now();
        for _ in 0..MOST_TICKS {
            let reconciler = self.program().reconciler.clone();
            let next = self.run(async move { reconciler.tick().await });
            let Some(next) = next else {
                assert!(self.is_dead(), "a tick did not come to an end");
                return;
            };
            let next = next.expect("the store answers");
            self.program.as_mut().unwrap().next = next;
            if next > now && !self.is_nudged() {
                return;
            }
        }
        panic!("the loop spins at {now}: {}", self.summary());
    }

    fn is_nudged(&self) -> bool {
        let program = self.program();
        program.runtime.block_on(async {
            tokio::select! {
                biased;
                () = program.reconciler.nudged() => true,
                () = std::future::ready(()) => false,
            }
        })
    }

    /// When something happens next.
    pub(crate) fn next_at(&self) -> Timestamp {
        let waits = [self.sim.next_at(), self.clock.next_wait()];
        let next = waits.into_iter().flatten().fold(self.program().next, Timestamp::min);
        next.max(self.now() + Duration::from_micros(1))
    }

    /// Goes to the next instant at which something happens, but not past `until`.
    pub(crate) fn step(&mut self, until: Timestamp) {
        let at = self.next_at().min(until);
        self.clock.set(at);
        self.sim.tick(at);
        self.settle();
        if !self.is_dead() {
            self.tick();
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, length: Duration) {
        let until = self.now() + length;
        while self.now() < until && !self.is_dead() {
            self.step(until);
        }
    }

    pub(crate) fn pass_secs(&mut self, secs: u64) {
        self.pass(Duration::from_secs(secs));
    }

    /// Lets time pass until something is so, for two minutes at the most.
    pub(crate) fn pass_until(&mut self, what: &str, is_so: impl Fn(&Bench) -> bool) {
        let until = self.now() + Duration::from_mins(2);
        while !is_so(self) {
            assert!(self.now() < until, "it did not come to be that {what}: {}", self.summary());
            assert!(!self.is_dead(), "it died at {:?}", self.fate.died_at);
            self.step(until);
        }
    }

    pub(crate) fn add(&mut self, name: &str, is_routed: bool) -> WorkerId {
        self.add_with(name, is_routed, sim::Spec::default())
    }

    /// Puts a worker on the books and lets it come up.
    pub(crate) fn add_with(&mut self, name: &str, is_routed: bool, spec: sim::Spec) -> WorkerId {
        let id = id(name);
        self.scripted.write(&id, spec);
        let new = NewWorker {
            id: id.clone(),
            selectors: Selectors::default(),
            spec: WorkerSpec {
                driver: DriverSpec::Sim,
                // Port 0: nobody opens it, and no two are the same.
                listen: is_routed.then(|| SocketAddr::from(([127, 0, 0, 1], 0))),
                target: None,
                sni: Vec::new(),
                tls_target: None,
                host: Vec::new(),
                protocol: drowse_server::config::Protocol::Tcp,
                ready_path: None,
                price_per_hour: None,
                paused_price_per_hour: None,
                target_port: None,
                tls_target_port: None,
                is_listed: false,
                found_by: None,
            },
            in_service: true,
        };
        let fleet = self.fleet();
        self.run(async move { fleet.register(new, "test").await }).unwrap().unwrap();
        self.tick();
        id
    }

    pub(crate) fn worker(&self, id: &WorkerId) -> Worker {
        let (fleet, id) = (self.fleet(), id.clone());
        self.run(async move { fleet.get(&id).await }).expect("reading takes no time").unwrap().worker
    }

    pub(crate) fn workers(&self) -> Vec<Worker> {
        let fleet = self.fleet();
        let listing = drowse_store::Listing { limit: 1_000, ..Default::default() };
        let cards = self.run(async move { fleet.list(listing).await }).expect("reading takes no time");
        cards.unwrap().into_iter().map(|card| card.worker).collect()
    }

    /// What each worker is doing and what it has been through, for messages.
    pub(crate) fn summary(&self) -> String {
        let story = |worker: &Worker| {
            let journal = self.journal(&worker.id);
            let lines = journal.iter().map(|stored| {
                let at = stored.event.at.since(Timestamp::from_secs(START));
                format!("\n    {at:?} {} {}", stored.event.kind, stored.event.doc)
            });
            format!("\n  {} is {:?}{}", worker.id, worker.status, lines.collect::<String>())
        };
        self.workers().iter().map(story).collect()
    }

    pub(crate) fn status(&self, id: &WorkerId) -> Status {
        self.worker(id).status
    }

    pub(crate) fn is(&self, id: &WorkerId, kind: StatusKind) -> bool {
        self.status(id).kind() == kind
    }

    /// What the world says about it.
    pub(crate) fn power(&self, id: &WorkerId) -> Power {
        let (sim, id) = (Arc::clone(&self.sim), id.clone());
        // A look of the test itself: it sees what is, not what a broken way lets through.
        self.program()
            .runtime
            .block_on(async move { sim.adopt(&id, &self.spec_of(&id), Duration::ZERO).await })
            .unwrap()
            .power
    }

    fn spec_of(&self, id: &WorkerId) -> drowse_drivers::Spec {
        drowse_drivers::Spec::Sim(Box::new(self.scripted.spec(id)))
    }

    /// The journal of a worker, oldest first.
    pub(crate) fn journal(&self, id: &WorkerId) -> Vec<StoredEvent> {
        let (fleet, id) = (self.fleet(), id.clone());
        let filter = EventFilterOwned { worker: Some(id), kind: None };
        self.run(async move { fleet.events(0, 100_000, filter).await })
            .expect("reading takes no time")
            .unwrap()
    }

    pub(crate) fn kinds(&self, id: &WorkerId) -> Vec<String> {
        self.journal(id).into_iter().map(|stored| stored.event.kind).collect()
    }

    pub(crate) fn count(&self, id: &WorkerId, kind: &str) -> usize {
        self.kinds(id).iter().filter(|found| *found == kind).count()
    }

    /// Asks the facade for something that is decided at once.
    pub(crate) fn ask<T: Send + 'static, F>(&self, work: impl FnOnce(Fleet) -> F) -> Result<T, ControlError>
    where
        F: Future<Output = Result<T, ControlError>> + Send + 'static,
    {
        self.run(work(self.fleet())).expect("it is decided at once")
    }
}
