//! A control plane at work, and what people do to it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::brake::BrakeTerms;
use drowse_core::id::WorkerId;
use drowse_core::policy::{Key, Level, PolicyBook, PolicyLayer, Selectors, Source, Value};
use drowse_core::status::StatusKind;
use drowse_server::crash::CrashPoints;
use drowse_server::fleet::{EventFilterOwned, PolicyChange};
use drowse_server::policies::FileLayers;
use drowse_server::spec::{DriverSpec, NewWorker, WorkerSpec};
use drowse_server::tasks::{Blocking, Tasks};
use drowse_server::{CHECKS_AT_ONCE, Clock, Drivers, Fleet, Parts, Reconciler};
use drowse_store::{Epoch, Listing, Options, Store};
use drowse_wire::control::{Edge, EdgeCause};
use tokio::task::JoinHandle;

use crate::driver::Live;
use crate::usage::Usage;

/// After this long without use a worker falls asleep.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);
/// Those that are woken meanwhile fall asleep sooner.
const NAP_TIMEOUT: Duration = Duration::from_secs(30);
/// Frozen workers stay frozen: nothing is stopped in this benchmark.
const STOP_AFTER: Duration = Duration::from_hours(24);
/// How often it is looked whether something has come to be.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) struct Rig {
    pub(crate) fleet: Fleet,
    pub(crate) driver: Arc<Live>,
    tasks: Tasks,
    store: Store,
    // Last: the database is closed before its folder goes.
    _folder: tempfile::TempDir,
}

/// Wakes that go on until they are stopped.
pub(crate) struct Wakes {
    stop: Arc<AtomicBool>,
    going: JoinHandle<Vec<Duration>>,
}

impl Wakes {
    pub(crate) async fn stop(self) -> Vec<Duration> {
        self.stop.store(true, Ordering::Relaxed);
        self.going.await.expect("wakes do not panic")
    }
}

pub(crate) fn worker(index: usize) -> WorkerId {
    WorkerId::new(&format!("w-{index:05}")).expect("a name")
}

pub(crate) fn napper(index: usize) -> WorkerId {
    WorkerId::new(&format!("nap-{index:05}")).expect("a name")
}

