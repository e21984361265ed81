//! Graphics processors, played by the stand-in for NVIDIA's library, and real containers that use them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::signal::{Signal, UnknownCause};
use drowse_drivers::docker::{Config, Container, DockerDriver, Spec as Docker};
use drowse_drivers::{Driver as _, Measure, Measures, Spec, Wanted};

use crate::engine::{Engine, IMAGE};
use crate::rig::{LONG, Rig};
use crate::stand_in::{Kind, StandIn};

/// A driver with a clock that is moved by hand, and two containers.
struct Stage<'a> {
    engine: &'a Engine,
    library: StandIn,
    driver: DockerDriver,
    now: Arc<AtomicI64>,
    _folder: tempfile::TempDir,
}

fn id(name: &str) -> WorkerId {
    WorkerId::new(name).expect("a good name")
}

fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(1_000_000 + secs)
}

impl<'a> Stage<'a> {
    async fn new(rig: &'a Rig, script: &str) -> Self {
        let (engine, library) = (rig.engine(), StandIn::build(Kind::Usual, script));
        let folder = tempfile::tempdir().expect("a folder");
        let now = Arc::new(AtomicI64::new(0));
        let clock = Arc::clone(&now);
        let driver = DockerDriver::open(Config {
            data_dir: folder.path().into(),
            socket: engine.socket(),
            nvml: Some(library.library()),
            now: Arc::new(move || at(clock.load(Ordering::Relaxed))),
        });
        let driver = driver.expect("it can be opened");
        for name in ["first", "second"] {
            engine.docker(&["run", "--detach", "--name", name, "--network", "none", IMAGE, "sleep", "1000"]);
            let spec = Spec::Docker(Docker { container: Container::Named(name.into()) });
            driver.adopt(&id(name), &spec, LONG).await.expect("it can be adopted");
        }
        Self { engine, library, driver, now, _folder: folder }
    }

    fn pid(&self, name: &str) -> String {
        self.engine.docker(&["inspect", "--format", "{{.State.Pid}}", name])
    }

    async fn read(&self, name: &str, now: i64, since: Option<i64>) -> Measures {
        self.now.store(now, Ordering::Relaxed);
        let wanted = Wanted::of(&[Signal::Gpu], &[]).since(since.map(at));
        self.driver.read(&id(name), wanted, LONG).await.expect("it can be read")
    }

    async fn percent(&self, name: &str, now: i64, since: Option<i64>) -> Option<f64> {
        match self.read(name, now, since).await.get(Signal::Gpu) {
            Some(Measure::Level { value, .. }) => Some(value),
            None => None,
            other => panic!("{name}: {other:?}"),
        }
    }

