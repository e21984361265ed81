//! The control plane with ten thousand workers: how punctual it is, what a stampede does to it and to those who
//! wait at a door meanwhile, and what it costs when there is nothing to do.
//!
//! The real loop, the real clock and a real SQLite file on disk; only the workers are simulated, and they answer
//! at once. Run by `cargo xtask bench fleet`; prints a JSON object per row.

#![forbid(unsafe_code)]

mod bare;
mod driver;
#[path = "../shown/report.rs"]
#[expect(dead_code, reason = "what others show")]
mod report;
mod rig;
#[path = "../shown/usage.rs"]
mod usage;

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::status::StatusKind;

use crate::report::{Aim, Report, Unit, note, percentile};
use crate::rig::{Rig, TIMEOUT};
use crate::usage::Usage;

/// Workers whose deadlines are measured.
const WORKERS: usize = 10_000;
/// Frozen workers that people wake meanwhile.
const NAPPERS: usize = 1_000;
/// Their wakes.
const WAKES_PER_SECOND: u32 = 50;
/// For how long the idle control plane is watched.
const WATCHED_FOR: Duration = Duration::from_secs(40);

/// As in the program itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    // Cargo runs bench targets in `cargo test --benches` too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let bare = bare::commits_per_second();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let rig = Rig::start().await;
        note(&format!(
            "{WORKERS} simulated workers with an idle timeout of {} s, {NAPPERS} more that sleep and are woken.",
            TIMEOUT.as_secs()
        ));
        let workers = spread(&rig).await;
        eprintln!("  {}", rig.summary().await);
        wake_everybody(&rig, &workers).await;
        let drained = burst(&rig, &workers).await;
        eprintln!("  {}", rig.summary().await);
        let report = Report::group("bare SQLite, the same disk and the same run");
        report.row("transactions of five statements", bare, Unit::PerSecond, None);
        report.row("intents committed against it", drained / bare, Unit::Times, None);
        idle(&rig).await;
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
}

/// Workers come onto the books over a minute, so their deadlines are spread over one.
async fn spread(rig: &Rig) -> Vec<WorkerId> {
    let report = Report::group("10,000 deadlines spread over 60 s");
    for index in 0..NAPPERS {
        rig.register(&rig::napper(index), Some("naps")).await;
    }
    let workers: Vec<WorkerId> = (0..WORKERS).map(rig::worker).collect();
    let pace = TIMEOUT / u32::try_from(WORKERS).expect("fits");
    let mut deadlines: Vec<Timestamp> = Vec::with_capacity(WORKERS);
    let began_at = rig.now();
    // The deadline of a worker is asked for half a timeout after it came.
    let behind = WORKERS / 2;
    for step in 0..WORKERS + behind {
        let at = began_at + pace * u32::try_from(step).expect("fits");
        rig.fleet.clock().sleep_until(at).await;
        if let Some(worker) = workers.get(step) {
            rig.register(worker, None).await;
        }
        if let Some(worker) = step.checked_sub(behind).and_then(|index| workers.get(index)) {
            let status = rig.fleet.idle_status(worker).await.expect("the store answers");
            deadlines.push(status.target_pause_at.expect("it has a deadline"));
        }
    }
    rig.wait_for(StatusKind::Paused, WORKERS + NAPPERS, Duration::from_mins(3)).await;
    let first = *deadlines.iter().min().expect("there are some");
    let last = *deadlines.iter().max().expect("there are some");
    report.row("from the first deadline to the last", last.since(first).as_secs_f64(), Unit::Seconds, None);
    let intended = rig.intended(&workers, began_at).await;
    let asked = rig.driver.asked_to_freeze(&workers);
    for (name, at, aim) in [
        ("deadline → intent in the journal", &intended, None),
        ("deadline → intent committed and the driver asked", &asked, Some(Aim::AtMost(0.1))),
    ] {
        let late: Vec<Duration> = deadlines.iter().zip(at).map(|(due, at)| at.since(*due)).collect();
        report.row(&format!("{name}, p50"), percentile(&late, 50.0), Unit::Seconds, None);
        report.row(&format!("{name}, p99"), percentile(&late, 99.0), Unit::Seconds, aim);
        report.row(&format!("{name}, longest"), percentile(&late, 100.0), Unit::Seconds, None);
    }
    workers
}

