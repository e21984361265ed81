//! What others do to a worker just when Drowse is about to end or to delete it is respected.

use std::time::Duration;

use drowse_core::policy::{Key, PolicyLayer, Value};
use drowse_core::reason::SleepMode;
use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::Power;
use drowse_drivers::sim::{self, Change, OnTerm, Silence, Span, Takes};
use drowse_server::fleet::Order;

use super::bench::{Bench, global};

fn stops(seconds: u64) -> PolicyLayer {
    global(seconds).with(Key::Sleep, Value::Sleep(SleepMode::Stop))
}

fn deletes_after(seconds: u64) -> PolicyLayer {
    stops(10).with(Key::TerminateAfter, Value::Duration(Duration::from_secs(seconds)))
}

#[test]
fn a_sleeper_that_cannot_be_seen_is_not_deleted() {
    let mut bench = Bench::shared(1, vec![deletes_after(60)]);
    let web = bench.add("web", true);
    bench.pass_until("it is stopped", |bench| bench.is(&web, StatusKind::Stopped));
    // Somebody starts it while the engine does not answer.
    bench.sim.lose_hints(true);
    bench.sim.silence(&web, Silence::Down, bench.now() + Duration::from_secs(1_000));
    bench.sim.happens(bench.now() + Duration::from_secs(1), &web, Change::Started);
    bench.pass_secs(900);
    assert!(bench.is(&web, StatusKind::Stopped), "{}", bench.summary());
    bench.pass_until("it is seen", |bench| bench.is(&web, StatusKind::Running));
    assert_eq!(bench.count(&web, "worker.terminate_intended"), 0);
}

#[test]
fn a_sleeper_that_is_started_before_its_deletion_is_not_deleted() {
    let mut bench = Bench::shared(2, vec![deletes_after(60)]);
    let takes = Takes { observe: Span::exactly(Duration::from_secs(1)), ..Takes::default() };
    let web = bench.add_with("web", true, sim::Spec { takes, ..sim::Spec::default() });
    bench.pass_until("it is stopped", |bench| bench.is(&web, StatusKind::Stopped));
    bench.sim.lose_hints(true);
    bench.pass_until("it is to be deleted", |bench| bench.is(&web, StatusKind::Terminating));
    // The last look is on its way and does not show this; the driver is asked a second later.
    bench.sim.happens(bench.now(), &web, Change::Started);
    bench.pass_until("it is spared", |bench| bench.is(&web, StatusKind::Running));
    assert_eq!(bench.power(&web), Power::Running, "{}", bench.summary());
    assert_eq!(bench.count(&web, "worker.terminate_undone"), 1);
    bench.pass_secs(5);
    assert_eq!(bench.power(&web), Power::Running, "{}", bench.summary());
}

#[test]
fn a_deletion_is_announced_and_what_others_put_to_sleep_is_theirs() {
    let mut bench = Bench::shared(5, vec![deletes_after(100)]);
    let web = bench.add("web", true);
    let theirs = bench.add("theirs", true);
    bench.sim.happens(bench.now() + Duration::from_secs(1), &theirs, Change::Stopped);
    bench.pass_until("it is gone", |bench| bench.is(&web, StatusKind::Terminated));
    let journal = bench.journal(&web);
    let of = |kind: &str| journal.iter().rfind(|stored| stored.event.kind == kind).expect(kind);
    let (warned, intended) = (of("worker.warned"), of("worker.terminate_intended"));
    assert_eq!(warned.event.doc["kind"], "terminate_after");
    assert!(intended.event.at >= warned.event.at + Duration::from_secs(20), "{}", bench.summary());
    bench.pass_secs(1_000);
    assert!(bench.is(&theirs, StatusKind::Stopped), "{}", bench.summary());
    assert_eq!(bench.count(&theirs, "worker.warned"), 0);
}

#[test]
fn an_after_resume_hook_that_fails_is_journalled() {
    let hook = Value::Command(vec!["true".to_owned()]);
    let mut bench = Bench::new(6, vec![global(10).with(Key::AfterResume, hook)]);
    let web = bench.add("web", true);
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    bench.sim.hook_ends_with(&web, 7);
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.resume(&id, "alice", "").await }).unwrap();
    bench.pass_until("it is journalled", |bench| bench.count(&web, "worker.hook_failed") == 1);
    let journal = bench.journal(&web);
    let failed = journal.iter().find(|stored| stored.event.kind == "worker.hook_failed").unwrap();
    assert_eq!(failed.event.doc["hook"], "after_resume");
    assert!(failed.event.doc["error"].as_str().unwrap().contains("exit code 7"));
    assert!(bench.is(&web, StatusKind::Running));
}

#[test]
fn a_run_that_is_begun_by_hand_during_a_stop_is_not_stopped() {
    // A stop that Drowse decided, and one that a person ordered.
    for is_ordered in [false, true] {
        let mut bench = Bench::shared(3, vec![stops(10)]);
        let on_term = OnTerm::Ends { after: Duration::from_secs(20), code: 0 };
        let web = bench.add_with("web", true, sim::Spec { on_term, ..sim::Spec::default() });
        if is_ordered {
            let id = web.clone();
            bench.ask(|fleet| async move { fleet.stop(&id, Order::new("alice")).await }).unwrap();
        }
        bench.pass_until("it is being stopped", |bench| bench.is(&web, StatusKind::Stopping));
        bench.pass_secs(2);
        // `docker restart`
        bench.sim.happens(bench.now(), &web, Change::Stopped);
        bench.sim.happens(bench.now(), &web, Change::Started);
        bench.pass_until("it runs", |bench| bench.is(&web, StatusKind::Running));
        assert_eq!(bench.power(&web), Power::Running, "{}", bench.summary());
        assert_eq!(bench.count(&web, "worker.stopped"), 0, "{}", bench.summary());
        assert_eq!(bench.worker(&web).boot.unwrap().0, "sim:web:2");
    }
}

#[test]
fn what_is_thawed_by_hand_is_not_stopped_for_having_been_frozen() {
    let stop_after = Value::Duration(Duration::from_secs(30));
    let mut bench = Bench::shared(4, vec![global(10).with(Key::StopAfter, stop_after)]);
    let takes = Takes { observe: Span::exactly(Duration::from_secs(1)), ..Takes::default() };
    let web = bench.add_with("web", true, sim::Spec { takes, ..sim::Spec::default() });
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    bench.sim.lose_hints(true);
    let Status::Paused { since, .. } = bench.status(&web) else { panic!("{}", bench.summary()) };
    bench.pass_until("its last check has begun", |bench| bench.now() >= since + Duration::from_secs(29));
    // The check has looked, and sees a frozen worker; the last look sees another.
    bench.sim.happens(bench.now() + Duration::from_millis(500), &web, Change::Thawed);
    bench.pass_secs(10);
    assert_eq!(bench.power(&web), Power::Running, "{}", bench.summary());
    assert!(bench.is(&web, StatusKind::Running), "{}", bench.summary());
    assert_eq!(bench.worker(&web).counters.external_resume, 1, "{}", bench.summary());
}
