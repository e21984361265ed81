//! What holds for real processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::signal::Signal;
use drowse_core::worker::Power;
use drowse_drivers::process::thaw_all;
use drowse_drivers::{Driver, Error, Hint, Hook, Measure, Wanted};

use crate::laws::{done, stop_within};
use crate::rig::{Kind, LOG_LIMIT, LONG, Rig, open_for_host};
use crate::workload::Workload;

fn state(rig: &Rig, worker: &WorkerId) -> serde_json::Value {
    let path = rig.data_dir().join("process").join(worker.as_str()).join("state.json");
    serde_json::from_slice(&fs::read(path).expect("there is a record")).expect("it is JSON")
}

/// The cgroups of a worker's run.
pub(crate) fn cgroups(rig: &Rig, worker: &WorkerId) -> Vec<PathBuf> {
    let state = state(rig, worker);
    ["path", "cpuacct"].iter().filter_map(|key| state["cage"][key].as_str().map(PathBuf::from)).collect()
}

pub(crate) async fn a_new_driver_adopts_what_runs(rig: &mut Rig) {
    let worker = rig.running("web", Workload::HearsTerm).await;
    let before = rig.observe(&worker).await;
    rig.restart().await;
    let after = rig.observe(&worker).await;
    assert_eq!((&after.boot, after.power), (&before.boot, Power::Running));
    assert_eq!(after.boot_started_at, before.boot_started_at);
    rig.progresses(&worker).await;
    done(rig.driver().freeze(&worker, LONG).await);
    done(rig.driver().stop(&worker, stop_within(1, LONG), LONG).await);
    assert!(rig.dir(&worker).join("heard").exists());
}

pub(crate) async fn a_new_driver_adopts_what_is_frozen(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    done(rig.driver().freeze(&worker, LONG).await);
    rig.restart().await;
    assert_eq!(rig.observe(&worker).await.power, Power::Paused);
    rig.makes_no_progress(&worker).await;
    done(rig.driver().thaw(&worker, LONG).await);
    rig.progresses(&worker).await;
}

pub(crate) async fn one_word_lets_it_go_on_and_only_when_all_is_ready(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    for is_another_driver in [false, true] {
        done(rig.driver().freeze(&worker, LONG).await);
        if is_another_driver {
            // It has nothing ready that the former one kept.
            rig.restart().await;
            assert_eq!(rig.observe(&worker).await.power, Power::Paused);
        }
        assert!(!rig.driver().thaw_at_once(&worker, &mut || false), "somebody said no");
        rig.makes_no_progress(&worker).await;
        let mut asked = 0;
        let is_said = rig.driver().thaw_at_once(&worker, &mut || {
            asked += 1;
            true
        });
        if rig.kind == Kind::Signals {
            assert!(!is_said && asked == 0, "one word does not reach every process");
            done(rig.driver().thaw(&worker, LONG).await);
            continue;
        }
        assert!(is_said && asked == 1);
        rig.progresses(&worker).await;
        // The thaw that follows finds it so.
        rig.driver().thaw(&worker, LONG).await.expect("it runs");
        assert_eq!(rig.observe(&worker).await.power, Power::Running);
    }
    done(rig.driver().stop(&worker, stop_within(1, LONG), LONG).await);
    assert!(!rig.driver().thaw_at_once(&worker, &mut || panic!("it does not run")));
}

