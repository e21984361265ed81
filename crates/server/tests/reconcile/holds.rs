//! Reasons to stay awake against decisions to sleep, in every order.

use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::lease::Credential;
use drowse_core::policy::{Key, Value};
use drowse_core::refusal::Refusal;
use drowse_core::status::StatusKind;
use drowse_core::worker::Power;
use drowse_drivers::sim::{self, Span, Takes};
use drowse_server::ControlError;
use drowse_server::fleet::{LeaseAsked, Order, WakeRefused};
use drowse_wire::control::{Edge, EdgeCause};

use super::bench::{Bench, edge, global};
use super::law::{belief_is_truth, journal_agrees};

fn lease(secs: u64) -> LeaseAsked {
    LeaseAsked {
        credential: Credential::new("token"),
        holder: None,
        ttl: Duration::from_secs(secs),
        reason: "build".to_owned(),
    }
}

fn take(bench: &Bench, id: &WorkerId, secs: u64) {
    let id = id.clone();
    bench.ask(|fleet| async move { fleet.take_lease(&id, lease(secs)).await }).unwrap();
}

/// A worker that takes half a second to freeze and to thaw.
fn slow() -> sim::Spec {
    let half = Span::exactly(Duration::from_millis(500));
    sim::Spec { takes: Takes { freeze: half, thaw: half, ..Takes::default() }, ..sim::Spec::default() }
}

#[test]
fn a_lease_that_comes_first_keeps_the_worker_awake() {
    let mut bench = Bench::new(1, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass(Duration::from_micros(9_999_999));
    take(&bench, &web, 20);
    bench.pass_secs(19);
    assert!(bench.is(&web, StatusKind::Running));
    assert_eq!(bench.count(&web, "worker.sleep_intended"), 0);
    let over = bench.now() + Duration::from_secs(1);
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
    assert!(bench.now() >= over + Duration::from_secs(10), "the end of a lease restarts the clock");
    assert_eq!(bench.count(&web, "worker.lease_ended"), 1);
}

#[test]
fn a_lease_that_comes_second_takes_the_pause_back() {
    let mut bench = Bench::new(2, vec![global(10)]);
    let web = bench.add_with("web", true, slow());
    bench.pass_until("it is being frozen", |bench| bench.is(&web, StatusKind::Pausing));
    take(&bench, &web, 20);
    bench.pass_until("it runs", |bench| bench.is(&web, StatusKind::Running));
    assert_eq!(bench.power(&web), Power::Running);
    let kinds = bench.kinds(&web);
    assert!(kinds.contains(&"worker.undone".to_owned()), "{kinds:?}");
    assert!(!kinds.contains(&"worker.paused".to_owned()), "it was called paused: {kinds:?}");
    assert_eq!(bench.worker(&web).counters.auto_pause, 0, "an undo counts nothing");
    journal_agrees(&bench.worker(&web), &bench.journal(&web));
}

#[test]
fn a_lease_wakes_what_is_paused_already() {
    let mut bench = Bench::new(3, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    take(&bench, &web, 20);
    bench.pass_until("it runs", |bench| bench.is(&web, StatusKind::Running));
    assert_eq!(bench.worker(&web).counters.auto_resume, 1);
    belief_is_truth(&bench, &web);
}

#[test]
fn a_connection_while_it_is_being_frozen_wakes_it_without_waiting_for_evidence() {
    let mut bench = Bench::new(4, vec![global(10)]);
    let web = bench.add_with("web", true, slow());
    bench.pass_until("it is being frozen", |bench| bench.is(&web, StatusKind::Pausing));
    let decided = bench.now();
    let (fleet, id) = (bench.fleet(), web.clone());
    let waiting = bench.spawn(async move {
        fleet.connections(&id, edge(1)).await?;
        Ok::<_, WakeRefused>(fleet.wake(&id).await?.status.kind())
    });
    assert!(!waiting.is_finished());
    bench.pass_until("the wake is over", |_| waiting.is_finished());
    assert_eq!(bench.finished(waiting).unwrap().unwrap(), StatusKind::Running);
    assert_eq!(bench.now(), decided + Duration::from_secs(1), "half a second to freeze, half to thaw");
    belief_is_truth(&bench, &web);
    // It holds for as long as it is open.
    bench.pass_secs(60);
    assert!(bench.is(&web, StatusKind::Running));
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.connections(&id, edge(0)).await }).unwrap();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
}

