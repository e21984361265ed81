//! What a law is tried on: a driver, a way to make workers, and a way to let time pass.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use drowse_core::Timestamp;
use drowse_core::id::{IntentId, WorkerId};
use drowse_core::signal::Signal;
use drowse_drivers::docker::{self, DockerDriver};
use drowse_drivers::process::cgroup::{Choice, Lack};
use drowse_drivers::process::{Config, OpenError, ProcessDriver};
use drowse_drivers::sim::{Change, Load, Sim};
use drowse_drivers::{Driver, Error, Hint, Measure, Seen, Spec, Terminate, Wanted};
use tempfile::TempDir;

use crate::engine::{Engine, IMAGE};
use crate::workload::Workload;

/// More than anything takes on a slow machine; only a broken law waits this long.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Small, so that a test fills it quickly.
pub(crate) const LOG_LIMIT: u64 = 64 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sim,
    V2,
    V1,
    Signals,
    Docker,
}

impl Kind {
    fn choice(self) -> Choice {
        match self {
            Kind::Sim | Kind::Docker | Kind::Signals => Choice::Signals,
            Kind::V2 => Choice::V2,
            Kind::V1 => Choice::V1,
        }
    }
}

pub(crate) struct Rig {
    pub(crate) kind: Kind,
    subject: Option<Subject>,
    engine: Option<Engine>,
    folder: TempDir,
    workers: RefCell<Vec<(WorkerId, Workload)>>,
}

enum Subject {
    Sim(Box<Sim>),
    Process(Box<ProcessDriver>),
    Docker(Box<DockerDriver>),
}

/// Tries a law on a fresh rig.
pub(crate) fn run(kind: Kind, law: impl AsyncFnOnce(&mut Rig)) {
    let Some(mut rig) = Rig::new(kind) else { return };
    runtime().block_on(law(&mut rig));
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built")
}

