//! How connections end, and what must not end with them.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use drowse_router::route::{Robots, Rules, Sources};
use drowse_router::{Leads, Listener, Names, Route};
use rustix::net::sockopt;

use super::hangs::call_from;
use super::plane::{Said, echo, id, program, until};
use crate::{Bench, call, ends, says};

/// The first words of a TLS client that names nobody.
pub(crate) fn hello() -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    // No session, two ciphers, no compression.
    body.extend([0, 0, 4, 0x13, 0x01, 0x13, 0x02, 1, 0]);
    let length = |of: &[u8]| u16::try_from(of.len()).unwrap().to_be_bytes();
    let message = [&[1, 0][..], &length(&body), &body].concat();
    [&[22, 3, 1][..], &length(&message), &message].concat()
}

#[test]
fn whoever_was_turned_away_has_no_part_in_those_who_come_after() {
    let bench = Bench::new();
    let web = bench.door("web", program(echo));
    let rules = Arc::new(Rules { wait_for: Duration::from_millis(200), ..Rules::default() });
    let route = Route { rules, ..Route::to(id("tls"), program(echo)) };
    let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let tls = bench.router.open(listener, Leads::Tls(Names::any(Arc::new(route)).into()));
    bench.plane.set("tls", |subject| (subject.is_awake, subject.wakes) = (false, false));
    // It is heard out and sent away, and does not hang up yet.
    let mut turned = call(&tls);
    turned.write_all(&hello()).unwrap();
    let mut alert = [0; 7];
    turned.read_exact(&mut alert).unwrap();
    assert_eq!(alert[0], 21);
    let mut next = call(&web);
    says(&mut next, "hello");
    drop(turned);
    for _ in 0..20 {
        says(&mut next, "still here");
        std::thread::yield_now();
    }
    assert_eq!(bench.open("web"), 1);
}

#[test]
fn what_was_said_to_a_program_that_is_away_for_a_moment_is_said_when_it_is_back() {
    let bench = Bench::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let target = listener.local_addr().unwrap();
    let door = bench.door("web", target);
    // The proof, and somebody who is answered.
    let serving = std::thread::spawn(move || {
        for stream in listener.incoming().take(2).flatten() {
            echo(stream);
        }
    });
    says(&mut call(&door), "hello");
    serving.join().unwrap();
    until("it is given back", || bench.plane.edges("web"), |edges| edges.last().unwrap().0 == 0);
    // It sleeps, and its program does not listen when it is woken.
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let mut stream = call(&door);
    stream.write_all(b"the first words").unwrap();
    until("they wait", || bench.router.door(&id("web")).waiting(), |waiting| *waiting == 1);
    bench.plane.set("web", |subject| subject.wakes = true);
    // Called in vain, they wait again.
    until("it is awake", || bench.plane.wakes("web"), |wakes| *wakes == 1);
    until("it was let through", || bench.router.door(&id("web")).counts().let_through, |let_in| *let_in == 2);
    until("they wait again", || bench.router.door(&id("web")).waiting(), |waiting| *waiting == 1);
    let listener = TcpListener::bind(target).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || echo(stream));
        }
    });
    let mut heard = [0; 15];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"the first words");
}

#[test]
fn a_client_that_is_gone_after_its_last_word_holds_nobody() {
    let bench = Bench::new();
    // It does not care for ends.
    let target = program(|mut stream| {
        let mut word = [0; 5];
        stream.read_exact(&mut word).unwrap();
        stream.write_all(&word).unwrap();
        loop {
            std::thread::park();
        }
    });
    let door = bench.door("web", target);
    let mut stream = call(&door);
    says(&mut stream, "hello");
    stream.shutdown(Shutdown::Write).unwrap();
    // As if its machine had been asked and did not know of it any more.
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    until("it counts no more", || bench.open("web"), |open| *open == 0);
}

#[test]
fn a_worker_that_is_gone_after_its_last_word_is_held_by_nobody() {
    let bench = Bench::new();
    let target = program(|mut stream| {
        let mut word = [0; 5];
        if stream.read_exact(&mut word).is_ok() {
            stream.write_all(&word).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            // The client has heard of the end, and says so.
            stream.read_exact(&mut word).unwrap();
            sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        }
    });
    let door = bench.door("web", target);
    let mut stream = call(&door);
    says(&mut stream, "hello");
    ends(&mut stream);
    stream.write_all(b"heard").unwrap();
    // The client keeps its connection, as pools of them do.
    until("it counts no more", || bench.open("web"), |open| *open == 0);
}

#[test]
fn what_robots_say_is_no_use_and_hides_none() {
    let bench = Bench::new();
    let robots = Sources::new(vec!["127.0.0.2".parse().unwrap()]);
    let rules = Rules { robots: Robots { sources: robots, ..Robots::default() }, ..Rules::default() };
    let door = bench.door_with("web", program(echo), rules);
    let mut robot = call_from([127, 0, 0, 2], door.address());
    says(&mut robot, "beep");
    drop(robot);
    until("it has left", || bench.router.door(&id("web")).held(), |held| *held == 0);
    let is_told = |worker| bench.plane.said().contains(&Said::Bytes(id(worker)));
    // Once somebody else has been told of, everybody has been looked at.
    let elsewhere = bench.door("other", program(echo));
    let mut somebody = call(&elsewhere);
    until("others are told of", || says(&mut somebody, "hello"), |()| is_told("other"));
    assert!(!is_told("web"));
    let mut person = call(&door);
    until("their words are told of", || says(&mut person, "hello"), |()| is_told("web"));
}
