//! Many who come at once.
//!
//! Drowse is made to stand still while they knock, so that it finds them all in one moment.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::super::up::running::{Folder, Up, free_port, until};
use super::asleep::{Sleeper, own_host};
use super::books::count;
use super::echo::{Echo, PATIENCE, Talk, words};

const CLIENTS: u64 = 1_000;
const WORKERS: usize = 100;

fn echo(folder: &Folder, more: &str) -> Echo {
    let at = |port| ([127, 0, 0, 1], port).into();
    Echo::list(folder, "web", at(free_port()), at(free_port()), more)
}

/// All of them knock and speak before Drowse hears the first, and all are answered.
#[track_caller]
fn all_are_heard(up: &Up, echo: &Echo) {
    up.signal("-STOP");
    let mut talks: Vec<(u64, Talk)> = Vec::new();
    for id in 1..=CLIENTS {
        let mut talk = Talk::begin(echo.door).expect("the port is open");
        talk.send(id, &words(id, 500)).expect("the kernel takes it");
        talks.push((id, talk));
    }
    up.signal("-CONT");
    for (id, mut talk) in talks {
        talk.hear(id, &words(id, 500)).unwrap_or_else(|error| panic!("{id} was lost: {error}"));
    }
    let asked = echo.asked();
    assert_eq!(asked.len() as u64, CLIENTS);
    assert!(asked.values().all(|times| *times == 1), "somebody was heard twice");
}

#[track_caller]
fn one_wake_for_all(more: &str, asleep: &str) {
    let folder = Folder::new();
    let echo = echo(&folder, more);
    let mut up = folder.up(&[]);
    up.wait_for(&format!("web {asleep}: idle"));
    let counts = || ["worker.wake_intended", "worker.resumed"].map(|kind| count(&folder, kind, Some("web")));
    let before = counts();
    all_are_heard(&up, &echo);
    up.wait_for("web running again: wake, by connection");
    assert_eq!(counts(), before.map(|count| count + 1), "{}", up.told());
}

#[test]
fn a_thousand_who_come_at_once_wake_a_frozen_worker_once() {
    one_wake_for_all("policy.idle_timeout = \"4s\"", "paused");
}

#[test]
fn a_thousand_who_come_at_once_start_a_stopped_worker_once() {
    one_wake_for_all(
        "policy.idle_timeout = \"4s\"\npolicy.sleep = \"stop\"\npolicy.min_notice = \"0s\"",
        "stopped",
    );
}

#[test]
fn a_hundred_frozen_workers_that_are_wanted_at_once_all_answer() {
    let folder = Folder::new();
    let program = env!("CARGO_BIN_EXE_drowse");
    let names: Vec<String> = (0..WORKERS).map(|number| format!("w{number}")).collect();
    let host = own_host();
    let sleepers: Vec<Sleeper<'_>> = (10_000..)
        .zip(&names)
        .map(|(port, name)| {
            let command = [program, "__demo-worker", name, "{target}"];
            let ports = [port, 10_000 + port].map(|port| (host, port).into());
            Sleeper::list_at(&folder, name, &command, ports, "policy.idle_timeout = \"5s\"")
        })
        .collect();
    let mut up = folder.up(&["--quiet"]);
    let asleep = || {
        let answer = folder.api(&up).send("GET", "/api/v1/workers?status=paused", "");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let page: serde_json::Value = serde_json::from_str(body).expect("JSON");
        page["workers"].as_array().map_or(0, Vec::len)
    };
    until("all sleep", || asleep() == WORKERS);
    up.signal("-STOP");
    let mut streams = Vec::new();
    for sleeper in &sleepers {
        let mut stream = TcpStream::connect(sleeper.door).expect("the port is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("patience is not zero");
        stream.write_all(b"GET /all HTTP/1.1\r\nhost: x\r\n\r\n").expect("the kernel takes it");
        streams.push(stream);
    }
    up.signal("-CONT");
    for (name, mut stream) in names.iter().zip(streams) {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(answer.contains(&format!("hello from {name}: ")), "{name}: {answer:?}");
    }
    assert_eq!(count(&folder, "worker.wake_intended", None), WORKERS);
    assert_eq!(up.end(), Some(0), "{}", up.told());
}
