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
    let of_alice = [("drowse.group", "wizards"), ("drowse.owner", "alice")];
    stage.run("alices", &of_alice, SLEEPS);
    stage.run("right", &[("drowse.group", "student")], SLEEPS);
    stage.members("student", Some("alice\n"));
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("right paused");
    let problems =
        super::stage::events(&api, "discovery.problem").iter().map(ToString::to_string).collect::<String>();
    assert!(problems.contains("idle_timeout") && problems.contains("48"), "{problems}");
    assert!(
        problems.contains("no [policy.group.wizards]")
            && problems.contains("drowse.group: ")
            && problems.contains("only watched"),
        "{problems}"
    );
    assert!(problems.contains("its owner's, student, counts"), "{problems}");
    // Its owner's group counts; who has none is only watched, and what would have been is written down.
    up.wait_for_all("alices paused");
    until("it is watched", || {
        let would = super::stage::events(&api, "worker.would_pause");
        would.iter().any(|event| event["worker_id"] == "nobodys")
    });
    assert_eq!(stage.state("nobodys"), "running");
    let why = json(&api, "workers/nobodys/explain").to_string();
    assert!(why.contains("unknown group"), "no label said that it is only watched: {why}");
    assert!(api.send("GET", "/api/v1/workers/wrong", "").starts_with("HTTP/1.1 404 "));
    assert_eq!(stage.state("wrong"), "running");
}

