//! Stops: with grace by type, after a limit, and told before.

use super::stage::{BURNS, COMPOSE, SLEEPS, Stage, events, json};
use crate::up::running::{free_port, until};

const STUBBORN: &str = "trap 'echo heard >> /workspace/heard' TERM; while :; do sleep 0.1; done";

#[test]
fn what_ignores_its_stop_signal_is_killed_after_the_grace_of_its_type_and_that_is_journalled() {
    let stage = Stage::new("[policy]\nidle_timeout = \"2s\"\n[policy.type.compose]\ngrace = \"2s\"\n");
    // Its own sleep between looks is a little use, far below any threshold of people.
    let calm = ("drowse.policy.signals.cpu.active_above", "50%");
    stage.run("stubborn", &[COMPOSE, calm], STUBBORN);
    stage.run("polite", &[COMPOSE], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    stage.wait_until("stubborn", "exited");
    stage.wait_until("polite", "exited");
    until("both are journalled", || events(&api, "worker.stopped").len() == 2);
    let exceeded = events(&api, "worker.grace_exceeded");
    assert_eq!(exceeded.len(), 1, "{exceeded:?}");
    assert_eq!(exceeded[0]["worker_id"], "stubborn");
    let code = |name: &str| stage.engine.docker(&["inspect", "--format", "{{.State.ExitCode}}", name]);
    assert_eq!((code("stubborn").as_str(), code("polite").as_str()), ("137", "143"));
    stage.engine.docker(&["cp", "stubborn:/workspace/heard", stage.folder.file("heard").to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(stage.folder.file("heard")).unwrap(), "heard\n", "it was asked once");
    // "Stopped" is said after it has stopped, and not before.
    up.wait_for_all("polite stopped");
}

/// A limit stops whoever is busy too, after its warnings: on the terminal, in a file, and in the journal.
#[test]
fn a_container_that_ran_for_long_enough_is_warned_and_stopped() {
    let stage = Stage::new("[policy]\nidle_timeout = \"1h\"\nmax_runtime = \"20s\"\ngrace = \"2s\"\n");
    let capped = ["--network", "none", "--cpus", "0.1", "--tty", "--volume", "/run"];
    stage.run_with("job", &[], &capped, BURNS);
    // One whose disk is full is warned in the journal only, and stopped like the other.
    let full = ["--network", "none", "--tmpfs", "/run:size=4k"];
    stage.run_with("full", &[], &full, "cat /dev/zero > /run/filler; sleep 100000");
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    let delivered =
        |kind: &str, name: &str| events(&api, kind).iter().any(|event| event["worker_id"] == name);
    until("it is told", || delivered("worker.warning_delivered", "job"));
    let file = stage.engine.docker(&["exec", "job", "cat", "/run/drowse-warning"]);
    assert!(file.contains("job will be stopped at"), "{file}");
    let terminal = stage.engine.docker(&["logs", "job"]);
    assert!(terminal.contains("job will be stopped at"), "{terminal}");
    until("that it could not be told is told", || delivered("worker.warning_undelivered", "full"));
    stage.wait_until("job", "exited");
    stage.wait_until("full", "exited");
    up.wait_for_all("job stopped");
    let warned = events(&api, "worker.warned");
    assert!(warned.iter().any(|event| event["data"]["kind"] == "max_runtime"), "{warned:?}");
}

/// Nobody warns before a freeze that a connection undoes. It is told in the container when it happens, with the time of
/// the stop that follows, which is that stop's notice.
#[test]
fn a_routed_freeze_is_told_in_the_container_when_it_happens_with_the_time_of_its_stop() {
    let stage = Stage::new("[policy]\nidle_timeout = \"2s\"\nstop_after = \"6s\"\n");
    let (network, door) = (stage.engine.network(), free_port().to_string());
    let labels = [("drowse.port", "80"), ("drowse.listen", door.as_str())];
    stage.run_with("web", &labels, &["--network", network, "--tty"], "httpd -f -p 80 -h /workspace");
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web paused");
    let paused = events(&api, "worker.paused");
    let stops_at = paused[0]["data"]["stops_at"].as_str().expect("when it stops").to_owned();
    until("it is delivered", || !events(&api, "worker.warning_delivered").is_empty());
    let file = stage.folder.file("warning");
    stage.engine.docker(&["cp", "web:/run/drowse-warning", file.to_str().unwrap()]);
    let left = std::fs::read_to_string(&file).unwrap();
    for told in [left, stage.engine.docker(&["logs", "web"])] {
        for part in ["web is paused since", "Whoever connects wakes it", &stops_at[..19], "drowse snooze web"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("is stopped") && !told.contains("was stopped"), "{told}");
    }
    assert!(events(&api, "worker.warned").is_empty(), "nobody was warned of what a connection undoes");
    assert!(!up.told().contains("web stopped"), "{}", up.told());
    up.wait_for("web stopped");
    let stopped = events(&api, "worker.stopped");
    let at = |text: &str| text.parse::<drowse_core::Timestamp>().expect("an instant");
    assert!(at(stopped[0]["at"].as_str().expect("when")) >= at(&stops_at), "{stopped:?}");
}

/// The run that is begun by hand is nobody's to end: it is not even signalled.
#[test]
fn what_is_restarted_while_it_is_being_stopped_keeps_running() {
    let stage = Stage::new("[policy]\nidle_timeout = \"2s\"\nsnooze = \"1h\"\ngrace = \"1m\"\n");
    let calm = ("drowse.policy.signals.cpu.active_above", "50%");
    stage.run("stubborn", &[COMPOSE, calm], STUBBORN);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    let heard = || stage.engine.try_docker(&["exec", "stubborn", "cat", "/workspace/heard"]);
    until("it is being stopped", || heard().is_ok());
    stage.engine.docker(&["restart", "--time", "0", "stubborn"]);
    // What the run before had heard, the engine's own signal among it.
    stage.engine.docker(&["exec", "stubborn", "rm", "/workspace/heard"]);
    up.wait_for_all("stubborn running again");
    // Somebody who comes later falls asleep; until then a call would have been made again.
    stage.run("later", &[], SLEEPS);
    up.wait_for_all("later paused");
    assert_eq!(stage.state("stubborn"), "running");
    assert!(heard().is_err(), "only the run before was asked to end");
    let stopped = events(&api, "worker.stopped");
    assert!(stopped.is_empty(), "{stopped:?}");
}

/// Nobody knows then whether it has stopped: it is neither asleep nor idle until the engine says so.
#[test]
fn an_engine_that_hangs_during_a_stop_leaves_a_container_that_is_unknown() {
    let stage = Stage::new("[policy]\nidle_timeout = \"2s\"\ngrace = \"3s\"\nsnooze = \"1h\"\n");
    let calm = ("drowse.policy.signals.cpu.active_above", "50%");
    let grace = ("drowse.policy.grace", "3s");
    stage.run("stubborn", &[COMPOSE, calm, grace], STUBBORN);
    let up = stage.up();
    let api = stage.folder.api(&up);
    let status = || json(&api, "workers/stubborn")["status"].as_str().unwrap_or_default().to_owned();
    until("it is being stopped", || {
        stage.engine.try_docker(&["exec", "stubborn", "cat", "/workspace/heard"]).is_ok()
    });
    stage.engine.hang_daemon(true);
    let deadline = json(&api, "workers/stubborn")["status_deadline"].as_str().unwrap_or_default().to_owned();
    // Its grace and half a minute: nobody knows sooner, and nobody waits longer.
    until("its time is over", || status() != "stopping");
    assert_eq!(status(), "unknown");
    let unknown = events(&api, "worker.unknown");
    let at = |text: &str| text.parse::<drowse_core::Timestamp>().expect("an instant");
    let (told, due) = (at(unknown[0]["at"].as_str().expect("when")), at(&deadline));
    let late = told.since(due);
    assert!(told >= due && late < std::time::Duration::from_secs(15), "{late:?} after {deadline}");
    let slept = [events(&api, "worker.stopped"), events(&api, "worker.paused")].concat();
    assert!(slept.is_empty(), "{slept:?}");
    stage.engine.hang_daemon(false);
    // What the engine had been asked it may do now.
    until("what is seen is believed", || {
        let seen = stage.state("stubborn");
        matches!((status().as_str(), seen.as_str()), ("running", "running") | ("stopped", "exited"))
    });
}

#[test]
fn what_is_removed_while_it_is_being_stopped_or_frozen_is_gone() {
    let stage = Stage::new("[policy]\nidle_timeout = \"2s\"\ngrace = \"1m\"\n");
    let calm = ("drowse.policy.signals.cpu.active_above", "50%");
    stage.run("stubborn", &[COMPOSE, calm], STUBBORN);
    stage.run("frozen", &[], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    until("it is being stopped", || {
        stage.engine.try_docker(&["exec", "stubborn", "cat", "/workspace/heard"]).is_ok()
    });
    stage.engine.docker(&["rm", "--force", "stubborn"]);
    up.wait_for_all("frozen paused");
    stage.engine.docker(&["rm", "--force", "frozen"]);
    let gone = |name: &str| events(&api, "worker.terminated").iter().any(|event| event["worker_id"] == name);
    until("both are gone", || gone("stubborn") && gone("frozen"));
}

/// Of its type before that of everybody, and of the file's type before that of the program.
#[test]
fn grace_follows_the_type_of_the_container() {
    let stage = Stage::new("[policy]\ngrace = \"20s\"\n[policy.type.lab]\ngrace = \"7s\"\n");
    stage.run("trains", &[("drowse.type", "gpu")], SLEEPS);
    stage.run("edits", &[("devcontainer.local_folder", "/home/alice/shop")], SLEEPS);
    stage.run("serves", &[COMPOSE], SLEEPS);
    stage.run("plays", &[("drowse.type", "lab")], SLEEPS);
    stage.run("plain", &[], SLEEPS);
    let up = stage.up();
    let api = stage.folder.api(&up);
    for (name, grace, from) in [
        ("trains", "1m", "type gpu (built-in)"),
        ("edits", "30s", "type devcontainer (built-in)"),
        ("serves", "45s", "type compose (built-in)"),
        ("plays", "7s", "type lab"),
        ("plain", "20s", "global"),
    ] {
        until("it is on the books", || {
            api.send("GET", &format!("/api/v1/workers/{name}"), "").starts_with("HTTP/1.1 200 ")
        });
        let explained = json(&api, &format!("workers/{name}/explain"));
        let policy = explained["policy"].as_array().expect("settings");
        let found = policy.iter().find(|setting| setting["key"] == "grace").expect("a grace");
        assert_eq!((&found["value"], &found["from"]), (&grace.into(), &from.into()), "{name}");
    }
}
