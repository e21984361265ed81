//! Who is idle and who is not, and what an engine that is away says about that.

use super::stage::{BURNS, SLEEPS, Stage, json};
use crate::up::running::until;

#[test]
fn only_those_sleep_whose_signals_are_all_quiet() {
    let stage = Stage::new("policy.idle_timeout = \"4s\"\npolicy.window = 2");
    let network = stage.engine.network();
    stage.run("sleeper", &[], SLEEPS);
    // More than the threshold, and not so much that everybody else gets nothing done.
    let capped = ["--network", "none", "--cpus", "0.1"];
    stage.run_with("burner", &[], &capped, BURNS);
    // A quiet second now and then is no idleness.
    let bursts = "while :; do timeout 1 sh -c 'while :; do :; done'; sleep 1; done";
    stage.run_with("bursts", &[], &capped, bursts);
    // Its children work, in sessions of their own.
    stage.run_with("forks", &[], &capped, "setsid sh -c 'while :; do :; done' & sleep 100000");
    // Each run begins with a clock of its own, however quiet they are.
    stage.run_with("restarts", &[], &["--network", "none", "--restart", "always"], "sleep 2; exit 1");
    stage.run_with("server", &[], &["--network", network], "nc -ll -p 9000 -e cat");
    let moves = "while :; do head -c 2000000 /dev/zero | nc -w 1 server 9000 > /dev/null; sleep 0.5; done";
    stage.run_with("mover", &[], &["--network", network], moves);
    let mut up = stage.up();
    up.wait_for("sleeper paused");
    // Another one that comes now sleeps later: whoever was idle as well would have slept before it.
    stage.run("later", &[], SLEEPS);
    up.wait_for("later paused");
    for busy in ["burner", "bursts", "forks", "server", "mover", "restarts"] {
        let found = stage.state(busy);
        let is_up = found == "running" || (busy == "restarts" && found == "restarting");
        assert!(is_up, "{busy} is {found}\n{}", up.told());
        assert!(!up.told().contains(&format!("{busy} paused")), "{busy}\n{}", up.told());
    }
}

/// The same load, on either side of the threshold of a label and of a group. 100 % is one core.
#[test]
fn a_threshold_decides_and_each_group_has_its_own() {
    let groups = "[policy.group.loose]\nsignals.cpu.active_above = \"40%\"\n\
                  [policy.group.strict]\nsignals.cpu.active_above = \"10%\"\n";
    let stage = Stage::new(&format!("[policy]\nidle_timeout = \"4s\"\n{groups}"));
    stage.members("strict", Some("alice\n"));
    let capped = ["--network", "none", "--cpus", "0.2"];
    stage.run_with("below", &[("drowse.policy.signals.cpu.active_above", "40%")], &capped, BURNS);
    stage.run_with("above", &[("drowse.policy.signals.cpu.active_above", "10%")], &capped, BURNS);
    stage.run_with("loose", &[("drowse.group", "loose")], &capped, BURNS);
    // By her membership.
    stage.run_with("strict", &[("drowse.owner", "alice")], &capped, BURNS);
    let mut up = stage.up();
    up.wait_for_all("below paused");
    up.wait_for_all("loose paused");
    stage.run("later", &[], SLEEPS);
    up.wait_for("later paused");
    for busy in ["above", "strict"] {
        assert_eq!(stage.state(busy), "running", "{busy}\n{}", up.told());
    }
}

/// As many quiet checks in a row as the group's window says, whatever the timeout.
#[test]
fn each_group_has_its_own_window() {
    let groups = "[policy.group.student]\nwindow = 3\n[policy.group.patient]\nwindow = 1000\n";
    let config = format!("[policy]\nidle_timeout = \"3s\"\n{groups}");
    let stage = Stage::new(&config);
    stage.run("students", &[("drowse.group", "student")], SLEEPS);
    stage.run("patients", &[("drowse.group", "patient")], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("students paused");
    let judged = super::stage::events(&api, "worker.judged");
    let student = judged.iter().find(|event| event["worker_id"] == "students").expect("it was judged");
    assert_eq!(student["data"]["window"], 3, "{student}");
    assert!(student["data"]["streak"].as_u64() >= Some(3), "{student}");
    let patient = json(&api, "workers/patients/explain");
    assert!(patient["idle_for"].as_str().is_some() && patient["window"] == 1000, "{patient}");
    until("its timeout is long over", || {
        let explained = json(&api, "workers/patients/explain");
        explained["reasons"].as_array().is_some_and(|all| {
            let codes: Vec<&str> = all.iter().filter_map(|reason| reason["code"].as_str()).collect();
            codes.contains(&"window_not_full") && !codes.contains(&"not_idle_yet")
        })
    });
    assert_eq!(stage.state("patients"), "running");
}

#[test]
fn an_engine_that_is_away_or_hangs_makes_workers_unknown_and_never_idle() {
    let mut stage = Stage::new("policy.idle_timeout = \"3s\"");
    stage.run_with("web", &[], &["--network", "none", "--cpus", "0.2"], BURNS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web running");
    let is_unknown = || {
        let readings = json(&api, "workers/web/readings");
        let cpu =
            readings["readings"].as_array().and_then(|all| all.iter().find(|one| one["signal"] == "cpu"));
        cpu.is_some_and(|cpu| cpu["state"] == "unknown")
    };
    until("it is seen", || !is_unknown());
    stage.engine.hang_daemon(true);
    until("nobody can see it", is_unknown);
    stage.engine.hang_daemon(false);
    until("it is seen again", || !is_unknown());
    stage.engine.kill_daemon();
    until("nobody can see it", is_unknown);
    stage.engine.start_daemon();
    until("it is seen again", || !is_unknown());
    assert!(!up.told().contains("web paused"), "{}", up.told());
    assert_eq!(stage.state("web"), "running");
    assert_eq!(json(&api, "workers/web")["status"], "running");
}
