//! The journal and its stream.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use drowse_wire::events::{Frame, LOST, Parser};
use drowse_wire::v1::Role;
use serde_json::{Value, json};

use crate::rig::Rig;

/// A stream, read off the wire. The chunks' sizes are lines of their own and are no fields of any frame.
struct Stream {
    reader: BufReader<TcpStream>,
    parser: Parser,
    frames: std::collections::VecDeque<Frame>,
}

impl Stream {
    fn open(rig: &Rig, token: &str, query: &str, last: Option<&str>) -> Self {
        let mut socket = TcpStream::connect(rig.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let last = last.map_or_else(String::new, |last| format!("last-event-id: {last}\r\n"));
        let head = format!(
            "GET /api/v1/events/stream{query} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n{last}\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Self { reader, parser: Parser::default(), frames: std::collections::VecDeque::new() }
    }

    /// One chunk; `None` at the end.
    fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        self.reader.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let mut bytes = vec![0; size + 2];
        self.reader.read_exact(&mut bytes).ok()?;
        bytes.truncate(size);
        (size > 0).then_some(bytes)
    }

    /// The next frame; `None` at the end.
    fn next(&mut self) -> Option<Frame> {
        while self.frames.is_empty() {
            let chunk = self.chunk()?;
            self.frames.extend(self.parser.push(&chunk).unwrap());
        }
        self.frames.pop_front()
    }

    /// Reads until an id is known with which one can come back.
    fn begin(mut self) -> Self {
        while self.parser.last_event_id().is_none() {
            let chunk = self.chunk().unwrap();
            self.frames.extend(self.parser.push(&chunk).unwrap());
        }
        self
    }
}

fn register(rig: &Rig, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let new = json!({ "id": format!("w{number}"), "driver": "sim" });
        rig.admin("POST", "/api/v1/workers", &new).is(201);
    }
}

#[test]
fn a_reader_that_is_cut_off_again_and_again_loses_nothing_and_hears_nothing_twice() {
    let rig = Rig::new();
    let mut stream = Stream::open(&rig, &rig.admin, "?type=worker.registered", None).begin();
    let mut heard = Vec::new();
    for round in 0..5 {
        register(&rig, round * 3..round * 3 + 3);
        let frame = stream.next().unwrap();
        assert_eq!(frame.event.as_deref(), Some("worker.registered"));
        let event: Value = serde_json::from_str(&frame.data).unwrap();
        assert_eq!(event["id"].as_str(), frame.id.as_deref());
        heard.push(event["worker_id"].as_str().unwrap().to_owned());
        // Cut off here, with events unread, and back with the last one that was.
        let last = frame.id.unwrap();
        stream = Stream::open(&rig, &rig.admin, "?type=worker.registered", Some(&last));
    }
    while heard.len() < 15 {
        let event: Value = serde_json::from_str(&stream.next().unwrap().data).unwrap();
        heard.push(event["worker_id"].as_str().unwrap().to_owned());
    }
    let expected: Vec<String> = (0..15).map(|number| format!("w{number}")).collect();
    assert_eq!(heard, expected);
}

#[test]
fn a_reader_of_another_life_is_told_that_it_lost_something() {
    let rig = Rig::new();
    let mut stream = Stream::open(&rig, &rig.admin, "", Some("abc-1"));
    let frame = stream.next().unwrap();
    assert_eq!(frame.event.as_deref(), Some(LOST));
    assert_eq!(frame.id, Some(rig.newest()));
}

#[test]
fn a_stream_ends_when_its_token_is_taken_back() {
    let rig = Rig::new();
    let made = rig.admin("POST", "/api/v1/tokens", &json!({ "name": "bob", "role": "viewer" })).is(201);
    let mut stream = Stream::open(&rig, made["secret"].as_str().unwrap(), "?type=nothing", None).begin();
    let path = format!("/api/v1/tokens/{}", made["token"]["id"].as_str().unwrap());
    rig.admin("DELETE", &path, &Value::Null).is(200);
    assert_eq!(stream.next(), None);
}

#[test]
fn pages_of_the_journal_add_up_in_both_directions() {
    let rig = Rig::new();
    register(&rig, 0..5);
    let all = |first: &str, name: &str| {
        let (mut ids, mut cursor) = (Vec::new(), first.to_owned());
        loop {
            let page = rig.get(&format!("/api/v1/events?limit=2&type=worker.registered{cursor}"));
            let events = page["events"].as_array().unwrap();
            ids.extend(events.iter().map(|event| event["worker_id"].as_str().unwrap().to_owned()));
            match page["next"].as_str() {
                Some(next) => cursor = format!("&{name}={next}"),
                None => return ids,
            }
        }
    };
    assert_eq!(all("", "before"), ["w4", "w3", "w2", "w1", "w0"]);
    assert_eq!(all("&after=feed-0", "after"), ["w0", "w1", "w2", "w3", "w4"]);
    let of_one = rig.get("/api/v1/events?worker=w3&type=worker.registered")["events"].take();
    assert_eq!(of_one.as_array().unwrap().len(), 1);
    assert_eq!(of_one[0]["message"], "on the books by the admin, driver sim");
}

#[test]
fn a_router_hears_events_and_an_agent_does_not() {
    let rig = Rig::new();
    rig.worker("web");
    let router = rig.token(Role::Router, None);
    Stream::open(&rig, &router, "", None).begin();
    let agent = rig.token(Role::Agent, Some("web"));
    rig.ask(&agent, "GET", "/api/v1/events/stream", &Value::Null).is_problem(403, "forbidden");
}
