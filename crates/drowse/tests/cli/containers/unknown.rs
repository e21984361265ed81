//! What cannot be seen, why, and what helps.

use std::fs::File;
use std::process::{Command, Stdio};

use super::stage::{BURNS, SLEEPS, Stage, events, json};
use crate::up::running::{Api, free_port, until};

fn cause(api: &Api, worker: &str, signal: &str) -> String {
    let readings = json(api, &format!("workers/{worker}/readings"));
    let of_all = readings["readings"].as_array().cloned().unwrap_or_default();
    let one = of_all.iter().find(|one| one["signal"] == signal);
    one.and_then(|one| one["unknown_cause"].as_str()).unwrap_or_default().to_owned()
}

fn notes(api: &Api, worker: &str) -> String {
    json(api, &format!("workers/{worker}/explain"))["notes"].to_string()
}

#[test]
fn an_engine_that_hangs_is_named_as_the_reason_and_so_is_its_return() {
    let stage = Stage::new("policy.idle_timeout = \"3s\"");
    stage.run_with("web", &[], &["--network", "none", "--cpus", "0.2"], BURNS);
    let door = free_port().to_string();
    let labels = [("drowse.port", "80"), ("drowse.listen", door.as_str())];
    stage.run_with("shared", &labels, &["--network", "host"], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web running");
    until("it is seen", || cause(&api, "web", "cpu").is_empty());
    stage.engine.hang_daemon(true);
    until("nobody can see it", || cause(&api, "web", "cpu") == "driver_silent");
    until("it is explained", || notes(&api, "web").contains("no answer within"));
    let explained = json(&api, "workers/web/explain").to_string();
    assert!(explained.contains("drowse doctor"), "{explained}");
    let told = events(&api, "worker.unreadable");
    let of_web = told.iter().find(|event| event["worker_id"] == "web").expect("it is journalled");
    assert_eq!(of_web["data"]["causes"]["cpu"], "driver_silent", "{of_web}");
    stage.engine.hang_daemon(false);
    until("it is seen again", || events(&api, "worker.readable").iter().any(|one| one["worker_id"] == "web"));
    until("nothing is doubted", || !notes(&api, "web").contains("cannot be read"));
    // What everybody on the machine sends says nothing about it, and it is told what to do.
    until("it shares the network", || cause(&api, "shared", "network") == "not_its_own");
    let notes = notes(&api, "shared");
    assert!(notes.contains("network with the machine") && notes.contains("use = \\\"off\\\""), "{notes}");
    assert!(notes.contains("port 80 cannot be found: port 80 is not published"), "{notes}");
    assert_eq!(stage.state("shared"), "running");
}

/// Still coming up, or nobody there: what is known is told, by `explain` and at the door.
#[test]
fn a_container_that_runs_and_does_not_answer_is_told_from_one_that_is_coming_up() {
    let stage = Stage::new("policy.idle_timeout = \"1h\"\npolicy.grace = \"1s\"");
    let (network, ready) = (stage.engine.network(), free_port().to_string());
    let labels = [("drowse.port", "80"), ("drowse.listen", ready.as_str())];
    stage.run_with("mute", &labels, &["--network", network], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("mute running");
    assert!(!notes(&api, "mute").contains("port"), "nobody has tried it");
    let order = |what: &str| api.send("POST", &format!("/api/v1/workers/mute/{what}"), "{}");
    assert!(order("stop").starts_with("HTTP/1.1 20"));
    up.wait_for("mute stopped");
    assert!(order("resume").starts_with("HTTP/1.1 20"));
    until("it is told to be on its way", || notes(&api, "mute").contains("may still be coming up"));
    // A start has a minute to be answered.
    up.wait_for("mute running again");
    let notes = notes(&api, "mute");
    assert!(notes.contains("its port did not answer in the first 5"), "{notes}");
}

/// A network disk that is gone: nobody can look for a keep-alive file, and so nobody is put to sleep.
#[test]
fn a_container_whose_files_do_not_answer_stays_awake_and_the_others_sleep() {
    let stage = Stage::new("policy.idle_timeout = \"2s\"");
    stage.run("hung", &[("drowse.policy.idle_timeout", "6s")], SLEEPS);
    let pid = stage.engine.docker(&["inspect", "--format", "{{.State.Pid}}", "hung"]);
    let server = File::options().read(true).write(true).open("/dev/fuse").expect("there is /dev/fuse");
    let mounted = Command::new("nsenter")
        .args(["--target", &pid, "--mount", "busybox", "mount", "-t", "fuse", "-o"])
        .args(["fd=0,rootmode=40000,user_id=0,group_id=0", "none", "/workspace"])
        .stdin(Stdio::from(server.try_clone().expect("a file can be had twice")))
        .status();
    assert!(mounted.is_ok_and(|status| status.success()));
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    stage.run("well", &[], SLEEPS);
    up.wait_for("well paused");
    until("it is told why", || cause(&api, "hung", "cpu") == "cannot_look_inside");
    let notes = notes(&api, "hung");
    assert!(notes.contains("/workspace/.keep-alive") && notes.contains("keep_alive_file"), "{notes}");
    stage.run("later", &[], SLEEPS);
    up.wait_for("later paused");
    assert_eq!(stage.state("hung"), "running");
    drop(server);
}

/// A Drowse that sees no cgroups asks the engine what its containers use.
#[test]
fn without_the_kernels_files_the_engine_is_asked() {
    let mut stage = Stage::new("policy.idle_timeout = \"4s\"");
    stage.folder.through = ["unshare", "--mount", "sh", "-c"].map(str::to_owned).to_vec();
    let blind = "umount --recursive --lazy /sys/fs/cgroup && exec \"$0\" \"$@\"";
    stage.folder.through.push(blind.to_owned());
    stage.folder.variables.push(("PATH".to_owned(), "/usr/bin:/bin:/usr/sbin:/sbin".to_owned()));
    let network = stage.engine.network();
    stage.run_with("sleeper", &[], &["--network", network], SLEEPS);
    stage.run_with("burner", &[], &["--network", "none", "--cpus", "0.2"], BURNS);
    let mut up = stage.up();
    up.wait_for("sleeper paused");
    stage.run("later", &[], SLEEPS);
    up.wait_for("later paused");
    assert_eq!(stage.state("burner"), "running", "{}", up.told());
    let api = stage.folder.api(&up);
    assert_eq!(cause(&api, "burner", "cpu"), "");
}
