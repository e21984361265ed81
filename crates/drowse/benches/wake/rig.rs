//! A control plane that looks after real processes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drowse_core::brake::BrakeTerms;
use drowse_core::id::WorkerId;
use drowse_core::policy::{Key, Level, PolicyBook, PolicyLayer, Selectors, Source, Value};
use drowse_core::reason::{PauseReason, PauseReasons};
use drowse_core::status::StatusKind;
use drowse_drivers::Driver as _;
use drowse_drivers::process::{Config, ProcessDriver, cgroup};
use drowse_server::crash::CrashPoints;
use drowse_server::fleet::Order;
use drowse_server::policies::FileLayers;
use drowse_server::spec::{DriverSpec, NewWorker, WorkerSpec};
use drowse_server::tasks::{Blocking, Tasks};
use drowse_server::{CHECKS_AT_ONCE, Clock, Drivers, Fleet, Parts, Reconciler};
use drowse_store::{Epoch, Options, Store};
use drowse_wire::control::{Edge, EdgeCause};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::up::free_address;

/// Nothing sleeps by itself while it is measured.
const TIMEOUT: Duration = Duration::from_hours(1);
/// How often it is looked whether something has come to be.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const WITHIN: Duration = Duration::from_secs(20);
/// So that one wake has nothing to do with the next.
const BREATH: Duration = Duration::from_millis(5);

pub(crate) struct Rig {
    fleet: Fleet,
    driver: Arc<ProcessDriver>,
    workers: Vec<(WorkerId, SocketAddr)>,
    tasks: Tasks,
    _folder: tempfile::TempDir,
}

/// How long each part of a visit took.
pub(crate) struct Visit {
    pub(crate) counted: Duration,
    pub(crate) woken: Duration,
    pub(crate) served: Duration,
}

impl Visit {
    pub(crate) fn all(&self) -> Duration {
        self.counted + self.woken + self.served
    }
}

impl Rig {
    pub(crate) async fn start(workers: usize) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let (clock, tasks) = (Clock::system(), Tasks::new(Blocking::Threads));
        let store = Store::open("sqlite://drowse.db", folder.path(), &Options::new(Epoch(7))).expect("opens");
        let driver = ProcessDriver::open(Config {
            data_dir: folder.path().to_owned(),
            helper: vec![env!("CARGO_BIN_EXE_drowse").into(), "__exec".into()],
            freezer: cgroup::Choice::Auto,
            log_limit: 1 << 20,
            now: clock.reader(),
        });
        let driver = Arc::new(driver.expect("a driver"));
        let global = PolicyLayer::new(Level::Global, None, Source::File)
            .with(Key::IdleTimeout, Value::Duration(TIMEOUT))
            .with(Key::StopAfter, Value::Duration(TIMEOUT))
            .with(Key::FlapGuard, Value::Flag(false))
            // So that it can be frozen by order, at once, and woken by a connection all the same.
            .with(Key::WakeFrom, Value::Reasons(PauseReasons::of([PauseReason::Manual])));
        let fleet = Fleet::new(Parts {
            store,
            drivers: Drivers::default().with(Arc::clone(&driver) as Arc<_>),
            clock,
            tasks: tasks.clone(),
            crash: CrashPoints::default(),
            replica: "bench".to_owned(),
            former: Vec::new(),
            file: FileLayers { policy: PolicyBook::new(vec![global]), exemptions: Vec::new() },
            brake: BrakeTerms::default(),
            checks_at_once: CHECKS_AT_ONCE,
            head_starts: None,
        });
        let reconciler = Reconciler::new(&fleet);
        reconciler.start().await.expect("it starts");
        tasks.spawn(async move { reconciler.run(std::future::pending()).await });
        let workers = (0..workers)
            .map(|index| (WorkerId::new(&format!("w-{index:02}")).expect("a name"), free_address()))
            .collect();
        let rig = Self { fleet, driver, workers, tasks, _folder: folder };
        for (id, target) in &rig.workers {
            rig.register(id, *target).await;
        }
        rig.wait_for(StatusKind::Running).await;
        for (_, target) in &rig.workers {
            while TcpStream::connect(target).await.is_err() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        rig
    }

