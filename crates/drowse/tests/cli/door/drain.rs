//! A planned restart cuts nobody: the old Drowse carries the connections it has, and the new one counts them.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};

use super::super::up::running::{Api, Folder, Up, free_port, get, pid_in, until};
use super::echo::{Echo, PATIENCE, PYTHON, Talk, beside, words};

pub(super) const CARRIES_ONE: &str = "drowse: carrying on 1 connection to the end";
pub(super) const COUNTED: &str = "drowse: counted by the Drowse that has taken over";
const ENDED: &str = "drowse: all connections have ended";

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn echo(folder: &Folder, id: &str, more: &str) -> Echo {
    Echo::list(folder, id, local(free_port()), local(free_port()), more)
}

/// One that is put to sleep as soon as it may be.
pub(super) fn sleepy(folder: &Folder) -> Echo {
    echo(folder, "web", "policy.idle_timeout = \"2s\"\npolicy.flap_guard = false")
}

/// A new version in the place of the one that runs.
pub(super) fn take_over(folder: &Folder, old: &mut Up) -> Up {
    let new = folder.start(&["--listen", "127.0.0.1:0", "--take-over"]);
    old.wait_for("drowse: another takes over");
    new
}

pub(super) fn is_up(up: &mut Up) {
    up.wait_for("drowse: up at http://127.0.0.1:");
}

fn card(api: &Api, worker: &str) -> serde_json::Value {
    let answer = api.send("GET", &format!("/api/v1/workers/{worker}"), "");
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_else(|_| panic!("no card: {answer}"))
}

/// What keeps it awake, by kind.
pub(super) fn holds(api: &Api, worker: &str) -> Vec<String> {
    let card = card(api, worker);
    let holds = card["holds"].as_array().unwrap_or_else(|| panic!("no holds: {card}")).clone();
    holds.iter().map(|hold| hold["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Speaks until something is so, and hears every byte back.
#[track_caller]
pub(super) fn talks_until(talk: &mut Talk, what: &str, mut is_so: impl FnMut() -> bool) {
    let mut id = 1_000;
    until(what, || {
        id += 1;
        talk.say(id, &words(id, 3_000)).expect("it goes on");
        is_so()
    });
}

/// Says nothing for so long that a worker without a connection would be asleep.
#[track_caller]
pub(super) fn stays_awake(new: &Up, api: &Api, worker: &str) {
    let mut looks = 0;
    until("some time has passed", || {
        assert_eq!(card(api, worker)["status"], "running", "{}", new.told());
        assert_eq!(holds(api, worker), ["connection"]);
        looks += 1;
        looks == 50
    });
}

#[test]
fn a_connection_goes_on_through_a_restart_and_holds_its_worker() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for_all(CARRIES_ONE);
    let api = folder.api(&new);
    talk.say(2, &words(2, 300_000)).unwrap();
    // More than twice its timeout, and not a byte.
    stays_awake(&new, &api, "web");
    talk.say(3, &words(3, 300_000)).unwrap();
    assert!(!new.told().contains("web paused"), "{}", new.told());
    assert!(!old.is_over());
    talk.end().unwrap();
    old.wait_for(ENDED);
    until("the old one has ended", || old.is_over());
    assert_eq!(old.code(), Some(0));
    new.wait_for("web paused: idle for 2s");
    // Whoever comes wakes it as ever.
    Talk::begin(web.door).unwrap().say(4, b"again").unwrap();
}

#[test]
fn two_restarts_in_a_row_and_a_connection_of_the_first_life() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut first = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"first").unwrap();
    let mut second = take_over(&folder, &mut first);
    is_up(&mut second);
    let mut other = Talk::begin(web.door).unwrap();
    other.say(2, b"second").unwrap();
    let mut third = take_over(&folder, &mut second);
    is_up(&mut third);
    let api = folder.api(&third);
    until("both are counted", || holds(&api, "web") == ["connection", "connection"]);
    talk.say(3, b"third").unwrap();
    other.say(4, b"third").unwrap();
    other.end().unwrap();
    until("the second has ended", || second.is_over());
    assert!(!first.is_over());
    stays_awake(&third, &api, "web");
    talk.say(5, b"still").unwrap();
    talk.end().unwrap();
    until("the first has ended", || first.is_over());
    third.wait_for("web paused: idle for 2s");
}

#[test]
fn whoever_waits_for_a_slow_start_at_the_old_door_is_served() {
    let folder = Folder::new();
    let (door, target) = (local(free_port()), local(free_port()));
    let gate = folder.file("gate");
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.05; done; exec {PYTHON} -S -E {} {} {} /dev/null",
        gate.display(),
        beside("echo.py"),
        target.ip(),
        target.port()
    );
    let command = serde_json::to_string(&["/bin/sh", "-c", &script]).expect("texts");
    folder.append(&format!(
        "[[worker]]\nid = \"slow\"\ndriver = \"process\"\ncommand = {command}\nlisten = \"{door}\"\n\
         target = \"{target}\"\nwait_for = \"1m\"\npolicy.idle_timeout = \"1h\"\n"
    ));
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(door).unwrap();
    talk.send(1, b"is anybody there?").unwrap();
    until("they are in", || {
        let api = folder.api(&old);
        holds(&api, "slow").contains(&"connection".to_owned())
    });
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for_all(CARRIES_ONE);
    std::fs::write(gate, "").unwrap();
    talk.hear(1, b"is anybody there?").unwrap();
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
}

