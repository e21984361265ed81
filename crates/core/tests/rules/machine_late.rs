//! Late, early and contradictory: deadlines, old answers, looks at the driver, and Drowse coming back.

use drowse_core::effect::Effect;
use drowse_core::event::{Event, Observation};
use drowse_core::id::{BootId, Generation, IntentId};
use drowse_core::journal::Entry;
use drowse_core::policy::Policy;
use drowse_core::reason::ResumeReason;
use drowse_core::refusal::Refusal;
use drowse_core::signal::DriverKind::{Docker, Ec2, Process};
use drowse_core::status::StatusKind as S;
use drowse_core::worker::Power;

use super::machine_bench::{Bench, TICK, connect, mins, resume, secs, stop, terminate};

/// A worker in each transition, with the time that it may take.
fn transitions() -> Vec<(Bench, core::time::Duration)> {
    let mut pausing = Bench::running(Process);
    pausing.ok(pausing.idle());
    let mut waking = Bench::running(Process);
    waking.idles().ok(connect());
    let mut waking_ec2 = Bench::running(Ec2);
    waking_ec2.idles().ok(connect());
    let mut stopping = Bench::that_stops();
    stopping.ok(stopping.idle());
    let mut stopping_ec2 = Bench::running(Ec2);
    stopping_ec2.ok(stop());
    let mut terminating = Bench::running(Process);
    terminating.ok(terminate());
    vec![
        (Bench::registered(Process, &Policy::default()), mins(15)),
        (pausing, secs(30)),
        (waking, secs(60)),
        (waking_ec2, mins(10)),
        (stopping, secs(60 + 30)),
        (stopping_ec2, mins(10)),
        (terminating, mins(10)),
    ]
}

#[test]
fn every_transition_has_its_deadline_to_the_microsecond() {
    for (bench, within) in transitions() {
        let deadline = bench.worker.status.since() + within;
        assert_eq!(bench.deadline(), deadline, "{}", bench.kind());
        let over = Event::DeadlinePassed { generation: bench.generation() };
        let mut early = bench.clone();
        early.at(deadline - TICK).unchanged(over.clone());
        early.unchanged(early.silent());
        let mut due = bench.clone();
        due.at(deadline).ok(over);
        assert_eq!(due.effects, [Effect::Look { not_before: deadline }]);
        due.to(S::Unknown, due.silent());
    }
}

#[test]
fn the_truth_is_adopted_when_the_deadline_is_over_and_not_before() {
    for (bench, _) in transitions() {
        if bench.worker.status.intent().is_none() {
            continue;
        }
        for (power, kind) in
            [(Power::Running, S::Running), (Power::Paused, S::Paused), (Power::Stopped, S::Stopped)]
        {
            let mut bench = bench.clone();
            let deadline = bench.deadline();
            bench.at(deadline - TICK);
            bench.unchanged(bench.look(power));
            let began_early = bench.look(power);
            bench.at(deadline).unchanged(began_early);
            bench.to(kind, bench.look(power));
        }
    }
}

#[test]
fn a_driver_that_refuses_three_times_is_not_asked_again() {
    for (bench, _) in transitions() {
        if bench.worker.status.intent().is_none() {
            continue;
        }
        let mut bench = bench;
        let intent = bench.intent();
        for attempt in 1..=2 {
            bench.ok(bench.refuses());
            assert_eq!(bench.intent(), intent, "a retry is the same intent");
            assert_eq!(bench.effects.len(), 1);
            assert_eq!(bench.entries, [Entry::DriverRefused { message: "busy".into(), attempt }]);
        }
        bench.to(S::Failed, bench.refuses());
    }
}

#[test]
fn what_belongs_to_an_older_intent_generation_or_run_changes_nothing() {
    for (bench, _) in transitions() {
        let mut bench = bench;
        let old = Generation(bench.generation().0.wrapping_sub(1));
        let intent = IntentId(old.0);
        bench.wait(mins(60));
        let (boot, message) = (Some(bench.new_boot()), String::from("late"));
        for event in [
            Event::DriverDone { intent, exit_code: None, asked_at: None },
            Event::DriverReady { intent, boot, started_at: None },
            Event::DriverRefused { intent, message: message.clone() },
            Event::HookPassed { intent },
            Event::HookVetoed { intent, message },
            Event::DeadlinePassed { generation: old },
            Event::DriverSilent { generation: old },
            Event::StopAfterElapsed { generation: old },
            Event::TerminateAfterElapsed { generation: old },
            Event::Drained { generation: old },
            Event::DrainTimedOut { generation: old, is_held: true },
            Event::Observed(Observation {
                power: Power::Gone,
                began_at: bench.now,
                generation: old,
                boot: None,
                dated_at: None,
            }),
        ] {
            assert!(matches!(bench.refused(event), Refusal::Late { .. }));
        }
    }
}

