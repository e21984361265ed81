//! Graphics processors, played by the stand-in for NVIDIA's library: from a process to the sleep of its container.

use super::stage::{BURNS, SLEEPS, Stage, events, json};
use super::stand_in::{Kind, StandIn};
use crate::up::running::{Api, until};

fn with_library(config: &str, script: &str) -> (Stage, StandIn) {
    let (stage, library) = (Stage::new(config), StandIn::build(Kind::Usual, script));
    // The section of the driver is the last one.
    stage.folder.append(&format!("nvml = \"{}\"\n", library.library().display()));
    (stage, library)
}

fn gpu(api: &Api, name: &str) -> serde_json::Value {
    let readings = json(api, &format!("workers/{name}/readings"));
    let gpu = readings["readings"].as_array().and_then(|all| all.iter().find(|one| one["signal"] == "gpu"));
    gpu.cloned().unwrap_or_default()
}

impl Stage {
    fn pid(&self, name: &str) -> String {
        self.engine.docker(&["inspect", "--format", "{{.State.Pid}}", name])
    }
}

#[test]
fn whose_processes_use_a_graphics_processor_stays_awake_and_its_neighbour_sleeps() {
    let (stage, library) = with_library("policy.idle_timeout = \"4s\"\npolicy.window = 2", "");
    // Used by a child: whose it is is found by its container.
    stage.run("trains", &[], "setsid sleep 99999 & sleep 100000");
    stage.run("rests", &[], SLEEPS);
    until("its child runs", || stage.engine.docker(&["top", "trains"]).contains("sleep 99999"));
    // Its graphics processor is idle while data is loaded.
    stage.run_with("loads", &[], &["--network", "none", "--cpus", "0.1"], BURNS);
    let listed = stage.engine.docker(&["top", "trains", "-eo", "pid,args"]);
    let child = listed.lines().find(|line| line.ends_with("sleep 99999")).expect("it runs");
    let child = child.split_whitespace().next().expect("a number");
    let (rests, loads) = (stage.pid("rests"), stage.pid("loads"));
    let idle = format!("devices 1\nprocess 0 {child}\nprocess 0 {rests}\nprocess 0 {loads}\n");
    library.follow(&format!("{idle}sample 0 {child} 500 40 0 0 0\n"));
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("rests paused");
    stage.run("later", &[], SLEEPS);
    up.wait_for("later paused");
    assert_eq!(stage.state("trains"), "running", "{}", up.told());
    assert_eq!(stage.state("loads"), "running", "{}", up.told());
    assert_eq!(gpu(&api, "loads")["state"], "quiet");
    let read = gpu(&api, "trains");
    assert_eq!((&read["state"], read["value"].as_f64()), (&"active".into(), Some(40.0)), "{read}");
    // At its threshold it is quiet.
    library.follow(&format!("{idle}sample 0 {child} 500 5 0 0 0\n"));
    up.wait_for("trains paused");
}

#[test]
fn a_library_that_fails_half_way_is_named_and_unknown_and_one_that_never_worked_judges_nobody() {
    let broken = "devices 1\nanswer nvmlDeviceGetProcessUtilization 0 15\n";
    let (stage, library) = with_library("policy.idle_timeout = \"5s\"", "devices 1\n");
    stage.run("read", &[], SLEEPS);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    until("it is read", || gpu(&api, "read")["state"] == "quiet");
    library.follow(broken);
    until("it is not any more", || gpu(&api, "read")["state"] == "unknown");
    let problem = "nvmlDeviceGetProcessUtilization for GPU 0: GPU is lost (15)";
    until("it is told", || api.send("GET", "/api/v1/workers/read/explain", "").contains(problem));
    until("that is journalled", || !events(&api, "worker.unreadable").is_empty());
    assert!(events(&api, "worker.unreadable")[0].to_string().contains(problem));
    // One that comes now was never read: its other signals judge, and the one before it is still unknown.
    stage.run("never", &[], SLEEPS);
    up.wait_for("never paused");
    assert_eq!(stage.state("read"), "running", "{}", up.told());
    library.follow("devices 1\n");
    up.wait_for("read paused");
}
