//! What is peculiar to containers: an engine that goes away, containers that others change, make anew or remove.

use std::time::Duration;

use drowse_core::counter::Meter;
use drowse_core::id::WorkerId;
use drowse_core::policy::Policy;
use drowse_core::signal::{Reading, Signal, UnknownCause};
use drowse_core::worker::Power;
use drowse_drivers::docker::{Container, Spec as Docker};
use drowse_drivers::{Error, Hint, Hook, Measure, Spec, Wanted};

use crate::engine::IMAGE;
use crate::laws::{done, stop_within};
use crate::rig::{LONG, Rig};
use crate::workload::Workload;

const SHORT: Duration = Duration::from_millis(300);

fn id(name: &str) -> WorkerId {
    WorkerId::new(name).expect("a good name")
}

fn is(container: Container) -> Spec {
    Spec::Docker(Docker { container })
}

async fn measure(rig: &Rig, worker: &WorkerId, signal: Signal) -> Option<Measure> {
    rig.observe(worker).await;
    let read = rig.driver().read(worker, Wanted::of(&[signal], &[]), LONG).await;
    read.expect("it can be read").get(signal)
}

async fn total(rig: &Rig, worker: &WorkerId, signal: Signal) -> u64 {
    match measure(rig, worker, signal).await {
        Some(Measure::Total(total)) => total.value,
        other => panic!("no total but {other:?}"),
    }
}

pub(crate) async fn an_engine_that_is_away_says_nothing(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let before = rig.observe(&worker).await;
    rig.engine_mut().kill_daemon();
    for answer in [
        rig.driver().observe(&worker, LONG).await.map(|_| ()),
        rig.driver().freeze(&worker, LONG).await.map(|_| ()),
        rig.driver().stop(&worker, stop_within(1, LONG), LONG).await.map(|_| ()),
    ] {
        assert!(matches!(answer, Err(Error::Unreachable { .. })), "{answer:?}");
    }
    rig.engine_mut().start_daemon();
    rig.eventually("hints may be lost", async || rig.hint().await, |hint| *hint == Hint::Lost).await;
    let after = rig.observe(&worker).await;
    assert_eq!((after.power, after.boot), (Power::Running, before.boot));
    done(rig.driver().freeze(&worker, LONG).await);
}

pub(crate) async fn an_engine_that_hangs_is_not_waited_for(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    rig.engine().hang_daemon(true);
    assert_eq!(rig.driver().observe(&worker, SHORT).await, Err(Error::TimedOut { within: SHORT }));
    assert_eq!(rig.driver().freeze(&worker, SHORT).await, Err(Error::TimedOut { within: SHORT }));
    rig.engine().hang_daemon(false);
    assert_eq!(rig.observe(&worker).await.power, Power::Running);
    rig.progresses(&worker).await;
}

/// The engine hangs after it was asked: it does what it was asked when it goes on, and nobody waits for that any more.
pub(crate) async fn a_freeze_whose_caller_left_is_taken_back(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    for _ in 0..10 {
        {
            let mut freeze = rig.driver().freeze(&worker, LONG);
            tokio::select! {
                biased;
                _ = &mut freeze => panic!("an engine answers no sooner than it is asked"),
                () = tokio::time::sleep(Duration::from_millis(4)) => {}
            }
        }
        rig.eventually(
            "it is thawed",
            async || rig.observe(&worker).await.power,
            |power| *power == Power::Running,
        )
        .await;
    }
    rig.progresses(&worker).await;
}

pub(crate) async fn what_is_removed_under_us_is_gone(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    rig.engine().docker(&["rm", "--force", "web"]);
    rig.eventually("it is gone", async || rig.observe(&worker).await.power, |power| *power == Power::Gone)
        .await;
    assert_eq!(rig.driver().freeze(&worker, LONG).await, Err(Error::Gone));
    assert_eq!(rig.driver().start(&worker, LONG).await, Err(Error::Gone));
}

pub(crate) async fn what_others_do_is_hinted(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let boot = rig.observe(&worker).await.boot.expect("it runs");
    for action in ["pause", "unpause", "restart"] {
        rig.engine().docker(&[action, "web"]);
        rig.eventually(
            action,
            async || rig.hint().await,
            |hint| matches!(hint, Hint::Changed { .. } | Hint::Exited { .. }),
        )
        .await;
        rig.observe(&worker).await;
    }
    assert_ne!(rig.observe(&worker).await.boot, Some(boot));
    rig.engine().docker(&["kill", "web"]);
    let exited = rig
        .eventually("its end", async || rig.hint().await, |hint| matches!(hint, Hint::Exited { .. }))
        .await;
    assert!(matches!(exited, Hint::Exited { code: Some(137), .. }), "{exited:?}");
}