#[test]
fn the_exit_of_an_older_run_changes_nothing() {
    let mut bench = Bench::running(Process);
    let first = bench.boot();
    let exit = Event::Exited { boot: first, code: 1 };
    bench.ok(exit.clone());
    let crashes = bench.worker.crashes.clone();
    bench.wait(secs(1)).unchanged(exit.clone());
    bench.wait(secs(5)).unchanged(exit.clone());
    bench.ok(bench.ready()).unchanged(exit);
    assert_eq!(bench.worker.crashes, crashes);
}

#[test]
fn a_process_that_exits_before_it_answers_is_started_again_for_whoever_waits() {
    let mut bench = Bench::that_stops();
    bench.idles().ok(connect()).wait(secs(1));
    for _ in 0..4 {
        bench.to(S::Waking, Event::Exited { boot: BootId::new(format!("{}", bench.now)), code: 1 });
        bench.wait(secs(20));
    }
    let mut served = bench.clone();
    served.to(S::Running, served.ready());
    let last = served.worker.last_resume.clone().expect("it was woken");
    assert_eq!((last.reason, served.worker.counters.auto_resume), (ResumeReason::Wake, 1));
}

#[test]
fn nothing_exits_before_it_is_started() {
    let mut bench = Bench::running(Process);
    bench.ok(bench.exits(1));
    let exit = Event::Exited { boot: BootId::new("older still"), code: 1 };
    let not_before = bench.now + secs(1);
    bench.at(not_before - TICK).unchanged(exit.clone());
    bench.at(not_before).to(S::Waking, exit);
    assert_eq!(bench.worker.crashes.in_a_row, 2);
}

#[test]
fn a_worker_that_is_found_frozen_has_a_run_and_a_run_time() {
    let mut bench = Bench::registered(Docker, &Policy::default());
    bench.see_twice(Power::Paused);
    assert!(bench.worker.boot.is_some() && bench.worker.boot_started_at.is_some());
    bench.see_twice(Power::Running).wait(mins(3));
    assert_eq!(bench.kind(), S::Running);
    assert!(bench.worker.ran_for(bench.now) >= mins(3));
}

#[test]
fn an_exit_of_a_run_that_is_not_known_is_looked_into() {
    let mut bench = Bench::that_stops();
    bench.idles().ok(connect());
    bench.ok(Event::DriverReady { intent: bench.intent(), boot: None, started_at: None });
    assert_eq!(bench.worker.boot, None, "the old run's name must not stand for the new one");
    bench.to(S::Running, bench.exits(1));
    assert_eq!(bench.effects, [Effect::Look { not_before: bench.now }]);
    // The next look tells the name, which is no restart.
    let boot = bench.new_boot();
    bench.wait(TICK);
    bench.ok(bench.look_at_run(Power::Running, boot.clone()));
    assert_eq!((bench.worker.boot.clone(), bench.worker.counters.external_resume), (Some(boot), 0));
}

#[test]
fn a_thaw_is_no_new_run_even_if_its_name_was_not_known() {
    let mut bench = Bench::running(Docker);
    bench.worker.boot = None;
    let started_at = bench.worker.boot_started_at;
    bench.idles().ok(connect());
    bench.ok(Event::DriverReady { intent: bench.intent(), boot: Some(BootId::new("c1")), started_at: None });
    assert_eq!(bench.worker.boot_started_at, started_at);
    assert_eq!(bench.worker.boot, Some(BootId::new("c1")));
}

#[test]
fn a_look_that_began_before_the_last_change_had_settled_is_ignored() {
    for (driver, settle_for) in [(Process, secs(0)), (Docker, secs(1)), (Ec2, secs(30))] {
        let mut bench = Bench::running(driver);
        bench.idles().wakes(resume());
        let settled_at = bench.now + settle_for;
        bench.wait(mins(5));
        let look = |bench: &Bench, began_at| {
            Event::Observed(Observation {
                power: Power::Stopped,
                began_at,
                generation: bench.generation(),
                boot: None,
                dated_at: None,
            })
        };
        bench.unchanged(look(&bench, settled_at - TICK));
        bench.ok(look(&bench, settled_at));
        assert!(bench.worker.suspicion.is_some());
        // The second look must begin after the driver has settled, and be another look.
        let second_at = settled_at + settle_for.max(TICK);
        bench.ok(look(&bench, settled_at));
        bench.ok(look(&bench, second_at - TICK));
        assert_eq!(bench.kind(), S::Running);
        assert_eq!(bench.effects, [Effect::Look { not_before: settled_at + settle_for }]);
        bench.to(S::Stopped, look(&bench, second_at));
    }
}