pub(crate) async fn a_reused_pid_is_never_signalled(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let mut fake = state(rig, &worker);
    done(rig.driver().stop(&worker, stop_within(1, LONG), LONG).await);
    rig.close();

    // An innocent process that bears the number which the record of a worker names.
    let mut innocent = Command::new("/bin/sleep").arg("600").spawn().expect("sleep can be started");
    let alive = |innocent: &mut std::process::Child| innocent.try_wait().expect("it is our child").is_none();
    fake["identity"]["pid"] = innocent.id().into();
    let path = rig.data_dir().join("process").join("web").join("state.json");
    let stat = fs::read_to_string(format!("/proc/{}/stat", innocent.id())).expect("it runs");
    let ticks: u64 = stat
        .rsplit_once(')')
        .expect("a name")
        .1
        .split_whitespace()
        .nth(19)
        .expect("field 22")
        .parse()
        .expect("a number");
    for (start_ticks, machine_boot) in [(ticks + 1, None), (ticks, Some("another boot"))] {
        fake["identity"]["start_ticks"] = start_ticks.into();
        if let Some(boot) = machine_boot {
            fake["identity"]["machine_boot"] = boot.into();
        }
        // As if the stop had been under way, and as if we had frozen it.
        fake["frozen_at"] = "2026-01-01T00:00:00Z".into();
        fake["exit"] = serde_json::Value::Null;
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        fs::write(&path, fake.to_string()).expect("a file can be written");
        thaw_all(rig.data_dir()).expect("it can be read");
        rig.reopen();
        let seen = rig.adopt(&worker, Workload::Counts).await;
        assert_eq!((seen.power, seen.exit_code), (Power::Stopped, None));
        assert!(matches!(rig.driver().freeze(&worker, LONG).await, Err(Error::Refused { .. })));
        rig.driver().stop(&worker, stop_within(2, Duration::ZERO), LONG).await.expect("nothing to stop");
        rig.driver()
            .terminate(
                &worker,
                drowse_drivers::Terminate {
                    intent: drowse_core::id::IntentId(3),
                    grace: Duration::ZERO,
                    run: None,
                },
                LONG,
            )
            .await
            .expect("nothing to delete");
        assert!(alive(&mut innocent), "somebody else's process was ended");
        rig.close();
    }
    innocent.kill().expect("it is our child");
    innocent.wait().expect("it is our child");
    rig.reopen();
}

const HOST: &str = "DROWSE_TEST_HOST";

/// Starts a worker in a process that is then killed the hard way.
pub(crate) fn host() {
    let Ok(orders) = std::env::var(HOST) else { return };
    let mut orders = orders.split('\n');
    let mut next = || orders.next().expect("four lines").to_owned();
    let (kind, data_dir, dir, is_frozen) = (next(), next(), next(), next() == "frozen");
    let kind = [Kind::V1, Kind::V2, Kind::Signals].into_iter().find(|known| format!("{known:?}") == kind);
    let driver = open_for_host(kind.expect("a kind"), Path::new(&data_dir));
    let worker = WorkerId::new("web").expect("a good name");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let spec = Workload::HearsTerm.process(Path::new(&dir));
        driver.adopt(&worker, &spec, LONG).await.expect("it can be adopted");
        driver.start(&worker, LONG).await.expect("it can be started");
        // Only then does it listen for SIGTERM.
        while !Path::new(&dir).join("marks").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        if is_frozen {
            driver.freeze(&worker, LONG).await.expect("it can be frozen");
        }
        fs::write(Path::new(&data_dir).join("ready"), "").expect("a file can be written");
        std::future::pending::<()>().await;
    });
}

/// A worker whose Drowse was killed, adopted by another one.
async fn adopt_from_the_dead(rig: &mut Rig, is_frozen: bool) -> WorkerId {
    let worker = WorkerId::new("web").expect("a good name");
    let dir = rig.dir(&worker);
    fs::create_dir_all(&dir).expect("a folder can be made");
    let (data_dir, frozen) = (rig.data_dir().display(), if is_frozen { "frozen" } else { "running" });
    let orders = format!("{:?}\n{data_dir}\n{}\n{frozen}", rig.kind, dir.display());
    let mut host = Command::new(std::env::current_exe().expect("we are a program"))
        .args(["--exact", "host", "--ignored"])
        .env(HOST, orders)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("we can be started");
    let ready = rig.data_dir().join("ready");
    rig.eventually("the host has started it", async || ready.exists(), |ready| *ready).await;
    host.kill().expect("it is our child");
    host.wait().expect("it is our child");
    rig.adopt(&worker, Workload::HearsTerm).await;
    worker
}

pub(crate) async fn killing_drowse_does_not_hurt_the_worker(rig: &mut Rig) {
    let worker = adopt_from_the_dead(rig, false).await;
    let boot = rig.observe(&worker).await.boot.expect("it runs");
    rig.progresses(&worker).await;
    done(rig.driver().freeze(&worker, LONG).await);
    rig.makes_no_progress(&worker).await;
    done(rig.driver().thaw(&worker, LONG).await);
    rig.progresses(&worker).await;
    // Its end is noticed, but only a parent learns the code.
    let pid = state(rig, &worker)["identity"]["pid"].as_i64().expect("a number");
    let killed =
        Command::new("kill").args(["-TERM", &pid.to_string()]).status().expect("kill can be started");
    assert!(killed.success());
    assert_eq!(rig.hint().await, Hint::Exited { worker: worker.clone(), boot, code: None });
    assert_eq!(rig.observe(&worker).await.power, Power::Stopped);
    assert!(rig.dir(&worker).join("heard").exists());
}