/// A name is not an identity: what bears it now is another run, and one that is known by its id is gone.
pub(crate) async fn made_anew_it_is_another_run(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let first = rig.observe(&worker).await.boot;
    let by_id = id("by-id");
    let container = rig.engine().docker(&["inspect", "--format", "{{.Id}}", "web"]);
    rig.driver().adopt(&by_id, &is(Container::Id(container)), LONG).await.expect("it can be adopted");
    rig.engine().docker(&["rm", "--force", "web"]);
    rig.engine().docker(&["run", "--detach", "--name", "web", "--network", "none", IMAGE, "sleep", "1000"]);
    let again = rig.observe(&worker).await;
    assert_eq!(again.power, Power::Running);
    assert_ne!(again.boot, first);
    assert_eq!(rig.observe(&by_id).await.power, Power::Gone);
}

pub(crate) async fn a_label_means_one_container(rig: &mut Rig) {
    let run = |name: &str| {
        let label = ["--label", "team=web", "--network", "none", IMAGE, "sleep", "1000"];
        rig.engine().docker(&[&["run", "--detach", "--name", name], &label[..]].concat());
    };
    let (worker, spec) = (id("web"), is(Container::Labelled("team=web".into())));
    let seen = rig.driver().adopt(&worker, &spec, LONG).await.expect("it can be asked for");
    assert_eq!(seen.power, Power::Gone);
    run("first");
    let first = rig.observe(&worker).await;
    assert_eq!(first.power, Power::Running);
    run("second");
    let seen = rig.driver().observe(&worker, LONG).await;
    let other = rig.driver().adopt(&id("other"), &spec, LONG).await;
    for refused in [&seen, &other] {
        assert!(
            matches!(refused, Err(Error::Refused { message }) if message.contains("2 containers")),
            "{refused:?}"
        );
    }
    // As soon as one is gone, the other is meant.
    rig.engine().docker(&["rm", "--force", "second"]);
    assert_eq!(rig.observe(&worker).await.boot, first.boot);
}

pub(crate) async fn a_retried_stop_signals_once_and_another_intent_again(rig: &mut Rig) {
    let worker = rig.running("web", Workload::IgnoresTerm).await;
    let terms = rig.dir(&worker).join("terms");
    let terms = || std::fs::read_to_string(&terms).unwrap_or_default();
    let hour = Duration::from_hours(1);
    for _ in 0..2 {
        let acted = rig.driver().stop(&worker, stop_within(1, hour), SHORT).await;
        assert_eq!(acted, Err(Error::TimedOut { within: SHORT }));
        rig.eventually("it heard", async || terms(), |terms| terms == "t").await;
        // Another life of Drowse goes on where the former was.
        rig.restart().await;
    }
    let acted = rig.driver().stop(&worker, stop_within(2, Duration::from_millis(100)), LONG).await;
    assert_eq!(done(acted).exit_code, Some(137));
    assert_eq!(terms(), "tt");
}

pub(crate) async fn a_stop_is_not_undone_by_a_restart_policy(rig: &mut Rig) {
    let arguments =
        ["run", "--detach", "--name", "web", "--restart", "always", "--init", "--network", "none"];
    rig.engine().docker(&[&arguments[..], &[IMAGE, "sleep", "1000"]].concat());
    let worker = id("web");
    rig.driver().adopt(&worker, &is(Container::Named("web".into())), LONG).await.expect("it can be adopted");
    let seen = done(rig.driver().stop(&worker, stop_within(1, LONG), LONG).await);
    assert_eq!((seen.power, seen.exit_code), (Power::Stopped, Some(143)));
    let first = done(rig.driver().start(&worker, LONG).await).boot;
    // Its own end is another matter: the engine starts it again, and that is another run.
    let pid = rig.engine().docker(&["inspect", "--format", "{{.State.Pid}}", "web"]);
    let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    rig.eventually(
        "it runs again",
        async || rig.observe(&worker).await,
        |seen| seen.power == Power::Running && seen.boot != first,
    )
    .await;
}

pub(crate) async fn what_was_frozen_is_known_after_a_restart(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let frozen = done(rig.driver().freeze(&worker, LONG).await);
    rig.restart().await;
    let seen = rig.observe(&worker).await;
    assert_eq!((seen.power, seen.dated_at), (Power::Paused, frozen.dated_at));
    assert!(seen.dated_at.is_some());
    done(rig.driver().thaw(&worker, LONG).await);
    rig.progresses(&worker).await;
}

