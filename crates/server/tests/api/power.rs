//! Orders: the answer says what is true.

use drowse_wire::v1::Role;
use serde_json::{Value, json};

use crate::rig::Rig;

#[test]
fn a_pause_is_accepted_then_true_and_a_resume_likewise() {
    let rig = Rig::new();
    rig.worker("web");
    let pause = || rig.admin("POST", "/api/v1/workers/web/pause", &json!({ "message": "lunch" }));
    let first = pause().is(202);
    assert_eq!((&first["answer"], &first["status"]), (&json!("accepted"), &json!("pausing")), "{first}");
    rig.reaches("web", "paused");
    let second = pause().is(200);
    assert_eq!(
        (&second["answer"], &second["status"]),
        (&json!("already_true"), &json!("paused")),
        "{second}"
    );
    let worker = rig.get("/api/v1/workers/web");
    assert_eq!(worker["sleep"]["reason"], "manual");
    assert_eq!((&worker["sleep"]["by"], &worker["sleep"]["message"]), (&json!("the admin"), &json!("lunch")));
    let activity = rig.get("/api/v1/workers/web/activity");
    assert_eq!((&activity["manual_pause_count"], &activity["paused_by"]), (&json!(1), &json!("the admin")));

    // What is asleep cannot be taken off the books: nobody would wake it.
    rig.admin("DELETE", "/api/v1/workers/web", &Value::Null).is_problem(409, "wrong_status");
    assert_eq!(rig.admin("POST", "/api/v1/workers/web/resume", &Value::Null).is(202)["status"], "waking");
    rig.reaches("web", "running");
    rig.admin("POST", "/api/v1/workers/web/resume", &Value::Null).is(200);
    rig.admin("POST", "/api/v1/workers/web/stop", &json!({})).is(202);
    rig.reaches("web", "stopped");
}

#[test]
fn a_pause_over_a_lease_is_refused_with_the_lease_and_done_by_force() {
    let rig = Rig::new();
    rig.worker("web");
    let agent = rig.token(Role::Agent, Some("web"));
    let lease = "/api/v1/workers/web/leases/build";
    let taken = rig.ask(&agent, "PUT", lease, &json!({ "ttl": "10m", "reason": "linking" })).is(200);
    assert_eq!((&taken["holder"], &taken["ttl"]), (&json!("build"), &json!("10m")), "{taken}");
    let holds = rig.get("/api/v1/workers/web/holds");
    assert_eq!(holds["holds"][0]["owner"], "build", "{holds}");

    let refused = rig.admin("POST", "/api/v1/workers/web/pause", &json!({})).is_problem(409, "held");
    assert_eq!(
        (&refused["holds"][0]["kind"], &refused["holds"][0]["reason"]),
        (&json!("lease"), &json!("linking"))
    );
    assert_eq!(rig.get("/api/v1/workers/web")["status"], "running");

    // Whoever did not take it cannot let it go.
    rig.admin("DELETE", lease, &Value::Null).is_problem(404, "not_found");
    rig.ask(&agent, "DELETE", lease, &Value::Null).is(204);
    rig.ask(&agent, "DELETE", lease, &Value::Null).is_problem(404, "not_found");

    rig.ask(&agent, "PUT", lease, &json!({ "ttl": "10m" })).is(200);
    rig.admin("POST", "/api/v1/workers/web/pause", &json!({ "force": true })).is(202);
    rig.reaches("web", "paused");
    // A person put it to sleep: a program does not undo that.
    rig.ask(&agent, "PUT", lease, &json!({ "ttl": "10m" })).is_problem(409, "wake_not_allowed");
}

#[test]
fn a_keep_awake_is_a_hold_that_its_owner_ends() {
    let rig = Rig::new();
    rig.worker("web");
    let snooze = "/api/v1/workers/web/snooze";
    let hold = rig.admin("POST", snooze, &json!({ "for": "30m", "message": "demo" })).is(200);
    assert_eq!((&hold["kind"], &hold["owner"]), (&json!("keep_awake"), &json!("the admin")), "{hold}");
    assert_eq!(rig.get("/api/v1/workers/web/idle-status")["in_snooze_period"], true);
    let both = json!({ "for": "30m", "until": "2999-01-01T00:00:00Z" });
    rig.admin("POST", snooze, &both).is_problem(422, "invalid");
    rig.admin("POST", snooze, &json!({ "until": "2001-01-01T00:00:00Z" })).is_problem(422, "invalid");
    rig.admin("POST", snooze, &Value::Null).is(200);
    let operator = rig.token(Role::Operator, None);
    rig.ask(&operator, "POST", "/api/v1/workers/web/pause", &json!({})).is_problem(409, "held");
    rig.admin("DELETE", snooze, &Value::Null).is(204);
    rig.admin("DELETE", snooze, &Value::Null).is_problem(404, "not_found");
}

