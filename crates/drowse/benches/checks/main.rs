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
    let checks = || {
        let (status, told) = up.ask("GET", "/api/v1/workers/c0/activity", "").expect("it answers");
        assert_eq!(status, 200, "{told}");
        told["last_activity_check_at"].clone()
    };
    let (first, before) = (checks(), Usage::of(&up.pid().to_string()));
    up::pause(WATCHED_FOR);
    let used = before.cpu_since();
    assert!(first.is_string() && checks() != first, "nobody was checked: {first}");
    let report = Report::group("whole checks of fifty real containers");
    let share = used.as_secs_f64() / WATCHED_FOR.as_secs_f64();
    report.row("of one core, as for 500 every 30 s", share * 100.0, Unit::Percent, Some(Aim::AtMost(1.0)));
    let rounds = WATCHED_FOR.as_secs_f64() / EVERY.as_secs_f64();
    let each = used.as_secs_f64() / rounds / f64::from(CONTAINERS);
    report.row("one check, with all that Drowse does besides", each, Unit::Seconds, None);
}