/// Somebody connects to every worker and leaves again.
async fn wake_everybody(rig: &Rig, workers: &[WorkerId]) {
    let report = Report::group("10,000 wakes, 64 at a time");
    let (began_at, before) = (rig.now(), Usage::of("self"));
    let took = rig.wake_all(workers, 64).await;
    let seconds = rig.now().since(began_at).as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "ten thousand")]
    let count = workers.len() as f64;
    report.row("rate", count / seconds, Unit::PerSecond, None);
    report.row("processor time each", before.cpu_since().as_secs_f64() / count, Unit::Seconds, None);
    report.row("first connection → awake, p50", percentile(&took, 50.0), Unit::Seconds, None);
    report.row("first connection → awake, p99", percentile(&took, 99.0), Unit::Seconds, None);
}

/// All fall due at one instant, while people go on connecting to frozen workers. How many intents a second.
async fn burst(rig: &Rig, workers: &[WorkerId]) -> f64 {
    let report = Report::group("all 10,000 due at once, beside 50 wakes a second");
    rig.driver.forget_freezes();
    // Used all at the same instant: so all of them have the same deadline.
    let used_at = rig.now();
    for worker in workers {
        assert!(rig.fleet.saw_bytes(worker), "evidence is taken in");
    }
    let due_at = used_at + TIMEOUT;
    rig.fleet.clock().sleep_until(due_at - Duration::from_secs(2)).await;
    rig.wait_for_awake(workers).await;
    rig.fleet.clock().sleep_until(due_at).await;
    let before = Usage::of("self");
    let wakes = rig.wake_at_a_pace(NAPPERS, WAKES_PER_SECOND);
    rig.wait_for_freezes(workers.len(), Duration::from_mins(2)).await;
    let cpu = before.cpu_since();
    rig.wait_for(StatusKind::Paused, workers.len(), Duration::from_mins(2)).await;
    let took = wakes.stop().await;

    #[expect(clippy::cast_precision_loss, reason = "ten thousand")]
    let count = workers.len() as f64;
    let last = |at: &[Timestamp]| at.iter().max().map_or(0.0, |last| last.since(due_at).as_secs_f64());
    let asked = rig.driver.asked_to_freeze(workers);
    let drained = count / last(&asked);
    let intended = rig.intended(workers, used_at).await;
    report.row("last intent in the journal after", last(&intended), Unit::Seconds, None);
    report.row("last intent committed and the driver asked after", last(&asked), Unit::Seconds, None);
    report.row("intents committed", drained, Unit::PerSecond, Some(Aim::AtLeast(2_000.0)));
    report.row("processor time per intent", cpu.as_secs_f64() / count, Unit::Seconds, None);
    #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
    report.row("wakes meanwhile", took.len() as f64, Unit::Count, None);
    report.row("first connection → awake, p50", percentile(&took, 50.0), Unit::Seconds, None);
    report.row(
        "first connection → awake, p99",
        percentile(&took, 99.0),
        Unit::Seconds,
        Some(Aim::AtMost(0.02)),
    );
    report.row("first connection → awake, longest", percentile(&took, 100.0), Unit::Seconds, None);
    drained
}

/// Nothing is due.
async fn idle(rig: &Rig) {
    let report = Report::group("idle: 11,000 workers asleep, nothing due");
    // Three hours of idle timeout put the next look five minutes away.
    let (began_at, before, checks) = (rig.now(), Usage::of("self"), rig.fleet.metrics().checks);
    rig.relax().await;
    rig.wait_for_quiet().await;
    let checks = rig.fleet.metrics().checks - checks;
    let (took, cpu) = (rig.now().since(began_at), before.cpu_since());
    #[expect(clippy::cast_precision_loss, reason = "some ten thousand")]
    let count = checks as f64;
    let (before, checked) = (Usage::of("self"), rig.fleet.metrics().checks);
    tokio::time::sleep(WATCHED_FOR).await;
    let share = before.cpu_since().as_secs_f64() / WATCHED_FOR.as_secs_f64();
    assert_eq!(rig.fleet.metrics().checks, checked, "nothing was due");
    report.row("of one core", share * 100.0, Unit::Percent, Some(Aim::AtMost(1.0)));
    let scan = rig.scan_once().await;
    report.row("one naive look at every row", scan.as_secs_f64(), Unit::Seconds, None);
    report.row("a scan every second would use, of one core", scan.as_secs_f64() * 100.0, Unit::Percent, None);
    report.row("idle against such a scan", share / scan.as_secs_f64(), Unit::Times, None);

    let report = Report::group("a change of policy looks at everybody");
    report.row("looks", count, Unit::Count, None);
    report.row("rate", count / took.as_secs_f64(), Unit::PerSecond, None);
    report.row(
        "processor time of a look that changes nothing",
        cpu.as_secs_f64() / count,
        Unit::Seconds,
        None,
    );
}
