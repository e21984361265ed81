//! From a connection to the first byte of a frozen worker: what the kernel needs, what the driver adds, what
//! the control plane adds to that.
//!
//! Real processes, the real driver, the real loop on a SQLite file on disk. No router: its part is measured with
//! it. Run by `cargo xtask bench wake`; prints a JSON object per row.

#![forbid(unsafe_code)]

mod floor;
#[path = "../../../server/benches/shown/report.rs"]
#[expect(dead_code, reason = "what others show")]
mod report;
mod rig;

use std::time::Duration;

use report::{Aim, Report, Unit, note, percentile};
use rig::{Rig, Visit};

/// Workers that take turns: each needs a second to be called paused.
const WORKERS: usize = 20;
const ROUNDS: usize = 50;

fn main() {
    // Cargo runs bench targets in `cargo test --benches` too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let floor = floor::measure();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let rig = Rig::start(WORKERS).await;
        note(&format!(
            "Freezing by {}; {} wakes of {WORKERS} workers, one after the other.",
            rig.freezer(),
            WORKERS * ROUNDS
        ));
        let bare = rig.bare(ROUNDS).await;
        let visits = rig.visits(ROUNDS).await;
        let held = rig.visits_to_the_awake(ROUNDS).await;
        show(&floor, &bare, &visits, &held);
        rig.end().await;
    });
    runtime.shutdown_timeout(Duration::from_secs(2));
}

fn show(floor: &floor::Floor, bare: &[Duration], visits: &[Visit], held: &[Visit]) {
    let report = Report::group("without Drowse");
    report.row(
        "a running worker: connect → first byte, p50",
        percentile(&floor.running, 50.0),
        Unit::Seconds,
        None,
    );
    let cont = percentile(&floor.stopped, 50.0);
    report.row("a stopped one: SIGCONT, connect → first byte, p50", cont, Unit::Seconds, None);
    report.row("the same, p99", percentile(&floor.stopped, 99.0), Unit::Seconds, None);

    let report = Report::group("the driver alone");
    report.row("thaw, connect → first byte, p50", percentile(bare, 50.0), Unit::Seconds, None);
    report.row("the same, p99", percentile(bare, 99.0), Unit::Seconds, None);

    let report = Report::group("a frozen worker, through the control plane");
    let of = |visits: &[Visit], part: fn(&Visit) -> Duration| visits.iter().map(part).collect::<Vec<_>>();
    let all = of(visits, Visit::all);
    for (name, times) in [
        ("the connection is counted and the wake decided: one commit", of(visits, |visit| visit.counted)),
        ("thawed, and whoever waits is told", of(visits, |visit| visit.woken)),
        ("connect to the worker → first byte", of(visits, |visit| visit.served)),
    ] {
        report.row(&format!("{name}, p50"), percentile(&times, 50.0), Unit::Seconds, None);
        report.row(&format!("{name}, p99"), percentile(&times, 99.0), Unit::Seconds, None);
    }
    report.row("all of it, p50", percentile(&all, 50.0), Unit::Seconds, None);
    report.row("all of it, p99", percentile(&all, 99.0), Unit::Seconds, Some(Aim::AtMost(0.005)));
    report.row("all of it, longest", percentile(&all, 100.0), Unit::Seconds, None);
    report.row("p50 against SIGCONT", percentile(&all, 50.0) / cont, Unit::Times, Some(Aim::AtMost(2.0)));

    let report = Report::group("a running worker, through the control plane");
    let all = of(held, Visit::all);
    report.row("first connection → first byte, p50", percentile(&all, 50.0), Unit::Seconds, None);
    report.row("first connection → first byte, p99", percentile(&all, 99.0), Unit::Seconds, None);
}
