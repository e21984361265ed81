//! What comes between the verdict and the act.

use super::stage::{COMPOSE, SLEEPS, Stage, events, json};
use crate::up::running::until;

/// The hook lets it sleep, and somebody in there asks to be left alone in the same breath.
#[test]
fn a_keep_alive_file_that_is_touched_at_the_last_moment_is_a_veto() {
    let stage = Stage::new("[policy]\nidle_timeout = \"2s\"\n");
    let hook = ("drowse.policy.before_pause", "[\"touch\", \"/workspace/.keep-alive\"]");
    stage.run("freezes", &[hook], SLEEPS);
    stage.run("stops", &[hook, COMPOSE], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    let undone = || events(&api, "worker.undone");
    until("both sleeps are taken back", || undone().len() >= 2);
    for name in ["freezes", "stops"] {
        let told = undone().iter().find(|event| event["worker_id"] == name).cloned();
        assert_eq!(told.expect("it was told")["data"]["by"], "keep-alive file", "{name}");
        up.wait_for_all(&format!("{name} running again: undo"));
        let holds = json(&api, &format!("workers/{name}/holds")).to_string();
        assert!(holds.contains("keep_alive_file"), "{name}: {holds}");
        assert_eq!(stage.state(name), "running", "{name}");
    }
    // Somebody who comes later and has no such file sleeps; those two have not.
    stage.run("later", &[], SLEEPS);
    up.wait_for("later paused");
    let slept = [events(&api, "worker.paused"), events(&api, "worker.stopped")].concat();
    assert!(slept.iter().all(|event| event["worker_id"] == "later"), "{slept:?}");
}

#[test]
fn a_person_is_told_of_a_keep_alive_file_that_no_check_has_seen_yet() {
    let stage = Stage::new("policy.idle_timeout = \"1h\"");
    stage.run("web", &[], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web running");
    let order = |what: &str, body: &str| api.send("POST", &format!("/api/v1/workers/web/{what}"), body);
    stage.engine.docker(&["exec", "web", "touch", "/workspace/.keep-alive"]);
    for what in ["pause", "stop", "terminate"] {
        let refused = order(what, "{}");
        assert!(refused.starts_with("HTTP/1.1 409 ") && refused.contains("keep_alive_file"), "{refused}");
    }
    assert_eq!(stage.state("web"), "running");
    // One that is gone by now stands in nobody's way, and whoever insists is obeyed.
    stage.engine.docker(&["exec", "web", "rm", "/workspace/.keep-alive"]);
    assert!(order("pause", "{}").starts_with("HTTP/1.1 20"));
    up.wait_for("web paused");
    assert!(order("resume", "{}").starts_with("HTTP/1.1 20"));
    up.wait_for("web running again");
    stage.engine.docker(&["exec", "web", "touch", "/workspace/.keep-alive"]);
    assert!(order("stop", "{\"force\":true}").starts_with("HTTP/1.1 20"));
    up.wait_for("web stopped");
}

/// Whoever drains is deleted when nothing holds it any more, and a file that is touched meanwhile does.
#[test]
fn a_keep_alive_file_holds_a_container_that_drains() {
    let stage = Stage::new("policy.idle_timeout = \"4s\"\npolicy.drain_timeout = \"1h\"");
    stage.run("web", &[], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web running");
    let order = |what: &str, body: &str| api.send("POST", &format!("/api/v1/workers/web/{what}"), body);
    // Held by a lease at first, so that there is time to touch it.
    let lease = api.send("PUT", "/api/v1/workers/web/leases/build", "{\"ttl\":\"1h\",\"reason\":\"build\"}");
    assert!(lease.starts_with("HTTP/1.1 20"), "{lease}");
    let drained = order("drain", "{}");
    assert!(drained.starts_with("HTTP/1.1 20"), "{drained}");
    up.wait_for("web draining");
    stage.engine.docker(&["exec", "web", "touch", "/workspace/.keep-alive"]);
    api.send("DELETE", "/api/v1/workers/web/leases/build", "");
    until("the file holds it", || {
        let held = json(&api, "workers/web/holds").to_string();
        held.contains("keep_alive_file") && !held.contains("lease")
    });
    assert_eq!(stage.state("web"), "running");
    stage.engine.docker(&["exec", "web", "rm", "/workspace/.keep-alive"]);
    up.wait_for("web gone");
    stage.wait_until("web", "gone");
}