#[test]
fn a_drain_can_be_taken_back() {
    let rig = Rig::new();
    rig.worker("web");
    rig.admin("PUT", "/api/v1/workers/web/leases/build", &json!({ "ttl": "10m" })).is(200);
    assert_eq!(rig.admin("POST", "/api/v1/workers/web/drain", &json!({})).is(202)["status"], "draining");
    assert_eq!(rig.admin("DELETE", "/api/v1/workers/web/drain", &Value::Null).is(202)["status"], "running");
    let again = rig.admin("DELETE", "/api/v1/workers/web/drain", &Value::Null);
    assert!([200, 409].contains(&again.status), "{again:?}");
    assert_eq!(rig.get("/api/v1/workers/web")["status"], "running");
}

#[test]
fn a_check_on_demand_tells_what_it_did() {
    let rig = Rig::new();
    rig.worker("web");
    let found = rig.admin("POST", "/api/v1/workers/web/detect-idle", &json!({})).is(200);
    assert_eq!(
        (&found["worker_id"], &found["auto_pause_triggered"]),
        (&json!("web"), &json!(false)),
        "{found}"
    );
    let explained = rig.get("/api/v1/workers/web/explain");
    assert!(!explained["reasons"].as_array().unwrap().is_empty(), "{explained}");
    assert!(explained["policy"].as_array().unwrap().iter().any(|setting| setting["key"] == "idle_timeout"));
    assert!(!rig.get("/api/v1/workers/web/readings")["readings"].as_array().unwrap().is_empty());
}

#[test]
fn a_decision_of_the_past_is_explained_by_what_was_known_then() {
    let rig = Rig::new();
    let before = "2026-01-01T00:00:00Z";
    let answers = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    rig.registered(&json!({
        "id": "web", "driver": "sim", "listen": "127.0.0.1:8001", "target": answers.local_addr().unwrap().to_string(),
        "policy": { "idle_timeout": "1s", "signals.cpu.use": "off" },
    }));
    rig.reaches("web", "paused");
    rig.admin("POST", "/api/v1/workers/web/resume", &json!({})).is(202);
    rig.admin("PATCH", "/api/v1/policies/worker/web", &json!({ "set": { "idle_timeout": "3h" } })).is(200);
    rig.reaches("web", "running");
    assert_eq!(rig.get("/api/v1/workers/web/explain")["idle_timeout"], "3h");
    let past = rig.get("/api/v1/workers/web/explain?at=2100-01-01T00:00:00Z");
    assert_eq!((&past["idle_timeout"], &past["is_idle"]), (&json!("1s"), &json!(true)), "{past}");
    assert_eq!(past["status"], "running", "when it was judged");
    let since: Vec<_> = past["until_then"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
    assert_eq!(since[..3], ["worker.paused", "worker.wake_intended", "worker.resumed"], "{past}");
    let settings = past["policy"].as_array().unwrap();
    assert!(settings.iter().all(|setting| setting["source"] != "built-in"), "{settings:?}");
    let at = past["until_then"][0]["at"].as_str().unwrap();
    let then = rig.get(&format!("/api/v1/workers/web/explain?at={at}"));
    assert_eq!(then["at"], past["at"]);
    assert_eq!(then["until_then"].as_array().unwrap().len(), 1, "no more than was then: {then}");
    let path = format!("/api/v1/workers/web/explain?at={before}");
    rig.admin("GET", &path, &Value::Null).is_problem(404, "not_found");
}

#[test]
fn the_seeds_paths_answer_the_same_for_the_right_region_only() {
    let rig = Rig::new();
    rig.worker("web");
    assert_eq!(rig.get("/region/us-east-1/workers/web/activity")["worker_id"], "web");
    assert_eq!(rig.get("/region/us-east-1/workers/web/idle-status")["worker_id"], "web");
    for path in ["activity", "idle-status"] {
        let path = format!("/region/eu-west-1/workers/web/{path}");
        rig.admin("GET", &path, &Value::Null).is_problem(404, "not_found");
    }
    rig.admin("POST", "/region/eu-west-1/workers/web/pause", &json!({})).is_problem(404, "not_found");
    assert_eq!(rig.get("/api/v1/workers/web")["status"], "running");
    rig.admin("POST", "/region/us-east-1/workers/web/pause", &json!({})).is(202);
    rig.reaches("web", "paused");
}
