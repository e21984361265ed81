//! Transitions that were given up, and Drowse coming back: what was ours stays ours, and nothing counts
//! twice.

use drowse_core::effect::Effect;
use drowse_core::event::Event;
use drowse_core::journal::Entry;
use drowse_core::reason::{PauseReason, ResumeReason, SleepMode};
use drowse_core::signal::DriverKind::{Docker, Process};
use drowse_core::status::StatusKind as S;
use drowse_core::worker::{Counters, Power};

use super::machine_bench::{
    Bench, TICK, connect, keep_awake, mins, pause, request, resume, secs, stop, terminate,
};

fn reason(bench: &Bench) -> PauseReason {
    bench.worker.status.sleep().expect("it sleeps").reason
}

fn is_external(bench: &Bench) -> bool {
    bench.entries.iter().any(|entry| matches!(entry, Entry::External { .. }))
}

#[test]
fn a_pause_that_is_found_done_after_silence_or_refusals_counts_once() {
    for is_silent in [true, false] {
        let mut bench = Bench::running(Process);
        bench.ok(bench.idle());
        if is_silent {
            bench.becomes_unknown();
        } else {
            bench.fails();
        }
        bench.to(S::Paused, bench.look(Power::Paused));
        assert_eq!(bench.worker.counters, Counters { auto_pause: 1, ..Counters::default() });
        assert_eq!(reason(&bench), PauseReason::IdleTimeout);
        bench.to(S::Waking, connect());
    }
}

#[test]
fn a_sleep_that_could_not_be_ended_goes_on_and_is_not_counted_again() {
    for sleep in [SleepMode::Freeze, SleepMode::Stop] {
        for way in 0..3 {
            let mut bench = Bench::running_with(Process, |policy| policy.sleep = Some(sleep));
            bench.idles();
            let (before, last) = (bench.worker.status.sleep().cloned(), bench.worker.last_pause.clone());
            bench.ok(connect());
            match way {
                0 => bench.overdue(),
                1 => bench.becomes_unknown(),
                _ => bench.fails(),
            };
            let asleep = if sleep == SleepMode::Freeze { Power::Paused } else { Power::Stopped };
            bench.ok(bench.look(asleep));
            assert_eq!(bench.worker.status.sleep().cloned(), before);
            assert_eq!(bench.worker.last_pause, last);
            assert_eq!(bench.worker.counters, Counters { auto_pause: 1, ..Counters::default() });
            bench.wakes(connect());
            assert_eq!(bench.worker.counters.auto_resume, 1);
        }
    }
}

#[test]
fn a_wake_that_is_found_done_after_silence_or_refusals_is_that_wake() {
    for is_silent in [true, false] {
        let mut bench = Bench::running(Process);
        bench.idles().ok(connect());
        if is_silent {
            bench.becomes_unknown();
        } else {
            bench.fails();
        }
        bench.to(S::Running, bench.look(Power::Running));
        assert_eq!(bench.worker.counters.auto_resume, 1);
        assert_eq!(bench.worker.counters.external_resume, 0);
        assert_eq!(bench.worker.last_resume.as_ref().expect("woken").reason, ResumeReason::Wake);
    }
}

#[test]
fn a_freeze_that_comes_after_it_was_given_up_is_taken_back_and_nobodys_else() {
    let mut bench = Bench::running(Docker);
    bench.ok(bench.idle()).overdue();
    bench.to(S::Running, bench.look(Power::Running));
    bench.wait(secs(2));
    bench.ok(bench.look(Power::Paused)).wait(secs(2));
    bench.to(S::Waking, bench.look(Power::Paused));
    assert!(!is_external(&bench));
    assert_eq!(bench.effects, [Effect::Thaw { intent: bench.intent() }]);
    bench.to(S::Running, bench.ready());
    assert_eq!(bench.worker.counters, Counters::default());
}

#[test]
fn a_persons_freeze_that_comes_late_is_what_they_asked_for() {
    let mut bench = Bench::running(Docker);
    bench.ok(pause()).overdue();
    bench.to(S::Running, bench.look(Power::Running)).see_twice(Power::Paused);
    assert_eq!((bench.kind(), reason(&bench)), (S::Paused, PauseReason::Manual));
    assert_eq!(bench.worker.counters, Counters { manual_pause: 1, ..Counters::default() });
}

#[test]
fn what_comes_when_nothing_can_be_late_any_more_is_somebody_elses() {
    for (waited, is_ours) in [(secs(57), true), (secs(60), false)] {
        let mut bench = Bench::running(Process);
        bench.ok(bench.idle()).overdue();
        bench.to(S::Running, bench.look(Power::Running)).wait(waited).see_twice(Power::Paused);
        assert_eq!(bench.kind(), if is_ours { S::Waking } else { S::Paused });
        assert_eq!(is_external(&bench), !is_ours);
    }
}

