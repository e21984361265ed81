//! How long a start takes that finds a large fleet: from the start of the program to the first good answer of
//! `/readyz`.
//!
//! The database is written beforehand through the store, as a control plane that was killed two seconds ago would
//! have left it. No process stands behind these workers: nobody is asked about any of them before the start is
//! over, so that this is not in the figure, and what the first looks find afterwards is not either.
//!
//! Run by `cargo xtask bench restart`; prints a JSON object per row.

#![forbid(unsafe_code)]

#[path = "../../../store/tests/contract/cluster.rs"]
#[expect(dead_code, reason = "a test may stop and start it")]
#[expect(clippy::unwrap_used, reason = "it is part of the tests")]
mod cluster;
mod former;
#[path = "../../../server/benches/shown/report.rs"]
#[expect(dead_code, reason = "what others show")]
mod report;
mod up;

use std::path::Path;
use std::time::Duration;

use cluster::Cluster;
use former::{Fleet, WORKERS};
use report::{Aim, Report, Unit, note, percentile};
use up::Up;

const TIMES: usize = 5;
const AIM: Option<Aim> = Some(Aim::AtMost(2.0));

fn main() {
    // Cargo runs bench targets in `cargo test --benches` too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    note(&format!("{WORKERS} workers; each start finds the same database, whose file is in the page cache."));
    for (fleet, group) in [
        (Fleet::Leased, "SQLite: all run, each with a lease and a deadline"),
        (Fleet::Mixed, "SQLite: half run with a lease each, two fifths are frozen, a tenth is stopped"),
    ] {
        sqlite(fleet, &Report::group(group));
    }
    postgres(&Report::group("PostgreSQL: all run, each with a lease and a deadline"));
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

fn sqlite(fleet: Fleet, report: &Report) {
    let prepared = folder();
    former::write("sqlite://drowse.db", prepared.path(), fleet);
    let mut took = Vec::new();
    let mut again = Vec::new();
    for _ in 0..TIMES {
        let copy = folder();
        std::fs::copy(prepared.path().join("drowse.db"), copy.path().join("drowse.db")).expect("a copy");
        let up = Up::start(copy.path(), None);
        took.push(up.took);
        up.kill_after(Duration::from_secs(2));
        let up = Up::start(copy.path(), None);
        again.push(up.took);
        up.kill_after(Duration::ZERO);
    }
    show(report, &took);
    report.row(
        "again, after kill −9 two seconds later, longest",
        percentile(&again, 100.0),
        Unit::Seconds,
        AIM,
    );
}

fn postgres(report: &Report) {
    let cluster = Cluster::start();
    let prepared = cluster.database();
    former::write(&cluster.url(&prepared), Path::new("/"), Fleet::Leased);
    let mut took = Vec::new();
    for _ in 0..TIMES {
        let data = folder();
        let copy = format!("copy{}", took.len());
        let make = format!("CREATE DATABASE {copy} TEMPLATE {prepared}");
        cluster.admin().batch_execute(&make).expect("a copy");
        let up = Up::start(data.path(), Some(&cluster.url(&copy)));
        took.push(up.took);
        up.kill_after(Duration::ZERO);
    }
    show(report, &took);
}

fn show(report: &Report, took: &[Duration]) {
    report.row("start → /readyz, median", percentile(took, 50.0), Unit::Seconds, None);
    report.row("start → /readyz, longest", percentile(took, 100.0), Unit::Seconds, AIM);
}
