//! Which container a worker is, and that one container's troubles are its own.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::worker::Power;
use drowse_drivers::docker::{Container, Spec as Docker};
use drowse_drivers::{Error, Hint, Seen, Spec};

use crate::engine::IMAGE;
use crate::laws::done;
use crate::rig::{LONG, Rig};

fn run(rig: &Rig, name: &str, more: &[&str]) -> String {
    let run = ["run", "--detach", "--init", "--name", name, "--network", "none"];
    rig.engine().docker(&[&run, more, &[IMAGE, "sleep", "100000"]].concat())
}

async fn adopt(rig: &Rig, worker: &str, container: Container) -> (WorkerId, Result<Seen, Error>) {
    let worker = WorkerId::new(worker).expect("a good name");
    let seen = rig.driver().adopt(&worker, &Spec::Docker(Docker { container }), LONG).await;
    (worker, seen)
}

/// The engine takes it for one, if nobody has the name.
pub(crate) async fn a_name_is_never_the_beginning_of_an_id(rig: &mut Rig) {
    let stranger = run(rig, "stranger", &[]);
    for digits in [1, 6, 11] {
        let (_, seen) = adopt(rig, "web", Container::Named(stranger[..digits].to_owned())).await;
        assert_eq!(seen.expect("the engine answers").power, Power::Gone, "{digits} digits");
    }
    // As the engine's own client shows it, or whole: that is an id.
    for digits in [12, 64] {
        let (_, seen) = adopt(rig, "web", Container::Named(stranger[..digits].to_owned())).await;
        assert_eq!(seen.expect("the engine answers").power, Power::Running, "{digits} digits");
    }
    let (worker, _) = adopt(rig, "named", Container::Named(stranger[..6].to_owned())).await;
    run(rig, &stranger[..6], &[]);
    let seen = rig.observe(&worker).await;
    assert_eq!(seen.power, Power::Running);
    assert!(!seen.boot.expect("it runs").0.starts_with(&stranger), "it is the one of that name");
}

pub(crate) async fn of_two_with_a_label_both_are_named_and_the_frozen_one_is_woken(rig: &mut Rig) {
    let label = || Container::Labelled("team=web".to_owned());
    run(rig, "first", &["--label", "team=web"]);
    let (worker, _) = adopt(rig, "web", label()).await;
    done(rig.driver().freeze(&worker, LONG).await);
    run(rig, "second", &["--label", "team=web"]);
    let (_, refused) = adopt(rig, "other", label()).await;
    let names_both = |message: &str| message.contains("first") && message.contains("second");
    assert!(matches!(&refused, Err(Error::Refused { message }) if names_both(message)), "{refused:?}");
    // Another life of Drowse knows by its own ice which one it was.
    rig.restart().await;
    let (worker, seen) = adopt(rig, "web", label()).await;
    assert_eq!(seen.expect("it is known").power, Power::Paused);
    done(rig.driver().thaw(&worker, LONG).await);
    let state = rig.engine().docker(&["inspect", "--format", "{{.State.Status}}", "first"]);
    assert_eq!(state, "running");
}

/// A name belongs to whoever bears it; but who sleeps by our hand is woken, whatever it is called by then.
pub(crate) async fn a_name_is_whoever_bears_it_now(rig: &mut Rig) {
    let state = |name: &str| rig.engine().docker(&["inspect", "--format", "{{.State.Status}}", name]);
    run(rig, "web", &[]);
    let (worker, _) = adopt(rig, "web", Container::Named("web".to_owned())).await;
    rig.engine().docker(&["rename", "web", "web-old"]);
    assert_eq!(rig.observe(&worker).await.power, Power::Gone);
    let second = run(rig, "web", &[]);
    let seen = rig.observe(&worker).await;
    assert!(seen.boot.expect("it runs").0.starts_with(&second));
    done(rig.driver().freeze(&worker, LONG).await);
    assert_eq!((state("web-old").as_str(), state("web").as_str()), ("running", "paused"));
    rig.engine().docker(&["rename", "web", "web-iced"]);
    assert_eq!(rig.observe(&worker).await.power, Power::Paused);
    done(rig.driver().thaw(&worker, LONG).await);
    assert_eq!(state("web-iced"), "running");
    assert_eq!(rig.observe(&worker).await.power, Power::Gone);
}

