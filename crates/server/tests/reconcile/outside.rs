//! What happens behind our back, and drivers that do not do as they are told.

use std::time::Duration;

use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::Power;
use drowse_drivers::sim::{self, Change, Crash, Op, Silence, Span, Takes};
use drowse_server::fleet::Order;

use super::bench::{Bench, edge, global};
use super::law::{belief_is_truth, journal_agrees};

#[test]
fn a_console_stop_is_seen_twice_written_down_and_respected() {
    for hints_get_lost in [false, true] {
        let mut bench = Bench::new(1, vec![global(30)]);
        let web = bench.add("web", true);
        bench.sim.lose_hints(hints_get_lost);
        bench.sim.happens(bench.now() + Duration::from_secs(3), &web, Change::Stopped);
        bench.pass_until("it is stopped", |bench| bench.is(&web, StatusKind::Stopped));
        assert_eq!(bench.count(&web, "worker.external"), 1);
        bench.pass_secs(120);
        assert!(bench.is(&web, StatusKind::Stopped), "it is not fought");
        bench.sim.happens(bench.now(), &web, Change::Started);
        bench.pass_until("it runs", |bench| bench.is(&web, StatusKind::Running));
        let worker = bench.worker(&web);
        assert_eq!((worker.counters.external_pause, worker.counters.external_resume), (1, 1));
        journal_agrees(&worker, &bench.journal(&web));
    }
}

#[test]
fn who_exits_with_an_error_is_started_again_and_who_does_so_too_often_fails() {
    let mut bench = Bench::new(2, vec![global(600)]);
    let web = bench.add("web", true);
    bench.sim.happens(bench.now() + Duration::from_secs(20), &web, Change::Exits { code: 3 });
    bench.pass_until("it exited", |bench| bench.count(&web, "worker.exited") == 1);
    bench.pass_until("it runs again", |bench| bench.is(&web, StatusKind::Running));
    belief_is_truth(&bench, &web);

    let crash = Some(Crash { after: Span::exactly(Duration::from_secs(1)), code: 1 });
    let bad = bench.add_with("bad", true, sim::Spec { crash, ..sim::Spec::default() });
    bench.pass_until("it is given up", |bench| bench.is(&bad, StatusKind::Failed));
    assert_eq!(bench.count(&bad, "worker.exited"), 5);
}

#[test]
fn a_driver_that_refuses_is_asked_three_times() {
    let mut bench = Bench::new(3, vec![global(10)]);
    let web = bench.add("web", true);
    bench.sim.refuse_next(&web, Op::Freeze, "not now");
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    assert_eq!(bench.count(&web, "worker.driver_refused"), 1);

    let api = bench.add("api", true);
    for _ in 0..3 {
        bench.sim.refuse_next(&api, Op::Freeze, "never");
    }
    bench.pass_until("it fails", |bench| bench.count(&api, "worker.failed") == 1);
    // It runs, and that is seen: nobody is left out in the cold for a freeze that was refused.
    bench.pass_until("it is seen running", |bench| bench.is(&api, StatusKind::Running));
}

#[test]
fn a_driver_that_is_silent_makes_a_transition_unknown_at_its_deadline_and_not_for_good() {
    let mut bench = Bench::new(4, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass(Duration::from_millis(9_500));
    let id = web.clone();
    bench.sim.silence(&web, Silence::Deaf, bench.now() + Duration::from_secs(90));
    bench.ask(|fleet| async move { fleet.pause(&id, Order::new("alice")).await }).unwrap();
    bench.pass_until("it is unknown", |bench| bench.is(&web, StatusKind::Unknown));
    bench.pass_until("it is seen again", |bench| !bench.is(&web, StatusKind::Unknown));
    bench.pass_secs(60);
    belief_is_truth(&bench, &web);
}

#[test]
fn a_freeze_whose_answer_is_lost_is_ours_all_the_same() {
    let mut bench = Bench::new(5, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass_until("it is about to be frozen", |bench| {
        bench.now() >= drowse_core::Timestamp::from_secs(super::bench::START) + Duration::from_secs(9)
    });
    bench.sim.silence(&web, Silence::Mute, bench.now() + Duration::from_secs(35));
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.pause(&id, Order::new("alice")).await }).unwrap();
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    assert_eq!(bench.count(&web, "worker.external"), 0, "{:?}", bench.kinds(&web));
    belief_is_truth(&bench, &web);
}

#[test]
fn a_freeze_that_lands_after_it_was_given_up_is_put_down_to_whoever_asked_for_it() {
    let mut bench = Bench::new(6, vec![global(600)]);
    let takes = Takes { freeze: Span::exactly(Duration::from_secs(45)), ..Takes::default() };
    let web = bench.add_with("web", true, sim::Spec { takes, ..sim::Spec::default() });
    bench.pass_secs(9);
    // It arrives, takes too long, and nobody hears of it.
    bench.sim.silence(&web, Silence::Mute, bench.now() + Duration::from_secs(29));
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.pause(&id, Order::new("alice")).await }).unwrap();
    bench.pass_until("it is given up", |bench| bench.is(&web, StatusKind::Running));
    bench.pass_until("it has landed", |bench| bench.power(&web) == Power::Paused);
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    let worker = bench.worker(&web);
    assert_eq!(worker.status.sleep().unwrap().by, "alice");
    assert_eq!((worker.counters.manual_pause, worker.counters.external_pause), (1, 0));
    journal_agrees(&worker, &bench.journal(&web));
}

#[test]
fn an_action_that_only_begins_is_watched_to_its_end() {
    let mut bench = Bench::new(7, vec![global(10)]);
    let takes = Takes { freeze: Span::exactly(Duration::from_secs(3)), ..Takes::default() };
    let spec = sim::Spec { manner: sim::Manner::Begins, takes, ..sim::Spec::default() };
    let web = bench.add_with("web", true, spec);
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    belief_is_truth(&bench, &web);
}

#[test]
fn drain_waits_for_holds_and_can_be_taken_back() {
    let mut bench = Bench::new(8, vec![global(600)]);
    let web = bench.add("web", true);
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.connections(&id, edge(1)).await }).unwrap();
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.drain(&id, Order::new("alice")).await }).unwrap();
    bench.pass_secs(30);
    assert!(matches!(bench.status(&web), Status::Draining { .. }));
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.undrain(&id, "alice").await }).unwrap();
    assert!(bench.is(&web, StatusKind::Running));
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.drain(&id, Order::new("alice")).await }).unwrap();
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.connections(&id, edge(0)).await }).unwrap();
    bench.pass_until("it is gone", |bench| bench.is(&web, StatusKind::Terminated));
}