pub(crate) async fn killing_drowse_does_not_hurt_a_frozen_worker(rig: &mut Rig) {
    let worker = adopt_from_the_dead(rig, true).await;
    assert_eq!(rig.observe(&worker).await.power, Power::Paused);
    rig.makes_no_progress(&worker).await;
    let seen = done(rig.driver().stop(&worker, stop_within(1, LONG), LONG).await);
    assert_eq!((seen.power, seen.exit_code), (Power::Stopped, None));
    assert!(rig.dir(&worker).join("heard").exists());
}

pub(crate) async fn children_that_left_the_group_are_frozen_too(rig: &mut Rig) {
    let worker = rig.running("web", Workload::ChildInAnotherSession).await;
    done(rig.driver().freeze(&worker, LONG).await);
    rig.makes_no_progress(&worker).await;
    done(rig.driver().thaw(&worker, LONG).await);
    rig.progresses(&worker).await;
}

pub(crate) async fn a_child_that_outlives_its_parent_is_killed(rig: &mut Rig) {
    let worker = rig.running("web", Workload::StubbornChild).await;
    let child = fs::read_to_string(rig.dir(&worker).join("child")).expect("it wrote its pid");
    let grace = Duration::from_millis(100);
    let seen = done(rig.driver().stop(&worker, stop_within(1, grace), LONG).await);
    assert_eq!(seen.exit_code, Some(7));
    assert!(!is_alive(&child));
}

fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// The freezer finds it; SIGSTOP does not, as the documentation of the driver says.
pub(crate) async fn what_left_the_session_and_lost_its_parent(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Orphan).await;
    done(rig.driver().freeze(&worker, LONG).await);
    if rig.kind == Kind::Signals {
        rig.progresses(&worker).await;
        // Nor would its end be ours to bring about.
        let marks = rig.dir(&worker);
        let found = Command::new("sh")
            .arg("-c")
            .arg("for p in /proc/[0-9]*; do [ \"$(readlink $p/cwd)\" = \"$0\" ] && kill -9 ${p#/proc/}; done; :")
            .arg(marks.canonicalize().expect("it is there"))
            .status();
        assert!(found.expect("sh can be started").success());
    } else {
        rig.makes_no_progress(&worker).await;
        done(rig.driver().thaw(&worker, LONG).await);
        rig.progresses(&worker).await;
    }
}

pub(crate) async fn a_retried_stop_signals_once_and_another_intent_again(rig: &mut Rig) {
    let worker = rig.running("web", Workload::IgnoresTerm).await;
    let terms = rig.dir(&worker).join("terms");
    let heard = async || fs::read_to_string(&terms).unwrap_or_default();
    let try_stop = async |intent, grace| {
        rig.driver().stop(&worker, stop_within(intent, grace), Duration::from_millis(50)).await
    };
    let long = Duration::from_hours(1);
    assert!(matches!(try_stop(1, long).await, Err(Error::TimedOut { .. })));
    rig.eventually("it hears SIGTERM", heard, |heard| heard == "t").await;
    assert!(matches!(try_stop(1, long).await, Err(Error::TimedOut { .. })));
    rig.restart().await;
    let try_stop = async |intent, grace| {
        rig.driver().stop(&worker, stop_within(intent, grace), Duration::from_millis(50)).await
    };
    assert!(matches!(try_stop(1, long).await, Err(Error::TimedOut { .. })));
    rig.progresses(&worker).await;
    assert_eq!(heard().await, "t", "a retry signalled again");
    assert!(matches!(try_stop(2, long).await, Err(Error::TimedOut { .. })));
    rig.eventually("it hears the other intent", heard, |heard| heard == "tt").await;
    // The grace of a later intent is its own: the hour of the earlier ones does not hold it up.
    let seen = done(rig.driver().stop(&worker, stop_within(3, Duration::from_millis(50)), LONG).await);
    assert_eq!(seen.exit_code, Some(137));
}