pub(crate) async fn a_label_that_comes_to_mean_two_freezes_neither(rig: &mut Rig) {
    run(rig, "first", &["--label", "team=web"]);
    let (worker, _) = adopt(rig, "web", Container::Labelled("team=web".to_owned())).await;
    run(rig, "second", &["--label", "team=web"]);
    let refused = rig.driver().freeze(&worker, LONG).await;
    let names_both = |message: &str| message.contains("first") && message.contains("second");
    assert!(matches!(&refused, Err(Error::Refused { message }) if names_both(message)), "{refused:?}");
    let hint = tokio::time::timeout(LONG, rig.driver().next_hint()).await.expect("it is told");
    assert!(matches!(&hint, Hint::Changed { worker: of } if *of == worker) || hint == Hint::Came, "{hint:?}");
    rig.engine().docker(&["rm", "--force", "second"]);
    done(rig.driver().freeze(&worker, LONG).await);
}

pub(crate) async fn nothing_is_kept_of_a_container_that_is_gone(rig: &mut Rig) {
    let container = run(rig, "web", &[]);
    let (worker, _) = adopt(rig, "web", Container::Id(container)).await;
    done(rig.driver().freeze(&worker, LONG).await);
    let kept = rig.data_dir().join("docker/web");
    assert!(kept.exists());
    rig.engine().docker(&["rm", "--force", "web"]);
    assert_eq!(rig.observe(&worker).await.power, Power::Gone);
    assert!(!kept.exists());
}

/// A file system whose server never answers, as a network disk that is gone.
pub(crate) async fn files_that_do_not_answer_concern_their_container_only(rig: &mut Rig) {
    let short = Duration::from_millis(200);
    for name in ["hung", "well"] {
        run(rig, name, &[]);
        adopt(rig, name, Container::Named(name.to_owned())).await.1.expect("it can be adopted");
    }
    let [hung, well] = ["hung", "well"].map(|name| WorkerId::new(name).expect("a good name"));
    let file = "/workspace/.keep-alive";
    // What is known from before is no answer about what has come into its place.
    for _ in 0..2 {
        assert_eq!(rig.driver().touched(&hung, file, LONG).await, Ok(None));
    }
    let pid = rig.engine().docker(&["inspect", "--format", "{{.State.Pid}}", "hung"]);
    let server = File::options().read(true).write(true).open("/dev/fuse").expect("there is /dev/fuse");
    let mounted = Command::new("nsenter")
        .args(["--target", &pid, "--mount", "busybox", "mount", "-t", "fuse", "-o"])
        .args(["fd=0,rootmode=40000,user_id=0,group_id=0", "none", "/workspace"])
        .stdin(Stdio::from(server.try_clone().expect("a file can be had twice")))
        .status();
    assert!(mounted.is_ok_and(|status| status.success()), "fd {}", server.as_raw_fd());
    for _ in 0..3 {
        let touched = rig.driver().touched(&hung, file, short).await;
        assert_eq!(touched, Err(Error::TimedOut { within: short }));
    }
    assert_eq!(rig.driver().touched(&well, file, LONG).await, Ok(None));
    assert_eq!(rig.observe(&hung).await.power, Power::Running);
    let threads = std::fs::read_dir("/proc/self/task").expect("our own").count();
    for _ in 0..5 {
        let _ = rig.driver().touched(&hung, file, short).await;
    }
    let now = std::fs::read_dir("/proc/self/task").expect("our own").count();
    assert!(now <= threads, "{now} threads wait where {threads} did");
    // The server is gone, and so is the wait.
    drop(server);
    let _ = rig
        .eventually(
            "somebody answers",
            async || rig.driver().touched(&hung, file, LONG).await,
            |touched| !matches!(touched, Err(Error::TimedOut { .. })),
        )
        .await;
}
