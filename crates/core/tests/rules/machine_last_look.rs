//! The last look before a sleep: what came too late for the verdict.

use drowse_core::effect::Effect;
use drowse_core::event::Event;
use drowse_core::hold::{HoldKind, KeepAlive};
use drowse_core::id::BootId;
use drowse_core::journal::Entry;
use drowse_core::machine::LastLook;
use drowse_core::reason::{PauseReason, SleepMode};
use drowse_core::signal::DriverKind;
use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::Power;

use super::machine_bench::{Bench, TICK, hold, mins, pause, request, secs, stop};

impl Bench {
    /// The run that is known, and no file.
    fn seen(&self, power: Power) -> LastLook {
        LastLook { power, boot: self.worker.boot.clone(), keep_alive: KeepAlive::NotLooked, is_later: false }
    }

    fn looked(&self, look: LastLook) -> Event {
        Event::LookedAgain { intent: self.intent(), look }
    }

    fn last_look(&self, keep_alive: KeepAlive) -> Event {
        let was_paused = matches!(self.worker.status, Status::Stopping { was_paused: true, .. });
        let power = if was_paused { Power::Paused } else { Power::Running };
        let look = LastLook { keep_alive, ..self.seen(power) };
        Event::LookedAgain { intent: self.intent(), look }
    }

    fn other_run(&self) -> Event {
        let look = LastLook { boot: Some(BootId::new("another")), ..self.seen(Power::Running) };
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
                let is_restart = event == bench.other_run();
                bench.to(if is_restart { StatusKind::Running } else { StatusKind::Waking }, event);
                let undone = bench.entries.iter().any(|entry| matches!(entry, Entry::Undone { .. }));
                assert!(undone, "{name}, {mode:?}: {:?}", bench.entries);
                if is_restart {
                    assert_eq!(bench.worker.counters.external_resume, 1, "{name}, {mode:?}");
                    assert!(bench.effects.iter().any(|effect| matches!(effect, Effect::Snooze { .. })));
                    continue;
                }
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
fn stop_after_does_not_stop_what_somebody_has_just_thawed() {
    let mut bench = container(SleepMode::Freeze);
    bench.idles().wait(mins(5));
    bench.to(StatusKind::Stopping, Event::StopAfterElapsed { generation: bench.generation() });
    bench.unchanged(bench.looked(bench.seen(Power::Paused)));
    bench.to(StatusKind::Waking, bench.looked(bench.seen(Power::Running)));
    bench.wait(secs(1));
    bench.to(StatusKind::Running, bench.ready());
    assert_eq!(bench.worker.counters.external_resume, 1, "somebody else woke it");
    assert_eq!(bench.worker.last_resume.as_ref().unwrap().by, "external");
    assert!(bench.effects.iter().any(|effect| matches!(effect, Effect::Snooze { .. })));
    // Or it was ourselves, before a restart: what we had told to end does so yet, and is ours.
    bench.wait(secs(5));
    bench.ok(bench.exits(143));
    assert_eq!(bench.worker.status.sleep().unwrap().reason, PauseReason::IdleTimeout);
    // A person's stop of what is frozen means the worker, whatever it does by now.
    let mut bench = container(SleepMode::Freeze);
    bench.idles().wait(mins(1));
    bench.to(StatusKind::Stopping, stop());
    bench.unchanged(bench.looked(bench.seen(Power::Running)));
}

#[test]
fn a_run_that_is_begun_while_another_is_ended_is_left_alone_whoever_ordered_that() {
    for (name, order, ..) in ORDERS {
        let mut bench = container(SleepMode::Stop);
        bench.ok(order(&bench));
        let later =
            LastLook { boot: Some(BootId::new("another")), is_later: true, ..bench.seen(Power::Running) };
        bench.to(StatusKind::Running, bench.looked(later));
        assert_eq!(bench.worker.boot, Some(BootId::new("another")), "{name}");
    }
}

/// A container that has been stopped or frozen for as long as it may, and is being deleted for that.
fn deleted_after(mode: SleepMode) -> Bench {
    let mut bench = Bench::running_with(DriverKind::Docker, |policy| {
        policy.sleep = Some(mode);
        policy.terminate_after = Some(mins(30));
    });
    bench.idles().wait(mins(30));
    bench.to(StatusKind::Terminating, Event::TerminateAfterElapsed { generation: bench.generation() });
    bench
}

#[test]
fn who_was_to_be_deleted_asleep_and_is_awake_is_not_deleted() {
    for mode in [SleepMode::Freeze, SleepMode::Stop] {
        let bench = deleted_after(mode);
        let asleep = if mode == SleepMode::Freeze { Power::Paused } else { Power::Stopped };
        bench.clone().unchanged(bench.looked(bench.seen(asleep)));
        bench.clone().unchanged(bench.looked(bench.seen(Power::Gone)));
        let another = LastLook { boot: Some(BootId::new("another")), ..bench.seen(Power::Running) };
        for look in [bench.seen(Power::Running), another.clone()] {
            let mut bench = bench.clone();
            bench.to(StatusKind::Running, bench.looked(look.clone()));
            assert_eq!(bench.worker.boot, look.boot);
            assert_eq!(bench.worker.counters.external_resume, 1, "somebody else woke it");
            assert!(matches!(bench.entries[0], Entry::TerminateUndone { .. }), "{:?}", bench.entries);
        }
        // Somebody ran it and put it to sleep: it is theirs.
        for (power, status) in [(Power::Stopped, StatusKind::Stopped), (Power::Paused, StatusKind::Paused)] {
            let mut bench = bench.clone();
            bench.to(status, bench.looked(LastLook { power, ..another.clone() }));
            assert_eq!(bench.worker.status.sleep().unwrap().reason, PauseReason::External);
        }
        for keep_alive in [bench.touched(), KeepAlive::Unreadable] {
            let mut bench = bench.clone();
            let status = if mode == SleepMode::Freeze { StatusKind::Paused } else { StatusKind::Stopped };
            bench.to(status, bench.looked(LastLook { keep_alive, ..bench.seen(asleep) }));
            assert_eq!(bench.worker.status.sleep().unwrap().reason, PauseReason::IdleTimeout);
        }
    }
}

#[test]
fn a_deletion_that_a_person_ordered_is_about_the_worker_whatever_it_does() {
    let mut bench = container(SleepMode::Stop);
    bench.idles().wait(mins(1));
    bench.to(StatusKind::Terminating, Event::TerminateRequested(request(false, Vec::new())));
    bench.unchanged(bench.looked(bench.seen(Power::Running)));
    bench.unchanged(bench.other_run());
    let later = LastLook { is_later: true, ..bench.seen(Power::Running) };
    bench.to(StatusKind::Running, bench.looked(later));
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