#[test]
fn a_container_that_is_renamed_is_the_same_worker_with_all_that_holds_it() {
    let stage = Stage::new("policy.idle_timeout = \"4s\"\npolicy.check_interval = \"1s\"");
    stage.run("web", &[], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web running");
    let snoozed = api.send("POST", "/api/v1/workers/web/snooze", "{\"for\":\"1h\"}");
    assert!(snoozed.starts_with("HTTP/1.1 20"), "{snoozed}");
    stage.run("witness", &[], SLEEPS);
    stage.engine.docker(&["rename", "web", "other"]);
    // Somebody else sleeps meanwhile, which takes as long.
    up.wait_for("witness paused");
    assert_eq!(stage.state("other"), "running");
    let workers = json(&api, "workers")["workers"].to_string();
    assert!(workers.contains("\"web\"") && !workers.contains("\"other\""), "{workers}");
}

#[test]
fn what_a_person_sets_counts_before_a_label_and_stays() {
    let stage = Stage::new("policy.idle_timeout = \"1h\"");
    stage.run("web", &[("drowse.policy.idle_timeout", "30m")], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web running");
    let minutes = || json(&api, "workers/web/idle-status")["idle_threshold_minutes"].clone();
    until("the label counts", || minutes() == 30.0);
    let set = api.send("PATCH", "/api/v1/policies/worker/web", "{\"set\":{\"idle_timeout\":\"2h\"}}");
    assert!(set.starts_with("HTTP/1.1 200"), "{set}");
    // Another one that comes has everybody looked at anew.
    stage.run("other", &[], SLEEPS);
    up.wait_for("other running");
    assert_eq!(minutes(), 120.0);
}

#[test]
fn a_label_with_a_port_that_is_taken_keeps_no_file_from_being_followed() {
    let stage = Stage::new(QUICK);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let network = stage.engine.network();
    stage.run_with(
        "web",
        &[("drowse.port", "80"), ("drowse.listen", &port)],
        &["--network", network],
        SLEEPS,
    );
    let mut up = stage.up();
    up.wait_for_all("a door does not open");
    stage.folder.append("\n[policy.group.student]\nwindow = 2\n");
    up.hang_up();
    up.wait_for("drowse: the configuration was read again");
}

/// Nobody can come to it, nobody would be seen to, and nobody could wake it.
#[test]
fn whose_door_does_not_open_stays_awake_until_it_does() {
    let stage = Stage::new(QUICK);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let network = stage.engine.network();
    stage.run("other", &[], SLEEPS);
    let serve = "echo hello from inside > /workspace/index.html; exec httpd -f -p 80 -h /workspace";
    let labels = [("drowse.port", "80"), ("drowse.listen", &port.to_string())];
    stage.run_with("web", &labels, &["--network", network], serve);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("other paused");
    until("it is told why", || {
        super::stage::events(&api, "worker.unreadable").iter().any(|event| {
            let event = event.to_string();
            event.contains("door_shut") && event.contains(&port.to_string())
        })
    });
    assert_eq!(stage.state("web"), "running", "{}", up.told());
    drop(taken);
    up.wait_for("web paused");
    let answer = get(port, "/");
    assert!(answer.contains("hello from inside"), "{answer}");
}

/// A file that somebody moved away by mistake takes nobody out of the group: neither who is there nor who comes.
#[test]
fn a_members_file_that_is_missing_takes_nobody_out_of_the_group() {
    let stage =
        Stage::new("[policy]\nidle_timeout = \"2s\"\n[policy.group.keepers]\nidle_timeout = \"1h\"\n");
    stage.members("keepers", Some("alice\nbob\n"));
    stage.run("alices", &[("drowse.owner", "alice")], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("alices running");
    let minutes =
        |name: &str| json(&api, &format!("workers/{name}/idle-status"))["idle_threshold_minutes"].clone();
    until("she is in the group", || minutes("alices") == 60.0);
    stage.members("keepers", None);
    up.hang_up();
    up.wait_for("keepers.members is missing");
    up.wait_for("drowse: the configuration was read again");
    stage.run("bobs", &[("drowse.owner", "bob")], SLEEPS);
    up.wait_for("bobs running");
    stage.run("others", &[("drowse.owner", "eve")], SLEEPS);
    up.wait_for("others paused");
    assert_eq!((minutes("alices"), minutes("bobs")), (60.0.into(), 60.0.into()), "{}", up.told());
    // Also when Drowse starts without it.
    up.kill();
    let mut up = stage.up();
    assert!(up.told().contains("keepers.members is missing"), "{}", up.told());
    stage.run("later", &[("drowse.owner", "eve")], SLEEPS);
    up.wait_for("later paused");
    assert_eq!((stage.state("alices").as_str(), stage.state("bobs").as_str()), ("running", "running"));
}

/// Nobody has settings for the group, and nobody is listed in it: its name stands in an exemption.
#[test]
fn a_group_that_only_an_exemption_names_is_known() {
    let stage = Stage::new(
        "policy.idle_timeout = \"2s\"\n[[exemption]]\ngroup = \"thesis\"\nfrom = \"idle_timeout\"\n\
         reason = \"deadline\"\napproved_by = \"carol\"\nexpires_on = \"never\"\n",
    );
    stage.members("student", Some("alice\n"));
    stage.run("spared", &[("drowse.group", "thesis"), ("drowse.owner", "alice")], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("spared running");
    assert_eq!(json(&api, "workers/spared")["group"], "thesis");
    stage.run("witness", &[], SLEEPS);
    up.wait_for("witness paused");
    assert_eq!(stage.state("spared"), "running");
}

#[test]
fn an_empty_members_file_takes_the_last_member_out() {
    let stage =
        Stage::new("[policy]\nidle_timeout = \"2s\"\n[policy.group.keepers]\nidle_timeout = \"1h\"\n");
    stage.members("keepers", Some("alice\n"));
    stage.run("alices", &[("drowse.owner", "alice")], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("alices running");
    until("she is in the group", || json(&api, "workers/alices")["group"] == "keepers");
    stage.members("keepers", Some(""));
    up.hang_up();
    up.wait_for("alices paused");
    assert!(json(&api, "workers/alices")["group"].is_null());
}

/// What the guide says, done twice.
#[test]
fn the_port_of_a_container_that_is_gone_is_free_for_the_next() {
    let stage = Stage::new("policy.idle_timeout = \"1h\"");
    let network = stage.engine.network();
    let door = free_port();
    let labels = [("drowse.port", "80"), ("drowse.listen", &door.to_string())];
    let serves =
        |text: &str| format!("echo {text} > /workspace/index.html; exec httpd -f -p 80 -h /workspace");
    stage.run_with("first", &labels, &["--network", network], &serves("one"));
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("first running");
    until("its door is open", || get(door, "/").contains("one"));
    stage.engine.docker(&["rm", "--force", "first"]);
    stage.run_with("second", &labels, &["--network", network], &serves("two"));
    up.wait_for("first gone");
    up.wait_for_all("second running");
    until("the next one has it", || get(door, "/").contains("two"));
    // It is still known what was, and nobody answers for it.
    assert_eq!(json(&api, "workers/first")["status"], "terminated");
    stage.engine.docker(&["rm", "--force", "second"]);
    up.wait_for("second gone");
    until("its door is closed", || std::net::TcpStream::connect(("127.0.0.1", door)).is_err());
}
