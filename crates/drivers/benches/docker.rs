//! What it takes to look at fifty real containers of a real engine, and to read them.
//!
//! Elapsed time, because that is what the last of them waits for: one after the other, as if nobody else were there. Beside
//! it, in the same run, the engine's own client asked for the same figures.
//!
//! Run by `cargo xtask bench containers`; prints a JSON object per row.

#![forbid(unsafe_code)]

#[path = "../tests/conformance/engine.rs"]
#[expect(dead_code, reason = "what tests do with an engine")]
mod engine;
#[path = "../../server/benches/shown/report.rs"]
#[expect(dead_code, reason = "what others show")]
mod report;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::signal::Signal;
use drowse_drivers::docker::{Config, Container, DockerDriver, Spec as Docker};
use drowse_drivers::{Driver as _, Measure, Spec, Wanted};

use engine::{Engine, IMAGE};
use report::{Aim, Report, Unit, note};

const CONTAINERS: usize = 50;
const ROUNDS: u32 = 5;
const LONG: Duration = Duration::from_secs(20);

fn main() {
    // Cargo runs bench targets in `cargo test --benches` too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    note(&format!(
        "{CONTAINERS} real containers of a Docker engine of its own. Elapsed time of a round, one container after the \
         other; of {ROUNDS} rounds the mean."
    ));
    let engine = Engine::start();
    let folder = tempfile::tempdir().expect("a folder");
    let config =
        Config { data_dir: folder.path().into(), socket: engine.socket(), nvml: None, now: Arc::new(now) };
    let driver = DockerDriver::open(config).expect("it can be opened");
    let network = engine.network();
    let mut workers = Vec::new();
    for number in 0..CONTAINERS {
        let name = format!("c{number}");
        engine.docker(&["run", "--detach", "--name", &name, "--network", network, IMAGE, "sleep", "10000"]);
        let worker = WorkerId::new(&name).expect("a good name");
        let spec = Spec::Docker(Docker { container: Container::Named(name) });
        driver.adopt(&worker, &spec, LONG).await.expect("it can be adopted");
        workers.push(worker);
    }
    let (mut looking, mut reading) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        let began = clock();
        for worker in &workers {
            driver.observe(worker, LONG).await.expect("it runs");
        }
        let looked = clock();
        for worker in &workers {
            read(&driver, worker).await;
        }
        looking += looked.duration_since(began);
        reading += looked.elapsed();
    }
    let began = clock();
    engine.docker(&["stats", "--no-stream"]);
    let theirs = began.elapsed();
    let report = Report::group("fifty real containers");
    let mean = |total: Duration| (total / ROUNDS).as_secs_f64();
    report.row("reading all of them, from files", mean(reading), Unit::Seconds, Some(Aim::AtMost(0.25)));
    let whole = mean(reading + looking);
    report.row("with a look at each through the engine", whole, Unit::Seconds, Some(Aim::AtMost(1.0)));
    report.row("`docker stats` of the same", theirs.as_secs_f64(), Unit::Seconds, None);
}

async fn read(driver: &DockerDriver, worker: &WorkerId) {
    let wanted = Wanted::of(&[Signal::Cpu, Signal::Network, Signal::Processes], &[]);
    let measures = driver.read(worker, wanted, LONG).await.expect("it can be read");
    // A round that reads nothing is quick.
    for signal in [Signal::Cpu, Signal::Network] {
        assert!(matches!(measures.get(signal), Some(Measure::Total(_))), "{worker}: {measures:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn clock() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the clock that is injected into the driver")]
fn now() -> Timestamp {
    Timestamp::EPOCH + SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970")
}
