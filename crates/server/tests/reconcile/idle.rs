//! Idleness: paused at its deadline, explained, warned of, and never for want of evidence.

use std::time::Duration;

use drowse_core::policy::{Key, Value};
use drowse_core::reason::PauseReason;
use drowse_core::signal::Signal;
use drowse_core::status::StatusKind;
use drowse_core::worker::Power;
use drowse_drivers::sim::{Load, Silence};

use super::bench::{Bench, global};
use super::law::belief_is_truth;

fn codes(bench: &Bench, id: &drowse_core::id::WorkerId) -> Vec<&'static str> {
    let worker = id.clone();
    let explanation = bench.ask(|fleet| async move { fleet.explain(&worker).await }).unwrap();
    explanation.reasons.iter().map(|reason| reason.code).collect()
}

#[test]
fn an_idle_worker_is_paused_at_its_deadline_and_explain_says_why() {
    let mut bench = Bench::new(1, vec![global(10)]);
    let web = bench.add("web", true);
    let began = bench.now();
    assert!(bench.is(&web, StatusKind::Running));

    bench.pass_secs(7);
    assert!(codes(&bench, &web).contains(&"not_idle_yet"));
    let worker = web.clone();
    let status = bench.ask(|fleet| async move { fleet.idle_status(&worker).await }).unwrap();
    assert_eq!(status.target_pause_at, Some(began + Duration::from_secs(10)));

    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    let journal = bench.journal(&web);
    let intended = journal.iter().find(|stored| stored.event.kind == "worker.sleep_intended").unwrap();
    assert_eq!(intended.event.at, began + Duration::from_secs(10), "neither sooner nor later");
    let paused = journal.iter().find(|stored| stored.event.kind == "worker.paused").unwrap();
    assert!(paused.event.at >= intended.event.at + Duration::from_secs(1), "one flush between the two");
    assert!(codes(&bench, &web).contains(&"not_running"));
    belief_is_truth(&bench, &web);
    assert_eq!(bench.fleet().metrics().pauses.values().sum::<u64>(), 1);
}

/// They are read in one view, and one that cannot be read fails the whole of it.
#[test]
fn what_is_damaged_of_one_concerns_nobody_who_is_due_together_with_it() {
    let mut bench = Bench::new(1, vec![global(10)]);
    let all: Vec<_> = (0..20).map(|number| bench.add(&format!("w{number}"), true)).collect();
    let file = rusqlite::Connection::open(bench.file()).unwrap();
    let damaged = file.execute("UPDATE checked SET doc = '{' WHERE worker_id = 'w7'", []).unwrap();
    assert_eq!(damaged, 1);
    bench.pass_secs(15);
    for worker in &all {
        let power = if worker.as_str() == "w7" { Power::Running } else { Power::Paused };
        assert_eq!(bench.power(worker), power, "{worker}");
    }
    assert!(bench.fleet().metrics().failed_checks > 0);
}

#[test]
fn checks_that_nobody_has_to_wait_for_come_together() {
    let layer = global(600).with(Key::CheckInterval, Value::Duration(Duration::from_secs(30)));
    let mut bench = Bench::new(1, vec![layer]);
    for number in 0..5 {
        bench.add(&format!("w{number}"), true);
        bench.pass(Duration::from_millis(137));
    }
    bench.pass_secs(40);
    let before = bench.fleet().metrics().checks;
    let whole = bench.now().to_the_second() + Duration::from_secs(32);
    let mut instants = std::collections::BTreeSet::new();
    let mut seen = before;
    while bench.now() < whole {
        bench.step(whole);
        if bench.fleet().metrics().checks != seen {
            seen = bench.fleet().metrics().checks;
            instants.insert(bench.now());
        }
    }
    assert!(seen - before >= 5, "{seen} after {before}");
    assert!(instants.iter().all(|at| *at == at.to_the_second()), "{instants:?}");
}

#[test]
fn a_busy_worker_stays_awake_and_sleeps_one_timeout_after_its_work() {
    let mut bench = Bench::new(2, vec![global(10)]);
    let web = bench.add("web", true);
    bench.sim.load(&web, Signal::Cpu, Load::PerSecond(500_000));
    bench.pass_secs(60);
    assert!(bench.is(&web, StatusKind::Running));
    assert!(codes(&bench, &web).contains(&"recent_activity"));
    let ended = bench.now();
    bench.sim.load(&web, Signal::Cpu, Load::PerSecond(0));
    bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
    assert!(bench.now() >= ended + Duration::from_secs(10));
}

#[test]
fn nobody_sleeps_for_want_of_evidence_and_somebody_is_told() {
    let layer = global(10).with(Key::UnknownAlertAfter, Value::Duration(Duration::from_mins(1)));
    let mut bench = Bench::new(3, vec![layer]);
    let web = bench.add("web", true);
    bench.pass_secs(3);
    bench.sim.load(&web, Signal::Cpu, Load::Unreadable);
    bench.pass_secs(300);
    assert!(bench.is(&web, StatusKind::Running));
    assert!(codes(&bench, &web).contains(&"unknown_signal"));
    assert_eq!(bench.count(&web, "worker.unknown_alert"), 1);
}

