//! Whoever comes to a frozen worker goes on ahead of the books: which they always catch up with, whatever comes between.

use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::refusal::Refusal;
use drowse_core::status::StatusKind;
use drowse_core::worker::Power;
use drowse_server::ControlError;
use drowse_server::crash::CrashPoint;
use drowse_server::fleet::Order;
use drowse_wire::control::Control as _;

use super::bench::{Bench, edge, global};
use super::law::{belief_is_truth, journal_agrees};

/// A worker with a door that has fallen asleep.
fn asleep(seed: u64) -> (Bench, WorkerId) {
    let mut bench = Bench::new(seed, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
    (bench, web)
}

fn order(force: bool) -> Order {
    Order { by: "ann".to_owned(), message: String::new(), force }
}

#[test]
fn a_frozen_worker_goes_on_before_the_books_know() {
    let (mut bench, web) = asleep(1);
    let first = edge(1);
    let mut counted = 0;
    let standing = bench.fleet().head_start(&web, first, &mut || counted += 1).unwrap();
    assert_eq!(counted, 1, "whoever is to be found at its door has called by then");
    assert!(!standing.is_awake, "that is for the books to say");
    assert_eq!(standing.boot, bench.worker(&web).boot);
    assert_eq!(bench.power(&web), Power::Running);
    assert!(bench.is(&web, StatusKind::Paused));

    let id = web.clone();
    bench.ask(|fleet| async move { fleet.connections(&id, edge(1)).await }).unwrap();
    bench.pass_until("it runs by the book", |bench| bench.is(&web, StatusKind::Running));
    assert_eq!(bench.count(&web, "worker.resumed"), 1);
    assert_eq!(bench.count(&web, "worker.external"), 0);
    belief_is_truth(&bench, &web);
    journal_agrees(&bench.worker(&web), &bench.journal(&web));
    bench.pass_secs(60);
    assert!(bench.is(&web, StatusKind::Running), "they are still connected");
}

#[test]
fn who_looks_before_the_books_know_takes_it_for_nobody_elses_doing() {
    let (mut bench, web) = asleep(2);
    bench.fleet().head_start(&web, edge(1), &mut || ()).unwrap();
    // The door is slow to tell.
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.count(&web, "worker.external"), 0);
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.connections(&id, edge(1)).await }).unwrap();
    bench.pass_until("it runs by the book", |bench| bench.is(&web, StatusKind::Running));
    assert_eq!(bench.count(&web, "worker.external"), 0);
}

#[test]
fn an_order_finds_a_worker_that_is_being_woken() {
    let (mut bench, web) = asleep(3);
    bench.fleet().head_start(&web, edge(1), &mut || ()).unwrap();
    let id = web.clone();
    let stopped = bench.ask(|fleet| async move { fleet.stop(&id, order(false)).await });
    let is_told = |refusal: &Refusal| matches!(refusal, Refusal::InTransition { status, .. } if *status == StatusKind::Waking);
    assert!(matches!(&stopped, Err(ControlError::Refused(refusal)) if is_told(refusal)), "{stopped:?}");
    assert_eq!(bench.power(&web), Power::Running);
    // What was refused is not written, and so neither is what the door did; the next one tells again.
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.connections(&id, edge(1)).await }).unwrap();
    bench.pass_until("it runs by the book", |bench| bench.is(&web, StatusKind::Running));
    belief_is_truth(&bench, &web);
}

#[test]
fn a_stop_that_falls_due_does_not_hit_whoever_went_ahead() {
    let (mut bench, web) = asleep(4);
    // Just before `stop_after` is over.
    bench.pass_secs(5 * 60 - 2);
    assert!(bench.is(&web, StatusKind::Paused));
    bench.fleet().head_start(&web, edge(1), &mut || ()).unwrap();
    bench.pass_secs(10);
    assert_eq!(bench.power(&web), Power::Running);
    assert_eq!(bench.count(&web, "worker.stopped"), 0);
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.connections(&id, edge(1)).await }).unwrap();
    bench.pass_until("it runs by the book", |bench| bench.is(&web, StatusKind::Running));
    assert_eq!(bench.count(&web, "worker.external"), 0);
    belief_is_truth(&bench, &web);
}

#[test]
fn what_a_person_put_to_sleep_does_not_go_on_for_a_visitor() {
    let mut bench = Bench::new(5, vec![global(3_600)]);
    let web = bench.add("web", true);
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.pause(&id, order(true)).await }).unwrap();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
    let mut called = || panic!("nobody calls a worker that does not go on");
    assert_eq!(bench.fleet().head_start(&web, edge(1), &mut called), None);
    assert_eq!(bench.power(&web), Power::Paused);
}

#[test]
fn nobody_goes_ahead_to_what_runs_is_stopped_or_unknown() {
    let mut bench = Bench::new(6, vec![global(10)]);
    let web = bench.add("web", true);
    assert_eq!(bench.fleet().head_start(&web, edge(1), &mut || ()), None, "it runs");
    bench.pass_secs(6 * 60);
    assert!(bench.is(&web, StatusKind::Stopped), "{}", bench.summary());
    assert_eq!(bench.fleet().head_start(&web, edge(1), &mut || ()), None, "it is stopped");
    assert_eq!(bench.fleet().head_start(&super::bench::id("nobody"), edge(1), &mut || ()), None);
}

#[test]
fn who_is_killed_before_the_books_know_wakes_it_in_the_next_life() {
    for point in [CrashPoint::BeforeCall("head-start"), CrashPoint::AfterCall("head-start")] {
        let (mut bench, web) = asleep(7);
        *bench.fate.at.lock().unwrap() = Some(point);
        assert_eq!(bench.fleet().head_start(&web, edge(1), &mut || ()), None);
        assert!(bench.is_dead());
        bench.restart(false);
        bench.pass_until("it runs by the book", |bench| bench.is(&web, StatusKind::Running));
        assert_eq!(bench.count(&web, "worker.external"), 0, "{point}: {:?}", bench.kinds(&web));
        assert_eq!(bench.count(&web, "worker.resumed"), 1, "{point}: {:?}", bench.kinds(&web));
        belief_is_truth(&bench, &web);
        journal_agrees(&bench.worker(&web), &bench.journal(&web));
        // And then it is as idle as any other.
        bench.pass_until("it sleeps again", |bench| bench.is(&web, StatusKind::Paused));
        bench.restart(false);
        bench.pass_secs(5);
        assert!(bench.is(&web, StatusKind::Paused), "an old note wakes nobody");
    }
}
