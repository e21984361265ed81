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
fn a_library_that_fails_half_way_is_named_and_concerns_those_who_use_it() {
    let (stage, library) = with_library("policy.idle_timeout = \"5s\"", "");
    stage.run("read", &[], SLEEPS);
    stage.run("without", &[], SLEEPS);
    let on = format!("devices 1\nprocess 0 {}\n", stage.pid("read"));
    library.follow(&on);
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    until("it is read", || gpu(&api, "read")["state"] == "quiet");
    until("the other is too", || gpu(&api, "without")["state"] == "quiet");
    library.follow(&format!("{on}answer nvmlDeviceGetProcessUtilization 0 15\n"));
    until("it is not any more", || gpu(&api, "read")["state"] == "unknown");
    let problem = "nvmlDeviceGetProcessUtilization for GPU 0: GPU is lost (15)";
    until("it is told", || api.send("GET", "/api/v1/workers/read/explain", "").contains(problem));
    until("that is journalled", || !events(&api, "worker.unreadable").is_empty());
    assert!(events(&api, "worker.unreadable")[0].to_string().contains(problem));
    // Who has none is judged by its other signals, whether it was read before or comes now.
    up.wait_for("without paused");
    stage.run("never", &[], SLEEPS);
    up.wait_for("never paused");
    assert_eq!(stage.state("read"), "running", "{}", up.told());
    let told = events(&api, "worker.unreadable");
    assert!(told.iter().all(|event| event["worker_id"] == "read"), "{told:?}");
    // A device that cannot tell any more has its words too.
    library.follow(&format!("{on}answer nvmlDeviceGetProcessUtilization 0 3\n"));
    let problem = "nvmlDeviceGetProcessUtilization for GPU 0: not supported (MIG?)";
    until("it is told", || api.send("GET", "/api/v1/workers/read/explain", "").contains(problem));
    library.follow(&on);
    up.wait_for("read paused");
    until("nothing is in doubt", || events(&api, "worker.readable").len() == 1);
}

#[test]
fn use_of_a_device_that_cannot_be_read_is_unknown_below_the_threshold() {
    let (stage, library) =
        with_library("policy.idle_timeout = \"5s\"\npolicy.signals.gpu.active_above = \"30%\"", "");
    stage.run("trains", &[], SLEEPS);
    let pid = stage.pid("trains");
    let on = format!("devices 2\nprocess 0 {pid}\nprocess 1 {pid}\nsample 0 {pid} 500 20 0 0 0\n");
    library.follow(&format!("{on}sample 1 {pid} 500 90 0 0 0\n"));
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    until("it is in use", || gpu(&api, "trains")["state"] == "active");
    // Twenty per cent on one, and the other one fails.
    library.follow(&format!("{on}answer nvmlDeviceGetProcessUtilization 1 15\n"));
    until("it is unknown", || gpu(&api, "trains")["state"] == "unknown");
    // Another one falls asleep meanwhile.
    stage.run("rests", &[], SLEEPS);
    up.wait_for("rests paused");
    assert_eq!(stage.state("trains"), "running", "{}", up.told());
    library.follow(&on);
    up.wait_for("trains paused");
}
