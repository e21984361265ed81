//! What a container is called, and who it is.

use super::engine::IMAGE;
use super::stage::{SLEEPS, Stage, events, json};
use crate::up::running::{free_port, get, until};

const NEVER: &str = "policy.idle_timeout = \"1h\"";

fn problems(api: &crate::up::running::Api) -> String {
    events(api, "discovery.problem").iter().map(ToString::to_string).collect()
}

#[test]
fn of_two_containers_with_one_name_one_is_the_worker_and_the_other_is_told_and_left_alone() {
    let stage = Stage::new("policy.idle_timeout = \"2s\"");
    let named = [("drowse.name", "web")];
    stage.run("older", &named, SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web paused");
    stage.run("younger", &named, SLEEPS);
    until("it is told", || {
        let problems = problems(&api);
        problems.contains("younger") && problems.contains("older") && problems.contains("drowse.name")
    });
    // Somebody who came later has been looked after by then, and this one has not.
    stage.run("witness", &[], SLEEPS);
    up.wait_for("witness paused");
    assert_eq!(stage.state("younger"), "running");
    assert_eq!(stage.state("older"), "paused");
    // The name is free when its bearer is gone.
    stage.engine.docker(&["rm", "--force", "older"]);
    up.wait_for("web gone");
    up.wait_for("web paused");
    assert_eq!(stage.state("younger"), "paused");
}

#[test]
fn labels_that_lie_or_overflow_are_told_in_short_and_nobody_else_is_affected() {
    let stage = Stage::new("policy.idle_timeout = \"2s\"");
    let long = "x".repeat(10_000);
    stage.run("well", &[], SLEEPS);
    stage.run("long", &[("drowse.name", &long)], SLEEPS);
    stage.run("lines", &[("drowse.name", "a\nb"), ("drowse.owner", "al\nice\u{1b}[2J")], SLEEPS);
    stage.run("quotes", &[("drowse.name", "a\"]\n[[worker]]\nid = \"b")], SLEEPS);
    stage.run("keys", &[("drowse.policy.before_pause", "[\"/bin/sh\", 1]"), ("drowse.listen", "0")], SLEEPS);
    stage.run("owner", &[("drowse.owner", "al\u{1b}[2Jice")], SLEEPS);
    let many: Vec<(String, &str)> = (0..200).map(|n| (format!("drowse.no\nsuch{n}"), "x")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(label, text)| (label.as_str(), *text)).collect();
    stage.run("many", &many, SLEEPS);
    // It says that it is somebody else.
    stage.run("liar", &[("drowse.name", "well")], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("well paused");
    let told = problems(&api);
    for name in ["long", "lines", "quotes", "keys", "owner", "many", "liar"] {
        assert!(told.contains(&format!("\"container\":\"{name}\"")), "{name}: {told}");
        assert_eq!(stage.state(name), "running", "{name}");
    }
    assert!(told.contains("and 180 more"), "{told}");
    assert!(!told.contains(&long[..1_000]), "what makes no sense is not repeated in full");
    assert!(!up.told().contains('\u{1b}'), "{:?}", up.told());
    let workers = json(&api, "workers")["workers"].as_array().map(Vec::len);
    assert_eq!(workers, Some(1));
}

#[test]
fn a_listed_container_that_is_made_anew_is_the_worker_again() {
    let stage = Stage::new(NEVER);
    let [by_name, by_label] = [free_port(), free_port()];
    stage.folder.append(&format!(
        "[[worker]]\nid = \"web\"\ndriver = \"docker\"\ncontainer = \"web-1\"\nlisten = \"127.0.0.1:{by_name}\"\n\
         target = \":80\"\n[[worker]]\nid = \"api\"\ndriver = \"docker\"\nlabel = \"label=team=api\"\n\
         listen = \"127.0.0.1:{by_label}\"\ntarget = \":80\"\n"
    ));
    let network = stage.engine.network();
    let run = |name: &str, text: &str| {
        let serves = format!("echo {text} > /workspace/index.html; exec httpd -f -p 80 -h /workspace");
        let run = ["run", "--detach", "--init", "--network", network, "--name", name];
        let label = if name == "web-1" { "team=web" } else { "team=api" };
        stage.engine.docker(&[&run[..], &["--label", label, IMAGE, "sh", "-c", &serves]].concat());
    };
    run("web-1", "first");
    run("api-1", "first");
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    for (worker, old, new, door) in [("web", "web-1", "web-1", by_name), ("api", "api-1", "api-2", by_label)]
    {
        let status = || json(&api, &format!("workers/{worker}"))["status"].clone();
        until("it runs", || status() == "running");
        assert!(get(door, "/").contains("first"), "{}", up.told());
        stage.engine.docker(&["rm", "--force", old]);
        until("it is over", || status() == "terminated");
        run(new, "second");
        until("it is there again", || status() == "running");
        let answer = get(door, "/");
        assert!(answer.contains("second"), "{answer}\n{}", up.told());
    }
    assert_eq!(up.end(), Some(0), "{}", up.told());
}

/// Drowse is killed while it sleeps, and meanwhile somebody makes another one with its label.
#[test]
fn what_was_frozen_is_woken_though_its_label_means_two_by_then() {
    let stage = Stage::new("policy.idle_timeout = \"2s\"");
    let door = free_port();
    stage.folder.append(&format!(
        "[[worker]]\nid = \"api\"\ndriver = \"docker\"\nlabel = \"label=team=api\"\nlisten = \"127.0.0.1:{door}\"\n\
         target = \":80\"\n"
    ));
    let network = stage.engine.network();
    let run = |name: &str| {
        let serves =
            format!("echo this is {name} > /workspace/index.html; exec httpd -f -p 80 -h /workspace");
        let run = ["run", "--detach", "--init", "--network", network, "--label", "team=api", "--name", name];
        stage.engine.docker(&[&run[..], &[IMAGE, "sh", "-c", &serves]].concat());
    };
    run("first");
    let mut up = stage.up();
    up.wait_for("api paused");
    up.kill();
    run("second");
    let mut up = stage.up();
    let answer = get(door, "/");
    assert!(answer.contains("this is first"), "{answer}\n{}", up.told());
    up.wait_for("api running again: wake, by connection");
    assert_eq!(stage.state("second"), "running");
}

#[test]
fn a_label_of_two_containers_is_refused_by_both_their_names() {
    let stage = Stage::new(NEVER);
    stage.folder.append("[[worker]]\nid = \"api\"\ndriver = \"docker\"\nlabel = \"label=team=api\"\n");
    let run = |name: &str| {
        let run = ["run", "--detach", "--network", "none", "--label", "team=api", "--name", name];
        stage.engine.docker(&[&run[..], &[IMAGE, "sleep", "100000"]].concat());
    };
    run("first");
    run("second");
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    until("both are named", || {
        let told = json(&api, "workers/api/explain")["notes"].to_string();
        told.contains("first") && told.contains("second")
    });
    let event = events(&api, "worker.unreadable").pop().expect("it is journalled");
    assert!(event["data"]["causes"].to_string().contains("driver_refused"), "{event}");
    // As soon as one is gone, the other is meant.
    stage.engine.docker(&["rm", "--force", "first"]);
    up.wait_for("api running for the first time");
}

/// The file names two containers, of which one does not exist, and one asks not to be touched.
#[test]
fn what_protects_a_listed_container_counts_and_its_other_labels_are_told() {
    let stage = Stage::new("policy.idle_timeout = \"2s\"");
    let listed =
        |id: &str| format!("[[worker]]\nid = \"{id}\"\ndriver = \"docker\"\ncontainer = \"{id}-1\"\n");
    stage.folder.append(&format!("{}{}{}", listed("kept"), listed("never"), listed("plain")));
    let run = |name: &str, labels: &[&str]| {
        let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label]).collect();
        let run = ["run", "--detach", "--init", "--network", "none", "--name", name];
        stage.engine.docker(&[&run[..], &labels, &[IMAGE, "sh", "-c", SLEEPS]].concat());
    };
    run("kept-1", &["drowse.protected=true", "drowse.owner=alice"]);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    until("it is protected", || json(&api, "workers/kept")["target_pause_blocked_by"] == "protected");
    until("what is not used is told", || problems(&api).contains("drowse.owner: not used"));
    run("plain-1", &[]);
    up.wait_for("plain paused");
    assert_eq!(stage.state("kept-1"), "running");
    until("it is told that there is no such container", || {
        api.send("GET", "/api/v1/workers/never/explain", "").contains("there is no container never-1")
    });
}