#[test]
fn whoever_waits_for_a_worker_that_is_being_stopped_is_served_by_the_next_start() {
    let folder = Folder::new();
    let (door, target) = (local(free_port()), local(free_port()));
    let script = format!(
        "trap '' TERM; exec {PYTHON} -S -E {} {} {} /dev/null",
        beside("echo.py"),
        target.ip(),
        target.port()
    );
    let command = serde_json::to_string(&["/bin/sh", "-c", &script]).expect("texts");
    folder.append(&format!(
        "[[worker]]\nid = \"slow\"\ndriver = \"process\"\ncommand = {command}\nlisten = \"{door}\"\n\
         target = \"{target}\"\nwait_for = \"1m\"\npolicy.grace = \"4s\"\npolicy.idle_timeout = \"1h\"\n\
         policy.wake_from = [\"manual\"]\n"
    ));
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(door).unwrap();
    talk.say(1, b"it runs").unwrap();
    talk.end().unwrap();
    let api = folder.api(&old);
    until("nobody is connected", || holds(&api, "slow").is_empty());
    let answer = api.send("POST", "/api/v1/workers/slow/stop", "{}");
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
    until("it is being stopped", || card(&api, "slow")["status"] == "stopping");
    let mut talk = Talk::begin(door).unwrap();
    talk.send(2, b"and now?").unwrap();
    until("they are in", || holds(&api, "slow") == ["connection"]);
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for_all(CARRIES_ONE);
    talk.hear(2, b"and now?").unwrap();
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
}

/// A request whose answer has begun and does not end.
#[test]
fn a_stream_over_http_goes_on_through_a_restart() {
    let folder = Folder::new();
    let (door, target) = (local(free_port()), local(free_port()));
    let command =
        serde_json::to_string(&[PYTHON, "-E", &beside("sse.py"), &target.port().to_string()]).expect("texts");
    folder.append(&format!(
        "[[worker]]\nid = \"events\"\ndriver = \"process\"\ncommand = {command}\nlisten = \"{door}\"\n\
         target = \"{target}\"\nprotocol = \"http\"\npolicy.idle_timeout = \"1s\"\n"
    ));
    let mut old = folder.up(&[]);
    let mut stream = std::net::TcpStream::connect(door).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    let mut next = || {
        let line =
            lines.by_ref().map(|line| line.expect("it goes on")).find(|line| line.starts_with("data: "));
        line.expect("there is more")
    };
    let first = next();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for_all(CARRIES_ONE);
    let second = next();
    assert_ne!(first, second);
    assert!(!new.told().contains("events paused"), "{}", new.told());
    assert_eq!(old.end(), Some(0), "{}", old.told());
}

#[test]
fn a_worker_that_is_stopped_by_force_ends_the_connections_that_are_carried_on() {
    let folder = Folder::new();
    let web = echo(&folder, "web", "policy.idle_timeout = \"1h\"");
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    talk.say(2, b"after").unwrap();
    let api = folder.api(&new);
    let answer = api.send("POST", "/api/v1/workers/web/pause", r#"{"force": true}"#);
    assert!(answer.starts_with("HTTP/1.1 202 "), "{answer}");
    let mut rest = Vec::new();
    // However it is cut.
    let _ = talk.0.read_to_end(&mut rest);
    assert!(rest.is_empty());
    until("the old one has ended", || old.is_over());
    assert_eq!(card(&api, "web")["status"], "paused", "{}", new.told());
}

#[test]
fn a_silent_connection_that_speaks_again_wakes_its_worker_through_the_new_one() {
    let folder = Folder::new();
    let silent = "policy.idle_timeout = \"2s\"\npolicy.connection_idle = \"1s\"\npolicy.flap_guard = false";
    let web = echo(&folder, "web", silent);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    new.wait_for("web paused: idle for 2s");
    assert!(!old.is_over(), "{}", old.told());
    talk.say(2, &words(2, 10_000)).unwrap();
    new.wait_for("web running again: wake, by connection");
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
}

#[test]
fn an_http_request_under_way_is_answered_and_its_connection_not_used_again() {
    let folder = Folder::new();
    let ports = folder.worker("web", "1h");
    folder.rewrite(|text| text.replace("target =", "protocol = \"http\"\ntarget ="));
    let mut old = folder.up(&[]);
    let pid = pid_in(&get(ports.door, "/"));
    let mut stream = std::net::TcpStream::connect(local(ports.door)).unwrap();
    stream.write_all(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\na").unwrap();
    until("they are in", || holds(&folder.api(&old), "web").contains(&"connection".to_owned()));
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    stream.write_all(b"b").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(pid_in(&answer), pid);
    until("the old one has ended", || old.is_over());
    assert_eq!(pid_in(&get(ports.door, "/")), pid);
}