    async fn register(&self, id: &WorkerId, target: SocketAddr) {
        let command = [env!("CARGO_BIN_EXE_drowse"), "__demo-worker", id.as_str(), &target.to_string()];
        let new = NewWorker {
            id: id.clone(),
            selectors: Selectors::default(),
            spec: WorkerSpec {
                driver: DriverSpec::Process {
                    command: command.map(str::to_owned).to_vec(),
                    directory: None,
                    environment: std::collections::BTreeMap::new(),
                },
                listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
                target: Some(target),
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

    pub(crate) fn freezer(&self) -> String {
        self.driver.freezer().freezer.to_string()
    }

    async fn wait_for(&self, status: StatusKind) {
        let until = self.fleet.clock().now() + WITHIN;
        loop {
            let counts = self.fleet.count_by_status().await.expect("the store answers");
            if counts.iter().any(|(kind, count)| *kind == status && *count == self.workers.len() as u64) {
                return;
            }
            assert!(self.fleet.clock().now() < until, "they did not become {status}: {counts:?}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// The driver without a control plane.
    pub(crate) async fn bare(&self, times: usize) -> Vec<Duration> {
        let clock = self.fleet.clock();
        let mut took = Vec::new();
        for _ in 0..times {
            for (id, target) in &self.workers {
                self.driver.freeze(id, WITHIN).await.expect("it is frozen");
                let began_at = clock.now();
                self.driver.thaw(id, WITHIN).await.expect("it is thawed");
                first_byte(*target).await;
                took.push(clock.now().since(began_at));
            }
        }
        took
    }

    /// Visits to frozen workers, one after the other.
    pub(crate) async fn visits(&self, rounds: usize) -> Vec<Visit> {
        let mut visits = Vec::new();
        for _ in 0..rounds {
            for (id, _) in &self.workers {
                self.fleet.pause(id, Order::new("bench")).await.expect("it may be paused");
            }
            self.wait_for(StatusKind::Paused).await;
            visits.extend(self.visit_all().await);
            self.wait_for(StatusKind::Running).await;
        }
        visits
    }

    pub(crate) async fn visits_to_the_awake(&self, rounds: usize) -> Vec<Visit> {
        let mut visits = Vec::new();
        for _ in 0..rounds {
            visits.extend(self.visit_all().await);
        }
        visits
    }

    async fn visit_all(&self) -> Vec<Visit> {
        let mut visits = Vec::new();
        for (id, target) in self.workers.clone() {
            tokio::time::sleep(BREATH).await;
            let fleet = self.fleet.clone();
            // A task of the runtime, as a door's is.
            let visit = self.tasks.spawn(async move { visit(&fleet, &id, target).await });
            visits.push(visit.await.expect("no panic"));
        }
        visits
    }

    pub(crate) async fn end(&self) {
        for (id, _) in &self.workers {
            let order = Order { force: true, ..Order::new("bench") };
            self.fleet.terminate(id, order).await.expect("it may be ended");
        }
        self.wait_for(StatusKind::Terminated).await;
    }
}

fn edge(count: u64) -> Edge {
    // Grows over the life of this program, as a router's do.
    static EPOCHS: AtomicU64 = AtomicU64::new(1);
    let cause = if count > 0 { EdgeCause::Came } else { EdgeCause::Left };
    Edge { epoch: EPOCHS.fetch_add(1, Ordering::Relaxed), count, cause }
}

async fn visit(fleet: &Fleet, id: &WorkerId, target: SocketAddr) -> Visit {
    let clock = fleet.clock();
    let began_at = clock.now();
    fleet.connections(id, edge(1)).await.expect("it may be woken");
    let counted_at = clock.now();
    fleet.wake(id).await.expect("it wakes");
    let woken_at = clock.now();
    first_byte(target).await;
    let served_at = clock.now();
    fleet.connections(id, edge(0)).await.expect("it is told");
    Visit {
        counted: counted_at.since(began_at),
        woken: woken_at.since(counted_at),
        served: served_at.since(woken_at),
    }
}

async fn first_byte(target: SocketAddr) {
    let mut stream = TcpStream::connect(target).await.expect("it listens");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("it reads");
    stream.read_u8().await.expect("it answers");
}
