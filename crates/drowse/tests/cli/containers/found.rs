//! Containers come and go by their labels.

use super::stage::{SLEEPS, Stage, json};
use crate::up::running::{free_port, get, until};

const QUICK: &str = "policy.idle_timeout = \"2s\"";

#[test]
fn a_container_is_found_sleeps_when_idle_and_a_connection_wakes_it() {
    let stage = Stage::new(QUICK);
    let network = stage.engine.network();
    let door = free_port();
    let labels = [("drowse.port", "80"), ("drowse.listen", &door.to_string()), ("drowse.owner", "alice")];
    let mut up = stage.up();
    // Drowse is there first: the engine's events tell of who comes later.
    let serve = "echo hello from inside > /workspace/index.html; exec httpd -f -p 80 -h /workspace";
    stage.run_with("web", &labels, &["--network", network], serve);
    up.wait_for("web running");
    up.wait_for("web paused");
    assert_eq!(stage.state("web"), "paused");
    let answer = get(door, "/");
    assert!(answer.contains("hello from inside"), "{answer}");
    up.wait_for("web running again: wake, by connection");
    up.wait_for("web paused");
    let api = stage.folder.api(&up);
    assert_eq!(json(&api, "workers/web")["owner"], "alice");
    // Nothing stays frozen that nothing wakes.
    assert_eq!(up.end(), Some(0), "{}", up.told());
    assert_eq!(stage.state("web"), "running");
}

#[test]
fn what_is_removed_is_terminated_and_made_anew_it_is_another_worker_of_that_name() {
    let stage = Stage::new("policy.idle_timeout = \"1h\"");
    stage.run("job", &[("drowse.policy.idle_timeout", "2s")], SLEEPS);
    stage.run("other", &[], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("job paused");
    stage.engine.docker(&["rm", "--force", "job"]);
    up.wait_for("job gone");
    assert_eq!(json(&api, "workers/job")["status"], "terminated");
    // What the label of the former said is not the latter's.
    stage.run("job", &[], SLEEPS);
    up.wait_for("job running");
    until("it is the fleet's policy that counts", || {
        json(&api, "workers/job/idle-status")["idle_threshold_minutes"] == 60.0
    });
    assert_eq!(stage.state("job"), "running");
    assert_eq!(stage.state("other"), "running");
}

#[test]
fn whom_nobody_looks_for_any_more_is_thawed_and_let_go() {
    let stage = Stage::new(QUICK);
    stage.run("web", &[], SLEEPS);
    let mut up = stage.up();
    up.wait_for("web paused");
    stage.folder.rewrite(|old| old.replace("drowse.enable=true", "drowse.enable=other"));
    up.hang_up();
    stage.wait_until("web", "running");
    stage.folder.api(&up).wait_until_gone("web");
    assert_eq!(stage.state("web"), "running");
}

#[test]
fn labels_that_make_no_sense_are_named_and_nobody_is_touched_for_them() {
    let stage = Stage::new("[policy]\nidle_timeout = \"2s\"\n[policy.group.student]\nwindow = 1\n");
    stage.run("wrong", &[("drowse.policy.idle_timeout", "48")], SLEEPS);
    stage.run("nobodys", &[("drowse.group", "wizards")], SLEEPS);
    stage.run("right", &[("drowse.group", "student")], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("right paused");
    let problems =
        super::stage::events(&api, "discovery.problem").iter().map(ToString::to_string).collect::<String>();
    assert!(problems.contains("idle_timeout") && problems.contains("48"), "{problems}");
    assert!(problems.contains("no [policy.group.wizards]"), "{problems}");
    assert!(api.send("GET", "/api/v1/workers/wrong", "").starts_with("HTTP/1.1 404 "));
    assert_eq!(stage.state("wrong"), "running");
}
