//! The table of the specification, a test for each row.

use drowse_core::effect::Effect;
use drowse_core::event::Event;
use drowse_core::journal::Entry;
use drowse_core::machine::Fence;
use drowse_core::policy::Policy;
use drowse_core::reason::{PauseReason, SleepMode};
use drowse_core::refusal::Refusal;
use drowse_core::signal::DriverKind::{Docker, Ec2, Process, Qemu, Sim};
use drowse_core::status::{FailCause, Status, StatusKind as S};
use drowse_core::worker::{Counters, Power};

use super::machine_bench::{
    Bench, TICK, connect, drain, keep_awake, lease, mins, pause, resume, secs, stop, terminate,
};

fn reason(bench: &Bench) -> PauseReason {
    bench.worker.status.sleep().expect("it sleeps").reason
}

#[test]
fn a_registered_worker_is_provisioned_until_it_is_seen_running() {
    let mut bench = Bench::registered(Process, &Policy::default());
    assert_eq!(bench.kind(), S::Provisioning);
    bench.wait(mins(3));
    bench.to(S::Running, bench.look(Power::Running));
    assert_eq!(bench.entries, [Entry::Started]);
    assert_eq!(bench.effects, [], "a first boot starts no snooze");
    assert_eq!(bench.worker.counters, Counters::default());
    assert_eq!(bench.worker.last_resume, None);
}

#[test]
fn a_worker_that_is_found_asleep_when_it_is_registered_sleeps_for_an_outside_reason() {
    for (power, kind) in [(Power::Stopped, S::Stopped), (Power::Paused, S::Paused)] {
        let mut bench = Bench::registered(Docker, &Policy::default());
        bench.see_twice(power);
        assert_eq!((bench.kind(), reason(&bench)), (kind, PauseReason::External));
        assert!(matches!(bench.refused(connect()), Refusal::WakeNotAllowed { .. }));
    }
}

#[test]
fn a_running_worker_that_somebody_stops_or_pauses_elsewhere_is_left_so() {
    for (power, kind) in [(Power::Stopped, S::Stopped), (Power::Paused, S::Paused)] {
        let mut bench = Bench::running(Docker);
        bench.see_twice(power);
        assert_eq!((bench.kind(), reason(&bench)), (kind, PauseReason::External));
        assert_eq!(bench.worker.counters, Counters { external_pause: 1, ..Counters::default() });
        assert!(bench.entries.contains(&Entry::External { to: kind }));
        assert_eq!(bench.effects.contains(&Effect::EndHolds), kind == S::Stopped);
    }
}

#[test]
fn a_process_that_exits_with_an_error_is_started_again_after_a_growing_wait() {
    let mut bench = Bench::running(Process);
    for wait in [1, 2, 4] {
        bench.wait(secs(30));
        bench.to(S::Waking, bench.exits(1));
        let intent = bench.intent();
        let not_before = bench.now + secs(wait);
        assert_eq!(bench.effects, [Effect::EndHolds, Effect::Start { intent, not_before }]);
        assert_eq!(bench.deadline(), not_before + secs(60));
        bench.wait(secs(wait));
        bench.to(S::Running, bench.ready());
        assert_eq!(bench.effects, [], "a restart starts no snooze");
    }
    assert_eq!(bench.worker.counters, Counters::default());
    assert_eq!((bench.worker.last_resume.clone(), bench.worker.last_pause.clone()), (None, None));
}

#[test]
fn any_other_exit_is_a_stop_from_outside() {
    for (driver, code) in [(Process, 0), (Docker, 1), (Docker, 0), (Qemu, 137), (Ec2, 1)] {
        let mut bench = Bench::running(driver);
        bench.to(S::Stopped, bench.exits(code));
        assert_eq!(reason(&bench), PauseReason::External);
        assert_eq!(bench.worker.counters.external_pause, 1);
        assert!(!bench.entries.contains(&Entry::GraceExceeded), "a kill that was not ours has no grace");
    }
}

