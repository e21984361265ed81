//! What is left of those who waited long, and of workers that are no more.

use std::fs;
use std::io::{Read as _, Write as _};
use std::time::Duration;

use drowse_wire::control::EdgeCause;

use super::plane::{echo, id, program, until};
use crate::{Bench, call, says};

/// Has time pass, and waits until the router has looked at its connections after that.
fn pass(bench: &Bench, time: Duration) {
    let marker = format!("marker-{}", time.as_millis());
    let door = bench.door(&marker, program(echo));
    bench.plane.set(&marker, |subject| subject.connection_idle = Some(time / 2));
    let mut stream = call(&door);
    says(&mut stream, "hello");
    bench.skip(time);
    let is_silent = |edges: &Vec<(u64, EdgeCause)>| edges.contains(&(0, EdgeCause::FellSilent));
    until("the silent one is noticed", || bench.plane.edges(&marker), is_silent);
}

#[test]
fn whoever_waited_long_for_a_worker_hears_when_it_has_died() {
    let bench = Bench::new();
    let target = program(echo);
    let door = bench.door("slow", target);
    bench.plane.set("slow", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let mut stream = call(&door);
    stream.write_all(b"hello").unwrap();
    until("it waits", || bench.router.door(&id("slow")).waiting(), |waiting| *waiting == 1);
    // A connection is asked whether its peer lives after ten seconds, and this one has not been made yet.
    pass(&bench, Duration::from_secs(12));
    bench.plane.set("slow", |subject| subject.wakes = true);
    stream.read_exact(&mut [0; 5]).unwrap();
    // The kernel says of each socket which timer runs: 2 is that one.
    let remote = format!("0100007F:{:04X}", target.port());
    let timers = || {
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ours = rows.filter(|fields| fields.get(2) == Some(&remote.as_str()) && fields[3] == "01");
        ours.map(|fields| fields[5].to_owned()).collect::<Vec<_>>()
    };
    until("it is asked", timers, |timers| {
        !timers.is_empty() && timers.iter().all(|timer| timer.starts_with("02"))
    });
}

#[test]
fn a_wait_is_no_silence() {
    let bench = Bench::new();
    // It speaks first, and not at once.
    let door = bench.door("ssh", program(|mut stream| _ = stream.read(&mut [0])));
    bench.plane.set("ssh", |subject| {
        (subject.is_awake, subject.wakes) = (false, false);
        subject.connection_idle = Some(Duration::from_secs(18));
    });
    let stream = call(&door);
    until("it waits", || bench.router.door(&id("ssh")).waiting(), |waiting| *waiting == 1);
    pass(&bench, Duration::from_secs(22));
    bench.plane.set("ssh", |subject| subject.wakes = true);
    // The proof of the worker is not yet its visitor.
    until("it was let through", || bench.router.door(&id("ssh")).counts().let_through, |let_in| *let_in == 1);
    // Nobody has said a word; after five seconds that it has picked up is enough.
    pass(&bench, Duration::from_secs(6));
    pass(&bench, Duration::from_secs(2));
    assert_eq!(bench.plane.edges("ssh"), [(1, EdgeCause::Came)], "it listens");
    pass(&bench, Duration::from_secs(19));
    let is_silent = |edges: &Vec<(u64, EdgeCause)>| edges.contains(&(0, EdgeCause::FellSilent));
    until("it is silent after all", || bench.plane.edges("ssh"), is_silent);
    drop(stream);
}

#[test]
fn workers_that_are_no_more_leave_nothing_behind() {
    let bench = Bench::new();
    let doors = ["one", "two", "three"].map(|worker| bench.door(worker, program(echo)));
    let mut streams: Vec<_> = doors.iter().map(call).collect();
    for stream in &mut streams {
        says(stream, "hello");
    }
    let known = || {
        let counts = bench.router.counts();
        counts.iter().map(|(worker, _)| worker.to_string()).collect::<Vec<_>>()
    };
    let [one, two, three] = doors;
    drop((one, two));
    // Somebody is still there.
    bench.router.keep_only(|worker| *worker == id("three"));
    assert_eq!(known().len(), 3);
    streams.truncate(0);
    let forgotten = || {
        bench.router.keep_only(|worker| *worker == id("three"));
        known()
    };
    until("they are forgotten", forgotten, |known| known.len() == 1);
    says(&mut call(&three), "hello");
}
