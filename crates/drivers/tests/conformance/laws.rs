//! What holds for every driver.

use std::time::Duration;

use drowse_core::id::{IntentId, WorkerId};
use drowse_core::reason::SleepMode;
use drowse_core::worker::Power;
use drowse_drivers::{Acted, Error, Hint, Hook, Seen, Stop, Terminate};

use crate::rig::{Kind, LONG, Rig};
use crate::workload::Workload;

pub(crate) fn stop_within(intent: u64, grace: Duration) -> Stop {
    Stop { intent: IntentId(intent), mode: SleepMode::Stop, grace, thaw_first: false, run: None }
}

const TERMINATE: Terminate = Terminate { intent: IntentId(99), grace: LONG, run: None };

pub(crate) fn done(acted: Result<Acted, Error>) -> Seen {
    match acted {
        Ok(Acted::Done(seen)) => seen,
        other => panic!("expected it to be done, found {other:?}"),
    }
}

fn already(acted: Result<Acted, Error>) -> Seen {
    match acted {
        Ok(Acted::AlreadyTrue(seen)) => seen,
        other => panic!("expected it to be so already, found {other:?}"),
    }
}

pub(crate) async fn freeze_stops_progress_and_thaw_resumes_it(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let seen = done(rig.call(rig.driver().freeze(&worker, LONG)).await);
    assert_eq!(seen.power, Power::Paused);
    assert_eq!(rig.observe(&worker).await.power, Power::Paused);
    rig.makes_no_progress(&worker).await;
    let seen = done(rig.call(rig.driver().thaw(&worker, LONG)).await);
    assert_eq!(seen.power, Power::Running);
    rig.progresses(&worker).await;
}

pub(crate) async fn repeating_an_action_is_already_true(rig: &mut Rig) {
    let worker = rig.stopped("web", Workload::Counts).await;
    let driver = rig.driver();
    assert_eq!(
        already(rig.call(driver.stop(&worker, stop_within(1, LONG), LONG)).await).power,
        Power::Stopped
    );
    let first = done(rig.call(driver.start(&worker, LONG)).await);
    let again = already(rig.call(driver.start(&worker, LONG)).await);
    assert_eq!((first.boot, Power::Running), (again.boot, again.power));
    already(rig.call(driver.thaw(&worker, LONG)).await);
    done(rig.call(driver.freeze(&worker, LONG)).await);
    already(rig.call(driver.freeze(&worker, LONG)).await);
    done(rig.call(driver.thaw(&worker, LONG)).await);
    let first = done(rig.call(driver.stop(&worker, stop_within(2, LONG), LONG)).await);
    let again = already(rig.call(driver.stop(&worker, stop_within(2, LONG), LONG)).await);
    assert_eq!(first.exit_code, again.exit_code);
    done(rig.call(driver.terminate(&worker, TERMINATE, LONG)).await);
    assert_eq!(already(rig.call(driver.terminate(&worker, TERMINATE, LONG)).await).power, Power::Gone);
}

pub(crate) async fn a_stop_with_grace_lets_it_put_things_in_order(rig: &mut Rig) {
    let worker = rig.running("web", Workload::HearsTerm).await;
    let seen = done(rig.call(rig.driver().stop(&worker, stop_within(1, LONG), LONG)).await);
    assert_eq!((seen.power, seen.exit_code), (Power::Stopped, Some(7)));
}

pub(crate) async fn what_ignores_sigterm_is_killed(rig: &mut Rig) {
    let worker = rig.running("web", Workload::IgnoresTerm).await;
    let grace = Duration::from_millis(100);
    let seen = done(rig.call(rig.driver().stop(&worker, stop_within(1, grace), LONG)).await);
    assert_eq!((seen.power, seen.exit_code), (Power::Stopped, Some(137)));
    if rig.kind != Kind::Sim {
        let terms = std::fs::read_to_string(rig.dir(&worker).join("terms")).expect("it was asked first");
        assert_eq!(terms, "t");
    }
}

