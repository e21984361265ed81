//! What stands below the table: who may wake, who may put to sleep over whom, hooks, snoozes, counters.

use drowse_core::effect::Effect;
use drowse_core::event::{Event, Request};
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::journal::Entry;
use drowse_core::policy::Policy;
use drowse_core::reason::{PauseReason, PauseReasons, SleepMode};
use drowse_core::refusal::Refusal;
use drowse_core::signal::DriverKind::{Docker, Process};
use drowse_core::status::{Status, StatusKind as S, WakeCause};
use drowse_core::worker::{Counters, Power, Worker};

use super::machine_bench::{
    Bench, TICK, connect, hold, keep_awake, lease, mins, pause, request, resume, secs, stop, terminate,
};

/// Workers on each step of a sleep that a person asked for: falling, frozen, stopping, stopped.
fn put_to_sleep_by_alice() -> [Bench; 4] {
    let mut pausing = Bench::running(Process);
    pausing.ok(pause());
    let mut paused = pausing.clone();
    paused.ok(paused.done());
    let mut stopping = Bench::that_stops();
    stopping.ok(pause());
    let mut stopped = stopping.clone();
    stopped.ok(stopped.done());
    [pausing, paused, stopping, stopped]
}

#[test]
fn what_wake_from_forbids_is_refused_with_who_when_and_why() {
    for mut bench in put_to_sleep_by_alice() {
        let sleep = bench.worker.status.sleep().cloned().expect("it sleeps");
        assert_eq!((sleep.by.as_str(), sleep.message.as_str()), ("alice", "lunch"));
        for event in [connect(), lease(), Event::ScheduleSaidWake] {
            let before = bench.worker.clone();
            assert_eq!(bench.refused(event), Refusal::WakeNotAllowed { sleep: sleep.clone() });
            assert_eq!(bench.worker, before);
        }
        bench.unchanged(Event::ActivityArrived { by: drowse_core::signal::Signal::Telemetry });
        bench.unchanged(Event::WakeRequested { cause: WakeCause::Activity });
        let text = bench.refused(connect()).to_string();
        assert!(text.contains("alice") && text.contains("manual"), "{text}");
    }
}

#[test]
fn what_a_person_put_to_sleep_a_person_wakes() {
    for mut bench in put_to_sleep_by_alice() {
        bench.ok(resume());
        if bench.kind() != S::Waking {
            bench.to(S::Waking, bench.done());
        }
        bench.to(S::Running, bench.ready());
    }
}

#[test]
fn wake_from_decides_for_each_reason() {
    let mut bench = Bench::running_with(Process, |policy| {
        policy.wake_from = PauseReasons::of([PauseReason::Manual]);
    });
    let mut idle = bench.clone();
    bench.falls_asleep(pause()).wakes(connect());
    idle.idles();
    assert!(matches!(idle.refused(connect()), Refusal::WakeNotAllowed { .. }));
}

#[test]
fn nothing_but_a_person_wakes_what_is_out_of_service() {
    let mut bench = Bench::running(Process);
    bench.idles();
    bench.worker.in_service = false;
    for event in [connect(), lease(), Event::ScheduleSaidWake] {
        assert_eq!(bench.refused(event), Refusal::OutOfService);
    }
    bench.wakes(resume());
}

#[test]
fn a_lease_or_a_keep_awake_wakes_a_frozen_worker_and_not_a_stopped_one() {
    for event in [lease(), keep_awake()] {
        let mut frozen = Bench::running(Process);
        frozen.idles().to(S::Waking, event.clone());
        let mut stopping = Bench::that_stops();
        stopping.ok(stopping.idle());
        assert_eq!(stopping.refused(event.clone()), Refusal::Stopped);
        let mut stopped = Bench::that_stops();
        stopped.idles();
        assert_eq!(stopped.refused(event), Refusal::Stopped);
    }
}

#[test]
fn the_end_of_drowse_thaws_and_starts_nothing() {
    let event = Event::WakeRequested { cause: WakeCause::Shutdown };
    let mut frozen = Bench::running(Process);
    frozen.idles();
    let counters = frozen.worker.counters;
    frozen.to(S::Waking, event.clone());
    assert_eq!(frozen.worker.counters, counters, "an undo counts nothing");
    let mut stopped = Bench::that_stops();
    stopped.idles();
    assert_eq!(stopped.refused(event), Refusal::Stopped);
}

