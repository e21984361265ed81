//! What the program itself costs when three small workers sleep, as in `drowse up --demo`.
//!
//! One of the three works all the time, so that it is read again and again; its own work is not counted.

#![forbid(unsafe_code)]

#[path = "../../../server/benches/shown/report.rs"]
#[expect(dead_code, reason = "what others show")]
mod report;
#[path = "../../../server/benches/shown/usage.rs"]
mod usage;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use report::{Aim, Report, Unit};
use rustix::process::{Pid, Signal, kill_process};
use usage::Usage;

/// Both that can sleep do by then: their timeouts are 10 and 15 s.
const ASLEEP_AFTER: Duration = Duration::from_secs(30);
const WATCHED_FOR: Duration = Duration::from_mins(1);

fn main() {
    // Cargo runs bench targets in `cargo test --benches` too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let report = Report::group("idle: `drowse up --demo`, two workers asleep, one busy");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let mut up = Command::new(env!("CARGO_BIN_EXE_drowse"))
        .args(["up", "--demo", "--listen", "127.0.0.1:0", "--data"])
        .arg(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Read to the end: nobody may wait for us.
    let told = up.stderr.take().expect("a pipe");
    let reader =
        std::thread::spawn(move || BufReader::new(told).lines().map_while(Result::ok).collect::<Vec<_>>());
    wait(ASLEEP_AFTER);
    let before = Usage::of(&up.id().to_string());
    wait(WATCHED_FOR);
    let share = before.cpu_since().as_secs_f64() / WATCHED_FOR.as_secs_f64();
    let pid = Pid::from_child(&up);
    kill_process(pid, Signal::TERM).expect("it can be told to end");
    let status = up.wait().expect("it ends");
    let told = reader.join().expect("lines");
    let asleep = told.iter().filter(|line| line.contains("paused: idle")).count();
    assert!(status.success() && asleep == 2, "two should have slept:\n{}", told.join("\n"));
    report.row("of one core", share * 100.0, Unit::Percent, Some(Aim::AtMost(1.0)));
}

#[expect(clippy::disallowed_methods, reason = "what is measured is how little happens meanwhile")]
fn wait(time: Duration) {
    std::thread::sleep(time);
}
