//! What is wrong gets the right problem, and nothing changes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use drowse_server::http::Limits;
use serde_json::{Value, json};

use crate::rig::Rig;

const PAUSE: &str = "/api/v1/workers/web/pause";

#[test]
fn what_cannot_be_read_is_named_and_changes_nothing() {
    let rig = Rig::new();
    rig.worker("web");
    let before = rig.newest();
    let bearer = format!("Bearer {}", rig.admin);
    let send = |method: &str, path: &str, kind: &str, body: &str| {
        rig.send(method, path, &[("authorization", &bearer), ("content-type", kind)], body.as_bytes())
    };
    let cases: [(&str, &str, &str, &str, u16, &str); 23] = [
        ("GET", "/api/v1/nowhere", "", "", 404, "not_found"),
        ("GET", "/api/v1/workers/", "", "", 404, "not_found"),
        ("PUT", "/api/v1/workers", "application/json", "{}", 405, "method_not_allowed"),
        ("GET", PAUSE, "", "", 405, "method_not_allowed"),
        ("POST", PAUSE, "text/plain", "hello", 415, "unsupported_media_type"),
        ("POST", PAUSE, "application/json", "{", 400, "bad_request"),
        ("POST", PAUSE, "application/json", "[]", 400, "bad_request"),
        ("POST", PAUSE, "application/json", "{\"force\": \"yes\"}", 400, "bad_request"),
        ("POST", "/api/v1/workers/ghost/pause", "application/json", " null ", 404, "not_found"),
        ("POST", "/api/v1/workers/a%20b/pause", "", "", 400, "bad_request"),
        ("POST", "/api/v1/workers/%ff/pause", "", "", 400, "bad_request"),
        ("POST", "/api/v1/workers/ghost/pause", "", "", 404, "not_found"),
        ("GET", "/api/v1/workers?limit=0", "", "", 400, "bad_request"),
        ("GET", "/api/v1/workers?limit=many", "", "", 400, "bad_request"),
        ("GET", "/api/v1/workers?status=asleep", "", "", 400, "bad_request"),
        ("GET", "/api/v1/events?after=7", "", "", 400, "bad_request"),
        ("GET", "/api/v1/events?after=abc-7", "", "", 409, "late"),
        ("GET", "/api/v1/workers/web/explain?at=yesterday", "", "", 400, "bad_request"),
        ("POST", "/api/v1/tokens", "application/json", "", 400, "bad_request"),
        (
            "POST",
            "/api/v1/workers",
            "application/json",
            "{\"id\":\"x\",\"driver\":\"sim\",\"x\":1}",
            422,
            "invalid",
        ),
        (
            "PUT",
            "/api/v1/workers/web/leases/a",
            "application/json",
            "{\"ttl\":\"0s\"}",
            422,
            "lease_ttl_missing",
        ),
        (
            "PUT",
            "/api/v1/workers/web/leases/a",
            "application/json",
            "{\"ttl\":\"48h\"}",
            422,
            "lease_ttl_too_long",
        ),
        ("POST", "/api/v1/workers/web/snooze", "application/json", "{\"for\":\"90d\"}", 422, "invalid"),
    ];
    for (method, path, kind, body, status, code) in cases {
        let answer = send(method, path, kind, body);
        assert_eq!(answer.status, status, "{method} {path} {body}: {answer:?}");
        answer.is_problem(status, code);
    }
    let large = format!("{{\"message\": \"{}\"}}", "x".repeat(64 * 1024));
    send("POST", PAUSE, "application/json", &large).is_problem(413, "too_large");
    let allow = send("DELETE", PAUSE, "", "");
    assert_eq!(allow.header("allow"), "POST");
    let problem =
        send("POST", PAUSE, "application/json", "{\n  \"force\": maybe }").is_problem(400, "bad_request");
    assert_eq!((&problem["line"], &problem["column"]), (&json!(2), &json!(12)), "{problem}");
    assert_eq!(rig.newest(), before, "something was written");
    assert_eq!(rig.get("/api/v1/workers/web")["status"], "running");
}

#[test]
fn a_caller_in_a_hurry_is_told_to_wait_and_nobody_else_is() {
    let rig = Rig::with(Limits { requests_per_second: 1, burst: 3, ..Limits::default() });
    let other = rig.token(drowse_wire::v1::Role::Viewer, None);
    let ask = |token: &str| rig.ask(token, "GET", "/api/v1/brake", &Value::Null);
    let refused = (0..100).map(|_| ask(&rig.admin)).find(|answer| answer.status != 200).unwrap();
    refused.is_problem(429, "too_many_requests");
    assert!(refused.header("retry-after").parse::<u32>().unwrap() >= 1);
    ask(&other).is(200);
}

/// Says something and hears all that comes back until the other side hangs up.
fn say(rig: &Rig, text: &str) -> String {
    let mut stream = TcpStream::connect(rig.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    heard
}

#[test]
fn who_sends_a_head_or_a_body_without_end_does_not_keep_the_connection() {
    let short = Duration::from_millis(100);
    let rig = Rig::with(Limits { head_for: short, body_for: short, ..Limits::default() });
    let heard = say(&rig, "GET /healthz HTTP/1.1\r\nhost: x\r\n");
    assert!(!heard.contains("200"), "{heard}");
    let request = format!(
        "POST /api/v1/tokens HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 10\r\nconnection: close\r\n\r\n{{",
        rig.admin
    );
    let heard = say(&rig, &request);
    assert!(heard.starts_with("HTTP/1.1 400") && heard.contains("did not arrive in time"), "{heard}");
}

#[test]
fn connections_beyond_the_limit_wait_for_their_turn() {
    let rig = Rig::with(Limits { connections: 1, ..Limits::default() });
    let held = TcpStream::connect(rig.address).unwrap();
    let mut second = TcpStream::connect(rig.address).unwrap();
    second.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    second.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut heard = [0; 1];
    assert!(second.read(&mut heard).is_err(), "it was served while the only place was taken");
    drop(held);
    second.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut all = String::new();
    second.read_to_string(&mut all).unwrap();
    assert!(all.starts_with("HTTP/1.1 200"), "{all}");
}

#[test]
fn one_address_and_one_token_leave_room_for_others() {
    let rig = Rig::with(Limits { connections_of_one: 3, streams_of_one: 1, ..Limits::default() });
    let stream = |token: &str| {
        let mut socket = TcpStream::connect(rig.address).unwrap();
        let request =
            format!("GET /api/v1/events/stream HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut heard = [0; 12];
        // Closed with something unread, which is a reset.
        let count = socket.read(&mut heard).unwrap_or(0);
        (socket, String::from_utf8_lossy(&heard[..count]).into_owned())
    };
    let other = rig.token(drowse_wire::v1::Role::Viewer, None);
    let (first, heard) = stream(&rig.admin);
    assert_eq!(heard, "HTTP/1.1 200");
    let (second, heard) = stream(&rig.admin);
    assert_eq!(heard, "HTTP/1.1 429", "a second stream of the same token");
    drop(second);
    let (third, heard) = stream(&other);
    assert_eq!(heard, "HTTP/1.1 200", "another token's");
    let fourth = TcpStream::connect(rig.address).unwrap();
    let (_, heard) = stream(&other);
    assert_eq!(heard, "", "beyond what one address may have, it is closed at once");
    drop((first, third, fourth));
}