#[test]
fn nobody_can_ask_for_a_wake_by_a_cause_that_is_ours() {
    let mut stopped = Bench::that_stops();
    stopped.idles();
    let mut frozen = Bench::running(Process);
    frozen.falls_asleep(pause());
    for mut bench in [stopped, frozen] {
        for cause in [WakeCause::Veto, WakeCause::Recovery, WakeCause::Exit, WakeCause::Activity] {
            bench.unchanged(Event::WakeRequested { cause });
        }
    }
}

#[test]
fn a_limit_a_forced_pause_and_a_forced_schedule_are_not_undone_by_activity() {
    let hooked = |bench: &Bench| {
        let mut policy = Policy { before_pause: Some(vec!["sync".into()]), ..Policy::default() };
        policy.sleep = Some(bench.worker.terms.sleep);
        let mut hooked = Bench::registered(Process, &policy);
        hooked.ok(hooked.look(Power::Running));
        hooked
    };
    for plain in [Bench::running(Process), Bench::that_stops()] {
        for bench in [plain.clone(), hooked(&plain)] {
            for event in [
                bench.max_runtime(),
                Event::PauseRequested(request(true, Vec::new())),
                bench.schedule_sleep(true),
            ] {
                let mut bench = bench.clone();
                bench
                    .ok(event)
                    .unchanged(Event::ActivityArrived { by: drowse_core::signal::Signal::Telemetry });
                if bench.worker.terms.has_before_pause {
                    bench.ok(Event::HookPassed { intent: bench.intent() });
                }
                bench.ok(bench.done());
                assert!(matches!(bench.kind(), S::Paused | S::Stopped));
                bench.unchanged(Event::ActivityArrived { by: drowse_core::signal::Signal::Telemetry });
            }
        }
    }
}

#[test]
fn activity_that_was_on_its_way_when_the_pause_committed_thaws_the_worker() {
    let mut bench = Bench::running(Process);
    bench.idles().wakes(Event::ActivityArrived { by: drowse_core::signal::Signal::Telemetry });
    assert_eq!(bench.worker.counters, Counters { auto_pause: 1, ..Counters::default() });
    assert_eq!(bench.effects, [], "an undo starts no snooze");
}

#[test]
fn a_persons_wish_over_somebody_who_needs_the_worker_is_refused_with_their_holds() {
    let mine = hold(HoldKind::KeepAwake, "alice");
    let over = Hold { until: Some(drowse_core::Timestamp::EPOCH), ..hold(HoldKind::Lease, "build") };
    let in_the_way = [
        hold(HoldKind::Lease, "build"),
        hold(HoldKind::Connection, "router-1"),
        hold(HoldKind::KeepAliveFile, "web"),
        hold(HoldKind::KeepAwake, "bob"),
    ];
    let harmless = [
        mine.clone(),
        over,
        hold(HoldKind::Snooze, "drowse"),
        hold(HoldKind::Exemption, "carol"),
        hold(HoldKind::Schedule, "drowse"),
        hold(HoldKind::StartupGrace, "drowse"),
    ];
    for ask in [Event::PauseRequested, Event::StopRequested, Event::TerminateRequested] {
        for blocking in &in_the_way {
            let holds = vec![mine.clone(), blocking.clone()];
            let mut bench = Bench::running(Process);
            let refusal = bench.refused(ask(request(false, holds.clone())));
            assert_eq!(refusal, Refusal::Held { holds: vec![blocking.clone()] });
            bench.ok(ask(request(true, holds)));
        }
        let mut bench = Bench::running(Process);
        bench.ok(ask(request(false, harmless.to_vec())));
        assert_ne!(bench.kind(), S::Running);
    }
    let mut frozen = Bench::running(Process);
    frozen.idles();
    frozen.refused(Event::StopRequested(request(false, in_the_way.to_vec())));
}