pub(crate) async fn a_hook_that_does_not_end_is_killed(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let dir = rig.dir(&worker);
    let script = format!("cd {}; while :; do printf h >> hooked; sleep 0.005; done", dir.display());
    let command = ["/bin/sh", "-c", &script].map(String::from);
    let hook = Hook { name: "before_pause", command: &command };
    assert_eq!(rig.driver().run_hook(&worker, hook, SHORT).await, Err(Error::TimedOut { within: SHORT }));
    let marks = async || std::fs::metadata(dir.join("hooked")).map_or(0, |found| found.len());
    let mut last = 0;
    rig.eventually(
        "the hook ends",
        async || {
            rig.progresses(&worker).await;
            rig.progresses(&worker).await;
            let now = marks().await;
            std::mem::replace(&mut last, now) == now
        },
        |is_quiet| *is_quiet,
    )
    .await;
    rig.progresses(&worker).await;
}

pub(crate) async fn a_hook_is_run_in_the_container_and_needs_it_to_run(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let command = ["/bin/sh", "-c", "echo $HOSTNAME; ls /workspace"].map(String::from);
    let hook = Hook { name: "before_pause", command: &command };
    let container = rig.engine().docker(&["inspect", "--format", "{{.Config.Hostname}}", "web"]);
    let end = rig.driver().run_hook(&worker, hook, LONG).await.expect("it ends");
    assert_eq!((end.code, end.output), (0, container));
    done(rig.driver().freeze(&worker, LONG).await);
    let refused = rig.driver().run_hook(&worker, hook, LONG).await;
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
}

/// What it leaves behind holds its output open, says nothing or does not stop talking: its own code counts.
pub(crate) async fn a_hook_that_leaves_a_child_behind_ends_with_its_own_code(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    for (script, code, output) in [
        ("sleep 1000 & exit 0", 0, ""),
        ("sleep 1000 & exit 3", 3, ""),
        ("sleep 1000 & echo no; exit 4", 4, "no"),
        ("(while :; do sleep 1; done) & exec >&- 2>&-; exit 5", 5, ""),
        ("echo last words; exit 6", 6, "last words"),
    ] {
        let command = ["/bin/sh", "-c", script].map(String::from);
        let hook = Hook { name: "before_pause", command: &command };
        let end = rig.driver().run_hook(&worker, hook, LONG).await;
        let end = end.unwrap_or_else(|error| panic!("{script}: {error}"));
        assert_eq!((end.code, end.output.as_str()), (code, output), "{script}");
    }
}

/// Looked at once, they are read from the kernel's files: an engine that hangs is not asked for anything.
pub(crate) async fn fifty_are_read_while_the_engine_hangs(rig: &mut Rig) {
    let network = rig.engine().network();
    let workers: Vec<WorkerId> = (0..50).map(|number| id(&format!("c{number}"))).collect();
    for worker in &workers {
        let name = worker.as_str();
        let run = ["run", "--detach", "--name", name, "--network", network, IMAGE, "sleep", "1000"];
        rig.engine().docker(&run);
        let adopted = rig.driver().adopt(worker, &is(Container::Named(name.to_owned())), LONG).await;
        assert_eq!(adopted.expect("it can be adopted").power, Power::Running);
    }
    rig.engine().hang_daemon(true);
    let wanted = Wanted::of(&[Signal::Cpu, Signal::Network, Signal::Processes], &[]);
    for worker in &workers {
        let measures = rig.driver().read(worker, wanted, SHORT).await;
        let measures = measures.unwrap_or_else(|error| panic!("{worker}: {error}"));
        for signal in [Signal::Cpu, Signal::Network] {
            assert!(matches!(measures.get(signal), Some(Measure::Total(_))), "{worker}: {measures:?}");
        }
        assert!(matches!(measures.get(Signal::Processes), Some(Measure::Level { .. })));
        assert!(measures.memory_bytes.is_some_and(|bytes| bytes > 0), "{measures:?}");
    }
    rig.engine().hang_daemon(false);
}

/// The threshold decides, and what is exactly there is quiet: with what a live container used.
pub(crate) async fn the_edge_is_where_the_policy_puts_it(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let read = async || match measure(rig, &worker, Signal::Cpu).await {
        Some(Measure::Total(total)) => total,
        other => panic!("no total but {other:?}"),
    };
    let before = read().await;
    let after = rig.eventually("it works", read, |after| after.value > before.value).await;
    let interval = after.at.since(before.at);
    let judged = |active_above: f64| {
        let mut policy = Policy::default();
        policy.active_above[Signal::Cpu as usize] = active_above;
        Meter::Cpu.read(Some(&before), &after, &policy, interval)
    };
    // From what the kernel counted, not from what was made of it.
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a moment")]
    let used = 100.0 * (after.value - before.value) as f64 / interval.as_micros() as f64;
    assert_eq!(judged(used * (1.0 + 1e-12)).reading, Reading::Quiet);
    assert!(matches!(judged(used * (1.0 - 1e-12)).reading, Reading::Active { .. }));
}