impl Rig {
    fn new(kind: Kind) -> Option<Self> {
        let folder = tempfile::tempdir().expect("there is room for a temporary folder");
        let engine = (kind == Kind::Docker).then(Engine::start);
        let subject = match kind {
            Kind::Docker => {
                let engine = engine.as_ref().expect("it has just been started");
                Subject::Docker(Box::new(open_docker(engine, folder.path())))
            }
            Kind::Sim => Subject::Sim(Box::new(Sim::new(42, Timestamp::from_secs(1_700_000_000)))),
            Kind::V2 | Kind::V1 | Kind::Signals => match open(kind, folder.path()) {
                Ok(driver) => Subject::Process(Box::new(driver)),
                Err(OpenError::Freezer(Lack::NotMounted)) => {
                    eprintln!("not exercised: this machine has no {kind:?} freezer");
                    return None;
                }
                Err(error) => {
                    panic!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string))
                }
            },
        };
        Some(Self { kind, folder, subject: Some(subject), engine, workers: RefCell::default() })
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        match self.subject.as_ref().expect("the driver is open") {
            Subject::Sim(sim) => &**sim,
            Subject::Process(process) => &**process,
            Subject::Docker(docker) => &**docker,
        }
    }

    pub(crate) fn process(&self) -> &ProcessDriver {
        match self.subject.as_ref().expect("the driver is open") {
            Subject::Process(process) => process,
            Subject::Sim(_) | Subject::Docker(_) => panic!("this law is about processes"),
        }
    }

    /// The engine that containers live in.
    pub(crate) fn engine(&self) -> &Engine {
        self.engine.as_ref().expect("this law is about containers")
    }

    pub(crate) fn engine_mut(&mut self) -> &mut Engine {
        self.engine.as_mut().expect("this law is about containers")
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    /// Where a worker runs.
    pub(crate) fn dir(&self, worker: &WorkerId) -> PathBuf {
        self.folder.path().join("dirs").join(worker.as_str())
    }

    /// Ends the driver and makes a new one on the same data, as a restart of Drowse does.
    pub(crate) async fn restart(&mut self) {
        self.close();
        self.reopen();
        let workers = self.workers.borrow().clone();
        for (worker, workload) in workers {
            self.adopt(&worker, workload).await;
        }
    }

    pub(crate) fn close(&mut self) {
        self.subject = None;
    }

    pub(crate) fn reopen(&mut self) {
        self.subject = Some(if self.kind == Kind::Docker {
            Subject::Docker(Box::new(open_docker(self.engine(), self.folder.path())))
        } else {
            let driver = open(self.kind, self.folder.path()).expect("it could be opened before");
            Subject::Process(Box::new(driver))
        });
    }

    pub(crate) async fn adopt(&self, worker: &WorkerId, workload: Workload) -> Seen {
        let dir = self.dir(worker);
        fs::create_dir_all(&dir).expect("a folder can be made");
        let spec = match self.kind {
            Kind::Sim => workload.sim(),
            Kind::V2 | Kind::V1 | Kind::Signals => workload.process(&dir),
            Kind::Docker => self.container(worker, workload),
        };
        let seen = self.call(self.driver().adopt(worker, &spec, LONG)).await.expect("it can be adopted");
        let mut workers = self.workers.borrow_mut();
        if workers.iter().all(|(known, _)| known != worker) {
            workers.push((worker.clone(), workload));
        }
        seen
    }

    /// Has a container for a worker, unless it has one that does this already.
    fn container(&self, worker: &WorkerId, workload: Workload) -> Spec {
        let name = worker.as_str();
        let is_known = self.workers.borrow().iter().any(|(id, load)| id == worker && *load == workload);
        if !is_known || self.engine().try_docker(&["inspect", name]).is_err() {
            let _ = self.engine().try_docker(&["rm", "--force", name]);
            let dir = self.dir(worker);
            let dir = dir.to_str().expect("the folder has a plain name");
            let mount = format!("{dir}:{dir}");
            // As its first process a shell would not hear SIGTERM: `--init` stands before it.
            let mut create = vec!["create", "--name", name, "--network", "none"];
            if workload != Workload::CannotRun {
                create.push("--init");
            }
            create.extend(["--volume", &mount, "--workdir", dir, IMAGE]);
            let command = workload.command();
            create.extend(command.iter().map(String::as_str));
            self.engine().docker(&create);
        }
        Spec::Docker(docker::Spec { container: docker::Container::Named(name.to_owned()) })
    }

    /// A worker that does not run yet.
    pub(crate) async fn stopped(&self, name: &str, workload: Workload) -> WorkerId {
        let worker = WorkerId::new(name).expect("a good name");
        self.adopt(&worker, workload).await;
        worker
    }

    /// A worker that runs and has made its first mark.
    pub(crate) async fn running(&self, name: &str, workload: Workload) -> WorkerId {
        let worker = self.stopped(name, workload).await;
        self.call(self.driver().start(&worker, LONG)).await.expect("it can be started");
        if let Some(Subject::Sim(sim)) = &self.subject {
            sim.load(&worker, Signal::Cpu, Load::PerSecond(1_000_000));
        }
        if !matches!(workload, Workload::ExitsWhenTold | Workload::Talks | Workload::ShowsEnvironment) {
            self.progresses(&worker).await;
        }
        worker
    }

    pub(crate) async fn observe(&self, worker: &WorkerId) -> Seen {
        self.call(self.driver().observe(worker, LONG)).await.expect("it can be observed")
    }

    /// How far a worker has got: its marks, or its processor time.
    pub(crate) async fn progress(&self, worker: &WorkerId) -> u64 {
        let is_busy = self.workers.borrow().iter().any(|(id, load)| id == worker && *load == Workload::Busy);
        if self.kind == Kind::Sim || is_busy {
            self.cpu(worker).await
        } else {
            fs::metadata(self.dir(worker).join("marks")).map_or(0, |found| found.len())
        }
    }

    pub(crate) async fn cpu(&self, worker: &WorkerId) -> u64 {
        let wanted = Wanted::of(&[Signal::Cpu], &[]);
        let read = self.call(self.driver().read(worker, wanted, LONG)).await.expect("it can be read");
        match read.get(Signal::Cpu) {
            Some(Measure::Total(total)) => total.value,
            other => panic!("no processor time but {other:?}"),
        }
    }

    pub(crate) async fn progresses(&self, worker: &WorkerId) {
        let before = self.progress(worker).await;
        self.eventually("it makes progress", async || self.progress(worker).await, |now| *now > before).await;
    }

    /// Holds while another worker, which nobody froze, does as much as would have shown.
    pub(crate) async fn makes_no_progress(&self, worker: &WorkerId) {
        let before = self.progress(worker).await;
        let metronome = WorkerId::new("metronome").expect("a good name");
        let is_new = self.workers.borrow().iter().all(|(known, _)| *known != metronome);
        if is_new {
            self.running("metronome", Workload::Counts).await;
        }
        for _ in 0..20 {
            self.progresses(&metronome).await;
        }
        assert_eq!(self.progress(worker).await, before, "{worker} went on");
    }

    /// Tells a worker to exit by itself.
    pub(crate) fn let_exit(&self, worker: &WorkerId) {
        match &self.subject {
            Some(Subject::Sim(sim)) => sim.happens(sim.now(), worker, Change::Exits { code: 3 }),
            Some(Subject::Process(_) | Subject::Docker(_)) | None => {
                fs::write(self.dir(worker).join("exit-now"), "").expect("a file can be written");
            }
        }
    }

    /// The next hint. There must be one.
    pub(crate) async fn hint(&self) -> Hint {
        let next = async { Ok::<_, Error>(self.next_hint().await) };
        match self.subject {
            Some(Subject::Sim(_)) => self.call(next).await.expect("a hint"),
            _ => tokio::time::timeout(LONG, next).await.expect("a hint comes").expect("a hint"),
        }
    }

    /// Hints about who is there at all are for whoever discovers.
    async fn next_hint(&self) -> Hint {
        loop {
            match self.driver().next_hint().await {
                Hint::Came => {}
                hint @ (Hint::Exited { .. } | Hint::Changed { .. } | Hint::Lost) => return hint,
            }
        }
    }

    /// Fails if there is a hint. Called when one that was on its way has had time to arrive.
    pub(crate) async fn no_hint(&self) {
        for _ in 0..10 {
            self.breathe().await;
        }
        let hint = tokio::select! {
            biased;
            hint = self.next_hint() => Some(hint),
            () = tokio::task::yield_now() => None,
        };
        assert_eq!(hint, None);
    }

    /// Waits for a call; in the simulation by letting its time pass.
    pub(crate) async fn call<T>(&self, call: impl Future<Output = T>) -> T {
        let mut call = std::pin::pin!(call);
        let Some(Subject::Sim(sim)) = &self.subject else { return call.await };
        for _ in 0..100_000 {
            tokio::select! {
                biased;
                answer = &mut call => return answer,
                () = tokio::task::yield_now() => {}
            }
            sim.tick(sim.now() + Duration::from_millis(5));
        }
        panic!("no answer until {}", sim.now());
    }

    /// Lets a little time pass.
    pub(crate) async fn breathe(&self) {
        match &self.subject {
            Some(Subject::Sim(sim)) => sim.tick(sim.now() + Duration::from_millis(5)),
            Some(Subject::Process(_) | Subject::Docker(_)) | None => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }

    /// Looks again and again until it is so.
    pub(crate) async fn eventually<T: Debug>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut() -> T,
        is_so: impl Fn(&T) -> bool,
    ) -> T {
        let patience = tokio::time::Instant::now() + LONG;
        loop {
            let seen = look().await;
            if is_so(&seen) {
                return seen;
            }
            assert!(tokio::time::Instant::now() < patience, "{what}: not so; last seen {seen:?}");
            self.breathe().await;
        }
    }
}

