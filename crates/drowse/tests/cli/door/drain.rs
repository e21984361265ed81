//! A planned restart cuts nobody: the old Drowse carries the connections it has, and the new one counts them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::super::up::running::{Api, Folder, Up, free_port, get, pid_in, until};
use super::echo::{Echo, PATIENCE, PYTHON, Talk, beside, words};

const CARRIES_ONE: &str = "drowse: carrying on 1 connection until they end";
const COUNTS: &str = "drowse: counting the connections that one before carries on";
const ENDED: &str = "drowse: all connections have ended";

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn echo(folder: &Folder, id: &str, more: &str) -> Echo {
    Echo::list(folder, id, local(free_port()), local(free_port()), more)
}

/// One that is put to sleep as soon as it may be.
fn sleepy(folder: &Folder) -> Echo {
    echo(folder, "web", "policy.idle_timeout = \"2s\"\npolicy.flap_guard = false")
}

/// A new version in the place of the one that runs.
fn take_over(folder: &Folder, old: &mut Up) -> Up {
    let new = folder.start(&["--listen", "127.0.0.1:0", "--take-over"]);
    old.wait_for("drowse: another takes over");
    new
}

fn is_up(up: &mut Up) {
    up.wait_for("drowse: up at http://127.0.0.1:");
}

fn card(api: &Api, worker: &str) -> serde_json::Value {
    let answer = api.send("GET", &format!("/api/v1/workers/{worker}"), "");
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_else(|_| panic!("no card: {answer}"))
}

/// What keeps it awake, by kind.
fn holds(api: &Api, worker: &str) -> Vec<String> {
    let card = card(api, worker);
    let holds = card["holds"].as_array().unwrap_or_else(|| panic!("no holds: {card}")).clone();
    holds.iter().map(|hold| hold["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Speaks until something is so, and hears every byte back.
#[track_caller]
fn talks_until(talk: &mut Talk, what: &str, mut is_so: impl FnMut() -> bool) {
    let mut id = 1_000;
    until(what, || {
        id += 1;
        talk.say(id, &words(id, 3_000)).expect("it goes on");
        is_so()
    });
}

/// Says nothing for so long that a worker without a connection would be asleep.
#[track_caller]
fn stays_awake(new: &Up, api: &Api, worker: &str) {
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
fn a_new_one_that_is_killed_and_started_again_is_found_again() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    let api = folder.api(&new);
    until("it is counted", || holds(&api, "web") == ["connection"]);
    new.kill();
    let again = folder.up(&[]);
    let api = folder.api(&again);
    talks_until(&mut talk, "it is counted", || holds(&api, "web") == ["connection"]);
    stays_awake(&again, &api, "web");
    talk.say(2, b"after").unwrap();
    assert!(!old.is_over());
}

/// Past what it was promised not a byte moves, because nobody knows of the connection; and none is lost.
#[test]
fn without_a_drowse_bytes_stand_still_until_there_is_one_again() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    new.wait_for_all(COUNTS);
    new.kill();
    let mut id = 1;
    until("bytes stand still", || {
        id += 1;
        talk.send(id, &words(id, 3_000)).unwrap();
        talk.0.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let has_stopped = talk.0.peek(&mut [0]).is_err();
        talk.0.set_read_timeout(Some(PATIENCE)).unwrap();
        if !has_stopped {
            talk.hear(id, &words(id, 3_000)).unwrap();
        }
        has_stopped
    });
    let again = folder.up(&[]);
    talk.hear(id, &words(id, 3_000)).unwrap();
    stays_awake(&again, &folder.api(&again), "web");
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
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

#[test]
fn on_postgres_too() {
    let cluster = super::super::survive::cluster::running();
    let mut folder = Folder::new();
    folder.args = vec!["--database".to_owned(), cluster.url(&cluster.database())];
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for_all(CARRIES_ONE);
    let api = folder.api(&new);
    stays_awake(&new, &api, "web");
    new.kill();
    let mut again = folder.up(&[]);
    again.wait_for_all(COUNTS);
    talk.say(2, &words(2, 300_000)).unwrap();
    assert_eq!(holds(&folder.api(&again), "web"), ["connection"]);
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
    assert_eq!(old.code(), Some(0));
    again.wait_for("web paused: idle for 2s");
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
fn an_old_one_ends_when_it_is_told_to_and_when_its_time_is_over() {
    let folder = Folder::new();
    folder.append("[router]\ndrain_for = \"3s\"\n");
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    old.wait_for("drowse: cutting 1 connection: drain_for is over");
    assert_eq!(talk.0.read(&mut [0]).unwrap_or(0), 0, "it is cut");
    until("the old one has ended", || old.is_over());
    assert_eq!(old.code(), Some(0));

    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(2, b"again").unwrap();
    let mut third = take_over(&folder, &mut new);
    is_up(&mut third);
    new.wait_for_all(CARRIES_ONE);
    assert_eq!(new.end(), Some(0), "{}", new.told());
    assert!(new.told().contains("drowse: cutting 1 connection: told to end"), "{}", new.told());
    assert_eq!(talk.0.read(&mut [0]).unwrap_or(0), 0, "it is cut");
    third.wait_for("web paused: idle for 2s");
}

#[test]
fn an_old_one_that_is_killed_holds_nobody() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    new.wait_for_all(COUNTS);
    let api = folder.api(&new);
    assert_eq!(holds(&api, "web"), ["connection"]);
    old.kill();
    until("it is ended at once", || holds(&api, "web").is_empty());
    new.wait_for("web paused: idle for 2s");
}

#[test]
fn when_the_new_one_ends_so_does_the_old() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    new.wait_for_all(COUNTS);
    assert_eq!(new.end(), Some(0), "{}", new.told());
    // It has the time that it has at any end.
    talk.say(2, b"goodbye").unwrap();
    old.wait_for("drowse: cutting 1 connection: the Drowse that has taken over ends");
    until("the old one has ended", || old.is_over());
    assert_eq!(old.code(), Some(0));
}

#[test]
fn a_word_that_is_none_disturbs_nobody() {
    let folder = Folder::new();
    let web = sleepy(&folder);
    let mut old = folder.up(&[]);
    let mut talk = Talk::begin(web.door).unwrap();
    talk.say(1, b"before").unwrap();
    let mut new = take_over(&folder, &mut old);
    is_up(&mut new);
    let socket = folder.data().join("guests");
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let begin = br#"{"ask":{"id":1,"ask":{"begin":{"session":"guest-00"}}}}"#;
    let begin = [&begin[..], b"\n"].concat();
    let worse = [begin.clone(), b"{\"ask\":{\"id\":2,\"ask\":\"burn\"}}\n".to_vec()].concat();
    for broken in [
        b"\n".to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        br#"{"ask":{"id":1,"ask":{"begin":{"session":"web"}}}}"#.iter().chain(b"\n").copied().collect(),
        vec![b'x'; 1 << 20],
        vec![0xff; 100],
        worse,
        begin,
    ] {
        hangs_up_on(&socket, &broken);
    }
    let api = folder.api(&new);
    stays_awake(&new, &api, "web");
    talk.say(2, b"after").unwrap();
    talk.end().unwrap();
    until("the old one has ended", || old.is_over());
    new.wait_for("web paused: idle for 2s");
}

/// Says something and has nothing more to say.
fn hangs_up_on(socket: &Path, words: &[u8]) {
    let mut stream = UnixStream::connect(socket).expect("it is up");
    // It may have heard enough before the end.
    let _ = stream.write_all(words);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
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