pub(crate) async fn an_end_that_a_stop_missed_is_told(rig: &mut Rig) {
    let worker = rig.running("web", Workload::IgnoresTerm).await;
    let stop = stop_within(1, Duration::from_hours(1));
    let missed = rig.driver().stop(&worker, stop, Duration::from_millis(50)).await;
    assert!(matches!(missed, Err(Error::TimedOut { .. })));
    let pid = state(rig, &worker)["identity"]["pid"].as_i64().expect("a number");
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill").success());
    assert!(matches!(rig.hint().await, Hint::Exited { code: Some(137), .. }));
}

pub(crate) async fn output_is_bounded(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Talks).await;
    let log = rig.process().output_of(&worker);
    let mut older = log.clone().into_os_string();
    older.push(".1");
    rig.eventually(
        "older output is put aside",
        async || fs::metadata(&older).map_or(0, |f| f.len()),
        |length| *length > 0,
    )
    .await;
    done(rig.driver().freeze(&worker, LONG).await);
    // Frozen, so that nothing is added: the next tidying leaves at most the limit in each.
    let length =
        async || (fs::metadata(&log).map_or(0, |f| f.len()), fs::metadata(&older).map_or(0, |f| f.len()));
    rig.eventually("both are within the limit", length, |(new, old)| *new <= LOG_LIMIT && *old <= LOG_LIMIT)
        .await;
    let text = fs::read_to_string(&older).expect("it is text");
    assert!(text.contains("0123456789012345678901234567890123456789"));
}

pub(crate) async fn what_a_run_left_behind_is_gone_before_the_next(rig: &mut Rig) {
    let worker = rig.stopped("web", Workload::LeavesAChild).await;
    done(rig.driver().start(&worker, LONG).await);
    assert!(matches!(rig.hint().await, Hint::Exited { code: Some(0), .. }));
    let child = fs::read_to_string(rig.dir(&worker).join("child")).expect("it wrote its pid");
    assert!(is_alive(&child), "an exit is respected, and so is what it leaves");
    if rig.kind == Kind::Signals {
        // In a session of its own and without its parent, it is out of reach.
        let _ = Command::new("kill").args(["-KILL", child.trim()]).status();
    }
    rig.adopt(&worker, Workload::Counts).await;
    done(rig.driver().start(&worker, LONG).await);
    rig.eventually("the child is gone", async || is_alive(&child), |alive| !*alive).await;
}

pub(crate) async fn ice_ends_with_its_run(rig: &mut Rig) {
    let worker = rig.running("web", Workload::LeavesAChildWhenKilled).await;
    done(rig.driver().freeze(&worker, LONG).await);
    rig.makes_no_progress(&worker).await;
    let pid = state(rig, &worker)["identity"]["pid"].as_i64().expect("a number");
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill").success());
    if rig.kind == Kind::V1 {
        // The v1 freezer keeps even the killed until it is thawed.
        assert_eq!(rig.observe(&worker).await.power, Power::Paused);
        done(rig.driver().thaw(&worker, LONG).await);
    }
    assert!(matches!(rig.hint().await, Hint::Exited { code: Some(137), .. }));
    rig.progresses(&worker).await;
    done(rig.driver().stop(&worker, stop_within(1, LONG), LONG).await);
}

pub(crate) async fn cgroups_of_the_workers_own_are_part_of_it(rig: &mut Rig) {
    let worker = rig.stopped("web", Workload::Counts).await;
    done(rig.driver().start(&worker, LONG).await);
    let cgroup = cgroups(rig, &worker).first().cloned();
    done(rig.driver().stop(&worker, stop_within(1, LONG), LONG).await);
    let drowse_drivers::Spec::Process(mut spec) = Workload::MakesACgroup.process(&rig.dir(&worker)) else {
        panic!("a process has another spec");
    };
    spec.env.insert("CGROUP".into(), cgroup.as_ref().map_or("", |path| path.to_str().expect("text")).into());
    let spec = drowse_drivers::Spec::Process(spec);
    rig.driver().adopt(&worker, &spec, LONG).await.expect("it is known");
    done(rig.driver().start(&worker, LONG).await);
    rig.progresses(&worker).await;
    assert!(cgroup.as_ref().is_none_or(|path| path.join("below").exists()));
    done(rig.driver().freeze(&worker, LONG).await);
    rig.makes_no_progress(&worker).await;
    done(rig.driver().stop(&worker, stop_within(2, LONG), LONG).await);
    assert!(cgroup.is_none_or(|path| !path.exists()));
}

