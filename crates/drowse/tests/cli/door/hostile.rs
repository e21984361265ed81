//! People who mean no good, or do not know better. They cost little, they are sent away, and the others notice nothing.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::super::text;
use super::super::up::running::{Folder, free_port, get, until};
use super::asleep::Sleeper;
use super::echo::{Echo, PATIENCE, Talk, words};
use super::files::{limited, memory_of, open_in, raise_our_own};
use super::nginx::Nginx;

fn local(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(local(port)).expect("the port is open");
    stream.set_read_timeout(Some(PATIENCE)).expect("patience is not zero");
    stream
}

/// Waits until the other side has ended it, and gives what it said before.
#[track_caller]
fn last_words(stream: &mut TcpStream) -> Vec<u8> {
    let mut words = Vec::new();
    match stream.read_to_end(&mut words) {
        Ok(_) => words,
        Err(error) if error.kind() == ErrorKind::ConnectionReset => words,
        Err(error) => panic!("it was left open: {error}"),
    }
}

#[test]
fn whoever_wants_a_worker_that_never_answers_is_sent_away_and_others_are_served() {
    let folder = Folder::new();
    let idle = "policy.idle_timeout = \"1h\"";
    let deaf = Sleeper::list(&folder, "deaf", &["sleep", "infinity"], idle);
    let web = folder.worker("web", "1h");
    let mut up = folder.up(&[]);
    up.wait_for_all("deaf running for the first time");
    let files = open_in(up.pid());
    let mut clients: Vec<TcpStream> = (0..200).map(|_| connect(deaf.door.port())).collect();
    for client in &mut clients {
        client.write_all(b"is anybody there?").expect("the kernel takes it");
    }
    assert!(get(web.door, "/").contains("hello from web"));
    assert!(clients.iter_mut().all(|client| last_words(client).is_empty()));
    drop(clients);
    assert!(get(web.door, "/").contains("hello from web"));
    until("their files are closed", || open_in(up.pid()) <= files + 5);
}

/// Whoever says nothing holds nothing where silence ends a hold; a word of theirs is heard all the same.
#[test]
fn silent_connections_let_a_worker_sleep_and_wake_it_when_they_speak() {
    let folder = Folder::new();
    let more = "policy.idle_timeout = \"1s\"\npolicy.connection_idle = \"1s\"";
    let echo = Echo::list(&folder, "web", local(free_port()), local(free_port()), more);
    let mut up = folder.up(&[]);
    let mut talks: Vec<Talk> = (0..300).map(|_| Talk::begin(echo.door).expect("the port is open")).collect();
    // The first words of the last: all before it are in.
    talks[299].say(1, b"hello").expect("it is answered");
    up.wait_for("web paused: idle");
    talks[7].say(2, b"and now me").expect("it is answered");
    up.wait_for("web running again: wake, by connection");
    up.wait_for("web paused: idle");
    talks[299].say(3, b"and me again").expect("it is answered");
    assert!(echo.asked().values().all(|times| *times == 1));
}

/// A worker behind a port that is shared by TLS names.
fn behind_tls(folder: &Folder) -> (Nginx, u16) {
    let shared = free_port();
    folder.append(&format!("router.tls = [\"127.0.0.1:{shared}\"]\n"));
    let more = "sni = \"lab.example.org\"\ntls_target = \"127.0.0.1:{tls}\"\npolicy.idle_timeout = \"1h\"";
    (Nginx::list(folder, "lab", "lab.example.org", more), shared)
}

#[track_caller]
fn is_served(lab: &Nginx, shared: u16) {
    let answer = lab.https("lab.example.org", shared, "/");
    assert_eq!(text(&answer.stdout), "hello from lab\n", "{}", text(&answer.stderr));
}

