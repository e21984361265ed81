//! Policy, exemptions and the brake.

use drowse_core::brake::Trouble;
use drowse_wire::v1::Role;
use serde_json::{Value, json};

use crate::rig::Rig;

#[test]
fn a_change_counts_at_once_is_listed_with_its_author_and_can_be_undone() {
    let rig = Rig::new();
    rig.worker("web");
    let change = json!({ "set": { "idle_timeout": "3h", "max_runtime": null }, "message": "exams" });
    let changed = rig.admin("PATCH", "/api/v1/policies/owner/alice", &change).is(200);
    assert_eq!(changed["worker_count"], 1);
    assert_eq!(changed["layer"]["values"], json!({ "idle_timeout": "3h", "max_runtime": null }));
    assert_eq!(rig.get("/api/v1/workers/web/explain")["idle_timeout"], "3h");
    let layers = rig.get("/api/v1/policies")["layers"].take();
    let run_time = layers.as_array().unwrap().iter().find(|layer| layer["source"] == "run-time").unwrap();
    assert_eq!((&run_time["level"], &run_time["author"]), (&json!("owner"), &json!("the admin")));
    assert!(run_time["changed_at"].is_string());

    let reset = json!({ "reset": ["idle_timeout"] });
    let changed = rig.admin("PATCH", "/api/v1/policies/owner/alice", &reset).is(200);
    assert_eq!(changed["layer"]["values"], json!({ "max_runtime": null }));
    assert_eq!(rig.get("/api/v1/workers/web/explain")["idle_timeout"], "1h");
    rig.admin("PATCH", "/api/v1/policies/owner/alice", &reset).is_problem(404, "not_found");
}

#[test]
fn only_an_admin_may_set_what_runs_as_drowse() {
    let rig = Rig::new();
    rig.worker("web");
    let operator = rig.token(Role::Operator, None);
    for key in ["before_pause", "after_resume"] {
        let change = json!({ "set": { key: ["sh", "-c", "true"], "idle_timeout": "2h" } });
        let path = "/api/v1/policies/worker/web";
        rig.ask(&operator, "PATCH", path, &change).is_problem(403, "forbidden");
        assert_eq!(rig.get("/api/v1/workers/web/explain")["idle_timeout"], "1h", "nothing is changed");
        rig.admin("PATCH", path, &change).is(200);
        let reset = json!({ "reset": [key, "idle_timeout"] });
        rig.ask(&operator, "PATCH", path, &reset).is_problem(403, "forbidden");
        rig.admin("PATCH", path, &reset).is(200);
    }
}

#[test]
fn a_change_is_made_whole_or_not_at_all() {
    let rig = Rig::new();
    rig.worker("web");
    let before = rig.newest();
    let cases = [
        ("global", json!({ "set": { "idle_timeout": 48 } }), 422, "invalid"),
        ("global", json!({ "set": { "idle_timeuot": "1h" } }), 422, "invalid"),
        ("global", json!({ "reset": ["idle_timeuot"] }), 422, "invalid"),
        ("global", json!({}), 422, "invalid"),
        ("global", json!({ "set": { "window": 2 }, "reset": ["window"] }), 422, "invalid"),
        ("global", json!({ "set": { "grace": "1m", "check_interval": "2h" } }), 422, "policy_conflict"),
        ("global", json!({ "set": { "grace": "1m" }, "reset": ["window"] }), 404, "not_found"),
        ("worker/ghost", json!({ "set": { "grace": "1m" } }), 404, "not_found"),
        ("planet/mars", json!({ "set": { "grace": "1m" } }), 404, "not_found"),
    ];
    for (layer, change, status, code) in cases {
        let answer = rig.admin("PATCH", &format!("/api/v1/policies/{layer}"), &change);
        assert_eq!(answer.status, status, "{layer} {change}: {answer:?}");
        answer.is_problem(status, code);
    }
    assert_eq!(rig.newest(), before);
    // Each alone would contradict the other; together they do not.
    let both = json!({ "set": { "check_interval": "2h", "idle_timeout": "8h" } });
    rig.admin("PATCH", "/api/v1/policies/global", &both).is(200);
}

#[test]
fn a_workers_own_switch_turns_it_to_observe_mode_and_back() {
    let rig = Rig::new();
    rig.worker("web");
    for (word, is_enabled) in [("disable", false), ("enable", true)] {
        let path = format!("/api/v1/workers/web/idle-detection/{word}");
        let answer = rig.admin("POST", &path, &json!({})).is(200);
        assert_eq!(answer["is_idle_detection_enabled"], is_enabled);
        assert_eq!(answer["auto_pause_enabled"], is_enabled);
        assert_eq!(rig.get("/api/v1/workers/web")["is_idle_detection_enabled"], is_enabled);
    }
}

#[test]
fn an_exemption_is_granted_listed_and_taken_back() {
    let rig = Rig::new();
    rig.worker("web");
    let exemption = json!({
        "owner": "alice", "from": ["idle_timeout"], "reason": "deadline", "approved_by": "carol",
        "expires_on": "never",
    });
    let made = rig.admin("POST", "/api/v1/exemptions", &exemption).is(201);
    let id = made["id"].as_str().unwrap();
    let listed = rig.get("/api/v1/exemptions")["exemptions"].take();
    assert_eq!((&listed[0]["id"], &listed[0]["reason"]), (&json!(id), &json!("deadline")));
    assert_eq!(rig.get("/api/v1/workers/web")["target_pause_blocked_by"], "permanent_exemption");
    for (field, value) in [("from", json!([])), ("expires_on", json!("soon")), ("group", json!("x"))] {
        let mut wrong = exemption.clone();
        wrong[field] = value;
        rig.admin("POST", "/api/v1/exemptions", &wrong).is_problem(422, "invalid");
    }
    rig.admin("DELETE", "/api/v1/exemptions/file-1", &Value::Null).is_problem(409, "from_file");
    let path = format!("/api/v1/exemptions/{id}");
    rig.admin("DELETE", &path, &Value::Null).is(204);
    rig.admin("DELETE", &path, &Value::Null).is_problem(404, "not_found");
    rig.admin("DELETE", "/api/v1/exemptions/x", &Value::Null).is_problem(404, "not_found");
}

#[test]
fn the_brake_is_let_go_by_somebody_who_says_why() {
    let rig = Rig::new();
    assert_eq!(rig.get("/api/v1/brake")["is_engaged"], false);
    let release = |why: &str| rig.admin("POST", "/api/v1/brake/release", &json!({ "message": why }));
    release("calm").is_problem(409, "brake_not_engaged");
    rig.runtime.block_on(rig.state.fleet().engage_brake(Trouble::LoopStalled)).unwrap();
    assert_eq!(rig.get("/api/v1/brake")["cause"], "loop_stalled");
    release(" ").is_problem(422, "invalid");
    let released = release("it was us").is(200);
    assert_eq!(
        (&released["is_engaged"], &released["last_release"]["by"]),
        (&json!(false), &json!("the admin"))
    );
}
