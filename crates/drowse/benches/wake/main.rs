//! From a connection to the first byte of a frozen worker: what the kernel needs, what the driver adds, what
//! the control plane adds to that, and all of it through the front door of the product itself.
//!
//! Real processes, the real driver, SQLite on a disk, PostgreSQL without one. Run by `cargo xtask bench wake`;
//! prints a JSON object per row.

#![forbid(unsafe_code)]

#[path = "../../../store/tests/contract/cluster.rs"]
#[expect(dead_code, reason = "a test may stop and start it")]
#[expect(clippy::unwrap_used, reason = "it is part of the tests")]
mod cluster;
mod door;
mod floor;
#[path = "../../../server/benches/shown/report.rs"]
#[expect(dead_code, reason = "what others show")]
mod report;
mod rig;
#[path = "../shown/up.rs"]
#[expect(dead_code, reason = "what others ask")]
mod up;

use std::time::Duration;

use cluster::Cluster;
use door::{Doors, Rounds};
use floor::Floor;
use report::{Aim, Report, Unit, note, percentile};
use rig::{Rig, Visit};

/// Workers that take turns: each needs a second to be called paused.
const WORKERS: usize = 20;
const ROUNDS: usize = 50;

/// How often the floor is measured for the parts.
const FLOORS: usize = 500;

/// How many are woken at once, and how often.
const AT_ONCE: usize = 100;
const TIMES: usize = 9;

fn main() {
    // Cargo runs bench targets in `cargo test --benches` too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let rounds = rounds().unwrap_or(ROUNDS).max(1);
    let floor = Floor::start();
    through_the_door(rounds, &floor);
    in_parts(rounds, &floor);
}

fn rounds() -> Option<usize> {
    let mut args = std::env::args().skip_while(|arg| arg != "--rounds");
    args.next()?;
    Some(args.next().and_then(|rounds| rounds.parse().ok()).expect("--rounds takes a whole number"))
}

fn through_the_door(rounds: usize, floor: &Floor) {
    note(&format!(
        "Through the door: `drowse up`, {} wakes of {WORKERS} workers, one after the other; in between the floor, \
         a stopped process of the same kind that nobody looks after. The first visit in a worker's life takes longer: \
         it is to be shown then, once, that a connection to it stands.",
        WORKERS * rounds
    ));
    let report = Report::group("SQLite: a frozen worker, through the door");
    let measured = Doors::open(WORKERS, None).rounds(rounds, floor, None);
    let (cont, _) = show_door(&report, &measured);
    let p50 = percentile(&measured.frozen, 50.0);
    report.row("p50 against the floor", p50 / cont, Unit::Times, Some(Aim::AtMost(2.0)));

    let report = Report::group("SQLite: 100 frozen workers, woken at once");
    let took = Doors::open(AT_ONCE, None).all_at_once(TIMES.min(rounds));
    report.row("until all have answered, median", percentile(&took, 50.0), Unit::Seconds, None);
    let aim = Some(Aim::AtMost(0.1));
    report.row("until all have answered, longest", percentile(&took, 100.0), Unit::Seconds, aim);

    let report = Report::group("PostgreSQL: a frozen worker, through the door");
    let cluster = Cluster::start();
    let database = cluster.database();
    let mut client = cluster.admin();
    client.batch_execute("CREATE TABLE one AS SELECT 1 AS n").expect("it is new");
    let measured = Doors::open(WORKERS, Some(&cluster.url(&database))).rounds(rounds, floor, Some(client));
    let (cont, commit) = show_door(&report, &measured);
    report.row("a commit: BEGIN, UPDATE of one row, COMMIT, p50", commit, Unit::Seconds, None);
    let p50 = percentile(&measured.frozen, 50.0);
    let name = "p50 against the floor and four commits";
    report.row(name, p50 / (cont + 4.0 * commit), Unit::Times, Some(Aim::AtMost(1.0)));
}

/// What both engines have, and the floor and a commit of this run.
fn show_door(report: &Report, measured: &Rounds) -> (f64, f64) {
    let cont = percentile(&measured.floor, 50.0);
    report.row("the floor: SIGCONT, connect → first byte, p50", cont, Unit::Seconds, None);
    report.row("the floor, p99", percentile(&measured.floor, 99.0), Unit::Seconds, None);
    report.row("connect → first byte, p50", percentile(&measured.frozen, 50.0), Unit::Seconds, None);
    let aim = Some(Aim::AtMost(0.005));
    report.row("connect → first byte, p99", percentile(&measured.frozen, 99.0), Unit::Seconds, aim);
    report.row("connect → first byte, longest", percentile(&measured.frozen, 100.0), Unit::Seconds, None);
    report.row("the first in its life, p50", percentile(&measured.first, 50.0), Unit::Seconds, None);
    report.row("while it is awake, p50", percentile(&measured.awake, 50.0), Unit::Seconds, None);
    report.row("while it is awake, p99", percentile(&measured.awake, 99.0), Unit::Seconds, None);
    (cont, percentile(&measured.commits, 50.0))
}

/// What it consists of, without a door.
fn in_parts(rounds: usize, floor: &Floor) {
    let floors = (floor.running(FLOORS), floor.stopped(FLOORS));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    runtime.block_on(async {
        let rig = Rig::start(WORKERS).await;
        note(&format!(
            "In parts: freezing by {}; {} wakes of {WORKERS} workers, one after the other, without a door.",
            rig.freezer(),
            WORKERS * rounds
        ));
        let bare = rig.bare(rounds).await;
        let visits = rig.visits(rounds).await;
        let held = rig.visits_to_the_awake(rounds).await;
        show((&floors.0, &floors.1), &bare, &visits, &held);
        rig.end().await;
    });
    runtime.shutdown_timeout(Duration::from_secs(2));
}

fn show((running, stopped): (&[Duration], &[Duration]), bare: &[Duration], visits: &[Visit], held: &[Visit]) {
    let report = Report::group("without Drowse");
    report.row("a running worker: connect → first byte, p50", percentile(running, 50.0), Unit::Seconds, None);
    let cont = percentile(stopped, 50.0);
    report.row("a stopped one: SIGCONT, connect → first byte, p50", cont, Unit::Seconds, None);
    report.row("the same, p99", percentile(stopped, 99.0), Unit::Seconds, None);

    let report = Report::group("the driver alone");
    report.row("thaw, connect → first byte, p50", percentile(bare, 50.0), Unit::Seconds, None);
    report.row("the same, p99", percentile(bare, 99.0), Unit::Seconds, None);

    let report = Report::group("a frozen worker, through the control plane, without a head start");
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
    // No aim of its own: nobody gets a head start here, and whoever comes by the door does.
    report.row("p50 against SIGCONT", percentile(&all, 50.0) / cont, Unit::Times, None);

    let report = Report::group("a running worker, through the control plane");
    let all = of(held, Visit::all);
    report.row("first connection → first byte, p50", percentile(&all, 50.0), Unit::Seconds, None);
    report.row("first connection → first byte, p99", percentile(&all, 99.0), Unit::Seconds, None);
}
