use std::net::TcpListener;

use drowse_wire::client::{Action, Client, ClientError, Streamed};
use drowse_wire::events::{Frame, LOST, encode, keepalive};
use drowse_wire::place::Place;
use drowse_wire::v1::{ActionRequest, EventQuery, TakeLease, WorkerQuery};

use crate::golden::read;
use crate::server::{Server, answer, serve};

const JSON: &str = "application/json";

fn client(server: &Server) -> Client {
    Client::new(Place { url: server.url.clone(), token: Some("s3cret".to_owned()) })
}

fn golden(name: &str) -> String {
    read(name).to_string()
}

#[test]
fn a_worker_is_asked_for_with_the_token_and_read() {
    let server = serve(vec![answer(200, JSON, &golden("Worker"))]);
    let worker = client(&server).worker("web").unwrap();
    assert_eq!((worker.id.as_str(), worker.status.as_str()), ("web", "running"));
    let asked = server.asked();
    assert_eq!(asked[0].line, "GET /api/v1/workers/web HTTP/1.1");
    assert!(asked[0].headers.contains("authorization: bearer s3cret"), "{}", asked[0].headers);
}

#[test]
fn names_and_filters_survive_any_character() {
    let server = serve(vec![answer(200, JSON, &golden("Lease")), answer(200, JSON, &golden("EventPage"))]);
    let client = client(&server);
    let lease = TakeLease { ttl: std::time::Duration::from_mins(10), reason: "ü".into() };
    client.take_lease("web", "a/b?c", &lease).unwrap();
    let query = EventQuery { kind: Some("worker.paused&x=y z".into()), limit: Some(3), ..Default::default() };
    client.events(&query).unwrap();
    let asked = server.asked();
    assert_eq!(asked[0].line, "PUT /api/v1/workers/web/leases/a%2Fb%3Fc HTTP/1.1");
    assert_eq!(asked[0].body, r#"{"ttl":"10m","reason":"ü"}"#);
    assert_eq!(asked[1].line, "GET /api/v1/events?limit=3&type=worker.paused%26x%3Dy%20z HTTP/1.1");
}

#[test]
fn pages_are_followed_to_the_last() {
    let mut last = read("WorkerPage");
    last["next"] = serde_json::Value::Null;
    let server = serve(vec![answer(200, JSON, &golden("WorkerPage")), answer(200, JSON, &last.to_string())]);
    let all = client(&server).all_workers(&WorkerQuery::default()).unwrap();
    assert_eq!((all.workers.len(), all.next), (2, None));
    assert_eq!(server.asked()[1].line, "GET /api/v1/workers?after=web HTTP/1.1");
}

#[test]
fn a_problem_is_shown_in_full() {
    let server = serve(vec![answer(409, "application/problem+json", &golden("Problem"))]);
    let request = ActionRequest { message: "x".into(), force: false };
    let error = client(&server).act("web", Action::Pause, &request).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ClientError::Problem(_)));
    assert_eq!(
        text,
        "1 hold(s) keep the worker awake; --force (in the API, force) overrules them [held]\n  \
         lease of build until 2026-03-01T09:40:00Z: nightly build"
    );
    let asked = server.asked();
    assert_eq!(asked[0].line, "POST /api/v1/workers/web/pause HTTP/1.1");
    assert_eq!(asked[0].body, r#"{"message":"x","force":false}"#);
}

#[test]
fn without_a_valid_token_it_says_how_to_get_one() {
    let problem = r#"{"type":"/problems/unauthorized","title":"t","status":401,"detail":"revoked","code":"unauthorized"}"#;
    let server = serve(vec![answer(401, "application/problem+json", problem)]);
    let text = client(&server).brake().unwrap_err().to_string();
    for part in ["does not accept the token (revoked)", "drowse token create", "DROWSE_TOKEN", "--data"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("s3cret"));
}