pub(crate) async fn thaw_all_needs_no_driver(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let other = rig.running("other", Workload::Counts).await;
    done(rig.driver().freeze(&worker, LONG).await);
    rig.close();
    let thawed = thaw_all(rig.data_dir()).expect("the data folder can be read");
    let outcome = |of: &WorkerId| {
        let found = thawed.iter().find(|thawed| thawed.worker == of.as_str()).expect("it has a record");
        *found.outcome.as_ref().expect("it can be thawed")
    };
    assert!(outcome(&worker));
    assert!(!outcome(&other));
    rig.reopen();
    rig.adopt(&worker, Workload::Counts).await;
    assert_eq!(rig.observe(&worker).await.power, Power::Running);
    rig.progresses(&worker).await;
}

pub(crate) async fn a_freeze_whose_caller_leaves_is_taken_back(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    for _ in 0..20 {
        // Dropped at its first wait, if it comes to one.
        tokio::select! {
            biased;
            frozen = rig.driver().freeze(&worker, LONG) => {
                frozen.expect("it can be frozen");
                rig.driver().thaw(&worker, LONG).await.expect("it can be thawed");
            }
            () = tokio::task::yield_now() => {}
        }
        rig.progresses(&worker).await;
    }
}

pub(crate) async fn a_hook_that_does_not_end_is_killed(rig: &mut Rig) {
    let worker = rig.running("web", Workload::Counts).await;
    let pid = rig.dir(&worker).join("hook-pid");
    let command = ["/bin/sh", "-c", "echo $$ > hook-pid.new; mv hook-pid.new hook-pid; sleep 600 & wait"]
        .map(String::from);
    let within = Duration::from_secs(1);
    let hook = Hook { name: "before_pause", command: &command };
    assert_eq!(rig.driver().run_hook(&worker, hook, within).await, Err(Error::TimedOut { within }));
    let pid = fs::read_to_string(pid).expect("it wrote its pid");
    let stat = format!("/proc/{}/stat", pid.trim());
    rig.eventually("the hook is gone", async || Path::new(&stat).exists(), |exists| !*exists).await;
    assert_eq!(rig.observe(&worker).await.power, Power::Running);
}

pub(crate) async fn the_helper_runs_nothing_until_told(rig: &mut Rig) {
    let proof = rig.data_dir().join("proof");
    let log = rig.data_dir().join("log");
    let mut helper = Command::new(env!("CARGO_BIN_EXE_drowse-exec"))
        .arg("--log")
        .arg(&log)
        .args(["--", "/bin/sh", "-c", "echo ran > \"$0\""])
        .arg(&proof)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the helper can be started");
    rig.eventually("it has got as far as it may", async || log.exists(), |exists| *exists).await;
    drop(helper.stdin.take());
    assert_eq!(helper.wait().expect("it is our child").code(), Some(127));
    assert!(!proof.exists());
}

pub(crate) async fn secrets_of_drowse_are_not_the_workers(rig: &mut Rig) {
    let worker = rig.running("web", Workload::ShowsEnvironment).await;
    let env = rig.dir(&worker).join("env");
    let found = async || fs::read_to_string(&env).unwrap_or_default();
    let found = rig.eventually("it shows its environment", found, |text| text.contains("PATH=")).await;
    let ours: Vec<&str> = found.lines().filter(|line| line.starts_with("DROWSE_")).collect();
    assert_eq!(ours, ["DROWSE_WORKER=web"]);
}

pub(crate) async fn processes_and_sockets_are_counted(rig: &mut Rig) {
    let worker = rig.running("web", Workload::ChildInAnotherSession).await;
    let wanted = Wanted::of(&[Signal::Processes, Signal::Tcp, Signal::Network, Signal::Gpu], &[]);
    let read = rig.driver().read(&worker, wanted, LONG).await.expect("it can be read");
    match read.get(Signal::Processes) {
        Some(Measure::Level { value, .. }) => assert!(value >= 2.0, "{value}"),
        other => panic!("no count of processes but {other:?}"),
    }
    assert!(
        matches!(read.get(Signal::Tcp), Some(Measure::Level { value: 0.0, .. })),
        "{:?}",
        read.get(Signal::Tcp)
    );
    // It shares the machine's interfaces, and nobody reads a GPU here.
    assert_eq!((read.get(Signal::Network), read.get(Signal::Gpu), read.get(Signal::Cpu)), (None, None, None));
    assert!(read.boot.is_some());
}