#[test]
fn time_that_nobody_observed_is_idle_only_if_the_counter_says_so() {
    for (load, least) in [(0, 0), (500_000, 10)] {
        let mut bench = Bench::new(3, vec![global(10)]);
        let web = bench.add("web", true);
        bench.pass_secs(6);
        bench.sim.silence(&web, Silence::Down, bench.now() + Duration::from_mins(5));
        bench.sim.load(&web, Signal::Cpu, Load::PerSecond(load));
        bench.pass_secs(60);
        bench.sim.load(&web, Signal::Cpu, Load::PerSecond(0));
        bench.pass_secs(240);
        assert!(bench.is(&web, StatusKind::Running));
        let back = bench.now();
        bench.pass_until("it sleeps", |bench| bench.is(&web, StatusKind::Pausing));
        assert!(bench.now() >= back + Duration::from_secs(least), "load {load}");
    }
}

#[test]
fn in_observe_mode_nothing_is_touched_and_it_is_said_once() {
    let mut bench = Bench::new(4, vec![global(10).with(Key::AutoPause, Value::Flag(false))]);
    let web = bench.add("web", true);
    bench.pass_secs(120);
    assert!(bench.is(&web, StatusKind::Running));
    assert_eq!(bench.power(&web), Power::Running);
    assert_eq!(bench.count(&web, "worker.would_pause"), 1, "{:?}", bench.kinds(&web));
    bench.sim.load(&web, Signal::Cpu, Load::PerSecond(500_000));
    bench.pass_secs(10);
    bench.sim.load(&web, Signal::Cpu, Load::PerSecond(0));
    bench.pass_secs(60);
    assert_eq!(bench.count(&web, "worker.would_pause"), 2, "another episode");
}

#[test]
fn who_has_no_door_is_warned_before() {
    let mut bench = Bench::new(5, vec![global(100)]);
    let job = bench.add("job", false);
    bench.pass_until("it sleeps", |bench| bench.is(&job, StatusKind::Paused));
    let kinds = bench.kinds(&job);
    let warned = kinds.iter().position(|kind| kind == "worker.warned").expect("nobody was warned");
    assert!(warned < kinds.iter().position(|kind| kind == "worker.sleep_intended").unwrap());
}

/// Between checks nobody counts the fleet: whoever lists it hears what its people were told.
#[test]
fn who_was_told_of_a_deletion_is_listed_as_one_that_is_to_be_deleted() {
    let layer = global(100).with(Key::ScaleDown, Value::Flag(true));
    let mut bench = Bench::new(8, vec![layer.with(Key::ScaleDownCooldown, Value::Duration(Duration::ZERO))]);
    let job = bench.add("job", true);
    let reason = |bench: &Bench| {
        let worker = job.clone();
        bench.ask(|fleet| async move { fleet.get(&worker).await }).unwrap().verdict.target_pause_reason
    };
    bench.pass_until("people are told", |bench| bench.count(&job, "worker.warned") > 0);
    assert!(bench.is(&job, StatusKind::Running));
    assert_eq!(reason(&bench), Some(PauseReason::ScaleDown));
}

#[test]
fn a_frozen_worker_sinks_deeper() {
    let layer = global(10).with(Key::StopAfter, Value::Duration(Duration::from_secs(30)));
    let mut bench = Bench::new(6, vec![layer]);
    let web = bench.add("web", true);
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    let paused = bench.now();
    bench.pass_until("it is stopped", |bench| bench.is(&web, StatusKind::Stopped));
    assert!(bench.now() >= paused + Duration::from_secs(30));
    belief_is_truth(&bench, &web);
    assert_eq!(bench.worker(&web).counters.auto_pause, 1, "paused to stopped counts nothing");
}

#[test]
fn a_check_on_demand_tells_what_is_so_and_acts_on_it() {
    let mut bench = Bench::new(7, vec![global(10)]);
    let web = bench.add("web", true);
    bench.pass_secs(7);
    let worker = web.clone();
    let found = bench.ask(|fleet| async move { fleet.detect_idle(&worker).await }).unwrap();
    assert!(!found.status.is_idle);
    assert_eq!(found.paused_for, None);
    assert!(found.reasons.contains(&"not_idle_yet"));
    assert_eq!(found.status.checked_at, Some(bench.now()));
}

#[test]
fn history_is_kept_for_as_long_as_was_said() {
    let mut bench = Bench::new(3, vec![global(10)]);
    let web = bench.add("web", true);
    bench.fleet().keep_history_for(Duration::from_mins(5));
    bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
    let paused = bench.now();
    let oldest = |bench: &Bench| bench.journal(&web).first().map(|stored| stored.event.at);
    bench.pass_secs(240);
    assert!(oldest(&bench).is_some_and(|at| at < paused), "it is not old enough");
    bench.pass_secs(120);
    assert!(oldest(&bench).is_none_or(|at| at > paused), "{:?}", oldest(&bench));
    belief_is_truth(&bench, &web);
}