#[test]
fn a_stop_that_comes_late_is_ours_whether_seen_or_reported() {
    for is_reported in [true, false] {
        let mut bench = Bench::that_stops();
        bench.ok(bench.idle()).overdue();
        bench.to(S::Running, bench.look(Power::Running)).wait(secs(2));
        if is_reported {
            bench.ok(bench.exits(137));
            assert!(bench.entries.contains(&Entry::GraceExceeded));
        } else {
            bench.see_twice(Power::Stopped);
        }
        assert_eq!((bench.kind(), reason(&bench)), (S::Stopped, PauseReason::IdleTimeout));
        assert_eq!(bench.worker.counters, Counters { auto_pause: 1, ..Counters::default() });
        assert!(!is_external(&bench));
    }
}

#[test]
fn a_wake_that_comes_late_is_that_wake() {
    let mut bench = Bench::running(Process);
    bench.idles().ok(connect()).overdue();
    bench.to(S::Paused, bench.look(Power::Paused)).see_twice(Power::Running);
    assert_eq!(bench.worker.counters, Counters { auto_pause: 1, auto_resume: 1, ..Counters::default() });
    assert!(!is_external(&bench));
}

#[test]
fn a_new_intent_ends_the_memory_of_the_old_one() {
    let mut bench = Bench::running(Process);
    bench.ok(bench.idle()).overdue();
    bench.to(S::Running, bench.look(Power::Running));
    bench.ok(stop());
    assert_eq!(bench.worker.abandoned, None);
}

#[test]
fn a_thaw_that_fails_leaves_our_own_sleep_and_not_somebody_elses() {
    let mut bench = Bench::running(Process);
    bench.ok(bench.idle()).ok(connect());
    bench.to(S::Waking, bench.done()).overdue();
    bench.to(S::Paused, bench.look(Power::Paused));
    assert_eq!(reason(&bench), PauseReason::IdleTimeout);
    bench.wakes(connect());
    assert_eq!(bench.worker.counters, Counters { auto_pause: 1, auto_resume: 1, ..Counters::default() });
}

#[test]
fn a_stop_of_a_frozen_worker_that_does_not_come_leaves_it_frozen() {
    let mut bench = Bench::running(Process);
    bench.idles().ok(stop()).overdue();
    bench.to(S::Paused, bench.look(Power::Paused));
    assert_eq!(reason(&bench), PauseReason::Manual, "a person's word stands");
    assert_eq!(bench.worker.counters, Counters { auto_pause: 1, ..Counters::default() });
    // It was thawed to hear SIGTERM, somebody waits, and it does not stop.
    let mut waited_for = Bench::running(Process);
    waited_for.idles();
    waited_for.wait(mins(6));
    waited_for.ok(Event::StopAfterElapsed { generation: waited_for.generation() });
    waited_for.ok(connect());
    let mut refusing = waited_for.clone();
    refusing.to(S::Waking, refusing.refuses());
    refusing.to(S::Running, refusing.ready());
    waited_for.overdue();
    waited_for.to(S::Running, waited_for.look(Power::Running));
    for bench in [refusing, waited_for] {
        assert_eq!(bench.worker.counters, Counters { auto_pause: 1, auto_resume: 1, ..Counters::default() });
    }
}

#[test]
fn a_deletion_that_fails_leaves_the_sleep_that_was() {
    for (sleep, power) in [(SleepMode::Freeze, Power::Paused), (SleepMode::Stop, Power::Stopped)] {
        let mut bench = Bench::running_with(Process, |policy| policy.sleep = Some(sleep));
        bench.idles().ok(terminate()).fails();
        bench.ok(bench.look(power));
        assert_eq!(reason(&bench), PauseReason::IdleTimeout);
        assert_eq!(bench.worker.counters, Counters { auto_pause: 1, ..Counters::default() });
    }
}

#[test]
fn what_stopped_while_it_was_frozen_or_thawed_was_stopped_by_somebody_else() {
    let mut pausing = Bench::running(Docker);
    pausing.ok(pausing.idle()).overdue();
    let mut waking = Bench::running(Docker);
    waking.idles().ok(connect()).overdue();
    for mut bench in [pausing, waking] {
        bench.to(S::Stopped, bench.look(Power::Stopped));
        assert_eq!(reason(&bench), PauseReason::External);
        assert_eq!(bench.worker.counters.external_pause, 1);
        assert!(bench.effects.contains(&Effect::EndHolds));
    }
}