#[test]
fn idleness_a_person_and_a_schedule_freeze_or_stop_by_the_way_of_sleeping() {
    let ways = [
        (Process, None, S::Pausing),
        (Docker, Some(SleepMode::Freeze), S::Pausing),
        (Process, Some(SleepMode::Stop), S::Stopping),
        (Process, Some(SleepMode::Hibernate), S::Stopping),
        (Ec2, None, S::Stopping),
        (Ec2, Some(SleepMode::Freeze), S::Stopping),
        (Ec2, Some(SleepMode::Hibernate), S::Stopping),
    ];
    for (driver, sleep, kind) in ways {
        let bench = Bench::running_with(driver, |policy| policy.sleep = sleep);
        let asked = [
            (bench.idle(), PauseReason::IdleTimeout),
            (pause(), PauseReason::Manual),
            (bench.schedule_sleep(false), PauseReason::Schedule),
            (bench.schedule_sleep(true), PauseReason::Schedule),
        ];
        for (event, why) in asked {
            let mut bench = bench.clone();
            bench.to(kind, event);
            assert_eq!(reason(&bench), why);
            assert_eq!(bench.worker.counters, Counters::default(), "not before it sleeps");
            assert_eq!(bench.worker.last_pause, None);
        }
    }
}

#[test]
fn a_freeze_that_nothing_overtakes_ends_in_paused_and_counts() {
    let mut bench = Bench::running(Process);
    bench.ok(bench.idle());
    assert_eq!(bench.effects, [Effect::Freeze { intent: bench.intent() }]);
    bench.wait(secs(2));
    bench.to(S::Paused, bench.done());
    assert_eq!(bench.worker.counters, Counters { auto_pause: 1, ..Counters::default() });
    let last = bench.worker.last_pause.clone().expect("it slept");
    assert_eq!((last.at, last.by.as_str(), last.reason), (bench.now, "drowse", PauseReason::IdleTimeout));
}

#[test]
fn a_freeze_that_something_overtakes_is_taken_back() {
    for event in [
        connect(),
        lease(),
        keep_awake(),
        resume(),
        Event::ScheduleSaidWake,
        Event::ActivityArrived { by: drowse_core::signal::Signal::Telemetry },
    ] {
        let mut bench = Bench::running(Process);
        bench.ok(bench.idle());
        bench.to(S::Pausing, event.clone()).to(S::Pausing, event);
        bench.to(S::Waking, bench.done());
        assert_eq!(bench.effects, [Effect::Thaw { intent: bench.intent() }]);
        bench.to(S::Running, bench.ready());
        assert_eq!(bench.effects, [], "an undo starts no snooze");
        assert_eq!(bench.worker.counters, Counters::default(), "an undo counts nothing");
        assert_eq!((bench.worker.last_pause.clone(), bench.worker.last_resume.clone()), (None, None));
    }
}

#[test]
fn a_frozen_worker_that_somebody_connects_to_is_woken() {
    let mut bench = Bench::running(Process);
    bench.idles().to(S::Waking, connect());
    assert_eq!(bench.effects, [Effect::Thaw { intent: bench.intent() }]);
    bench.to(S::Running, bench.ready());
    assert_eq!(bench.effects, [], "a wake from frozen starts no snooze");
    assert_eq!(bench.worker.counters, Counters { auto_pause: 1, auto_resume: 1, ..Counters::default() });
}

#[test]
fn a_frozen_worker_is_woken_by_a_lease_a_person_a_keep_awake_and_a_schedule() {
    for (event, manual, snoozes) in [
        (lease(), 0, false),
        (Event::ScheduleSaidWake, 0, false),
        (resume(), 1, true),
        (keep_awake(), 1, true),
    ] {
        let mut bench = Bench::running(Docker);
        bench.idles().wakes(event);
        assert_eq!(
            (bench.worker.counters.manual_resume, bench.worker.counters.auto_resume),
            (manual, 1 - manual)
        );
        let until = bench.now + bench.worker.terms.snooze;
        assert_eq!(bench.effects.contains(&Effect::Snooze { until }), snoozes);
    }
}

#[test]
fn a_worker_frozen_for_stop_after_is_stopped_and_keeps_its_record() {
    let mut bench = Bench::running(Process);
    bench.idles();
    let sleep = bench.worker.status.sleep().cloned();
    let last = bench.worker.last_pause.clone();
    let due = bench.worker.status.since() + mins(5);
    let timer = Event::StopAfterElapsed { generation: bench.generation() };
    bench.at(due - TICK).unchanged(timer.clone());
    bench.at(due).to(S::Stopping, timer);
    let (intent, grace) = (bench.intent(), secs(60));
    assert_eq!(bench.effects, [Effect::Stop { intent, mode: SleepMode::Stop, grace, thaw_first: true }]);
    bench.to(S::Stopped, bench.done());
    assert_eq!(bench.worker.status.sleep().cloned(), sleep);
    assert_eq!(bench.worker.last_pause, last);
    assert_eq!(bench.worker.counters, Counters { auto_pause: 1, ..Counters::default() });
    bench.to(S::Waking, connect());
}