#[test]
fn a_connection_while_evidence_is_waited_for_does_not_wait_for_it() {
    let mut bench = Bench::new(7, vec![global(10)]);
    let web = bench.add_with("web", true, slow());
    bench.pass_until("it is being frozen", |bench| bench.is(&web, StatusKind::Pausing));
    // It is frozen by now, and is called paused after a second.
    bench.pass(Duration::from_millis(700));
    assert_eq!(bench.power(&web), Power::Paused);
    let came_at = bench.now();
    let (fleet, id) = (bench.fleet(), web.clone());
    let waiting = bench.spawn(async move {
        fleet.connections(&id, edge(1)).await?;
        Ok::<_, WakeRefused>(fleet.wake(&id).await?.status.kind())
    });
    bench.pass_until("the wake is over", |_| waiting.is_finished());
    assert_eq!(bench.finished(waiting).unwrap().unwrap(), StatusKind::Running);
    assert_eq!(bench.now(), came_at + Duration::from_millis(500), "half a second to thaw");
    belief_is_truth(&bench, &web);
}

#[test]
fn however_many_wait_it_is_woken_once() {
    let mut bench = Bench::new(5, vec![global(10)]);
    let web = bench.add_with("web", true, slow());
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let (fleet, id) = (bench.fleet(), web.clone());
            bench.spawn(async move { fleet.wake(&id).await.map(|worker| worker.status.kind()) })
        })
        .collect();
    bench.pass_until("all are served", |_| waiting.iter().all(tokio::task::JoinHandle::is_finished));
    for wake in waiting {
        assert_eq!(bench.finished(wake).unwrap().unwrap(), StatusKind::Running);
    }
    assert_eq!(bench.count(&web, "worker.wake_intended"), 1);
}

#[test]
fn bytes_that_arrive_while_it_is_being_frozen_take_the_pause_back() {
    // Before the freeze, during it, and after it but before it is called paused.
    for after in [0, 100, 499, 700, 999] {
        let mut bench = Bench::new(6, vec![global(10)]);
        let web = bench.add_with("web", true, slow());
        bench.pass_until("it is being frozen", |bench| bench.is(&web, StatusKind::Pausing));
        bench.pass(Duration::from_millis(after));
        assert!(bench.fleet().saw_bytes(&web));
        bench.pass_secs(3);
        assert!(bench.is(&web, StatusKind::Running), "{after} ms: {:?}", bench.kinds(&web));
        assert_eq!(bench.count(&web, "worker.paused"), 0, "{after} ms");
        belief_is_truth(&bench, &web);
    }
}

/// Somebody comes while the check that decides is under way: it has looked at the holds already.
#[test]
fn whoever_comes_during_the_check_that_decides_is_not_overlooked() {
    for who in ["bytes", "lease", "connection", "connection that is gone again"] {
        let mut bench = Bench::new(12, vec![global(10)]);
        let takes = Takes { read: Span::exactly(Duration::from_millis(300)), ..Takes::default() };
        let web = bench.add_with("web", true, sim::Spec { takes, ..sim::Spec::default() });
        let read = |bench: &Bench| bench.fleet().metrics().checks;
        bench.pass_secs(9);
        let checks = read(&bench);
        bench.pass_until("the next check is under way", |bench| read(bench) > checks);
        assert!(bench.is(&web, StatusKind::Running));
        bench.pass(Duration::from_millis(100));
        let id = web.clone();
        match who {
            "bytes" => assert!(bench.fleet().saw_bytes(&web)),
            "lease" => take(&bench, &web, 5),
            _ => {
                bench.ask(|fleet| async move { fleet.connections(&id, edge(1)).await }).unwrap();
            }
        }
        if who == "connection that is gone again" {
            let id = web.clone();
            bench.ask(|fleet| async move { fleet.connections(&id, edge(0)).await }).unwrap();
        }
        bench.pass_secs(4);
        assert_eq!(bench.count(&web, "worker.sleep_intended"), 0, "{who}: {}", bench.summary());
    }
}