#[test]
fn a_request_that_is_already_so_says_so() {
    let mut paused = Bench::running(Process);
    paused.idles().unchanged(pause()).ok(pause());
    let mut stopped = Bench::that_stops();
    stopped.idles().unchanged(pause()).ok(pause()).ok(stop());
    let mut running = Bench::running(Process);
    running.unchanged(resume()).ok(resume()).ok(connect());
    // A wake waits, so that it will not be paused: "already" would be a lie.
    let mut taken_back = Bench::running(Process);
    taken_back.ok(taken_back.idle()).ok(connect());
    assert_eq!(taken_back.refused(pause()), Refusal::InTransition { status: S::Pausing });
    assert_eq!(taken_back.refused(stop()), Refusal::InTransition { status: S::Pausing });
}

fn hooked(sleep: SleepMode) -> Bench {
    Bench::running_with(Process, |policy| {
        policy.sleep = Some(sleep);
        policy.before_pause = Some(vec!["sync".into()]);
        policy.after_resume = Some(vec!["clock".into()]);
    })
}

#[test]
fn the_driver_acts_only_after_the_hook_has_passed() {
    for sleep in [SleepMode::Freeze, SleepMode::Stop] {
        let mut bench = hooked(sleep);
        bench.ok(bench.idle());
        let intent = bench.intent();
        assert_eq!(
            bench.effects,
            [Effect::RunBeforePause {
                intent,
                heed_veto: true,
                deadline: bench.worker.status.since() + secs(10)
            }]
        );
        bench.unchanged(bench.done());
        bench.unchanged(bench.refuses());
        bench.ok(Event::HookPassed { intent });
        assert!(matches!(bench.effects[..], [Effect::Freeze { .. } | Effect::Stop { .. }]));
        bench.unchanged(Event::HookPassed { intent });
        bench.unchanged(Event::HookVetoed { intent, message: "late".into() });
        bench.ok(bench.done());
        assert!(matches!(bench.kind(), S::Paused | S::Stopped));
        bench.wakes(connect());
        assert!(bench.effects.contains(&Effect::RunAfterResume));
    }
}

#[test]
fn what_a_hook_stirs_up_does_not_undo_its_own_pause() {
    use drowse_core::signal::Signal;
    for by in [Signal::Cpu, Signal::Tcp, Signal::Network, Signal::Activity] {
        let mut bench = hooked(SleepMode::Freeze);
        bench.ok(bench.idle());
        bench.unchanged(Event::ActivityArrived { by });
        bench.ok(Event::HookPassed { intent: bench.intent() });
        bench.ok(Event::ActivityArrived { by });
        bench.to(S::Waking, bench.done());
    }
    for by in [Signal::Telemetry, Signal::Connections] {
        let mut bench = hooked(SleepMode::Freeze);
        bench.ok(bench.idle());
        bench.to(S::Waking, Event::ActivityArrived { by });
    }
}

#[test]
fn a_drain_whose_time_is_up_deletes_what_nothing_holds() {
    let mut bench = Bench::running(Process);
    bench.to(S::Draining, crate::rules::machine_bench::drain());
    let timer = Event::DrainTimedOut { generation: bench.generation(), is_held: false };
    let due = bench.deadline();
    bench.at(due).to(S::Terminating, timer);
}

#[test]
fn a_veto_takes_the_sleep_back_and_is_counted_until_a_yes() {
    let mut bench = hooked(SleepMode::Stop);
    for in_a_row in 1..=5 {
        bench.ok(bench.idle());
        bench.to(S::Waking, Event::HookVetoed { intent: bench.intent(), message: "busy".into() });
        assert!(bench.entries.contains(&Entry::HookVetoed { message: "busy".into(), in_a_row }));
        let alerts = bench.entries.contains(&Entry::VetoAlert { in_a_row: 3 });
        assert_eq!(alerts, in_a_row == 3, "once, at the third");
        assert_eq!(bench.effects, [Effect::Thaw { intent: bench.intent() }]);
        bench.to(S::Running, bench.ready());
    }
    assert_eq!(bench.worker.counters, Counters::default());
    bench.ok(bench.idle());
    bench.ok(Event::HookPassed { intent: bench.intent() });
    assert_eq!(bench.worker.vetoes, 0);
}

