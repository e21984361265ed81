//! Those who hang up: workers before they have said a word, and clients that are simply gone.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drowse_router::route::{Robots, Rules, Sources};
use drowse_router::{Leads, Limits, Listener, Names};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket, sockopt};

use super::plane::{echo, program, until};
use crate::{Bench, call, ends, says};

/// Somebody from another place.
pub(crate) fn call_from(from: [u8; 4], door: SocketAddr) -> TcpStream {
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&stream, &SocketAddr::new(IpAddr::from(from), 0)).unwrap();
    connect(&stream, &door).unwrap();
    let stream = TcpStream::from(stream);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

#[test]
fn what_a_worker_has_heard_is_not_said_again() {
    static HEARD: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    // It takes an order, does it, and closes: it has never answered anybody in this run.
    let target = program(|mut stream| {
        let mut order = [0; 14];
        if stream.read_exact(&mut order).is_ok() {
            HEARD.fetch_add(1, Ordering::SeqCst);
        }
    });
    let door = bench.door("till", target);
    let mut stream = call(&door);
    stream.write_all(b"pay 100 euros\n").unwrap();
    ends(&mut stream);
    assert_eq!(HEARD.load(Ordering::SeqCst), 1);
}

#[test]
fn what_a_worker_hangs_up_over_is_said_again_and_not_for_ever() {
    static HEARD: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    // It looks at a part of it and closes over the rest.
    let target = program(|mut stream| {
        let mut some = [0; 4];
        if stream.read_exact(&mut some).is_ok() {
            HEARD.fetch_add(1, Ordering::SeqCst);
        }
    });
    let door = bench.door("till", target);
    let mut stream = call(&door);
    stream.write_all(b"pay 100 euros\n").unwrap();
    ends(&mut stream);
    let heard = HEARD.load(Ordering::SeqCst);
    assert!((2..=4).contains(&heard), "{heard} times");
}

#[test]
fn what_ended_a_run_is_not_said_to_the_next() {
    static HEARD: AtomicUsize = AtomicUsize::new(0);
    static DIED: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    let target = program(|mut stream| {
        let mut some = [0; 4];
        if stream.read_exact(&mut some).is_ok() {
            HEARD.fetch_add(1, Ordering::SeqCst);
            DIED.store(1, Ordering::SeqCst);
            // Until its next run has begun.
            while DIED.load(Ordering::SeqCst) == 1 {
                std::thread::yield_now();
            }
        }
    });
    let door = bench.door("frail", target);
    let mut stream = call(&door);
    stream.write_all(b"die, and do not come back\n").unwrap();
    until("it has heard", || DIED.load(Ordering::SeqCst), |died| *died == 1);
    bench.plane.set("frail", |subject| {
        (subject.boot, subject.fell) = (2, Some(drowse_wire::control::Slept::Restarting));
    });
    until("it is asked for again", || bench.plane.edges("frail").len(), |edges| *edges >= 2);
    bench.plane.set("frail", |subject| subject.fell = None);
    DIED.store(2, Ordering::SeqCst);
    ends(&mut stream);
    assert_eq!(HEARD.load(Ordering::SeqCst), 1);
}

#[test]
fn a_robot_is_not_kept_waiting_for_a_worker_that_does_not_listen() {
    let bench = Bench::new();
    let robots = Sources::new(vec!["127.0.0.1".parse().unwrap()]);
    let rules = Rules { robots: Robots { sources: robots, ..Robots::default() }, ..Rules::default() };
    let place = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = place.local_addr().unwrap();
    drop(place);
    let door = bench.door_with("boots", nobody, rules);
    ends(&mut call(&door));
}

#[test]
fn whoever_is_gone_while_silent_keeps_no_place() {
    let bench = Bench::new();
    // Like a frozen one: it does not answer an end.
    let target = program(|mut stream| {
        let mut word = [0; 5];
        stream.read_exact(&mut word).unwrap();
        stream.write_all(&word).unwrap();
        loop {
            std::thread::park();
        }
    });
    let door = bench.door("web", target);
    bench.plane.set("web", |subject| subject.connection_idle = Some(Duration::from_millis(100)));
    let mut stream = call(&door);
    says(&mut stream, "hello");
    until("it fell silent", || bench.plane.edges("web"), |edges| edges.len() == 2);
    assert_eq!(bench.router.taken(), 1);
    sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
    drop(stream);
    until("its place is free", || bench.router.taken(), |taken| *taken == 0);
    assert_eq!(bench.plane.edges("web").len(), 2, "and nobody was woken for that");
}

#[test]
fn at_a_shared_port_one_source_does_not_keep_out_the_others() {
    let bench = Bench::with(Limits { threads: 1, connections: 64, ..Limits::default() });
    let names = Names::default();
    let begun: [(Leads, &[u8]); 2] =
        [(Leads::Http(names.clone().into()), b"G"), (Leads::Tls(names.into()), b"\x16\x03")];
    for (leads, first) in begun {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let port = bench.router.open(listener, leads);
        // They begin to speak and never go on.
        let crowd: Vec<_> = (0..80)
            .map(|_| {
                let mut stream = call_from([127, 0, 0, 2], port.address());
                let _ = stream.write_all(first);
                stream
            })
            .collect();
        until("the house is full", || bench.router.taken(), |taken| *taken == 60);
        let mut other = call_from([127, 0, 0, 3], port.address());
        other.write_all(b"GET / HTTP/1.1\r\nhost: nobody.example\r\n\r\n").unwrap();
        let mut heard = [0; 12];
        match other.read_exact(&mut heard) {
            Ok(()) => assert_eq!(&heard, b"HTTP/1.1 404"),
            // What is no TLS is hung up on, and not told that there is no room.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof),
        }
        drop((crowd, other));
        until("they are gone", || bench.router.taken(), |taken| *taken == 0);
    }
}

#[test]
fn a_forwarder_that_takes_its_time_to_hang_up_is_found_out() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let bench = Bench::new();
    let target = program(|stream| {
        if CALLS.fetch_add(1, Ordering::SeqCst) < 12 {
            // Longer than a connection has to stand at first.
            std::thread::park_timeout(Duration::from_millis(30));
            return;
        }
        echo(stream);
    });
    let door = bench.door("far", target);
    let mut stream = call(&door);
    says(&mut stream, "the first words");
}
