//! The brake: half the fleet went silent, and it may have been us. A fleet that begins has not gone silent.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::status::StatusKind;
use drowse_drivers::sim::Silence;

use super::bench::{Bench, global};

fn fleet(bench: &mut Bench, name: &str, size: usize) -> Vec<WorkerId> {
    (0..size).map(|index| bench.add(&format!("{name}{index:02}"), true)).collect()
}

fn is_braked(bench: &Bench) -> bool {
    bench.ask(|fleet| async move { fleet.brake().await }).unwrap().is_engaged()
}

fn all(bench: &Bench, workers: &[WorkerId], status: StatusKind) -> bool {
    workers.iter().all(|worker| bench.is(worker, status))
}

/// Counters begin with a baseline, and until the second sample a worker is unknown. That is no silence.
#[test]
fn a_fleet_that_begins_does_not_engage_the_brake() {
    let mut bench = Bench::new(1, vec![global(10)]);
    let workers = fleet(&mut bench, "w", 30);
    bench.pass_secs(3);
    assert!(!is_braked(&bench));
    bench.pass_until("all sleep", |bench| all(bench, &workers, StatusKind::Paused));
    assert!(bench.now() <= Timestamp::from_secs(super::bench::START) + Duration::from_secs(15));
}

#[test]
fn nor_does_a_restart_that_finds_a_whole_fleet() {
    let mut bench = Bench::new(2, vec![global(60)]);
    fleet(&mut bench, "w", 30);
    bench.pass_secs(40);
    bench.restart(false);
    bench.pass_secs(20);
    assert!(!is_braked(&bench));
}

#[test]
fn a_fleet_that_falls_silent_at_once_engages_it_and_nobody_is_paused() {
    let mut bench = Bench::new(3, vec![global(60)]);
    let silent = fleet(&mut bench, "a", 20);
    bench.pass_secs(20);
    // Looked at later than the others, so that the others' silence is known by then.
    let quiet = fleet(&mut bench, "b", 10);
    bench.pass_secs(20);
    let until = bench.now() + Duration::from_mins(10);
    for worker in &silent {
        bench.sim.silence(worker, Silence::Down, until);
    }
    bench.pass_secs(25);
    assert!(is_braked(&bench), "{}", bench.summary());
    bench.pass_secs(60);
    assert!(all(&bench, &quiet, StatusKind::Running), "{}", bench.summary());
    assert!(all(&bench, &silent, StatusKind::Running), "{}", bench.summary());
}
