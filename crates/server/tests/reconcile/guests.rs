//! A front door of a former life that still carries connections.

use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::status::StatusKind;
use drowse_server::fleet::Carried;
use drowse_wire::control::{Edge, EdgeCause, Refused};

use super::bench::{Bench, edge, global};

const GUEST: &str = "guest-0f";

fn renew(bench: &mut Bench) {
    bench.ask(|fleet| async move { fleet.renew_guest(GUEST).await }).unwrap();
}

/// So many seconds of a guest that says every five that it is there.
fn pass_with_guest(bench: &mut Bench, seconds: u64) {
    for _ in 0..seconds / 5 {
        bench.pass_secs(5);
        renew(bench);
    }
}

fn tell(bench: &mut Bench, worker: &WorkerId, edge: Edge) -> Result<bool, Refused> {
    let id = worker.clone();
    let fleet = bench.fleet();
    let told = bench.run(async move { fleet.guest_connections(GUEST, &id, edge).await });
    told.expect("it is decided at once").map(|standing| standing.is_awake)
}

#[test]
fn what_a_guest_carries_holds_its_worker_until_the_guest_has_left() {
    let mut bench = Bench::new(4, vec![global(10)]);
    let web = bench.add("web", true);
    renew(&mut bench);
    let carried = Carried { worker: web.clone(), epoch: 7, count: 2 };
    let again = carried.clone();
    bench.ask(|fleet| async move { fleet.guest_carries(GUEST, carried).await }).unwrap();
    pass_with_guest(&mut bench, 60);
    assert!(bench.is(&web, StatusKind::Running), "{}", bench.summary());
    // It comes again, and so do its words.
    bench.ask(|fleet| async move { fleet.guest_carries(GUEST, again).await }).unwrap();
    let nobody = Carried { worker: WorkerId::new("gone").unwrap(), epoch: 8, count: 1 };
    bench.ask(|fleet| async move { fleet.guest_carries(GUEST, nobody).await }).unwrap();
    bench.ask(|fleet| async move { fleet.guest_left(GUEST).await }).unwrap();
    let left_at = bench.now();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
    assert!(bench.now() >= left_at + Duration::from_secs(10), "idleness counts from the end");
    assert!(bench.now() < left_at + Duration::from_secs(20), "and is not unknown");
}

#[test]
fn a_guest_that_is_never_heard_of_again_is_unknown_for_a_minute() {
    let mut bench = Bench::new(4, vec![global(10)]);
    let web = bench.add("web", true);
    renew(&mut bench);
    let began = bench.now();
    assert_eq!(tell(&mut bench, &web, edge(1)), Ok(true));
    bench.pass_secs(70);
    assert!(bench.is(&web, StatusKind::Running), "{}", bench.summary());
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
    assert!(bench.now() >= began + Duration::from_secs(75));
}

#[test]
fn a_guest_wakes_by_the_rules_of_any_door() {
    let mut bench = Bench::new(4, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
    renew(&mut bench);
    let to_the_awake = Edge { cause: EdgeCause::CameToTheAwake, ..edge(1) };
    assert!(matches!(tell(&mut bench, &web, to_the_awake), Err(Refused::NotAllowed { .. })));
    assert_eq!(tell(&mut bench, &web, edge(1)), Ok(false));
    let (fleet, id) = (bench.fleet(), web.clone());
    let waking = bench.spawn(async move { fleet.guest_wake(&id).await });
    bench.pass_until("the wake is over", |_| waking.is_finished());
    bench.finished(waking).unwrap().unwrap();
    assert!(bench.is(&web, StatusKind::Running));
    pass_with_guest(&mut bench, 30);
    assert!(bench.is(&web, StatusKind::Running), "{}", bench.summary());
    tell(&mut bench, &web, edge(0)).unwrap();
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Paused));
    // Whoever has not begun holds nobody, and hears so.
    bench.ask(|fleet| async move { fleet.guest_left(GUEST).await }).unwrap();
    assert!(matches!(tell(&mut bench, &web, edge(1)), Err(Refused::Unavailable { .. })));
}
