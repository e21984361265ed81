//! Who is silent and who only waits: with `connection_idle`, nobody's words are left behind at a sleeping worker.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use drowse_router::{Leads, Listener, Names, Route};
use drowse_wire::control::EdgeCause;

use super::ends::hello;
use super::plane::{echo, id, program, until};
use crate::{Bench, call, ends, says};

const IDLE: Duration = Duration::from_millis(100);

/// Somebody else at the same pump falls silent: whoever was so for as long has been looked at too.
fn let_somebody_fall_silent(bench: &Bench) {
    let other = bench.door("other", program(echo));
    bench.plane.set("other", |subject| subject.connection_idle = Some(IDLE));
    let mut stream = call(&other);
    says(&mut stream, "hello");
    let fell = (0, EdgeCause::FellSilent);
    until("the other is silent", || bench.plane.edges("other"), |edges| edges.contains(&fell));
}

#[test]
fn whoever_waits_for_the_worker_to_listen_is_not_silent() {
    static LISTENS: AtomicBool = AtomicBool::new(false);
    let bench = Bench::new();
    // It has something else to do first, and then takes everything.
    let target = program(|mut stream| {
        let mut first = [0; 5];
        if stream.read_exact(&mut first).is_err() {
            return;
        }
        stream.write_all(&first).unwrap();
        while !LISTENS.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let mut buffer = vec![0; 64 << 10];
        let mut heard = 0_u64;
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            heard += read as u64;
        }
        stream.write_all(&heard.to_be_bytes()).unwrap();
    });
    let door = bench.door("web", target);
    bench.plane.set("web", |subject| subject.connection_idle = Some(IDLE));
    let mut stream = call(&door);
    says(&mut stream, "hello");
    stream.set_nonblocking(true).unwrap();
    let much = vec![7; 64 << 10];
    let mut said = 0_u64;
    until(
        "nothing more goes in",
        || match stream.write(&much) {
            Ok(written) => {
                said += written as u64;
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                false
            }
        },
        |went| !went,
    );
    let_somebody_fall_silent(&bench);
    let_somebody_fall_silent(&bench);
    assert_eq!(bench.open("web"), 1, "its words wait for the worker: {:?}", bench.plane.edges("web"));
    LISTENS.store(true, Ordering::SeqCst);
    stream.set_nonblocking(false).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut heard = [0; 8];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(u64::from_be_bytes(heard), said);
}

#[test]
fn the_last_words_of_somebody_silent_reach_a_worker_that_has_said_its_last() {
    static HEARD: AtomicBool = AtomicBool::new(false);
    let bench = Bench::new();
    // It says its last and goes on listening.
    let target = program(|mut stream| {
        let mut first = [0; 5];
        if stream.read_exact(&mut first).is_ok() {
            stream.write_all(&first).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).unwrap();
            HEARD.store(rest == b"the end", Ordering::SeqCst);
        }
    });
    let door = bench.door("web", target);
    bench.plane.set("web", |subject| subject.connection_idle = Some(IDLE));
    let mut stream = call(&door);
    says(&mut stream, "hello");
    ends(&mut stream);
    until("it is given back", || bench.plane.edges("web"), |edges| edges.last().unwrap().0 == 0);
    // It sleeps, and whoever speaks waits for it and leaves meanwhile.
    bench.plane.set("web", |subject| (subject.is_awake, subject.wakes) = (false, false));
    stream.write_all(b"the end").unwrap();
    until("the worker is woken", || bench.plane.wakes("web"), |wakes| *wakes == 1);
    drop(stream);
    let_somebody_fall_silent(&bench);
    bench.plane.set("web", |subject| subject.wakes = true);
    until("it has heard them", || HEARD.load(Ordering::SeqCst), |heard| *heard);
}

#[test]
fn whoever_is_refused_in_the_middle_of_a_conversation_hears_no_words_of_ours() {
    let bench = Bench::new();
    let listener = Listener::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let route = Route::to(id("tls"), program(echo));
    let tls = bench.router.open(listener, Leads::Tls(Names::any(Arc::new(route)).into()));
    bench.plane.set("tls", |subject| subject.connection_idle = Some(IDLE));
    let mut stream = call(&tls);
    let hello = hello();
    stream.write_all(&hello).unwrap();
    let mut heard = vec![0; hello.len()];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard, hello, "the worker gives back what it gets");
    until("it is given back", || bench.plane.edges("tls"), |edges| edges.last().unwrap().0 == 0);
    // A person puts the worker to sleep.
    bench.plane.set("tls", |subject| (subject.is_awake, subject.may_wake) = (false, false));
    stream.write_all(b"and then").unwrap();
    ends(&mut stream);
}
