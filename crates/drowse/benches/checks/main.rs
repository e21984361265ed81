//! What whole checks of containers cost: `drowse up` with fifty real ones, as often as five hundred are due every 30 s.
//!
//! All that a check is: asking the engine, reading the figures, looking for a keep-alive file, judging, writing it down.
//!
//! Run by `cargo xtask bench containers`; prints a JSON object per row.

#![forbid(unsafe_code)]

#[path = "../../../drivers/tests/conformance/engine.rs"]
#[expect(dead_code, reason = "what tests do with an engine")]
mod engine;
#[path = "../../../server/benches/shown/report.rs"]
#[expect(dead_code, reason = "what others show")]
mod report;
#[path = "../shown/up.rs"]
mod up;
#[path = "../../../server/benches/shown/usage.rs"]
mod usage;

use std::fmt::Write as _;
use std::time::Duration;

use engine::{Engine, IMAGE};
use report::{Aim, Report, Unit, note};
use up::Up;
use usage::Usage;

const CONTAINERS: u32 = 50;
/// Ten times as often as the default.
const EVERY: Duration = Duration::from_secs(3);
const WATCHED_FOR: Duration = Duration::from_mins(1);

fn main() {
    // Cargo runs bench targets in `cargo test --benches` too.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    note(&format!(
        "{CONTAINERS} real containers in `drowse up`, checked every {} s, which is as often as 500 are every 30 s.",
        EVERY.as_secs()
    ));
    let engine = Engine::start();
    let network = engine.network();
    let mut config = format!(
        "[policy]\nidle_timeout = \"1h\"\ncheck_interval = \"{}s\"\n[driver.docker]\nsocket = \"{}\"\n",
        EVERY.as_secs(),
        engine.socket().display()
    );
    for number in 0..CONTAINERS {
        let name = format!("c{number}");
        engine.docker(&["run", "--detach", "--name", &name, "--network", network, IMAGE, "sleep", "10000"]);
        let _ = write!(config, "[[worker]]\nid = \"{name}\"\ndriver = \"docker\"\ncontainer = \"{name}\"\n");
    }
    let up = Up::start(&[], &config, None);
    // Past the first looks.
    up::pause(2 * EVERY);
    // Everybody counts: they come a little later than their interval, to come together.
    let checks = || {
        let (status, told) = up.text("GET", "/metrics", "").expect("it answers");
        assert_eq!(status, 200, "{told}");
        let count = told.lines().find_map(|line| line.strip_prefix("drowse_checks_total "));
        count.and_then(|count| count.parse::<f64>().ok()).expect("it counts its checks")
    };
    let (first, before) = (checks(), Usage::of(&up.pid().to_string()));
    up::pause(WATCHED_FOR);
    let used = before.cpu_since();
    let made = checks() - first;
    let expected = f64::from(CONTAINERS) * WATCHED_FOR.as_secs_f64() / EVERY.as_secs_f64();
    assert!(made > 0.9 * expected, "{made} checks were made where {expected} were due");
    let report = Report::group("whole checks of fifty real containers");
    let each = used.as_secs_f64() / made;
    // As if none came later than its interval.
    let share = each * expected / WATCHED_FOR.as_secs_f64();
    report.row("of one core, as for 500 every 30 s", share * 100.0, Unit::Percent, Some(Aim::AtMost(1.0)));
    report.row("one check, with all that Drowse does besides", each, Unit::Seconds, None);
}