#[test]
fn stop_after_does_not_run_for_what_a_person_or_the_outside_froze() {
    let mut by_person = Bench::running(Process);
    by_person.falls_asleep(pause());
    let mut from_outside = Bench::running(Process);
    from_outside.see_twice(Power::Paused);
    for mut bench in [by_person, from_outside] {
        bench.wait(mins(60));
        bench.unchanged(Event::StopAfterElapsed { generation: bench.generation() });
    }
}

#[test]
fn a_frozen_worker_that_somebody_thaws_elsewhere_runs() {
    let mut bench = Bench::running(Docker);
    bench.idles().see_twice(Power::Running);
    assert_eq!(bench.kind(), S::Running);
    assert_eq!(bench.worker.counters.external_resume, 1);
    let until = bench.now + bench.worker.terms.snooze;
    assert_eq!(bench.effects, [Effect::Snooze { until }]);
}

#[test]
fn a_frozen_worker_that_somebody_stops_elsewhere_is_stopped_from_outside() {
    let mut bench = Bench::running(Docker);
    bench.idles().see_twice(Power::Stopped);
    assert_eq!((bench.kind(), reason(&bench)), (S::Stopped, PauseReason::External));
    assert_eq!(bench.worker.counters, Counters { auto_pause: 1, external_pause: 1, ..Counters::default() });
}

#[test]
fn a_waking_worker_runs_when_it_answers_and_not_when_it_was_started() {
    let mut bench = Bench::that_stops();
    bench.idles().to(S::Waking, connect());
    assert_eq!(bench.effects, [Effect::Start { intent: bench.intent(), not_before: bench.now }]);
    bench.unchanged(bench.done());
    bench.wait(secs(5));
    bench.to(S::Running, bench.ready());
    assert_eq!(bench.worker.boot_started_at, Some(bench.now));
    let until = bench.now + bench.worker.terms.snooze;
    assert_eq!(bench.effects, [Effect::Snooze { until }], "any start from stopped is followed by a snooze");
}

#[test]
fn max_runtime_and_a_person_stop_what_runs_and_what_is_frozen() {
    for (is_frozen, by_limit) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut bench = Bench::running(Process);
        if is_frozen {
            bench.idles();
        }
        let event = if by_limit { bench.max_runtime() } else { stop() };
        bench.to(S::Stopping, event);
        let (intent, grace) = (bench.intent(), secs(60));
        let thaw_first = is_frozen;
        assert_eq!(bench.effects, [Effect::Stop { intent, mode: SleepMode::Stop, grace, thaw_first }]);
        bench.to(S::Stopped, bench.done());
        let why = if by_limit { PauseReason::MaxRuntime } else { PauseReason::Manual };
        assert_eq!(reason(&bench), why);
        let last = bench.worker.last_pause.clone().expect("it slept");
        assert_eq!((last.reason, last.at), (why, bench.now));
        let counters = bench.worker.counters;
        let counted = u64::from(!is_frozen);
        assert_eq!(counters.auto_pause, 1 - counted);
        assert_eq!(
            (counters.max_runtime, counters.manual_pause),
            if by_limit { (counted, 0) } else { (0, counted) }
        );
        assert!(matches!(bench.refused(connect()), Refusal::WakeNotAllowed { .. }));
    }
}

#[test]
fn a_stop_that_a_wake_waits_for_ends_in_waking() {
    let mut bench = Bench::that_stops();
    bench.ok(bench.idle()).to(S::Stopping, connect()).to(S::Stopping, resume());
    let generation = bench.generation();
    bench.to(S::Waking, bench.exit_done(0));
    assert_eq!(bench.generation().0, generation.0 + 2, "it was stopped, if only for a moment");
    assert_eq!(bench.worker.counters.auto_pause, 1);
    bench.to(S::Running, bench.ready());
    assert_eq!(bench.worker.counters.auto_resume, 1, "the first who waited counts");
    assert_eq!(bench.worker.counters.manual_resume, 0);
}