/// Whatever a law left behind or a failure interrupted.
impl Drop for Rig {
    fn drop(&mut self) {
        if matches!(self.kind, Kind::Sim | Kind::Docker) {
            return;
        }
        if self.subject.is_none() {
            self.reopen();
        }
        let terminate = Terminate { intent: IntentId(u64::MAX), grace: Duration::ZERO, run: None };
        let driver = self.process();
        let workers = self.workers.borrow().clone();
        // A runtime cannot be started within another, and a failing law ends within one.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                runtime().block_on(async {
                    for (worker, workload) in workers {
                        let _ = driver.adopt(&worker, &workload.process(Path::new("/")), LONG).await;
                        let _ = driver.terminate(&worker, terminate.clone(), LONG).await;
                    }
                });
            });
        });
    }
}

fn open(kind: Kind, data_dir: &Path) -> Result<ProcessDriver, OpenError> {
    ProcessDriver::open(Config {
        data_dir: data_dir.into(),
        helper: vec![OsString::from(env!("CARGO_BIN_EXE_drowse-exec"))],
        freezer: kind.choice(),
        log_limit: LOG_LIMIT,
        now: Arc::new(now),
    })
}

fn open_docker(engine: &Engine, data_dir: &Path) -> DockerDriver {
    let config =
        docker::Config { data_dir: data_dir.into(), socket: engine.socket(), nvml: None, now: Arc::new(now) };
    DockerDriver::open(config).expect("the driver needs no engine to be opened")
}

#[expect(clippy::disallowed_methods, reason = "the clock that is injected into the drivers")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    Timestamp::EPOCH + since
}

/// For the process that is killed.
pub(crate) fn open_for_host(kind: Kind, data_dir: &Path) -> ProcessDriver {
    open(kind, data_dir).expect("the parent could open it")
}