#[test]
fn force_and_limits_run_the_hook_and_heed_no_veto() {
    let bench = hooked(SleepMode::Freeze);
    for event in [
        bench.max_runtime(),
        bench.schedule_sleep(true),
        Event::PauseRequested(request(true, Vec::new())),
        Event::StopRequested(request(true, Vec::new())),
    ] {
        let mut bench = bench.clone();
        bench.ok(event);
        let intent = bench.intent();
        assert_eq!(
            bench.effects,
            [Effect::RunBeforePause {
                intent,
                heed_veto: false,
                deadline: bench.worker.status.since() + secs(10)
            }]
        );
        bench.ok(Event::HookVetoed { intent, message: "busy".into() });
        assert!(matches!(bench.effects[..], [Effect::Freeze { .. } | Effect::Stop { .. }]));
        bench.ok(bench.done());
    }
}

#[test]
fn what_arrives_while_the_hook_runs_takes_the_sleep_back_at_once() {
    for sleep in [SleepMode::Freeze, SleepMode::Stop] {
        for event in [
            connect(),
            lease(),
            keep_awake(),
            resume(),
            Event::ActivityArrived { by: drowse_core::signal::Signal::Telemetry },
        ] {
            let mut bench = hooked(sleep);
            bench.ok(bench.idle());
            let hook = bench.intent();
            bench.to(S::Waking, event);
            bench.unchanged(Event::HookPassed { intent: hook });
            bench.to(S::Running, bench.ready());
            assert_eq!(bench.worker.counters, Counters::default());
        }
    }
}

#[test]
fn a_forced_stop_goes_on_while_its_hook_runs_but_for_a_person() {
    let mut bench = hooked(SleepMode::Stop);
    bench.ok(bench.schedule_sleep(true));
    assert_eq!(bench.refused(lease()), Refusal::Stopped);
    assert_eq!(bench.refused(keep_awake()), Refusal::Stopped);
    let mut waited_for = bench.clone();
    waited_for.to(S::Stopping, connect());
    waited_for.ok(Event::HookPassed { intent: waited_for.intent() });
    waited_for.to(S::Waking, waited_for.done());
    bench.to(S::Waking, resume());
}

#[test]
fn a_frozen_worker_that_is_stopped_runs_no_hook() {
    let mut bench = hooked(SleepMode::Freeze);
    bench.ok(bench.idle());
    bench.ok(Event::HookPassed { intent: bench.intent() });
    bench.ok(bench.done()).ok(stop());
    assert!(matches!(bench.effects[..], [Effect::Stop { thaw_first: true, .. }]));
}

#[test]
fn the_last_sleep_is_the_one_that_was_asked_for_last() {
    let mut bench = Bench::running(Process);
    bench.falls_asleep(pause()).wait(mins(5)).falls_asleep(stop());
    let last = bench.worker.last_pause.clone().expect("it slept");
    assert_eq!((last.by.as_str(), last.reason), ("alice", PauseReason::Manual));
    assert_eq!(last.at, bench.worker.status.since(), "the same person, but later");
    assert_eq!(bench.worker.counters.manual_pause, 1);
}

#[test]
fn exit_code_137_means_grace_exceeded_only_when_we_asked_for_the_stop() {
    let grace = Bench::that_stops().worker.terms.grace;
    // Killed before its grace was over: somebody else did that.
    for (code, after, exceeded) in
        [(137, grace, true), (137, grace.saturating_sub(TICK), false), (0, grace, false), (143, grace, false)]
    {
        let mut bench = Bench::that_stops();
        bench.ok(bench.idle());
        let asked = bench.wait(secs(9)).now;
        bench.wait(after);
        let asked_at = Some(asked);
        let done = Event::DriverDone { intent: bench.intent(), exit_code: Some(code), asked_at };
        bench.to(S::Stopped, done);
        assert_eq!(bench.entries.contains(&Entry::GraceExceeded), exceeded, "{code} after {after:?}");
    }
    let mut killed = Bench::running(Docker);
    killed.ok(killed.exits(137));
    assert!(!killed.entries.contains(&Entry::GraceExceeded));
}