#[test]
fn a_stopped_worker_is_woken_by_a_connection_a_person_and_a_schedule() {
    for event in [connect(), resume(), Event::ScheduleSaidWake] {
        let mut bench = Bench::that_stops();
        bench.idles().wakes(event);
        let until = bench.now + bench.worker.terms.snooze;
        assert_eq!(bench.effects, [Effect::Snooze { until }]);
    }
}

#[test]
fn a_stopped_worker_that_somebody_starts_elsewhere_runs() {
    let mut bench = Bench::that_stops();
    bench.idles();
    bench.wait(TICK);
    let boot = bench.new_boot();
    bench.ok(bench.look_at_run(Power::Running, boot.clone())).wait(TICK);
    bench.to(S::Running, bench.look_at_run(Power::Running, boot.clone()));
    assert_eq!((bench.worker.counters.external_resume, bench.boot()), (1, boot));
    assert_eq!(bench.worker.boot_started_at, Some(bench.now));
}

#[test]
fn a_drained_worker_is_deleted() {
    let mut bench = Bench::running(Docker);
    bench.ok(Event::ScaleDownConfirmed { fence: Fence::alone(&bench.worker) });
    assert_eq!(bench.kind(), S::Draining);
    bench.to(S::Terminating, Event::Drained { generation: bench.generation() });
    assert_eq!(bench.effects, [Effect::Terminate { intent: bench.intent() }]);
    bench.to(S::Terminated, bench.done());
    assert_eq!(bench.worker.counters, Counters { scale_down: 1, ..Counters::default() });
    let mut by_person = Bench::running(Docker);
    by_person.to(S::Draining, drain());
    by_person.to(S::Terminating, Event::Drained { generation: by_person.generation() });
    assert_eq!(by_person.worker.counters, Counters::default());
}

#[test]
fn a_drain_that_is_cancelled_or_still_held_leaves_what_was_before() {
    for is_stopped in [false, true] {
        for is_cancelled in [false, true] {
            let mut bench = Bench::that_stops();
            if is_stopped {
                bench.idles();
            }
            let before = bench.worker.clone();
            bench.to(S::Draining, drain());
            let due = bench.now + mins(10);
            assert_eq!(bench.deadline(), due);
            let timer = Event::DrainTimedOut { generation: bench.generation(), is_held: true };
            let kind = if is_stopped { S::Stopped } else { S::Running };
            if is_cancelled {
                bench.to(kind, Event::DrainCancelled { by: "alice".into() });
            } else {
                bench.at(due - TICK).unchanged(timer.clone());
                bench.at(due).to(kind, timer);
            }
            assert_eq!(bench.worker.status.sleep(), before.status.sleep());
            assert_eq!(bench.worker.counters, before.counters);
            assert_eq!(bench.effects, []);
        }
    }
}

/// A worker in each status that a person may delete it from.
fn deletable() -> Vec<Bench> {
    let mut paused = Bench::running(Process);
    paused.idles();
    let mut stopped = Bench::that_stops();
    stopped.idles();
    let mut unknown = Bench::running(Process);
    unknown.ok(unknown.idle()).becomes_unknown();
    let mut failed = Bench::running(Process);
    failed.ok(failed.idle()).fails();
    let mut draining = Bench::running(Process);
    draining.ok(drain());
    vec![Bench::running(Process), paused, stopped, unknown, failed, draining]
}

#[test]
fn a_person_deletes_what_is_not_in_the_middle_of_something() {
    for mut bench in deletable() {
        bench.to(S::Terminating, terminate());
        assert_eq!(bench.deadline(), bench.now + mins(10));
        bench.unchanged(terminate());
        bench.wait(bench.worker.terms.grace);
        bench.to(S::Terminated, bench.exit_done(137));
        assert!(bench.entries.contains(&Entry::GraceExceeded));
    }
}

