//! A last look that fails is not one that found nothing: nobody is ended unseen. And hooks that do not end.

use std::time::Duration;

use drowse_core::policy::{Key, PolicyLayer, Value};
use drowse_core::reason::SleepMode;
use drowse_core::status::StatusKind;
use drowse_core::worker::Power;
use drowse_drivers::Error;
use drowse_drivers::sim::{self, Span, Takes};
use drowse_server::fleet::Order;

use super::bench::{Bench, global};

/// Each with a hook that takes two seconds, so that there is time between the check and the last look.
fn hooked(layer: PolicyLayer) -> PolicyLayer {
    layer.with(Key::BeforePause, Value::Command(vec!["true".to_owned()]))
}

fn slow_hook(seconds: u64) -> sim::Spec {
    let takes = Takes { hook: Span::exactly(Duration::from_secs(seconds)), ..Takes::default() };
    sim::Spec { takes, ..sim::Spec::default() }
}

fn failures() -> [Error; 4] {
    let message = "the simulated engine says so".to_owned();
    [
        Error::Refused { message: message.clone() },
        Error::Denied { message: message.clone() },
        Error::Unreachable { message },
        Error::TimedOut { within: Duration::from_secs(5) },
    ]
}

#[test]
fn a_last_look_that_fails_ends_nobody_and_is_made_again() {
    let ways = [
        (SleepMode::Stop, StatusKind::Stopping, StatusKind::Stopped, Power::Stopped),
        (SleepMode::Freeze, StatusKind::Pausing, StatusKind::Paused, Power::Paused),
    ];
    for (mode, on_its_way, asleep, power) in ways {
        for error in failures() {
            let layer = hooked(global(10)).with(Key::Sleep, Value::Sleep(mode));
            let mut bench = Bench::shared(1, vec![layer]);
            let web = bench.add_with("web", true, slow_hook(2));
            bench.pass_until("it is on its way", |bench| bench.is(&web, on_its_way));
            bench.scripted.fail_looks(Some(error.clone()));
            bench.pass_secs(15);
            assert_eq!(bench.power(&web), Power::Running, "{error:?}: {}", bench.summary());
            assert!(bench.is(&web, on_its_way), "{error:?}: {}", bench.summary());
            bench.scripted.fail_looks(None);
            bench.pass_until("it sleeps", |bench| bench.is(&web, asleep));
            assert_eq!(bench.power(&web), power, "{error:?}: {}", bench.summary());
            assert_eq!(bench.worker(&web).counters.auto_pause, 1, "{}", bench.summary());
        }
    }
}

/// What is known of it then is that nothing is, which is neither idle nor asleep.
#[test]
fn a_last_look_that_fails_until_the_deadline_leaves_a_worker_that_is_unknown() {
    for error in failures() {
        let layer = hooked(global(10)).with(Key::Sleep, Value::Sleep(SleepMode::Stop));
        let mut bench = Bench::shared(2, vec![layer]);
        let web = bench.add_with("web", true, slow_hook(2));
        bench.pass_until("it is being stopped", |bench| bench.is(&web, StatusKind::Stopping));
        let deadline = bench.status(&web).deadline().unwrap();
        bench.scripted.fail_looks(Some(error.clone()));
        bench.pass_until("its deadline has come", |bench| bench.now() >= deadline);
        bench.pass_secs(1);
        assert!(bench.is(&web, StatusKind::Unknown), "{error:?}: {}", bench.summary());
        bench.pass_secs(600);
        assert!(bench.is(&web, StatusKind::Unknown), "{error:?}: {}", bench.summary());
        assert_eq!(bench.power(&web), Power::Running, "{error:?}: {}", bench.summary());
        bench.scripted.fail_looks(None);
        bench.pass_until("it is seen", |bench| bench.is(&web, StatusKind::Running));
        assert_eq!(bench.count(&web, "worker.stopped"), 0, "{}", bench.summary());
    }
}

#[test]
fn a_last_look_that_fails_deletes_nobody() {
    for error in failures() {
        let layer = global(10).with(Key::Sleep, Value::Sleep(SleepMode::Stop));
        let terminate_after = Value::Duration(Duration::from_mins(1));
        let mut bench = Bench::shared(3, vec![layer.with(Key::TerminateAfter, terminate_after)]);
        let takes = Takes { observe: Span::exactly(Duration::from_secs(1)), ..Takes::default() };
        let web = bench.add_with("web", true, sim::Spec { takes, ..sim::Spec::default() });
        bench.pass_until("it is stopped", |bench| bench.is(&web, StatusKind::Stopped));
        // The engine fails while the check that decides is looking, which takes a second, and before the last look.
        let at = bench.worker(&web).last_pause.unwrap().at + Duration::from_mins(1);
        bench.pass((at - Duration::from_millis(500)).since(bench.now()));
        bench.scripted.fail_looks(Some(error.clone()));
        bench.pass_secs(300);
        assert_eq!(bench.power(&web), Power::Stopped, "{error:?}: {}", bench.summary());
        assert!(bench.is(&web, StatusKind::Terminating), "{error:?}: {}", bench.summary());
        bench.scripted.fail_looks(None);
        bench.pass_until("it is gone", |bench| bench.is(&web, StatusKind::Terminated));
    }
}

/// Whoever waits for the worker does not wait for the hook, and neither does the next order.
#[test]
fn an_after_resume_hook_that_hangs_holds_nobody_up() {
    let hook = Value::Command(vec!["hang".to_owned()]);
    for is_ordered in [false, true] {
        let mut bench = Bench::new(4, vec![global(60).with(Key::AfterResume, hook.clone())]);
        let web = bench.add_with("web", true, slow_hook(3_600));
        bench.pass_until("it is paused", |bench| bench.is(&web, StatusKind::Paused));
        let id = web.clone();
        bench.ask(|fleet| async move { fleet.resume(&id, "alice", "").await }).unwrap();
        bench.pass_secs(1);
        assert!(bench.is(&web, StatusKind::Running), "{}", bench.summary());
        if is_ordered {
            let id = web.clone();
            bench.ask(|fleet| async move { fleet.pause(&id, Order::new("alice")).await }).unwrap();
            bench.pass_secs(3);
            assert!(bench.is(&web, StatusKind::Paused), "{}", bench.summary());
            continue;
        }
        assert_eq!(bench.count(&web, "worker.hook_failed"), 0, "it has ten seconds");
        bench.pass_secs(10);
        let journal = bench.journal(&web);
        let failed = journal.iter().find(|stored| stored.event.kind == "worker.hook_failed").unwrap();
        assert_eq!(failed.event.doc["hook"], "after_resume");
        assert_eq!(failed.event.doc["error"], "no answer within 10s");
        assert!(bench.is(&web, StatusKind::Running), "{}", bench.summary());
    }
}
