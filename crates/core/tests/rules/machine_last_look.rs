//! The last look before a sleep: what came too late for the verdict.

use drowse_core::event::Event;
use drowse_core::hold::{HoldKind, KeepAlive};
use drowse_core::id::BootId;
use drowse_core::journal::Entry;
use drowse_core::machine::LastLook;
use drowse_core::reason::SleepMode;
use drowse_core::signal::DriverKind;
use drowse_core::status::StatusKind;

use super::machine_bench::{Bench, TICK, hold, mins, pause, request, secs, stop};

impl Bench {
    fn last_look(&self, keep_alive: KeepAlive) -> Event {
        let look = LastLook { boot: self.worker.boot.clone(), keep_alive };
        Event::LookedAgain { intent: self.intent(), look }
    }

    fn other_run(&self) -> Event {
        let look = LastLook { boot: Some(BootId::new("another")), keep_alive: KeepAlive::NotLooked };
        Event::LookedAgain { intent: self.intent(), look }
    }

    fn touched(&self) -> KeepAlive {
        KeepAlive::of("/workspace/.keep-alive", Some(self.now), mins(60), self.now)
    }
}

fn container(mode: SleepMode) -> Bench {
    Bench::running_with(DriverKind::Docker, |policy| policy.sleep = Some(mode))
}

type Order = fn(&Bench) -> Event;

/// How it was put to sleep, whether a late file takes that back, whether one that cannot be looked for does, and whether
/// another run does.
const ORDERS: &[(&str, Order, bool, bool, bool)] = &[
    ("idle", |bench| bench.idle(), true, true, true),
    ("its schedule", |bench| bench.schedule_sleep(false), true, true, true),
    ("its schedule, forced", |bench| bench.schedule_sleep(true), false, false, true),
    ("its max runtime", |bench| bench.max_runtime(), false, false, true),
    ("a person's pause", |_| pause(), true, false, false),
    ("a person's stop", |_| stop(), true, false, false),
    ("a person who insists", |_| Event::PauseRequested(request(true, Vec::new())), false, false, false),
];

#[test]
fn a_late_keep_alive_file_is_a_veto_and_a_run_that_nobody_judged_does_not_sleep() {
    for mode in [SleepMode::Freeze, SleepMode::Stop] {
        for (name, order, by_file, by_doubt, by_run) in ORDERS {
            let mut bench = container(mode);
            bench.ok(order(&bench));
            bench.unchanged(bench.last_look(KeepAlive::Absent));
            bench.unchanged(bench.last_look(KeepAlive::NotLooked));
            bench.wait(secs(1));
            for (event, takes_back) in [
                (bench.last_look(bench.touched()), *by_file),
                (bench.last_look(KeepAlive::Unreadable), *by_doubt),
                (bench.other_run(), *by_run),
            ] {
                let mut bench = bench.clone();
                if !takes_back {
                    bench.unchanged(event);
                    continue;
                }
                bench.to(StatusKind::Waking, event);
                let undone = bench.entries.iter().any(|entry| matches!(entry, Entry::Undone { .. }));
                assert!(undone, "{name}, {mode:?}: {:?}", bench.entries);
                bench.wait(secs(1));
                bench.to(StatusKind::Running, bench.ready());
                assert_eq!(bench.worker.counters.auto_resume + bench.worker.counters.manual_resume, 0);
            }
        }
    }
}

#[test]
fn a_file_that_is_too_old_holds_nobody_and_one_from_the_future_was_touched_now() {
    let mut bench = container(SleepMode::Freeze);
    bench.ok(bench.idle());
    let touched = |age, now| KeepAlive::of("file", Some(now - age), mins(60), now);
    assert_eq!(touched(mins(60), bench.now), KeepAlive::Absent, "at the very end it is over");
    assert!(matches!(touched(mins(60).saturating_sub(TICK), bench.now), KeepAlive::Holds(_)));
    let KeepAlive::Holds(hold) = KeepAlive::of("file", Some(bench.now + mins(600)), mins(60), bench.now)
    else {
        panic!("it holds")
    };
    assert_eq!((hold.since, hold.until), (bench.now, Some(bench.now + mins(60))));
    // Looked for in time, and told when it is over.
    let late = bench.last_look(bench.touched());
    bench.wait(mins(60)).unchanged(late);
}

#[test]
fn what_sleeps_already_comes_back_when_a_file_is_found_before_its_stop() {
    let mut bench = container(SleepMode::Freeze);
    bench.idles().wait(mins(5));
    bench.to(StatusKind::Stopping, Event::StopAfterElapsed { generation: bench.generation() });
    bench.to(StatusKind::Waking, bench.last_look(bench.touched()));
    bench.wait(secs(1));
    bench.to(StatusKind::Running, bench.ready());
}

#[test]
fn a_look_for_an_older_intent_says_nothing() {
    let mut bench = container(SleepMode::Freeze);
    bench.ok(bench.idle());
    let late = bench.last_look(bench.touched());
    bench.ok(bench.done());
    bench.refused(late);
}

#[test]
fn what_is_found_now_takes_the_place_of_what_was_known_of_the_file() {
    let bench = container(SleepMode::Freeze);
    let known = vec![hold(HoldKind::Lease, "build"), hold(HoldKind::KeepAliveFile, "file")];
    let amended = |found: &KeepAlive| {
        let mut holds = known.clone();
        found.amend(&mut holds);
        holds
    };
    assert_eq!(amended(&KeepAlive::NotLooked), known);
    assert_eq!(amended(&KeepAlive::Unreadable), known, "nobody knows better");
    assert_eq!(amended(&KeepAlive::Absent), known[..1]);
    let found = bench.touched();
    let KeepAlive::Holds(hold) = &found else { panic!("it holds") };
    assert_eq!(amended(&found), [known[0].clone(), hold.clone()]);
}