#[test]
fn bytes_at_the_instant_of_the_decision_are_not_overlooked() {
    let mut bench = Bench::new(7, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass(Duration::from_micros(9_999_999));
    assert!(bench.fleet().saw_bytes(&web));
    bench.pass_secs(8);
    assert_eq!(bench.count(&web, "worker.sleep_intended"), 0);
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
}

#[test]
fn what_a_person_put_to_sleep_waits_for_a_person() {
    let mut bench = Bench::new(8, vec![global(10)]);
    let web = bench.add("web", true);
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.pause(&id, Order::new("alice")).await }).unwrap();
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    let (fleet, id) = (bench.fleet(), web.clone());
    let refused = bench.run(async move { fleet.wake(&id).await }).expect("refused at once");
    assert!(matches!(refused, Err(WakeRefused::Refused(Refusal::WakeNotAllowed { .. }))));
    let id = web.clone();
    let refused = bench.ask(|fleet| async move { fleet.connections(&id, edge(1)).await });
    assert!(matches!(refused, Err(ControlError::Refused(Refusal::WakeNotAllowed { .. }))));
    // Whoever may not wake it anyway hears whose sleep it is, too.
    let (id, comes) = (web.clone(), Edge { cause: EdgeCause::CameToTheAwake, ..edge(1) });
    let refused = bench.ask(|fleet| async move { fleet.connections(&id, comes).await });
    assert!(matches!(refused, Err(ControlError::Refused(Refusal::WakeNotAllowed { .. }))));
    let id = web.clone();
    let refused = bench.ask(|fleet| async move { fleet.take_lease(&id, lease(10)).await });
    assert!(matches!(refused, Err(ControlError::Refused(Refusal::WakeNotAllowed { .. }))));
    let id = web.clone();
    assert!(bench.ask(|fleet| async move { fleet.holds(&id).await }).unwrap().is_empty());
    let id = web.clone();
    bench.ask(|fleet| async move { fleet.resume(&id, "alice", "").await }).unwrap();
    bench.pass_until("it runs", |bench| bench.is(&web, StatusKind::Running));
    assert_eq!(bench.worker(&web).counters.manual_resume, 1);
    assert_eq!(bench.fleet().metrics().regretted, 1);
}

#[test]
fn a_persons_pause_over_a_lease_needs_force() {
    let mut bench = Bench::new(9, vec![global(10)]);
    let web = bench.add("web", true);
    take(&bench, &web, 60);
    let id = web.clone();
    let refused = bench.ask(|fleet| async move { fleet.pause(&id, Order::new("alice")).await });
    assert!(matches!(refused, Err(ControlError::Refused(Refusal::Held { .. }))));
    let id = web.clone();
    let order = Order { force: true, ..Order::new("alice") };
    bench.ask(|fleet| async move { fleet.pause(&id, order).await }).unwrap();
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
}

#[test]
fn keep_awake_keeps_it_and_wakes_it() {
    let mut bench = Bench::new(10, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    let id = web.clone();
    let length = Duration::from_secs(30);
    bench.ask(|fleet| async move { fleet.snooze(&id, "alice", "demo", length).await }).unwrap();
    bench.pass_until("it runs", |bench| bench.is(&web, StatusKind::Running));
    bench.pass_secs(29);
    assert!(bench.is(&web, StatusKind::Running));
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
}

#[test]
fn a_hook_that_says_no_is_heard_and_one_that_is_overtaken_is_not_waited_for() {
    let hook = Value::Command(vec!["true".to_owned()]);
    let mut bench = Bench::new(11, vec![global(10).with(Key::BeforePause, hook)]);
    let takes = Takes { hook: Span::exactly(Duration::from_secs(5)), ..Takes::default() };
    let web = bench.add_with("web", true, sim::Spec { takes, ..sim::Spec::default() });
    bench.sim.hook_ends_with(&web, 1);
    bench.pass_until("the hook has said no", |bench| bench.count(&web, "worker.hook_vetoed") == 1);
    bench.pass_until("it runs", |bench| bench.is(&web, StatusKind::Running));
    assert_eq!(bench.count(&web, "worker.paused"), 0);

    bench.pass_until("the hook runs again", |bench| bench.is(&web, StatusKind::Pausing));
    let asked = bench.now();
    let (fleet, id) = (bench.fleet(), web.clone());
    let waiting = bench.spawn(async move { fleet.wake(&id).await.map(|worker| worker.status.kind()) });
    bench.pass_until("it is served", |_| waiting.is_finished());
    assert_eq!(bench.finished(waiting).unwrap().unwrap(), StatusKind::Running);
    assert!(bench.now() < asked + Duration::from_secs(1), "it waited for the hook");
}
