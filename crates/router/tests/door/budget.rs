//! Many workers that have to come up at once.

use std::net::TcpStream;
use std::time::Duration;

use drowse_router::Limits;
use drowse_router::route::{Rules, Site};

use super::plane::{echo, program, until};
use crate::{Bench, call, ends, says};

fn wakes(bench: &Bench, names: &[String]) -> usize {
    names.iter().map(|name| bench.plane.wakes(name)).sum()
}

#[test]
fn only_so_many_come_up_at_once_and_all_have_their_turn() {
    let bench = Bench::with(Limits { threads: 1, waking: 2, ..Limits::default() });
    let names: Vec<String> = (0..6).map(|n| format!("w{n}")).collect();
    let target = program(echo);
    let doors: Vec<_> = names.iter().map(|name| bench.door(name, target)).collect();
    for name in &names {
        bench.plane.set(name, |subject| (subject.is_awake, subject.wakes) = (false, false));
    }
    let streams: Vec<TcpStream> = doors.iter().map(call).collect();
    until("two are asked for", || wakes(&bench, &names), |wakes| *wakes == 2);
    until(
        "the others wait",
        || names.iter().map(|name| bench.router.door(&name.parse().unwrap()).waiting()).sum::<usize>(),
        |waiting| *waiting == 6,
    );
    assert_eq!(wakes(&bench, &names), 2, "and nobody else");

    // Another site has its own.
    let elsewhere = bench.door_at("far", target, Site(Some("elsewhere".into())));
    bench.plane.set("far", |subject| subject.is_awake = false);
    says(&mut call(&elsewhere), "hello");

    for name in &names {
        bench.plane.set(name, |subject| subject.wakes = true);
    }
    for mut stream in streams {
        says(&mut stream, "hello");
    }
    assert_eq!(wakes(&bench, &names), 6, "each once");
}

#[test]
fn a_worker_that_is_awake_needs_no_turn() {
    let bench = Bench::with(Limits { threads: 1, waking: 1, ..Limits::default() });
    let target = program(echo);
    let (slow, awake) = (bench.door("slow", target), bench.door("awake", target));
    bench.plane.set("slow", |subject| (subject.is_awake, subject.wakes) = (false, false));
    let _waits = call(&slow);
    until("the slow one is asked for", || bench.plane.wakes("slow"), |wakes| *wakes == 1);
    says(&mut call(&awake), "hello");
}

#[test]
fn a_worker_that_is_only_frozen_needs_no_turn() {
    let bench = Bench::with(Limits { threads: 1, waking: 1, ..Limits::default() });
    let target = program(echo);
    let (slow, frozen) = (bench.door("slow", target), bench.door("frozen", target));
    bench.plane.set("slow", |subject| (subject.is_awake, subject.wakes) = (false, false));
    bench.plane.set("frozen", |subject| (subject.is_awake, subject.is_frozen) = (false, true));
    let _waits = call(&slow);
    until("the slow one is asked for", || bench.plane.wakes("slow"), |wakes| *wakes == 1);
    says(&mut call(&frozen), "hello");
    assert_eq!(bench.plane.wakes("frozen"), 1);
}

#[test]
fn one_that_takes_long_to_start_leaves_the_turn_to_others_while_it_does() {
    let bench = Bench::with(Limits { threads: 1, waking: 1, ..Limits::default() });
    let target = program(echo);
    let (slow, quick) = (bench.door("slow", target), bench.door("quick", target));
    for name in ["slow", "quick"] {
        bench.plane.set(name, |subject| (subject.is_awake, subject.wakes) = (false, name == "quick"));
    }
    let mut first = call(&slow);
    until("the slow one is asked for", || bench.plane.wakes("slow"), |wakes| *wakes == 1);
    says(&mut call(&quick), "hello");
    bench.plane.set("slow", |subject| subject.wakes = true);
    says(&mut first, "and it comes up all the same");
}

#[test]
fn whoever_does_not_come_up_in_time_leaves_the_turn_to_others() {
    let bench = Bench::with(Limits { threads: 1, waking: 1, ..Limits::default() });
    let target = program(echo);
    let impatient = Rules { wait_for: Duration::from_millis(500), ..Rules::default() };
    let (slow, quick) = (bench.door_with("slow", target, impatient), bench.door("quick", target));
    for name in ["slow", "quick"] {
        bench.plane.set(name, |subject| (subject.is_awake, subject.wakes) = (false, name == "quick"));
    }
    let mut first = call(&slow);
    until("the slow one is asked for", || bench.plane.wakes("slow"), |wakes| *wakes == 1);
    let mut second = call(&quick);
    ends(&mut first);
    says(&mut second, "hello");
    assert_eq!(bench.plane.wakes("quick"), 1);
}