#[test]
fn a_worker_in_a_transition_is_not_deleted_drained_or_stopped() {
    let mut pausing = Bench::running(Process);
    pausing.ok(pausing.idle());
    let mut stopping = Bench::that_stops();
    stopping.ok(stopping.idle());
    let mut waking = Bench::running(Process);
    waking.idles().ok(connect());
    for (mut bench, kind) in [(pausing, S::Pausing), (stopping, S::Stopping), (waking, S::Waking)] {
        assert_eq!(bench.refused(terminate()), Refusal::InTransition { status: kind });
        assert_eq!(bench.refused(drain()), Refusal::InTransition { status: kind });
        if kind != S::Stopping {
            assert_eq!(bench.refused(stop()), Refusal::InTransition { status: kind });
        }
    }
}

#[test]
fn what_sleeps_for_terminate_after_is_deleted() {
    for sleep in [SleepMode::Freeze, SleepMode::Stop] {
        let mut bench = Bench::running_with(Process, |policy| {
            policy.sleep = Some(sleep);
            policy.terminate_after = Some(mins(60));
        });
        let decided_at = bench.now;
        bench.idles();
        let timer = Event::TerminateAfterElapsed { generation: bench.generation() };
        bench.at(decided_at + mins(60) - TICK).unchanged(timer.clone());
        bench.at(decided_at + mins(60)).to(S::Terminating, timer);
    }
    let mut bench = Bench::running_with(Process, |policy| policy.terminate_after = Some(mins(60)));
    bench.wait(mins(600));
    bench.unchanged(Event::TerminateAfterElapsed { generation: bench.generation() });
}

#[test]
fn whatever_is_found_gone_is_terminated() {
    for mut bench in deletable() {
        bench.wait(mins(20)).see_twice(Power::Gone);
        assert_eq!(bench.kind(), S::Terminated);
        bench.unchanged(bench.look(Power::Running)).unchanged(resume()).unchanged(terminate());
    }
    let mut bench = Bench::running(Process);
    bench.ok(bench.idle()).overdue();
    bench.to(S::Terminated, bench.look(Power::Gone));
}

#[test]
fn unknown_and_refused_become_what_is_seen_at_once() {
    for (power, kind) in
        [(Power::Running, S::Running), (Power::Paused, S::Paused), (Power::Stopped, S::Stopped)]
    {
        let mut unknown = Bench::running(Sim);
        unknown.ok(unknown.idle()).becomes_unknown();
        unknown.to(kind, unknown.look(power));
        let mut failed = Bench::running(Sim);
        failed.ok(failed.idle()).fails();
        failed.to(kind, failed.look(power));
    }
}

#[test]
fn a_person_brings_back_what_is_unknown_or_has_failed_and_nothing_else_does() {
    let mut unknown = Bench::running(Process);
    unknown.ok(unknown.idle()).becomes_unknown();
    let mut failed = Bench::running(Process);
    failed.ok(failed.idle()).fails();
    let mut looping = Bench::running(Process);
    crash(&mut looping, 6);
    for mut bench in [unknown, failed, looping] {
        for event in [connect(), lease(), keep_awake(), Event::ScheduleSaidWake] {
            assert!(matches!(bench.refused(event), Refusal::WrongStatus { .. }));
        }
        bench.unchanged(Event::ActivityArrived { by: drowse_core::signal::Signal::Telemetry });
        bench.wakes(resume());
        assert_eq!(bench.worker.counters.manual_resume, 1);
        assert_eq!(bench.worker.crashes.quick_exits, []);
    }
}

/// Starts and exits so often.
fn crash(bench: &mut Bench, times: u32) {
    for _ in 0..times {
        bench.wait(secs(3));
        bench.ok(Event::Exited { boot: bench.boot(), code: 1 });
        if bench.kind() == S::Failed {
            return;
        }
        bench.wait(secs(8));
        bench.ok(bench.ready());
    }
}

#[test]
fn the_fifth_quick_exit_is_a_crash_loop_that_waits_for_a_person() {
    let mut bench = Bench::running(Process);
    // The first one ran for an hour: that is no quick exit.
    crash(&mut bench, 5);
    assert_eq!(bench.kind(), S::Running);
    crash(&mut bench, 1);
    assert!(matches!(bench.worker.status, Status::Failed { cause: FailCause::CrashLoop, .. }));
    bench.wait(mins(1));
    bench.unchanged(bench.look(Power::Stopped));
    let mut started = bench.clone();
    started.see_twice(Power::Running);
    assert_eq!((started.kind(), started.worker.counters.external_resume), (S::Running, 1));
    bench.wakes(resume());
}