pub(crate) async fn a_stop_from_frozen_is_heard(rig: &mut Rig) {
    let worker = rig.running("web", Workload::HearsTerm).await;
    done(rig.call(rig.driver().freeze(&worker, LONG)).await);
    let stop = Stop { thaw_first: true, ..stop_within(1, LONG) };
    let seen = done(rig.call(rig.driver().stop(&worker, stop, LONG)).await);
    assert_eq!((seen.power, seen.exit_code), (Power::Stopped, Some(7)));
}

pub(crate) async fn an_exit_is_told_once_with_its_code(rig: &mut Rig) {
    let worker = rig.running("web", Workload::ExitsWhenTold).await;
    let boot = rig.observe(&worker).await.boot.expect("it runs");
    rig.let_exit(&worker);
    assert_eq!(rig.hint().await, Hint::Exited { worker: worker.clone(), boot: boot.clone(), code: Some(3) });
    let seen = rig.observe(&worker).await;
    assert_eq!((seen.power, seen.exit_code, seen.boot), (Power::Stopped, Some(3), Some(boot)));
    rig.no_hint().await;
}

pub(crate) async fn an_end_that_was_asked_for_is_told_in_the_answer_alone(rig: &mut Rig) {
    let worker = rig.running("web", Workload::HearsTerm).await;
    done(rig.call(rig.driver().stop(&worker, stop_within(1, LONG), LONG)).await);
    rig.no_hint().await;
    done(rig.call(rig.driver().start(&worker, LONG)).await);
    done(rig.call(rig.driver().terminate(&worker, TERMINATE, LONG)).await);
    rig.no_hint().await;
}

pub(crate) async fn what_cannot_run_is_refused_and_can_be_tried_again(rig: &mut Rig) {
    let worker = rig.stopped("web", Workload::CannotRun).await;
    match rig.call(rig.driver().start(&worker, LONG)).await {
        Err(Error::Refused { message }) => assert!(message.contains("/no/such/program"), "{message}"),
        other => panic!("expected a refusal, found {other:?}"),
    }
    assert_eq!(rig.observe(&worker).await.power, Power::Stopped);
    rig.no_hint().await;
    rig.adopt(&worker, Workload::Counts).await;
    done(rig.call(rig.driver().start(&worker, LONG)).await);
}

pub(crate) async fn what_does_not_run_cannot_be_frozen(rig: &mut Rig) {
    let worker = rig.stopped("web", Workload::Counts).await;
    for acted in
        [rig.call(rig.driver().freeze(&worker, LONG)).await, rig.call(rig.driver().thaw(&worker, LONG)).await]
    {
        assert!(matches!(acted, Err(Error::Refused { .. })), "{acted:?}");
    }
    done(rig.call(rig.driver().terminate(&worker, TERMINATE, LONG)).await);
    for acted in [
        rig.call(rig.driver().freeze(&worker, LONG)).await,
        rig.call(rig.driver().start(&worker, LONG)).await,
    ] {
        assert_eq!(acted, Err(Error::Gone));
    }
}

pub(crate) async fn cpu_grows_while_busy_and_not_while_frozen(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Busy).await;
    rig.progresses(&worker).await;
    done(rig.call(rig.driver().freeze(&worker, LONG)).await);
    rig.makes_no_progress(&worker).await;
    done(rig.call(rig.driver().thaw(&worker, LONG)).await);
    rig.progresses(&worker).await;
}

pub(crate) async fn a_deadline_is_honoured(rig: &mut Rig) {
    let worker = rig.running("web", Workload::IgnoresTerm).await;
    let within = Duration::from_millis(50);
    let acted = rig.call(rig.driver().stop(&worker, stop_within(1, Duration::from_hours(1)), within)).await;
    assert_eq!(acted, Err(Error::TimedOut { within }));
    assert_eq!(rig.observe(&worker).await.power, Power::Running);
}