#[test]
fn a_contradiction_that_is_not_seen_again_is_forgotten() {
    let mut bench = Bench::running(Docker);
    bench.ok(bench.look(Power::Stopped)).wait(secs(2));
    bench.ok(bench.look(Power::Running));
    assert_eq!(bench.worker.suspicion, None);
    bench.wait(secs(2));
    bench.to(S::Running, bench.look(Power::Stopped)).wait(secs(2));
    bench.to(S::Running, bench.look(Power::Paused)).wait(secs(2));
    bench.to(S::Running, bench.look(Power::Stopped)).wait(secs(2));
    bench.to(S::Stopped, bench.look(Power::Stopped));
}

#[test]
fn what_happened_elsewhere_is_dated_by_the_driver_where_it_can_be() {
    for (dated, is_possible) in [(secs(40), true), (mins(61 * 3), false)] {
        let mut bench = Bench::running(Ec2);
        bench.idles().wait(mins(60));
        let dated_at = bench.now - dated;
        for _ in 0..2 {
            bench.wait(secs(31));
            let Event::Observed(seen) = bench.look_at_run(Power::Running, BootId::new("i-1")) else {
                unreachable!("a look is a look")
            };
            bench.ok(Event::Observed(Observation { dated_at: Some(dated_at), ..seen }));
        }
        let at = if is_possible { dated_at } else { bench.now };
        assert_eq!(bench.worker.last_resume.as_ref().expect("it came back").at, at);
        assert!(bench.effects.contains(&Effect::Snooze { until: at + bench.worker.terms.snooze }));
    }
}

#[test]
fn a_restart_behind_our_back_ends_the_holds_of_the_old_run() {
    let mut bench = Bench::running(Docker);
    let other = BootId::new("c2");
    bench.ok(bench.look_at_run(Power::Running, other.clone()));
    let until = bench.now + bench.worker.terms.snooze;
    assert_eq!(bench.effects, [Effect::EndHolds, Effect::Snooze { until }]);
    assert_eq!((bench.worker.boot.clone(), bench.worker.counters.external_resume), (Some(other), 1));
    // A frozen one that was restarted is counted once, and its frozen time is gone with its run.
    bench.wait(mins(61)).idles();
    let third = BootId::new("c3");
    for _ in 0..2 {
        bench.wait(secs(2));
        bench.ok(bench.look_at_run(Power::Running, third.clone()));
    }
    assert_eq!((bench.kind(), bench.worker.counters.external_resume), (S::Running, 2));
    assert_eq!((bench.worker.boot.clone(), bench.worker.frozen_for), (Some(third.clone()), secs(0)));
    bench.wait(secs(2));
    bench.unchanged(bench.look_at_run(Power::Running, third));
}

#[test]
fn an_overdue_pause_of_a_worker_that_was_restarted_adopts_the_new_run() {
    let mut bench = Bench::running(Docker);
    bench.ok(bench.idle()).overdue();
    bench.to(S::Running, bench.look_at_run(Power::Running, BootId::new("c2")));
    assert!(bench.effects.contains(&Effect::EndHolds));
    assert_eq!(bench.worker.counters.external_resume, 1);
    bench.wait(secs(2));
    bench.unchanged(bench.look(Power::Running));
}

#[test]
fn an_allowed_wake_during_pausing_is_never_left_at_a_frozen_worker() {
    let found = |bench: &mut Bench, power| {
        bench.ok(bench.look(power));
    };
    let ends: [&dyn Fn(&mut Bench); 6] = [
        &|bench| {
            bench.ok(bench.done());
        },
        &|bench| {
            bench.ok(bench.refuses());
        },
        &|bench| found(bench.overdue(), Power::Paused),
        &|bench| found(bench.becomes_unknown(), Power::Paused),
        &|bench| found(bench.overdue(), Power::Stopped),
        &|bench| {
            bench.ok(Event::Recovered { power: Some(Power::Paused) });
        },
    ];
    for end in ends {
        let mut bench = Bench::running(Process);
        bench.ok(bench.idle()).ok(connect());
        end(&mut bench);
        assert_eq!(bench.kind(), S::Waking);
        bench.to(S::Running, bench.ready());
    }
}