#[test]
fn a_pause_for_idleness_is_never_left_frozen_by_a_restart_of_drowse() {
    for power in [None, Some(Power::Running), Some(Power::Paused)] {
        for is_scheduled in [false, true] {
            let mut bench = Bench::running(Process);
            let event = if is_scheduled { bench.schedule_sleep(false) } else { bench.idle() };
            bench.ok(event).wait(mins(90));
            bench.to(S::Waking, Event::Recovered { power });
            assert_eq!(bench.effects, [Effect::Thaw { intent: bench.intent() }]);
            bench.to(S::Running, bench.ready());
            assert_eq!(bench.worker.counters, Counters::default());
            // The freeze of the program that died lands only now.
            bench.see_twice(Power::Paused);
            assert!(!is_external(&bench));
        }
    }
}

#[test]
fn a_stop_for_idleness_that_cannot_be_vouched_for_is_not_carried_on_with() {
    let mut bench = Bench::that_stops();
    bench.ok(bench.idle()).wait(mins(90));
    let mut silent = bench.clone();
    silent.to(S::Stopping, Event::Recovered { power: None });
    assert_eq!(silent.effects, [Effect::Look { not_before: silent.now }]);
    silent.to(S::Running, silent.look(Power::Running));
    let mut stopped = bench.clone();
    stopped.to(S::Stopped, Event::Recovered { power: Some(Power::Stopped) });
    assert_eq!(reason(&stopped), PauseReason::IdleTimeout);
    bench.to(S::Waking, Event::Recovered { power: Some(Power::Running) });
    // SIGTERM had been sent after all.
    bench.to(S::Stopped, bench.exits(143));
    assert_eq!(reason(&bench), PauseReason::IdleTimeout);
}

#[test]
fn what_a_person_or_a_limit_asked_for_is_carried_on_with_after_a_restart_of_drowse() {
    let bench = Bench::running(Process);
    for event in [pause(), stop(), bench.max_runtime(), bench.schedule_sleep(true), terminate()] {
        let mut bench = bench.clone();
        bench.ok(event).wait(mins(90));
        let (intent, effects) = (bench.intent(), bench.effects.clone());
        let due_in = bench.deadline().since(bench.worker.status.since());
        bench.ok(Event::Recovered { power: Some(Power::Running) });
        assert_eq!((bench.intent(), &bench.effects), (intent, &effects), "the same intent, asked again");
        assert_eq!(bench.deadline(), bench.now + due_in, "with its full time");
    }
    let mut paused = Bench::running(Process);
    paused.ok(pause()).to(S::Paused, Event::Recovered { power: Some(Power::Paused) });
    let mut gone = Bench::running(Process);
    gone.ok(pause()).to(S::Terminated, Event::Recovered { power: Some(Power::Gone) });
}

#[test]
fn whoever_is_woken_when_drowse_restarts_is_woken_still() {
    let mut bench = Bench::running(Process);
    bench.idles().ok(connect()).wait(mins(90));
    let mut thawed = bench.clone();
    thawed.ok(Event::Recovered { power: Some(Power::Paused) });
    assert_eq!(thawed.effects, [Effect::Thaw { intent: thawed.intent() }]);
    bench.ok(Event::Recovered { power: Some(Power::Stopped) });
    let (intent, not_before) = (bench.intent(), bench.now - mins(90));
    assert_eq!(bench.effects, [Effect::Start { intent, not_before }]);
    bench.ok(Event::DriverReady { intent, boot: Some(bench.new_boot()), started_at: None });
    assert_eq!((bench.kind(), bench.worker.counters.auto_resume), (S::Running, 1));
    assert!(bench.effects.contains(&Effect::EndHolds), "the frozen run is over");
}

#[test]
fn nothing_at_rest_is_touched_by_a_restart_of_drowse() {
    let mut asleep = Bench::running(Process);
    asleep.idles();
    for mut bench in [Bench::running(Process), asleep] {
        bench.unchanged(Event::Recovered { power: Some(Power::Running) });
        bench.unchanged(Event::Recovered { power: None });
    }
}

#[test]
fn a_second_wake_changes_nothing_whoever_asks() {
    let mut pausing = Bench::running(Process);
    pausing.ok(pausing.idle()).ok(connect());
    let mut stopping = Bench::that_stops();
    stopping.ok(Event::StopRequested(request(true, Vec::new()))).ok(resume());
    let mut waking = Bench::running(Process);
    waking.idles().ok(connect());
    for mut bench in [pausing, stopping, waking] {
        for event in [connect(), keep_awake(), resume(), Event::ActivityArrived, Event::ScheduleSaidWake] {
            bench.wait(TICK).unchanged(event);
        }
    }
}
