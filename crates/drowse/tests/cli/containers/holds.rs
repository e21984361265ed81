//! What keeps a container awake although it is idle.

use super::stage::{SLEEPS, Stage, events, json};
use crate::up::running::until;

/// Who is held is still there when somebody else, who came later and is not held, sleeps.
#[test]
fn a_keep_alive_file_protection_and_an_exemption_hold() {
    let stage = Stage::new(
        "[policy]\nidle_timeout = \"2s\"\n\
         [[exemption]]\nowner = \"bob\"\nfrom = [\"idle_timeout\"]\nreason = \"grant deadline\"\n\
         approved_by = \"carol\"\nexpires_on = \"2099-01-01T00:00:00Z\"\n",
    );
    stage.run("kept", &[], &format!("touch /workspace/.keep-alive; {SLEEPS}"));
    stage.run("old", &[], &format!("touch -d 2020-01-01 /workspace/.keep-alive; {SLEEPS}"));
    stage.run("protected", &[("drowse.protected", "true")], SLEEPS);
    stage.run("exempt", &[("drowse.owner", "bob")], SLEEPS);
    stage.run("starting", &[("drowse.policy.startup_grace", "1h")], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    // A file that is too old holds nobody.
    up.wait_for("old paused");
    stage.run("later", &[], SLEEPS);
    up.wait_for("later paused");
    for held in ["kept", "protected", "exempt", "starting"] {
        assert_eq!(stage.state(held), "running", "{held}\n{}", up.told());
    }
    let holds = json(&api, "workers/kept/holds").to_string();
    assert!(holds.contains("keep_alive_file"), "{holds}");
    until("the exempt are told for their information", || {
        let warned = events(&api, "worker.warned");
        warned.iter().any(|event| event["worker_id"] == "exempt" && event["data"]["is_fyi"] == true)
    });
    // Without the file the clock starts afresh, and then it sleeps like anybody else.
    stage.engine.docker(&["exec", "kept", "rm", "/workspace/.keep-alive"]);
    up.wait_for("kept paused");
    assert!(!events(&api, "worker.keep_alive_ended").is_empty());
}

#[test]
fn a_hook_in_the_container_can_veto_and_is_told_of_a_resume() {
    let stage = Stage::new("[policy]\nidle_timeout = \"2s\"\n");
    let hook = ("drowse.policy.before_pause", "[\"/workspace/may-sleep\"]");
    let after = ("drowse.policy.after_resume", "[\"/workspace/awake\"]");
    let script = "cd /workspace; printf '#!/bin/sh\\ntest -e /workspace/quiet\\n' > may-sleep; \
                  printf '#!/bin/sh\\necho awake >> /workspace/told\\n' > awake; chmod +x may-sleep awake; sleep 100000";
    stage.run("web", &[hook, after], script);
    let mut up = stage.up();
    up.wait_for("web before_pause");
    assert_eq!(stage.state("web"), "running");
    stage.engine.docker(&["exec", "web", "touch", "/workspace/quiet"]);
    up.wait_for("web paused");
    stage.engine.docker(&["unpause", "web"]);
    up.wait_for("web");
    let api = stage.folder.api(&up);
    api.send("POST", "/api/v1/workers/web/pause", "{\"force\":true}");
    up.wait_for("web paused: manual");
    api.send("POST", "/api/v1/workers/web/resume", "{}");
    up.wait_for("web running again");
    until("the hook ran", || stage.engine.try_docker(&["exec", "web", "cat", "/workspace/told"]).is_ok());
}
