//! Quiet checks in a row: kept over a restart of ours, and lost by use.

use super::stage::{SLEEPS, Stage, json};
use crate::up::running::{Api, until};

fn explain(api: &Api) -> serde_json::Value {
    json(api, "workers/web/explain")
}

fn streak(api: &Api) -> u64 {
    explain(api)["streak"].as_u64().expect("a number")
}

#[test]
fn a_streak_outlives_a_restart_of_drowse_and_ends_with_use() {
    let stage = Stage::new(
        "policy.idle_timeout = \"10m\"\npolicy.window = 50\npolicy.check_interval = \"4s\"\npolicy.stop_after = \"never\"",
    );
    stage.run("web", &[], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web running");
    until("two quiet checks", || streak(&api) >= 2);
    let idle_since = explain(&api)["baseline"]["at"].clone();
    // Killed where it stands, and there again before two checks are missed.
    up.kill();
    let up = stage.up();
    let api = stage.folder.api(&up);
    let before = streak(&api);
    assert!(before >= 2, "{}", explain(&api));
    until("the next check counts on", || {
        let now = streak(&api);
        assert!(now >= before, "{}", explain(&api));
        now > before
    });
    assert_eq!(explain(&api)["baseline"]["at"], idle_since, "and the time before counts as well");
    // Use is use, however short.
    let burst = "timeout 1 sh -c 'while :; do :; done'; true";
    stage.engine.docker(&["exec", "web", "sh", "-c", burst]);
    until("use ends it", || streak(&api) == 0);
    until("and it begins again", || streak(&api) == 1);
}

/// What it used while nobody looked is found in its counters, and breaks the streak as it would have.
#[test]
fn use_while_drowse_was_away_is_found_afterwards() {
    let stage =
        Stage::new("policy.idle_timeout = \"10m\"\npolicy.window = 50\npolicy.check_interval = \"4s\"");
    stage.run("web", &[], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web running");
    until("two quiet checks", || streak(&api) >= 2);
    let was_idle_since = explain(&api)["baseline"]["at"].clone();
    up.kill();
    let burst = "timeout 1 sh -c 'while :; do :; done'; true";
    stage.engine.docker(&["exec", "web", "sh", "-c", burst]);
    let up = stage.up();
    let api = stage.folder.api(&up);
    until("it was in use", || explain(&api)["baseline"]["at"] != was_idle_since);
    assert!(streak(&api) < 2, "{}", explain(&api));
}
