//! Every route × every role, from the table itself.

use drowse_server::http::routes::{Access, ROUTES, Route};
use drowse_wire::v1::Role;
use serde_json::{Value, json};

use crate::rig::{Answer, Rig};

/// A path of the route, about this worker.
fn path(route: &Route, worker: &str) -> String {
    let path = route.path.replace("{id}", worker).replace("{aws_region}", "us-east-1");
    let path = path.replace("{level}", "group").replace("{holder}", "build");
    let path = path.replace("{name}", "nobody").replace("{secret}", "wrong");
    path.replace("{exemption_id}", "999").replace("{token_id}", "tok_none")
}

fn body(route: &Route) -> Value {
    if matches!(route.method.as_str(), "GET" | "DELETE") { Value::Null } else { json!({}) }
}

fn ask(rig: &Rig, token: &str, route: &Route, worker: &str) -> Answer {
    rig.ask(token, route.method.as_str(), &path(route, worker), &body(route))
}

#[test]
fn every_route_lets_in_whom_the_table_names_and_nobody_else() {
    let rig = Rig::new();
    rig.worker("mine");
    rig.worker("other");
    let agent_of_other = rig.token(Role::Agent, Some("other"));
    let tokens = Role::ALL.map(|role| (role, rig.token(role, (role == Role::Agent).then_some("mine"))));
    for route in ROUTES {
        let Access::Only(roles) = route.access else { continue };
        let (before, worker) = (rig.newest(), rig.get("/api/v1/workers/mine"));
        let name = format!("{} {}", route.method, route.path);
        let body = body(route).to_string();
        let is_page = route.path == "/" || route.path == "/wake/{id}";
        for headers in [&[][..], &[("authorization", "Bearer wrong")], &[("cookie", "drowse_session=wrong")]]
        {
            let answer = rig.send(route.method.as_str(), &path(route, "mine"), headers, body.as_bytes());
            if is_page {
                assert_eq!(answer.status, 401, "{name}");
            } else {
                answer.is_problem(401, "unauthorized");
                assert_eq!(answer.header("www-authenticate"), "Bearer", "{name}");
            }
        }
        for (role, token) in &tokens {
            if !roles.contains(*role) {
                ask(&rig, token, route, "mine").is_problem(403, "forbidden");
            }
        }
        if route.path.contains("{id}") {
            ask(&rig, &agent_of_other, route, "mine").is_problem(403, "forbidden");
        }
        assert_eq!(rig.newest(), before, "{name}: somebody who may not has changed something");
        let after = rig.get("/api/v1/workers/mine");
        assert_eq!((&after["status"], &after["holds"]), (&worker["status"], &worker["holds"]), "{name}");
    }
    for route in ROUTES {
        let Access::Only(roles) = route.access else { continue };
        for (role, token) in tokens.iter().filter(|(role, _)| roles.contains(*role)) {
            // Others ask about a worker that is not there, so that the next one finds the same.
            let worker = if *role == Role::Agent { "mine" } else { "ghost" };
            let status = ask(&rig, token, route, worker).status;
            assert!(![401, 403, 405].contains(&status) && status < 500, "{} as {role}: {status}", route.path);
        }
    }
}

#[test]
fn what_is_open_needs_no_token_and_minds_none() {
    let rig = Rig::new();
    for route in ROUTES.iter().filter(|route| route.access == Access::Anyone) {
        for headers in [&[][..], &[("authorization", "Bearer wrong")]] {
            let answer = rig.send(route.method.as_str(), &path(route, "mine"), headers, &[]);
            let expected = if route.path.starts_with("/login") { 404 } else { 200 };
            assert_eq!(answer.status, expected, "{}", route.path);
        }
    }
}

#[test]
fn a_head_is_a_get_without_a_body_and_behind_the_same_door() {
    let rig = Rig::new();
    let asked = |token: &str| rig.ask(token, "HEAD", "/api/v1/workers", &Value::Null);
    assert_eq!(asked("wrong").status, 401);
    let answer = asked(&rig.admin);
    assert_eq!((answer.status, answer.text.as_str()), (200, ""));
}
