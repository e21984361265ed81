//! Workers come, are listed, change and go; health, metrics, backup and the page.

use drowse_wire::v1::WorkerQuery;
use serde_json::{Value, json};

use crate::rig::Rig;

#[test]
fn a_worker_comes_is_changed_and_goes() {
    let rig = Rig::new();
    let new = json!({ "id": "web", "driver": "sim", "owner": "alice", "policy": { "idle_timeout": "2h" } });
    let made = rig.admin("POST", "/api/v1/workers", &new).is(201);
    assert_eq!((&made["id"], &made["owner"]), (&json!("web"), &json!("alice")));
    rig.admin("POST", "/api/v1/workers", &new).is_problem(409, "already_exists");
    rig.reaches("web", "running");
    let timeout = rig.get("/api/v1/workers/web/explain")["idle_timeout"].take();
    assert_eq!(timeout, "2h", "its own policy counts");

    let patch = json!({ "owner": null, "group": "student", "in_service": false });
    let changed = rig.admin("PATCH", "/api/v1/workers/web", &patch).is(200);
    assert_eq!((&changed["owner"], &changed["group"]), (&Value::Null, &json!("student")));
    assert_eq!(changed["in_service"], false);

    rig.admin("DELETE", "/api/v1/workers/web", &Value::Null).is(204);
    rig.admin("GET", "/api/v1/workers/web", &Value::Null).is_problem(404, "not_found");
    rig.admin("DELETE", "/api/v1/workers/web", &Value::Null).is_problem(404, "not_found");
}

#[test]
fn a_worker_whose_policy_is_wrong_does_not_come() {
    let rig = Rig::new();
    let policy = json!({ "check_interval": "3h", "window": 3, "idle_timeout": "1h" });
    let new = json!({ "id": "web", "driver": "sim", "policy": policy });
    assert_eq!(rig.admin("POST", "/api/v1/workers", &new).status, 422);
    rig.admin("GET", "/api/v1/workers/web", &Value::Null).is_problem(404, "not_found");
}

#[test]
fn pages_of_workers_add_up_to_all_of_them() {
    let rig = Rig::new();
    for number in 0..7 {
        let owner = if number % 2 == 0 { "alice" } else { "bob" };
        let new = json!({ "id": format!("w{number}"), "driver": "sim", "owner": owner });
        rig.admin("POST", "/api/v1/workers", &new).is(201);
    }
    let all = |query: &str| {
        let (mut ids, mut after) = (Vec::new(), String::new());
        loop {
            let page = rig.get(&format!("/api/v1/workers?limit=2{query}{after}"));
            let workers = page["workers"].as_array().unwrap();
            assert!(workers.len() <= 2);
            ids.extend(workers.iter().map(|worker| worker["id"].as_str().unwrap().to_owned()));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return ids,
            }
        }
    };
    assert_eq!(all(""), ["w0", "w1", "w2", "w3", "w4", "w5", "w6"]);
    assert_eq!(all("&owner=alice"), ["w0", "w2", "w4", "w6"]);
    assert_eq!(all("&owner=nobody"), [""; 0]);
    assert_eq!(rig.client().all_workers(&WorkerQuery::default()).unwrap().workers.len(), 7);
}

#[test]
fn health_and_metrics_tell() {
    let rig = Rig::new();
    rig.worker("web");
    assert_eq!(rig.send("GET", "/healthz", &[], &[]).text, "ok\n");
    assert_eq!(rig.send("GET", "/readyz", &[], &[]).is(200)["is_up"], true);
    let text = rig.admin("GET", "/metrics", &Value::Null).text;
    assert!(text.contains("drowse_workers{status=\"running\"} 1\n"), "{text}");
    assert!(text.contains("# TYPE drowse_wake_seconds histogram\n"), "{text}");
}

#[test]
fn a_backup_is_a_whole_database_and_leaves_nothing_behind() {
    let rig = Rig::new();
    rig.worker("web");
    let mut copy = Vec::new();
    let size = rig.client().backup(&mut copy).unwrap();
    assert_eq!(size, copy.len() as u64);
    assert!(copy.starts_with(b"SQLite format 3\0"));
    let left = std::fs::read_dir(rig.folder.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|name| name.starts_with("drowse.db")), "{left:?}");
}

#[test]
fn the_page_shows_the_fleet_and_runs_nothing() {
    let rig = Rig::new();
    let new = json!({ "id": "web", "driver": "sim", "owner": "<script>alert(1)</script>" });
    rig.registered(&new);
    let page = rig.admin("GET", "/", &Value::Null);
    assert_eq!(page.status, 200);
    assert!(page.text.contains("<b>web</b>") && page.text.contains("running"), "{}", page.text);
    assert!(page.text.contains("&lt;script&gt;") && !page.text.contains("<script"), "{}", page.text);
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
}
