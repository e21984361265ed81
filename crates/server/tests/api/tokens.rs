//! Tokens.

use drowse_wire::v1::Role;
use serde_json::{Value, json};

use crate::rig::Rig;

#[test]
fn a_token_opens_until_it_is_taken_back_and_is_shown_once() {
    let rig = Rig::new();
    let made = rig.admin("POST", "/api/v1/tokens", &json!({ "name": "bob", "role": "viewer" })).is(201);
    let (secret, id) = (made["secret"].as_str().unwrap(), made["token"]["id"].as_str().unwrap());
    assert!(secret.len() >= 64);
    rig.ask(secret, "GET", "/api/v1/workers", &Value::Null).is(200);
    let listed = rig.admin("GET", "/api/v1/tokens", &Value::Null);
    assert!(listed.text.contains(id) && !listed.text.contains(secret));
    let journal = rig.admin("GET", "/api/v1/events?type=token.created", &Value::Null);
    assert!(journal.text.contains(id) && !journal.text.contains(secret));

    let path = format!("/api/v1/tokens/{id}");
    let revoked = rig.admin("DELETE", &path, &Value::Null).is(200);
    assert!(revoked["revoked_at"].is_string());
    rig.ask(secret, "GET", "/api/v1/workers", &Value::Null).is_problem(401, "unauthorized");
    assert_eq!(rig.admin("DELETE", &path, &Value::Null).is(200), revoked, "the first time counts");
    rig.admin("DELETE", "/api/v1/tokens/tok_none", &Value::Null).is_problem(404, "not_found");
}

#[test]
fn a_token_that_makes_no_sense_is_not_made() {
    let rig = Rig::new();
    rig.worker("web");
    let before = rig.get("/api/v1/tokens");
    let cases = [
        (json!({ "name": " ", "role": "viewer" }), 422),
        (json!({ "name": "x".repeat(129), "role": "viewer" }), 422),
        (json!({ "name": "x", "role": "king" }), 400),
        (json!({ "name": "x", "role": "agent" }), 422),
        (json!({ "name": "x", "role": "viewer", "worker_id": "web" }), 422),
        (json!({ "name": "x", "role": "agent", "worker_id": "a b" }), 422),
        (json!({ "name": "x", "role": "agent", "worker_id": "ghost" }), 404),
        (json!({ "name": "x", "role": "viewer", "expires_after": "0s" }), 422),
        (json!({ "name": "x", "role": "viewer", "expires_after": 60 }), 400),
    ];
    for (new, status) in cases {
        assert_eq!(rig.admin("POST", "/api/v1/tokens", &new).status, status, "{new}");
    }
    assert_eq!(rig.get("/api/v1/tokens"), before);
}

#[test]
fn an_agent_touches_its_own_worker_however_the_path_is_written() {
    let rig = Rig::new();
    rig.worker("mine");
    rig.worker("other");
    let agent = rig.token(Role::Agent, Some("mine"));
    let get = |path: &str| rig.ask(&agent, "GET", path, &Value::Null);
    get("/api/v1/workers/mine").is(200);
    get("/api/v1/workers/%6dine/holds").is(200);
    get("/api/v1/workers/%6fther/holds").is_problem(403, "forbidden");
    get("/api/v1/workers/mine%2f..%2fother").is_problem(403, "forbidden");
    let lease = json!({ "ttl": "1m" });
    rig.ask(&agent, "PUT", "/api/v1/workers/other/leases/x", &lease).is_problem(403, "forbidden");
    assert!(rig.get("/api/v1/workers/other/holds")["holds"].as_array().unwrap().is_empty());
}