pub(crate) async fn a_new_run_has_a_new_boot_and_a_thaw_does_not(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let first = rig.observe(&worker).await;
    assert!(first.boot.is_some() && first.boot_started_at.is_some());
    done(rig.call(rig.driver().freeze(&worker, LONG)).await);
    let frozen = rig.observe(&worker).await;
    assert_eq!((&frozen.boot, frozen.boot_started_at), (&first.boot, first.boot_started_at));
    assert!(frozen.dated_at >= first.dated_at, "{frozen:?} {first:?}");
    let thawed = done(rig.call(rig.driver().thaw(&worker, LONG)).await);
    assert_eq!(thawed.boot, first.boot);
    done(rig.call(rig.driver().stop(&worker, stop_within(1, LONG), LONG)).await);
    let second = done(rig.call(rig.driver().start(&worker, LONG)).await);
    assert_ne!(second.boot, first.boot);
}

pub(crate) async fn a_hook_ends_with_its_code(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let hook = |script: &str| ["/bin/sh", "-c", script].map(String::from);
    let run = async |command: &[String]| {
        let hook = Hook { name: "before_pause", command };
        rig.call(rig.driver().run_hook(&worker, hook, LONG)).await
    };
    assert_eq!(run(&hook("exit 0")).await.expect("it ends").code, 0);
    if rig.kind != Kind::Sim {
        let end = run(&hook("echo not now; exit 5")).await.expect("it ends");
        assert_eq!((end.code, end.output.as_str()), (5, "not now"));
        assert!(matches!(run(&["/no/such/hook".into()]).await, Err(Error::Refused { .. })));
    }
}

pub(crate) async fn a_frozen_worker_is_not_forgotten(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    done(rig.call(rig.driver().freeze(&worker, LONG)).await);
    assert!(matches!(rig.driver().forget(&worker, LONG).await, Err(Error::Refused { .. })));
    done(rig.call(rig.driver().thaw(&worker, LONG)).await);
    assert_eq!(rig.driver().forget(&worker, LONG).await, Ok(()));
    assert!(rig.driver().observe(&worker, LONG).await.is_err());
}

pub(crate) async fn nothing_is_left_after_terminate(rig: &mut Rig) {
    let worker = rig.running("web", Workload::HearsTerm).await;
    done(rig.call(rig.driver().freeze(&worker, LONG)).await);
    let cgroups = match rig.kind {
        Kind::Sim | Kind::Docker => Vec::new(),
        Kind::V2 | Kind::V1 | Kind::Signals => crate::processes::cgroups(rig, &worker),
    };
    for cgroup in &cgroups {
        assert!(cgroup.exists(), "{}", cgroup.display());
    }
    let seen = done(rig.call(rig.driver().terminate(&worker, TERMINATE, LONG)).await);
    assert_eq!(seen.power, Power::Gone);
    assert_eq!(rig.observe(&worker).await.power, Power::Gone);
    for cgroup in &cgroups {
        assert!(!cgroup.exists(), "{}", cgroup.display());
        assert!(!cgroup.parent().is_some_and(std::path::Path::exists), "the folder for all of them is left");
    }
    for folder in ["process", "docker"] {
        assert!(!rig.data_dir().join(folder).join(worker.as_str()).exists());
    }
    if rig.kind == Kind::Docker {
        assert!(rig.engine().try_docker(&["inspect", worker.as_str()]).is_err(), "the container is left");
    }
    // A name can be given again.
    assert_eq!(rig.adopt(&worker, Workload::Counts).await.power, Power::Stopped);
}

pub(crate) async fn a_stranger_is_refused(rig: &mut Rig) {
    let stranger = WorkerId::new("stranger").expect("a good name");
    let driver = rig.driver();
    assert!(matches!(driver.observe(&stranger, LONG).await, Err(Error::Refused { .. })));
    assert!(matches!(driver.freeze(&stranger, LONG).await, Err(Error::Refused { .. })));
    let other =
        if rig.kind == Kind::Sim { Workload::Counts.process(rig.data_dir()) } else { Workload::Counts.sim() };
    let adopted = driver.adopt(&stranger, &other, LONG).await;
    assert!(matches!(adopted, Err(Error::Unsupported { .. })), "{adopted:?}");
}

pub(crate) async fn start_wakes_what_is_frozen(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    done(rig.call(rig.driver().freeze(&worker, LONG)).await);
    assert_eq!(done(rig.call(rig.driver().start(&worker, LONG)).await).power, Power::Running);
    rig.progresses(&worker).await;
}