    /// What was seen of it, the rest being unknown, and why in words.
    async fn partly(&self, name: &str, now: i64, since: Option<i64>) -> (f64, UnknownCause, Vec<String>) {
        let measures = self.read(name, now, since).await;
        let because = measures.because.iter().map(|(_, why)| why.clone()).collect();
        match measures.get(Signal::Gpu) {
            Some(Measure::AtLeast { value, cause, .. }) => (value, cause, because),
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// The library tells each sample once, to whoever looks first.
pub(crate) async fn nobodys_look_takes_anothers_use_away(rig: &mut Rig) {
    let stage = Stage::new(rig, "").await;
    let (first, second) = (stage.pid("first"), stage.pid("second"));
    let listed = format!("devices 1\nprocess 0 {first}\nprocess 0 {second}\n");
    stage.library.follow(&listed);
    assert_eq!(stage.percent("first", 100, None).await, Some(0.0));
    assert_eq!(stage.percent("second", 100, None).await, Some(0.0));
    // A burst between two checks of the second, seen only by a look of the first.
    stage.library.follow(&format!("{listed}sample 0 {second} 500 40 0 0 0\n"));
    assert_eq!(stage.percent("first", 110, Some(100)).await, Some(0.0), "another's use is not its own");
    stage.library.follow(&listed);
    assert_eq!(stage.percent("first", 120, Some(110)).await, Some(0.0));
    assert_eq!(stage.percent("second", 120, Some(100)).await, Some(40.0));
    assert_eq!(stage.percent("second", 130, Some(120)).await, Some(0.0), "and it counts once");
}

/// The driver below the library keeps samples for seconds only, and checks are minutes apart.
pub(crate) async fn it_is_looked_between_checks(rig: &mut Rig) {
    let stage = Stage::new(rig, "devices 1\n").await;
    let second = stage.pid("second");
    assert_eq!(stage.percent("second", 100, None).await, Some(0.0));
    stage.now.store(104, Ordering::Relaxed);
    stage.library.follow(&format!("devices 1\nsample 0 {second} 500 40 0 0 0\n"));
    // Nobody checks anything meanwhile. Twice, because the first question may have read the script before.
    for _ in 0..2 {
        let asked = stage.library.asked();
        stage.now.fetch_add(5, Ordering::Relaxed);
        rig.eventually("it is asked", async || stage.library.asked(), |now| *now > asked + 1).await;
    }
    stage.library.follow("devices 1\n");
    assert_eq!(stage.percent("second", 118, Some(100)).await, Some(40.0));
}

/// A job that came and went between two checks of its container.
pub(crate) async fn who_has_ended_used_it_all_the_same(rig: &mut Rig) {
    let stage = Stage::new(rig, "devices 1\n").await;
    stage.engine.docker(&["exec", "--detach", "second", "sleep", "999"]);
    let listed = rig
        .eventually(
            "its job runs",
            async || stage.engine.docker(&["top", "second", "-eo", "pid,args"]),
            |listed| listed.contains("sleep 999"),
        )
        .await;
    let job = listed.lines().find(|line| line.contains("sleep 999")).expect("it was there");
    let job = job.split_whitespace().next().expect("a number").to_owned();
    assert_eq!(stage.percent("second", 100, None).await, Some(0.0));
    stage.library.follow(&format!("devices 1\nprocess 0 {job}\nsample 0 {job} 100 70 0 0 0\n"));
    assert_eq!(stage.percent("first", 110, Some(100)).await, Some(0.0));
    stage.library.follow("devices 1\n");
    let killed = std::process::Command::new("kill").args(["-KILL", &job]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    rig.eventually(
        "its job is over",
        async || stage.engine.docker(&["top", "second", "-eo", "pid,args"]),
        |listed| !listed.contains("sleep 999"),
    )
    .await;
    assert_eq!(stage.percent("second", 118, Some(100)).await, Some(70.0));
}

/// A device with MIG tells nothing of those who are on it, and that concerns nobody else.
pub(crate) async fn mig_concerns_those_who_are_on_it(rig: &mut Rig) {
    let stage = Stage::new(rig, "").await;
    let (first, second) = (stage.pid("first"), stage.pid("second"));
    let mixed = format!(
        "devices 2\nprocess 0 {first}\nprocess 1 {second}\nanswer nvmlDeviceGetProcessUtilization 1 3\n"
    );
    stage.library.follow(&mixed);
    assert_eq!(stage.percent("first", 100, None).await, Some(0.0));
    assert_eq!(stage.percent("second", 100, None).await, None, "judged by its other signals");
    stage.library.follow(&format!("{mixed}sample 0 {second} 100 30 0 0 0\n"));
    let seen = stage.partly("second", 110, None).await;
    assert_eq!((seen.0, seen.1), (30.0, UnknownCause::ProbeFailed), "but what is seen is seen");
    // Nothing but MIG: nobody can be told anything.
    let only = "answer nvmlDeviceGetProcessUtilization 0 3\n";
    stage.library.follow(&format!("devices 2\n{only}answer nvmlDeviceGetProcessUtilization 1 3\n"));
    assert_eq!(stage.percent("first", 118, Some(110)).await, None);
}

pub(crate) async fn a_library_that_fails_half_way_is_unknown_and_named(rig: &mut Rig) {
    let stage = Stage::new(rig, "").await;
    let on = format!("process 0 {}\ndevices 2\n", stage.pid("first"));
    stage.library.follow(&on);
    assert_eq!(stage.percent("first", 100, None).await, Some(0.0));
    for (now, script, named) in [
        (
            110,
            "answer nvmlDeviceGetProcessUtilization 1 15",
            "nvmlDeviceGetProcessUtilization for GPU 1: GPU is lost (15)",
        ),
        (
            120,
            "answer nvmlDeviceGetHandleByIndex_v2 0 15",
            "nvmlDeviceGetHandleByIndex_v2 for GPU 0: GPU is lost (15)",
        ),
        (130, "devices 1", "there were 2 GPUs and now there are 1"),
        (140, "answer nvmlDeviceGetCount_v2 -1 999", "nvmlDeviceGetCount_v2: unknown error (999)"),
    ] {
        stage.library.follow(&format!("{script}\n{on}"));
        let told = stage.partly("first", now, Some(100)).await;
        assert_eq!(told, (0.0, UnknownCause::ProbeFailed, vec![named.to_owned()]));
        let told = stage.partly("second", now, Some(100)).await;
        assert_eq!(told, (0.0, UnknownCause::ProbeFailed, vec![]), "it is on none, and nobody is told");
    }
    // What was seen is told beside it: whether that is use is for the policy to say.
    let first = stage.pid("first");
    stage
        .library
        .follow(&format!("{on}sample 0 {first} 100 30 0 0 0\nanswer nvmlDeviceGetProcessUtilization 1 15\n"));
    let told = stage.partly("first", 150, Some(100)).await;
    assert_eq!((told.0, told.1), (30.0, UnknownCause::ProbeFailed));
    stage.library.follow(&on);
    assert_eq!(stage.percent("first", 155, None).await, Some(30.0), "it came back");
    assert_eq!(stage.percent("first", 164, None).await, Some(0.0), "and what was long ago is not now");
}

/// The library keeps seconds, and nothing tells afterwards what was used in a gap.
pub(crate) async fn what_nobody_looked_at_is_not_quiet(rig: &mut Rig) {
    let stage = Stage::new(rig, "").await;
    let on = format!("process 0 {}\ndevices 1\n", stage.pid("first"));
    stage.library.follow(&on);
    assert_eq!(stage.percent("first", 100, None).await, Some(0.0));
    assert_eq!(stage.percent("first", 108, Some(100)).await, Some(0.0));
    // A look between two checks fails, and the check itself does not.
    stage.library.follow(&format!("{on}answer nvmlDeviceGetProcessUtilization 0 15\n"));
    stage.partly("second", 112, None).await;
    stage.library.follow(&on);
    let why =
        "it could not be read between checks: nvmlDeviceGetProcessUtilization for GPU 0: GPU is lost (15)";
    let told = stage.partly("first", 120, Some(108)).await;
    assert_eq!(told, (0.0, UnknownCause::FirstSample, vec![why.to_owned()]));
    assert_eq!(stage.percent("first", 128, Some(120)).await, Some(0.0), "from there on it is known again");
    // Nobody looked for a while, as after a restart.
    let told = stage.partly("first", 200, Some(128)).await;
    assert_eq!(told, (0.0, UnknownCause::FirstSample, vec![]));
    assert_eq!(stage.percent("first", 208, Some(200)).await, Some(0.0));
}

/// Everybody reads as zero: that is no reason to need graphics processors.
pub(crate) async fn who_was_on_a_device_has_one(rig: &mut Rig) {
    let stage = Stage::new(rig, "").await;
    stage.library.follow(&format!("devices 1\nprocess 0 {}\n", stage.pid("first")));
    assert!(stage.read("first", 100, None).await.has_gpus);
    let second = stage.read("second", 100, None).await;
    assert!(!second.has_gpus && second.get(Signal::Gpu).is_some(), "{second:?}");
}
