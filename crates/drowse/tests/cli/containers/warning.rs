//! What stands in a container's warning file is true: what was announced and is off is taken back.

use super::stage::{COMPOSE, SLEEPS, Stage, events, json};
use crate::up::running::until;

/// What stands in a container's warning file. Read from outside: a command in the container would be use of it.
fn words(stage: &Stage, name: &str) -> Option<String> {
    let pid = stage.engine.docker(&["inspect", "--format", "{{.State.Pid}}", name]);
    std::fs::read_to_string(format!("/proc/{pid}/root/run/drowse-warning")).ok()
}

#[track_caller]
fn wait_for_words(stage: &Stage, name: &str, part: &str) -> String {
    until(&format!("{name} is told: {part}"), || {
        words(stage, name).is_some_and(|words| words.contains(part))
    });
    words(stage, name).expect("it was told")
}

#[test]
fn a_stop_that_is_off_is_taken_back_from_the_file() {
    let stage = Stage::new(
        "[policy]\nidle_timeout = \"60s\"\ncheck_interval = \"1s\"\nwarn_at = [\"10%\"]\nmin_notice = \"1s\"\n",
    );
    stage.run("snoozed", &[COMPOSE], SLEEPS);
    stage.run("spared", &[COMPOSE, ("drowse.owner", "bob")], SLEEPS);
    stage.run("longer", &[COMPOSE, ("drowse.owner", "alice")], SLEEPS);
    stage.run("used", &[COMPOSE], SLEEPS);
    stage.run("stays", &[COMPOSE], SLEEPS);
    let up = stage.up();
    let api = stage.folder.api(&up);
    let all = ["snoozed", "spared", "longer", "used", "stays"];
    let before: Vec<_> = all.iter().map(|name| wait_for_words(&stage, name, "will be stopped at")).collect();
    let snoozed = api.send("POST", "/api/v1/workers/snoozed/snooze", "{\"for\":\"2h\"}");
    assert!(snoozed.starts_with("HTTP/1.1 200 "), "{snoozed}");
    stage.folder.append(
        "[policy.owner.alice]\nidle_timeout = \"2h\"\n\
         [[exemption]]\nowner = \"bob\"\nfrom = [\"idle_timeout\"]\nreason = \"thesis\"\napproved_by = \"carol\"\n\
         expires_on = \"never\"\n",
    );
    up.hang_up();
    stage.engine.docker(&["exec", "used", "sh", "-c", "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done"]);
    for (name, before) in all.iter().zip(&before).take(4) {
        // Whoever is exempt may be told for information instead, and who was used is warned of a later time.
        until(&format!("{name} is not told any more what is off"), || {
            words(&stage, name).as_ref() != Some(before)
        });
    }
    assert_eq!(words(&stage, "snoozed"), None);
    assert_eq!(words(&stage, "stays").as_ref(), before.last(), "what holds is left as it stands");
}

#[test]
fn what_is_thawed_by_hand_says_so() {
    let stage = Stage::new("[policy]\nidle_timeout = \"3s\"\nstop_after = \"1h\"\n");
    stage.run("web", &[], SLEEPS);
    let mut up = stage.up();
    up.wait_for("web paused");
    wait_for_words(&stage, "web", "web is paused since");
    stage.engine.docker(&["unpause", "web"]);
    wait_for_words(&stage, "web", "web is awake again since");
}

/// A change of its policy puts off the stop of what is frozen; what was told at its freeze is told anew.
#[test]
fn a_stop_that_is_put_off_while_it_is_frozen_is_told_anew() {
    let stage = Stage::new("[policy]\nidle_timeout = \"3s\"\nstop_after = \"1h\"\n");
    stage.run("web", &[("drowse.owner", "alice")], SLEEPS);
    let mut up = stage.up();
    up.wait_for("web paused");
    wait_for_words(&stage, "web", "It will be stopped at");
    stage.folder.append("[policy.owner.alice]\nstop_after = \"never\"\n");
    up.hang_up();
    until("no stop is announced any more", || {
        words(&stage, "web").is_some_and(|words| !words.contains("stopped at"))
    });
    wait_for_words(&stage, "web", "web is paused since");
}

#[test]
fn what_a_hook_forbids_is_taken_back_from_the_file() {
    let stage = Stage::new("[policy]\nidle_timeout = \"10s\"\n");
    let hook = ("drowse.policy.before_pause", "[\"/bin/false\"]");
    stage.run("web", &[hook], SLEEPS);
    let up = stage.up();
    let api = stage.folder.api(&up);
    wait_for_words(&stage, "web", "web will be paused at");
    until("the hook says no", || !events(&api, "worker.hook_vetoed").is_empty());
    assert!(json(&api, "workers/web")["vetoes"].as_u64() > Some(0), "whoever lists it is told");
    // Nobody is warned again before most of another timeout is over.
    until("that is taken back", || words(&stage, "web").is_none());
}

/// Words of a former run, and of a former Drowse, are nobody's.
#[test]
fn words_that_a_former_life_left_are_taken_away() {
    let stage = Stage::new("[policy]\nidle_timeout = \"1h\"\n");
    let script = format!("echo 'Drowse: web will be stopped at noon.' > /run/drowse-warning; {SLEEPS}");
    stage.run("web", &[COMPOSE], &script);
    wait_for_words(&stage, "web", "at noon");
    let _up = stage.up();
    until("it is taken away", || words(&stage, "web").is_none());
}