#[test]
fn a_wake_from_frozen_snoozes_only_by_its_own_setting() {
    let mut bench = Bench::running_with(Process, |policy| policy.snooze_after_thaw = secs(90));
    bench.idles().wakes(connect());
    assert_eq!(bench.effects, [Effect::Snooze { until: bench.now + secs(90) }]);
}

#[test]
fn leased_time_starts_again_after_sleep_and_not_after_a_crash() {
    let mut bench = Bench::running(Process);
    bench.ok(bench.exits(1));
    assert!(!bench.effects.contains(&Effect::EndLeasedTime));
    bench.ok(bench.ready()).wait(mins(1));
    bench.ok(bench.idle());
    bench.ok(bench.done());
    let stops_at = Some(bench.now + mins(5));
    assert_eq!(
        bench.effects,
        [Effect::EndLeasedTime, Effect::AnnounceSleep { stops_at }],
        "holds outlive a freeze, the count does not"
    );
}

#[test]
fn frozen_time_is_not_run_time() {
    let mut bench = Bench::running(Process);
    let ran_for = bench.worker.ran_for(bench.now);
    bench.ok(bench.idle());
    bench.ok(bench.done()).wait(mins(30));
    assert_eq!(bench.worker.ran_for(bench.now), ran_for);
    bench.ok(connect());
    bench.ok(bench.ready()).wait(mins(1));
    assert_eq!(bench.worker.ran_for(bench.now), ran_for + mins(1));
    // A wake that the driver does not manage for hours, in which it stays frozen.
    bench.idles().ok(connect()).becomes_unknown().wait(mins(300));
    bench.to(S::Paused, bench.look(Power::Paused));
    assert!(bench.worker.ran_for(bench.now) < ran_for + mins(3));
    // Another run is another count.
    bench.ok(stop());
    bench.ok(bench.done()).ok(resume());
    bench.ok(bench.ready());
    assert_eq!(bench.worker.ran_for(bench.now), secs(0));
}

#[test]
fn a_worker_can_be_stored_in_every_status() {
    let mut benches = put_to_sleep_by_alice().to_vec();
    let mut waking = Bench::running(Process);
    waking.idles().ok(connect());
    let mut unknown = waking.clone();
    unknown.becomes_unknown();
    let mut ending = Bench::running(Process);
    ending.ok(terminate());
    benches.extend([Bench::registered(Docker, &Policy::default()), waking, unknown, ending]);
    for bench in benches {
        let text = serde_json::to_string(&bench.worker).expect("it can be written");
        let mut read: Worker = serde_json::from_str(&text).expect("it can be read");
        read.terms = bench.worker.terms;
        assert_eq!(read, bench.worker);
    }
    assert!(matches!(Bench::running(Process).worker.status, Status::Running { .. }));
}

#[test]
fn what_the_driver_refuses_to_make_fails_after_the_third_time() {
    let mut bench = Bench::registered(Process, &Policy::default());
    let refused = |bench: &Bench| Event::MakeRefused {
        generation: bench.worker.generation,
        message: "there is no such program".into(),
    };
    for _ in 0..2 {
        let event = refused(&bench);
        bench.ok(event);
        assert_eq!(bench.kind(), S::Provisioning);
    }
    let event = refused(&bench);
    bench.to(S::Failed, event);
    let Status::Failed { message, .. } = &bench.worker.status else { panic!("{:?}", bench.worker.status) };
    assert_eq!(message, "the driver refused three times: there is no such program");
    bench.to(S::Waking, resume());
    let event = refused(&bench);
    assert!(matches!(bench.refused(event), Refusal::WrongStatus { .. }));
}

#[test]
fn a_protected_worker_is_touched_by_nobody_who_does_not_insist() {
    let orders: [fn(Request) -> Event; 4] =
        [Event::PauseRequested, Event::StopRequested, Event::TerminateRequested, Event::DrainRequested];
    for order in orders {
        let mut bench = Bench::running_with(Docker, |policy| policy.protected = true);
        assert_eq!(bench.refused(order(request(false, Vec::new()))), Refusal::Protected);
        bench.ok(order(request(true, Vec::new())));
    }
}
