//! Exemptions of containers: granted, listed, told, audited, ended. One that is wrong spares whom it names.

use super::stage::{SLEEPS, Stage, events, json};
use crate::up::running::{Api, until};

/// The command line of a client, as a person uses it.
fn drowse(stage: &Stage, args: &[&str]) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_drowse"))
        .args(args)
        .env_clear()
        .env("DROWSE_DATA", stage.folder.data())
        .output()
        .expect("cargo has built the binary");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{args:?}: {}", said(&output.stderr));
    said(&output.stdout)
}

fn audited(api: &Api, name: &str, from: &str) -> usize {
    let all = events(api, "worker.exempt");
    all.iter().filter(|event| event["worker_id"] == name && event["data"]["from"] == from).count()
}

#[test]
fn an_exemption_is_granted_listed_audited_told_ahead_of_its_end_and_taken_back() {
    let stage = Stage::new(
        "[policy]\nidle_timeout = \"3s\"\nsleep = \"stop\"\nmax_runtime = \"6s\"\nmin_notice = \"1s\"\ngrace = \"1s\"\n",
    );
    let up = stage.up();
    let api = stage.folder.api(&up);
    let mut add =
        vec!["exempt", "add", "--owner", "bob", "--reason", "grant deadline", "--approved-by", "carol"];
    add.extend(["--expires-on", "never"]);
    drowse(&stage, &add);
    stage.run("kept", &[("drowse.owner", "bob")], SLEEPS);
    // Still judged, told for information, and audited once for each occasion.
    until("it is audited", || {
        audited(&api, "kept", "idle_timeout") > 0 && audited(&api, "kept", "max_runtime") > 0
    });
    until("it is told for information", || {
        let warned = events(&api, "worker.warned");
        warned.iter().any(|event| event["worker_id"] == "kept" && event["data"]["is_fyi"] == true)
    });
    stage.run("other", &[], SLEEPS);
    stage.wait_until("other", "exited");
    assert_eq!(stage.state("kept"), "running", "{}", up.told());
    assert_eq!((audited(&api, "kept", "idle_timeout"), audited(&api, "kept", "max_runtime")), (1, 1));
    assert_eq!(audited(&api, "other", "max_runtime"), 0);
    let warned = events(&api, "worker.warned");
    let real = |event: &&serde_json::Value| event["worker_id"] == "kept" && event["data"]["is_fyi"] == false;
    assert_eq!(warned.iter().filter(real).count(), 0, "an FYI is no warning");
    ends_soon(&stage, &api);
    // Taken back, it is treated like anybody else.
    let listed = drowse(&stage, &["exempt", "list"]);
    let id = listed.lines().find(|line| line.contains("grant deadline")).expect("it is listed").to_owned();
    drowse(&stage, &["exempt", "remove", id.split_whitespace().next().expect("an id")]);
    stage.wait_until("kept", "exited");
    let stopped = || events(&api, "worker.stopped").iter().any(|event| event["worker_id"] == "kept");
    until("that is journalled", stopped);
    drop(up);
}

/// One that ends within a week is told once, and can be listed by that.
fn ends_soon(stage: &Stage, api: &Api) {
    let now = json(api, "workers/kept/readings")["at"].as_str().expect("an instant").to_owned();
    let at: drowse_core::Timestamp = now.parse().expect("an instant");
    for (worker, days) in [("soon", 6), ("late", 9)] {
        let end = (at + std::time::Duration::from_hours(days * 24)).to_string();
        let add = [
            "exempt",
            "add",
            "--worker",
            worker,
            "--reason",
            worker,
            "--approved-by",
            "carol",
            "--expires-on",
        ];
        drowse(stage, &[&add[..], &[&end]].concat());
    }
    let expiring = drowse(stage, &["exempt", "list", "--expiring"]);
    assert!(expiring.contains("worker/soon") && !expiring.contains("worker/late"), "{expiring}");
    until("it is told", || !events(api, "exemption.expiring").is_empty());
    let told = events(api, "exemption.expiring");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].to_string().contains("soon"), "{told:?}");
}

#[test]
fn a_record_that_is_wrong_spares_whom_it_names_and_one_that_names_nobody_changes_nothing() {
    let stage = Stage::new(
        "[policy]\nidle_timeout = \"3s\"\n\
         [[exemption]]\nowner = \"dave\"\nfrom = [\"idle\"]\nreason = \"a slip\"\napproved_by = \"carol\"\nexpires_on = \"never\"\n\
         [[exemption]]\nowner = \"eve\"\nfrom = [\"idle_timeout\"]\nreason = \"no end\"\napproved_by = \"carol\"\n",
    );
    stage.run("daves", &[("drowse.owner", "dave")], SLEEPS);
    stage.run("eves", &[("drowse.owner", "eve")], SLEEPS);
    let mut up = stage.up();
    let told = up.told().to_owned();
    for part in ["drowse.toml:", "exemption 1: ", "\"idle\"", "exemption 2: ", "expires_on"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    stage.run("others", &[], SLEEPS);
    up.wait_for("others paused");
    assert_eq!((stage.state("daves").as_str(), stage.state("eves").as_str()), ("running", "running"));
    // Nobody can tell whom that one is for: the file is refused, and what counted goes on counting.
    stage.folder.append("[[exemption]]\nfrom = [\"idle_timeout\"]\nreason = \"whose?\"\n");
    up.hang_up();
    up.wait_for("drowse: the old configuration stays: ");
    assert!(
        up.told().contains("exemption 3: expected exactly one of owner, group or worker"),
        "{}",
        up.told()
    );
    stage.run("later", &[], SLEEPS);
    up.wait_for("later paused");
    assert_eq!((stage.state("daves").as_str(), stage.state("eves").as_str()), ("running", "running"));
}
