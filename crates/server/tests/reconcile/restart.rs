//! The program dies and comes back: nothing stays half done, and nobody suffers for its absence.

use std::collections::BTreeSet;
use std::time::Duration;

use drowse_core::lease::Credential;
use drowse_core::status::StatusKind;
use drowse_drivers::sim::{self, Span, Takes};
use drowse_server::crash::CrashPoint;
use drowse_server::fleet::LeaseAsked;

use super::bench::{Bench, edge, global};
use super::law::{belief_is_truth, journal_agrees};

#[test]
fn nobody_is_paused_early_because_of_a_restart() {
    let mut bench = Bench::new(1, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass_secs(9);
    bench.restart(false);
    let back = bench.now();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
    assert!(bench.now() >= back + Duration::from_secs(10), "what nobody watched is not idle time");
}

#[test]
fn nobody_is_paused_early_because_of_an_outage() {
    let mut bench = Bench::new(2, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass_secs(5);
    // Nobody ticks for an hour.
    let later = bench.now() + Duration::from_hours(1);
    bench.clock.set(later);
    bench.sim.tick(later);
    bench.restart(false);
    let back = bench.now();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
    assert!(bench.now() >= back + Duration::from_secs(10));
}

#[test]
fn a_lease_lives_through_an_outage_for_its_own_ttl() {
    let mut bench = Bench::new(3, vec![global(10)]);
    let web = bench.add("web", true);
    let id = web.clone();
    let asked = LeaseAsked {
        credential: Credential::new("token"),
        holder: None,
        ttl: Duration::from_secs(20),
        reason: String::new(),
    };
    bench.ask(|fleet| async move { fleet.take_lease(&id, asked).await }).unwrap();
    bench.pass_secs(5);
    let later = bench.now() + Duration::from_mins(10);
    bench.clock.set(later);
    bench.sim.tick(later);
    bench.restart(false);
    let back = bench.now();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
    assert!(bench.now() >= back + Duration::from_secs(30), "the TTL once more, and then the timeout");
}

#[test]
fn a_lease_lives_through_a_stall_of_ours_for_its_own_ttl() {
    let mut bench = Bench::new(4, vec![global(10)]);
    let web = bench.add("web", true);
    let id = web.clone();
    let asked = LeaseAsked {
        credential: Credential::new("token"),
        holder: None,
        ttl: Duration::from_secs(20),
        reason: String::new(),
    };
    bench.ask(|fleet| async move { fleet.take_lease(&id, asked).await }).unwrap();
    bench.pass_secs(5);
    // Stopped by hand for ten minutes: nobody could renew anything.
    let back = bench.now() + Duration::from_mins(10);
    bench.clock.set(back);
    bench.sim.tick(back);
    bench.tick();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
    assert!(bench.now() >= back + Duration::from_secs(30), "the TTL once more, and then the timeout");
    // Without a stall it ends as ever: no lease lives on by our own passing by.
    bench.pass_until("it is frozen", |bench| bench.is(&web, StatusKind::Paused));
}

#[test]
fn a_pause_that_nobody_can_vouch_for_is_taken_back() {
    for leaves in [false, true] {
        let mut bench = Bench::new(5, vec![global(10)]);
        let web = bench.add_with("web", true, slow());
        *bench.fate.at.lock().unwrap() = Some(CrashPoint::AfterCall("freeze"));
        while !bench.is_dead() {
            bench.step(bench.now() + Duration::from_secs(1));
        }
        bench.restart(leaves);
        bench.pass_until("it runs", |bench| bench.is(&web, StatusKind::Running));
        belief_is_truth(&bench, &web);
        let kinds = bench.kinds(&web);
        assert!(kinds.contains(&"worker.undone".to_owned()), "{kinds:?}");
        assert!(!kinds.contains(&"worker.paused".to_owned()), "{kinds:?}");
    }
}

/// A worker that takes its time, so that there is something to be interrupted.
fn slow() -> sim::Spec {
    let takes = |ms| Span::exactly(Duration::from_millis(ms));
    let takes = Takes {
        observe: takes(3),
        freeze: takes(200),
        thaw: takes(150),
        start: takes(300),
        stop: takes(250),
        read: takes(5),
        hook: takes(10),
    };
    sim::Spec { takes, ..sim::Spec::default() }
}

/// One pause and one wake. Answers whether the program lived through it.
fn pause_and_wake(bench: &mut Bench, name: &str) -> bool {
    let web = super::bench::id(name);
    let until = bench.now() + Duration::from_secs(14);
    while bench.now() < until {
        if bench.is_dead() {
            return false;
        }
        bench.step(until);
    }
    if bench.is_dead() {
        return false;
    }
    let (fleet, id) = (bench.fleet(), web);
    let waiting = bench.spawn(async move {
        let _ = fleet.connections(&id, edge(1)).await;
        let _ = fleet.wake(&id).await;
    });
    let until = bench.now() + Duration::from_secs(5);
    while bench.now() < until && !bench.is_dead() {
        bench.step(until);
    }
    drop(waiting);
    !bench.is_dead()
}

fn points() -> BTreeSet<CrashPoint> {
    let mut bench = Bench::new(4, vec![global(10)]);
    bench.add_with("web", true, slow());
    bench.pass_secs(1);
    bench.fate.passed.lock().unwrap().clear();
    assert!(pause_and_wake(&mut bench, "web"));
    let passed = bench.fate.passed.lock().unwrap().clone();
    assert!(passed.contains(&CrashPoint::AfterCall("freeze")), "{passed:?}");
    assert!(passed.contains(&CrashPoint::AfterCall("thaw")), "{passed:?}");
    passed
}

#[test]
fn death_at_any_point_of_a_pause_or_a_wake_leaves_nothing_half_done() {
    // Armed at once or a little later, so that it is not always the same passing of a point.
    for (point, (armed_after, leaves)) in
        points().into_iter().flat_map(|point| [(1, false), (10, true)].map(|how| (point, how)))
    {
        let what = format!("{point}, armed after {armed_after} s, leaves its calls behind: {leaves}");
        let mut bench = Bench::new(4, vec![global(10)]);
        let web = bench.add_with("web", true, slow());
        bench.pass_secs(armed_after);
        *bench.fate.at.lock().unwrap() = Some(point);
        if !pause_and_wake(&mut bench, "web") {
            bench.restart(leaves);
        }
        bench.pass_secs(2);
        let id = web.clone();
        if let Err(refused) = bench.ask(|fleet| async move { fleet.connections(&id, edge(1)).await }) {
            panic!("{what}: a connection was refused: {refused}, {}", bench.summary());
        }
        bench.pass_until(&format!("{what}: it runs"), |bench| bench.is(&web, StatusKind::Running));
        bench.pass_secs(12);
        assert!(bench.is(&web, StatusKind::Running), "{what}: {}", bench.summary());
        belief_is_truth(&bench, &web);
        let id = web.clone();
        bench.ask(|fleet| async move { fleet.connections(&id, edge(0)).await }).unwrap();
        // What hung on the old program's door is unknown for a minute; then it sleeps.
        bench.pass_until(&format!("{what}: it sleeps"), |bench| bench.is(&web, StatusKind::Paused));
        belief_is_truth(&bench, &web);
        journal_agrees(&bench.worker(&web), &bench.journal(&web));
    }
}

/// The program stands still while a check is under way: what that reads is old, and nobody has looked meanwhile.
#[test]
fn a_check_that_was_under_way_when_everything_stood_still_decides_nothing() {
    let takes = Takes { read: Span::exactly(Duration::from_millis(500)), ..Takes::default() };
    let mut bench = Bench::new(6, vec![global(10)]);
    let web = bench.add_with("web", true, sim::Spec { takes, ..sim::Spec::default() });
    bench.pass_secs(1);
    bench.fate.passed.lock().unwrap().clear();
    bench.pass_until("its signals are being read", |bench| {
        bench.fate.passed.lock().unwrap().contains(&CrashPoint::BeforeCall("read"))
    });
    // Longer than the timeout, and not so long that its front door is taken for lost.
    let later = bench.now() + Duration::from_secs(11);
    bench.clock.set(later);
    bench.sim.tick(later);
    // The check goes on before the loop does.
    bench.settle();
    assert!(bench.is(&web, StatusKind::Running), "{}", bench.summary());
    bench.tick();
    let brake = bench.ask(|fleet| async move { fleet.brake().await }).unwrap();
    assert!(brake.is_engaged());
    bench.pass_secs(60);
    assert!(bench.is(&web, StatusKind::Running), "{}", bench.summary());
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
}

#[test]
fn a_lease_lives_through_a_standstill_for_its_own_ttl() {
    let mut bench = Bench::new(7, vec![global(10)]);
    let web = bench.add("web", true);
    let id = web.clone();
    let ttl = Duration::from_secs(200);
    let asked = LeaseAsked { credential: Credential::new("token"), holder: None, ttl, reason: String::new() };
    bench.ask(|fleet| async move { fleet.take_lease(&id, asked).await }).unwrap();
    bench.pass_secs(5);
    let later = bench.now() + Duration::from_hours(1);
    bench.clock.set(later);
    bench.sim.tick(later);
    bench.tick();
    // Longer than the brake is on, which would hide it.
    bench.pass_secs(199);
    assert!(bench.is(&web, StatusKind::Running), "{}", bench.summary());
    assert_eq!(bench.count(&web, "worker.lease_ended"), 0, "{}", bench.summary());
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
    assert_eq!(bench.count(&web, "worker.lease_ended"), 1, "{}", bench.summary());
}