#[test]
fn whoever_never_finishes_a_tls_greeting_is_sent_away_and_others_are_served() {
    let folder = Folder::new();
    let (lab, shared) = behind_tls(&folder);
    let up = folder.up(&[]);
    is_served(&lab, shared);
    let (files, memory) = (open_in(up.pid()), memory_of(up.pid()));
    // The beginning of a greeting of 512 bytes.
    let mut clients: Vec<TcpStream> = (0..500).map(|_| connect(shared)).collect();
    for client in &mut clients {
        client.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 252]).expect("the kernel takes it");
    }
    is_served(&lab, shared);
    // And now and then another byte, until they are sent away.
    until("they are sent away", || {
        clients.retain_mut(|client| {
            let _ = client.write_all(&[3]);
            client.set_nonblocking(true).expect("a socket");
            let is_open =
                matches!(client.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
            client.set_nonblocking(false).expect("a socket");
            is_open
        });
        clients.is_empty()
    });
    is_served(&lab, shared);
    until("their files are closed", || open_in(up.pid()) <= files + 5);
    assert!(memory_of(up.pid()) < memory + (32 << 10), "{} kB after {memory} kB", memory_of(up.pid()));
}

#[test]
fn garbage_instead_of_tls_is_sent_away_and_others_are_served() {
    let folder = Folder::new();
    let (lab, shared) = behind_tls(&folder);
    let _up = folder.up(&[]);
    let huge = [&[22, 3, 1, 255, 255][..], &vec![1; 70_000]].concat();
    let chance = words(4_711, 5_000);
    let kinds: [&[u8]; 8] = [
        b"GET / HTTP/1.1\r\nhost: lab.example.org\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        &[0; 5_000],
        &[255; 5_000],
        &huge,
        &chance,
        // A record without anything in it, and a greeting that is cut short by its own length.
        &[22, 3, 1, 0, 0, 22, 3, 1, 0, 0],
        &[22, 3, 1, 0, 4, 1, 0, 0, 0],
    ];
    for kind in kinds {
        let mut client = connect(shared);
        // It may be sent away before it has said everything.
        let _ = client.write_all(kind);
        let told = last_words(&mut client);
        // At most an alert, which is what a TLS client would understand.
        assert!(told.is_empty() || told.starts_with(&[21, 3]), "{kind:?} was told {told:?}");
    }
    is_served(&lab, shared);
}

#[test]
fn nine_thousand_connections_are_bounded_and_leave_room_for_others() {
    const MANY: u64 = 9_000;
    raise_our_own();
    let mut folder = Folder::new();
    folder.through = limited("-", 20_000);
    let idle = "policy.idle_timeout = \"1h\"";
    let busy = Echo::list(&folder, "busy", local(free_port()), local(free_port()), idle);
    let quiet = Echo::list(&folder, "quiet", local(free_port()), local(free_port()), idle);
    let up = folder.up(&[]);
    Talk::begin(busy.door).expect("the port is open").say(0, b"are you there?").expect("it is answered");
    let (files, memory) = (open_in(up.pid()), memory_of(up.pid()));

    let mut talks = Vec::new();
    for id in 1..=MANY {
        let mut talk = Talk::begin(busy.door).expect("the port is open");
        talk.say(id, b"me too").unwrap_or_else(|error| panic!("{id} was not answered: {error}"));
        talks.push(talk);
    }
    let grown = memory_of(up.pid()).saturating_sub(memory);
    assert!(grown < 64 << 10, "{grown} kB more for {MANY} connections");
    let open = open_in(up.pid());
    assert!((18_000..20_000).contains(&open), "{open} files");

    // Another worker has its share of the room, and more for the first one are sent away at once.
    let mut other = Talk::begin(quiet.door).expect("the port is open");
    other.say(1, b"is there room?").expect("there is");
    let refused = (MANY + 1..MANY + 1_000).find(|id| {
        let mut talk = Talk::begin(busy.door).expect("the port is open");
        let is_refused = talk.say(*id, b"me too").is_err();
        talks.push(talk);
        is_refused
    });
    assert!(refused.is_some(), "the last places are for those who have few");
    talks.pop();
    other.say(2, b"still?").expect("there is");
    for (id, talk) in (MANY + 1..).zip(talks.iter_mut().step_by(100)) {
        talk.say(id, b"nobody was disturbed").expect("it is answered");
    }

    drop((talks, other));
    until("their files are closed", || open_in(up.pid()) <= files + 50);
    Talk::begin(busy.door).expect("the port is open").say(99_999, b"room again").expect("it is answered");
}
