//! What it takes to look at five hundred containers every thirty seconds.
//!
//! On simulated machines, whose files cost what a file costs, and from this kernel's own files, where writing out a
//! figure costs more than fetching it. Beside it, in the same run: a reader that opens every file each time and takes
//! it apart whole, as exporters of metrics do; and one that keeps nothing and finds the container anew each time.
//! Processor time, not elapsed time: others may use the machine meanwhile.
//!
//! Run by `cargo xtask bench containers`; prints a JSON object per row.

#![forbid(unsafe_code)]

#[path = "../../tests/container/machine.rs"]
#[expect(dead_code, reason = "what tests do with a machine")]
mod machine;
mod plain;
mod real;
#[path = "../../../server/benches/shown/report.rs"]
#[expect(dead_code, reason = "what others show")]
mod report;

use std::path::Path;
use std::time::Duration;

use drowse_sensors::container::{Paths, Reading};
use rustix::time::{ClockId, clock_gettime};

use machine::{Kind, Machine, Used};
use plain::Plain;
use real::Crowd;
use report::{Aim, Report, Unit, note};

const CONTAINERS: u32 = 500;
const INTERVAL: Duration = Duration::from_secs(30);
/// Readers take turns, so that whatever the machine goes through meets all of them.
const TURNS: u32 = 10;
const ROUNDS_IN_A_TURN: u32 = 5;

fn main() {
    // Cargo runs bench targets in `cargo test --benches` too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    note(&format!(
        "{CONTAINERS} containers, all four figures of each: processor time, memory, tasks, network bytes. Processor \
         time of {} rounds for each reader.",
        TURNS * ROUNDS_IN_A_TURN
    ));
    for (kind, heading) in
        [(Kind::V2, "simulated machine with cgroup v2"), (Kind::V1, "simulated machine with cgroup v1")]
    {
        let machine = Machine::new(kind);
        let pids: Vec<u32> = (1_000..1_000 + CONTAINERS).collect();
        for pid in &pids {
            let bytes = u64::from(*pid);
            let (memory, inactive_file) = (bytes << 20, bytes << 18);
            machine.start(
                *pid,
                Used { cpu_micros: bytes, memory, inactive_file, tasks: 3, received: bytes, sent: bytes },
            );
        }
        measure(heading, machine.root(), &pids);
    }
    let crowd = Crowd::start(CONTAINERS);
    measure("this machine's kernel, real processes", Path::new("/"), &crowd.pids());
}

fn measure(heading: &'static str, root: &Path, pids: &[u32]) {
    let report = Report::group(heading);
    let before = cpu();
    let paths: Vec<Paths> = pids.iter().map(|pid| find(root, *pid)).collect();
    let finding = cpu().saturating_sub(before);
    let plain: Vec<Plain> = pids.iter().map(|pid| Plain::find(root, *pid)).collect();
    for (ours, theirs) in paths.iter().zip(&plain) {
        let reading = ours.read();
        must_be_whole(&reading);
        assert_eq!(reading.network_bytes, Ok(theirs.read().network_bytes), "both read the same");
    }

    let (mut ours, mut afresh, mut anew) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for _ in 0..TURNS {
        ours += round(&paths, |paths| must_be_whole(&paths.read()));
        afresh += round(&plain, |plain| drop(std::hint::black_box(plain.read())));
        anew += round(pids, |pid| must_be_whole(&find(root, *pid).read()));
    }
    let each = |total: Duration| total.as_secs_f64() / f64::from(TURNS * ROUNDS_IN_A_TURN);
    let share = |total: Duration| each(total) / INTERVAL.as_secs_f64() * 100.0;
    let containers = f64::from(u32::try_from(pids.len()).expect("a few"));
    report.row("of one core, a look every 30 s", share(ours), Unit::Percent, Some(Aim::AtMost(1.0)));
    report.row("a round", each(ours), Unit::Seconds, None);
    report.row("one container", each(ours) / containers, Unit::Seconds, None);
    let against = |other: Duration| ours.as_secs_f64() / other.as_secs_f64();
    report.row("against opening every file each time", against(afresh), Unit::Times, Some(Aim::AtMost(1.0)));
    report.row("against finding it anew each time", against(anew), Unit::Times, None);
    report.row("finding them all, once", finding.as_secs_f64(), Unit::Seconds, None);
}

fn round<T>(all: &[T], mut look: impl FnMut(&T)) -> Duration {
    let before = cpu();
    for _ in 0..ROUNDS_IN_A_TURN {
        all.iter().for_each(&mut look);
    }
    cpu().saturating_sub(before)
}

fn find(root: &Path, pid: u32) -> Paths {
    Paths::on_machine(root, pid, None).expect("it lives")
}

/// A round that reads nothing is quick.
fn must_be_whole(reading: &Reading) {
    let Reading { cpu_micros, memory_bytes, processes, network_bytes } = reading;
    for figure in [cpu_micros, memory_bytes, processes, network_bytes] {
        assert!(figure.is_ok(), "{reading:?}");
    }
}

/// Processor time that this process has used.
fn cpu() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().expect("it does not go back")
}