/// Children count, wherever they run; what others use does not.
pub(crate) async fn what_it_uses_is_measured(rig: &mut Rig) {
    let quiet = rig.running("quiet", Workload::ExitsWhenTold).await;
    let forks = rig.running("forks", Workload::ChildInAnotherSession).await;
    let Some(Measure::Level { value, .. }) = measure(rig, &forks, Signal::Processes).await else {
        panic!("its processes can be counted")
    };
    assert!(value >= 3.0, "{value}");
    let before = total(rig, &forks, Signal::Cpu).await;
    rig.eventually("children count", async || total(rig, &forks, Signal::Cpu).await, |now| *now > before)
        .await;
    assert!(matches!(measure(rig, &quiet, Signal::Tcp).await, Some(Measure::Level { value: 0.0, .. })));
    // No NVML on this machine, so there is no such signal.
    assert_eq!(measure(rig, &quiet, Signal::Gpu).await, None);
}

pub(crate) async fn bytes_are_counted_both_ways_and_not_on_loopback(rig: &mut Rig) {
    let engine = rig.engine();
    let network = engine.network();
    let run = |name: &str, script: &str| {
        let arguments =
            ["run", "--detach", "--init", "--network", network, "--name", name, IMAGE, "sh", "-c"];
        engine.docker(&[&arguments[..], &[script]].concat());
    };
    run("server", "nc -ll -p 9000 -e cat");
    run(
        "loopback",
        "nc -ll -p 9000 -e cat & while :; do head -c 1000 /dev/zero | nc -w 1 127.0.0.1 9000; done",
    );
    run("client", "while :; do head -c 100000 /dev/zero | nc -w 1 server 9000 >/dev/null; sleep 0.1; done");
    engine.docker(&["run", "--detach", "--network", "host", "--name", "host", IMAGE, "sleep", "1000"]);
    let workers = ["server", "loopback", "client", "host"].map(id);
    for worker in &workers {
        let spec = is(Container::Named(worker.to_string()));
        rig.driver().adopt(worker, &spec, LONG).await.expect("it can be adopted");
    }
    let [server, loopback, client, host] = workers;
    for worker in [&server, &client] {
        rig.eventually(
            "both have moved both ways",
            async || total(rig, worker, Signal::Network).await,
            |bytes| *bytes > 200_000,
        )
        .await;
    }
    // A few packets by which the kernel finds its neighbours, and none of those to itself.
    assert!(total(rig, &loopback, Signal::Network).await < 20_000);
    let shared = Some(Measure::Unknown(UnknownCause::NotItsOwn));
    assert_eq!(measure(rig, &host, Signal::Network).await, shared);
}

/// As the container sees them: a link that leads out of it leads nowhere else. Nothing runs in it for this.
pub(crate) async fn files_in_it_are_seen_and_people_in_it_are_told(rig: &mut Rig) {
    let run = ["run", "--detach", "--tty", "--name", "web", "--network", "none", IMAGE, "sleep", "1000"];
    rig.engine().docker(&run);
    let worker = id("web");
    let driver = rig.driver();
    driver.adopt(&worker, &is(Container::Named("web".into())), LONG).await.expect("it can be adopted");
    let file = "/workspace/.keep-alive";
    assert_eq!(driver.touched(&worker, "/no/such/folder/file", LONG).await, Ok(None));
    // That it was not there before says nothing about now.
    for _ in 0..3 {
        assert_eq!(driver.touched(&worker, file, LONG).await, Ok(None));
    }
    rig.engine().docker(&["exec", "web", "touch", "-d", "2020-01-01 00:00:00", file]);
    let at = "2020-01-01T00:00:00Z".parse().expect("an instant");
    for _ in 0..2 {
        assert_eq!(driver.touched(&worker, file, LONG).await, Ok(Some(at)));
    }
    // Every machine has this, and the image does not.
    rig.engine().docker(&["exec", "web", "ln", "-s", "/usr/sbin/dockerd", "/workspace/link"]);
    assert_eq!(driver.touched(&worker, "/workspace/link", LONG).await, Ok(None));
    let told = driver.tell(&worker, "it will be stopped\n", LONG).await.expect("somebody is told");
    assert_eq!((told.terminals, told.file), (1, Ok(())));
    assert_eq!(rig.engine().docker(&["exec", "web", "cat", "/run/drowse-warning"]), "it will be stopped");
    rig.eventually(
        "the terminal shows it",
        async || rig.engine().docker(&["logs", "web"]),
        |shown| shown.contains("it will be stopped"),
    )
    .await;
    done(driver.freeze(&worker, LONG).await);
    assert_eq!(driver.touched(&worker, file, LONG).await, Ok(Some(at)));
}