#[test]
fn when_nobody_answers_it_says_how_to_start_one() {
    // Bound and closed again: nobody listens there.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Client::new(Place { url: format!("http://{address}"), token: None }).brake().unwrap_err();
    assert!(error.is_without_answer());
    assert!(matches!(error, ClientError::Unreachable { .. }));
    let text = error.to_string();
    assert!(text.starts_with(&format!("no Drowse answers at http://{address} (")), "{text}");
    assert!(text.contains("`drowse up`"), "{text}");
}

#[test]
fn what_is_no_answer_of_ours_is_said_so() {
    let page = "<html><h1>It works!</h1>";
    let cases = [
        answer(200, "text/html", page),
        answer(502, "text/html", page),
        answer(302, "text/html", page),
        answer(200, JSON, "{\"is_engaged\":\"perhaps\"}"),
    ];
    for case in cases {
        let server = serve(vec![case]);
        let error = client(&server).brake().unwrap_err();
        assert!(matches!(error, ClientError::Garbage { .. }), "{error:?}");
        assert!(error.to_string().contains("is it the right address?"), "{error}");
    }
    let server = serve(vec![b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()]);
    let error = client(&server).brake().unwrap_err();
    assert!(!matches!(error, ClientError::Unreachable { .. }), "somebody is there: {error}");
}

#[test]
fn a_server_that_hangs_up_may_have_done_it() {
    let server = serve(vec![Vec::new()]);
    let error = client(&server).brake().unwrap_err();
    assert!(matches!(error, ClientError::Broken { .. }), "{error:?}");
    assert!(error.is_without_answer());
}

#[test]
fn an_answer_that_breaks_off_is_no_answer() {
    let mut cut = answer(200, JSON, &golden("Brake"));
    cut.truncate(cut.len() - 10);
    let server = serve(vec![cut]);
    let error = client(&server).brake().unwrap_err();
    assert!(matches!(error, ClientError::Broken { .. }), "{error:?}");
}

#[test]
fn a_backup_that_breaks_off_is_no_backup() {
    let server = serve(vec![answer(200, "application/vnd.sqlite3", "0123456789")]);
    let mut copy = Vec::new();
    assert_eq!(client(&server).backup(&mut copy).unwrap(), 10);
    assert_eq!(copy, b"0123456789");
    let mut cut = answer(200, "application/vnd.sqlite3", "0123456789");
    cut.truncate(cut.len() - 3);
    let server = serve(vec![cut]);
    client(&server).backup(&mut Vec::new()).unwrap_err();
}

#[test]
fn a_stream_goes_on_after_the_last_event_that_was_seen() {
    let event = |id: &str| {
        let mut event = read("Event");
        event["id"] = id.into();
        encode(&Frame { id: Some(id.into()), event: Some("worker.paused".into()), data: event.to_string() })
    };
    let lost = encode(&Frame { id: Some("2a-1".into()), event: Some(LOST.into()), data: "{}".into() });
    let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let first = format!("{head}{}{}{}{}", keepalive(), event("1f-42"), event("1f-43"), &event("1f-44")[..30]);
    let server = serve(vec![first.into_bytes(), format!("{head}{lost}").into_bytes()]);
    let client = client(&server);
    let mut stream = client.stream(&EventQuery::default(), None).unwrap();
    let ids: Vec<String> = stream
        .by_ref()
        .map(|message| match message.unwrap() {
            Streamed::Event(event) => event.id,
            Streamed::Lost => panic!("nothing was lost"),
        })
        .collect();
    assert_eq!(ids, ["1f-42", "1f-43"]);
    let seen = stream.last_event_id().map(str::to_owned);
    let mut stream = client.stream(&EventQuery::default(), seen.as_deref()).unwrap();
    assert_eq!(stream.next().unwrap().unwrap(), Streamed::Lost);
    assert!(server.asked()[1].headers.contains("last-event-id: 1f-43"));
}

#[test]
fn a_stream_that_is_none_is_refused() {
    let server = serve(vec![answer(200, "text/html", "<html>")]);
    let error = client(&server).stream(&EventQuery::default(), None).unwrap_err();
    assert!(matches!(error, ClientError::Garbage { .. }), "{error:?}");
}