impl Rig {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let (clock, tasks) = (Clock::system(), Tasks::new(Blocking::Threads));
        let store = Store::open("sqlite://drowse.db", folder.path(), &Options::new(Epoch(7))).expect("opens");
        let driver = Arc::new(Live::new(clock.clone()));
        let layer = |level, name| PolicyLayer::new(level, name, Source::File);
        let policy = PolicyBook::new(vec![
            layer(Level::Global, None)
                .with(Key::IdleTimeout, Value::Duration(TIMEOUT))
                .with(Key::StopAfter, Value::Duration(STOP_AFTER)),
            layer(Level::Group, Some("naps")).with(Key::IdleTimeout, Value::Duration(NAP_TIMEOUT)),
        ]);
        let fleet = Fleet::new(Parts {
            store: store.clone(),
            drivers: Drivers::default().with(Arc::clone(&driver) as Arc<_>),
            clock,
            tasks: tasks.clone(),
            crash: CrashPoints::default(),
            replica: "bench".to_owned(),
            former: Vec::new(),
            file: FileLayers { policy, exemptions: Vec::new() },
            brake: BrakeTerms::default(),
            checks_at_once: CHECKS_AT_ONCE,
            head_starts: None,
        });
        let reconciler = Reconciler::new(&fleet);
        reconciler.start().await.expect("it starts");
        tasks.spawn(async move { reconciler.run(std::future::pending()).await });
        Self { fleet, driver, tasks, store, _folder: folder }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.fleet.clock().now()
    }

    pub(crate) async fn register(&self, id: &WorkerId, group: Option<&str>) {
        let new = NewWorker {
            id: id.clone(),
            selectors: Selectors { group: group.map(str::to_owned), ..Selectors::default() },
            spec: WorkerSpec {
                driver: DriverSpec::Sim,
                listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
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
        self.fleet.register(new, "bench").await.expect("it is registered");
    }

    /// Waits until so many workers have a status.
    pub(crate) async fn wait_for(&self, status: StatusKind, wanted: usize, within: Duration) {
        let until = self.now() + within;
        loop {
            let counts = self.fleet.count_by_status().await.expect("the store answers");
            let found = counts.iter().find(|(kind, _)| *kind == status).map_or(0, |(_, count)| *count);
            if found >= wanted as u64 {
                return;
            }
            assert!(self.now() < until, "{wanted} workers did not become {status}: {}", self.summary().await);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) async fn wait_for_awake(&self, workers: &[WorkerId]) {
        self.wait_for(StatusKind::Running, workers.len(), Duration::from_secs(1)).await;
    }

    /// Without a query: this is watched while it is measured.
    pub(crate) async fn wait_for_freezes(&self, wanted: usize, within: Duration) {
        let until = self.now() + within;
        while self.driver.count_freezes() < wanted {
            let frozen = self.driver.count_freezes();
            assert!(self.now() < until, "{frozen} of {wanted} were frozen: {}", self.summary().await);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) async fn summary(&self) -> String {
        let (brake, counts) = (self.fleet.brake().await, self.fleet.count_by_status().await);
        let metrics = self.fleet.metrics();
        let (failed, overtaken, lag) = (metrics.failed_checks, metrics.overtaken, metrics.tick_lag.longest);
        format!("{brake:?}, {counts:?}, {failed} checks failed, {overtaken} overtaken, {lag} s late at most")
    }

    /// When the journal says that each was to sleep, since an instant.
    pub(crate) async fn intended(&self, workers: &[WorkerId], since: Timestamp) -> Vec<Timestamp> {
        let filter = EventFilterOwned { worker: None, kind: Some("worker.sleep_intended".to_owned()) };
        let (mut after, mut found) = (0, HashMap::new());
        loop {
            let page = self.fleet.events(after, 1_000, filter.clone()).await.expect("the store answers");
            let Some(last) = page.last() else { break };
            after = last.seq;
            for stored in page.into_iter().filter(|stored| stored.event.at >= since) {
                if let Some(worker) = stored.event.worker {
                    found.entry(worker).or_insert(stored.event.at);
                }
            }
        }
        workers.iter().map(|worker| *found.get(worker).expect("it was to sleep")).collect()
    }

    /// Wakes all of them, so many at a time; how long each took.
    pub(crate) async fn wake_all(&self, workers: &[WorkerId], at_once: usize) -> Vec<Duration> {
        let parts = workers.chunks(workers.len().div_ceil(at_once)).map(|part| {
            let (fleet, part) = (self.fleet.clone(), part.to_vec());
            self.tasks.spawn(async move {
                let mut took = Vec::with_capacity(part.len());
                for worker in part {
                    took.push(visit(&fleet, &worker).await);
                }
                took
            })
        });
        let mut took = Vec::with_capacity(workers.len());
        for part in parts.collect::<Vec<_>>() {
            took.extend(part.await.expect("wakes do not panic"));
        }
        took
    }

    /// Wakes the nappers one after the other at a pace, each in a task of its own: nobody waits for anybody.
    pub(crate) fn wake_at_a_pace(&self, nappers: usize, per_second: u32) -> Wakes {
        let stop = Arc::new(AtomicBool::new(false));
        let (fleet, tasks, stopped) = (self.fleet.clone(), self.tasks.clone(), Arc::clone(&stop));
        let going = self.tasks.spawn(async move {
            let mut under_way = Vec::new();
            let began_at = fleet.clock().now();
            for index in 0..nappers {
                let pause = Duration::from_secs(1) / per_second;
                let at = began_at + pause * u32::try_from(index).expect("fits");
                fleet.clock().sleep_until(at).await;
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let fleet = fleet.clone();
                under_way.push(tasks.spawn(async move { visit(&fleet, &napper(index)).await }));
            }
            let mut took = Vec::new();
            for wake in under_way {
                took.push(wake.await.expect("wakes do not panic"));
            }
            took
        });
        Wakes { stop, going }
    }

    /// A timeout so long that the next look at anybody is minutes away.
    pub(crate) async fn relax(&self) {
        let change = |level, name: Option<&str>| PolicyChange {
            level,
            name: name.map(str::to_owned),
            key: Key::IdleTimeout,
            value: Some(Value::Duration(Duration::from_hours(3))),
            by: "bench".to_owned(),
        };
        let changes = vec![change(Level::Global, None), change(Level::Group, Some("naps"))];
        self.fleet.set_policies(changes, String::new()).await.expect("it is set");
    }

    /// Waits until no check has been made for two seconds.
    pub(crate) async fn wait_for_quiet(&self) {
        let mut before = u64::MAX;
        loop {
            let checks = self.fleet.metrics().checks;
            if checks == before {
                return;
            }
            before = checks;
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    /// What a loop without deadlines would do each time: look at every row. Its processor time.
    pub(crate) async fn scan_once(&self) -> Duration {
        let store = self.store.clone();
        let scan = move || {
            let before = Usage::of("self");
            for _ in 0..10 {
                let mut listing = Listing { limit: 1_000, ..Listing::default() };
                loop {
                    let page = store.read(|view| view.workers(&listing)).expect("the store answers");
                    match page.last() {
                        Some(last) if page.len() == 1_000 => listing.after = Some(last.id().clone()),
                        Some(_) | None => break,
                    }
                }
            }
            before.cpu_since() / 10
        };
        self.tasks.block(scan).await
    }
}

fn edge(count: u64) -> Edge {
    // Grows over the life of this program, as a router's do.
    static EPOCHS: AtomicU64 = AtomicU64::new(1);
    let cause = if count > 0 { EdgeCause::Came } else { EdgeCause::Left };
    Edge { epoch: EPOCHS.fetch_add(1, Ordering::Relaxed), count, cause }
}

/// Somebody connects, is served and leaves; how long until the worker was there.
async fn visit(fleet: &Fleet, worker: &WorkerId) -> Duration {
    let began_at = fleet.clock().now();
    fleet.connections(worker, edge(1)).await.expect("it may be woken");
    fleet.wake(worker).await.expect("it wakes");
    let took = fleet.clock().now().since(began_at);
    fleet.connections(worker, edge(0)).await.expect("it is told");
    took
}
