//! An engine that says strange things, or nothing, about one container: the others are not affected.
//!
//! A real engine cannot be made to do this, so this is a small one that answers what it is told to.

use std::io::{Read, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::signal::{Signal, UnknownCause};
use drowse_core::worker::Power;
use drowse_drivers::docker::{Config, Container, DockerDriver, Spec as Docker};
use drowse_drivers::{Driver as _, Error, Measure, Spec, Wanted};
use tempfile::TempDir;

use crate::rig::{LONG, now};

/// What the engine answers.
pub(crate) enum Says {
    Json(String),
    Status(u16),
    /// Nothing, and it does not hang up.
    Hangs,
}

/// An engine of a few words, by the path that is asked for.
pub(crate) fn engine(answer: impl Fn(&str) -> Says + Send + Sync + 'static) -> (TempDir, DockerDriver) {
    let folder = tempfile::tempdir().expect("there is room for a temporary folder");
    let socket = folder.path().join("engine.sock");
    let listener = UnixListener::bind(&socket).expect("the folder is ours");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || serve(stream, &*answer));
        }
    });
    let config = Config { data_dir: folder.path().to_owned(), socket, nvml: None, now: Arc::new(now) };
    let driver = DockerDriver::open(config).expect("the driver needs no engine to be opened");
    (folder, driver)
}

fn serve(mut stream: UnixStream, answer: &dyn Fn(&str) -> Says) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1..) => head.push(byte[0]),
            Ok(0) | Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    // Without the version, which the client has chosen.
    let path = path.strip_prefix("/v1.41").unwrap_or(path);
    let says = match path {
        "/version" => Says::Json(r#"{"ApiVersion":"1.41","MinAPIVersion":"1.12"}"#.to_owned()),
        _ if path.starts_with("/events") => Says::Hangs,
        _ => answer(path),
    };
    let (status, body) = match says {
        Says::Json(body) => (200, body),
        Says::Status(status) => (status, r#"{"message":"as it was told"}"#.to_owned()),
        Says::Hangs => {
            // Until the other side gives up.
            let _ = stream.read(&mut byte);
            return;
        }
    };
    let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n");
    let _ = stream.write_all(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
}

pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

fn summary(id: &str) -> String {
    format!(r#"{{"Id":"{id}","Names":["/{id}"],"Created":{},"Labels":{{"drowse.enable":"true"}}}}"#, id.len())
}

fn inspected(id: &str) -> String {
    format!(
        r#"{{"Id":"{id}","Name":"/{id}","State":{{"Status":"running","Running":true,"Pid":1,
        "StartedAt":"2026-01-01T00:00:00Z","FinishedAt":"0001-01-01T00:00:00Z","ExitCode":0}}}}"#
    )
}

#[test]
fn one_container_of_which_the_engine_says_nothing_sensible_keeps_nobody_else_from_being_found() {
    let all = ["well", "hangs", "garbage", "error", "gone", "empty"];
    let (_folder, driver) = engine(move |path| match path {
        _ if path.starts_with("/containers/json") => Says::Json(format!("[{}]", all.map(summary).join(","))),
        "/containers/well/json" => Says::Json(inspected("well")),
        "/containers/garbage/json" => Says::Json("{\"Id\":[1,2,".to_owned()),
        "/containers/error/json" => Says::Status(500),
        "/containers/empty/json" => Says::Json("{}".to_owned()),
        "/containers/hangs/json" => Says::Hangs,
        _ => Says::Status(404),
    });
    let found = run(driver.discover("drowse.enable=true", LONG)).expect("the list was answered");
    let problem = |name: &str| found.iter().find(|one| one.name == name).map(|one| one.problem.is_some());
    assert_eq!(problem("well"), Some(false));
    for name in ["hangs", "garbage", "error"] {
        assert_eq!(problem(name), Some(true), "{name}");
    }
    // An answer without anything in it says that there are no graphics processors; a look says more.
    assert_eq!(problem("empty"), Some(false));
    assert_eq!(problem("gone"), None);
}

#[test]
fn an_answer_that_makes_no_sense_is_no_answer_and_concerns_its_container_only() {
    let (_folder, driver) = engine(|path| match path {
        "/containers/well/json" => Says::Json(inspected("well")),
        "/containers/empty/json" => Says::Json("{}".to_owned()),
        "/containers/stateless/json" => Says::Json(r#"{"Id":"stateless","State":{}}"#.to_owned()),
        "/containers/undead/json" => {
            Says::Json(r#"{"Id":"undead","State":{"Status":"undead","Pid":-7}}"#.to_owned())
        }
        "/containers/garbage/json" => Says::Json("<html>".to_owned()),
        "/containers/hangs/json" => Says::Hangs,
        _ => Says::Status(500),
    });
    let short = Duration::from_millis(300);
    run(async {
        let adopt = async |name: &str, within| {
            let worker = WorkerId::new(name).expect("a good name");
            let spec = Spec::Docker(Docker { container: Container::Id(name.to_owned()) });
            driver.adopt(&worker, &spec, within).await
        };
        for name in ["empty", "stateless", "undead", "garbage", "error"] {
            let seen = adopt(name, LONG).await;
            assert!(matches!(seen, Err(Error::Unreachable { .. })), "{name}: {seen:?}");
        }
        let (hangs, well) = tokio::join!(adopt("hangs", short), adopt("well", LONG));
        assert_eq!(hangs, Err(Error::TimedOut { within: short }));
        assert_eq!(well.expect("it is well").power, Power::Running);
    });
}

/// The number that the engine tells is a process, and not one of the container's.
#[test]
fn a_process_that_is_not_the_containers_vouches_for_nothing() {
    let (_folder, driver) = engine(|path| match path {
        "/containers/web/json" => {
            let address = r#""NetworkSettings":{"Networks":{"a":{"IPAddress":"127.0.0.1"}}}}"#;
            Says::Json(inspected("web").replace("}}", &format!("}},{address}")))
        }
        _ => Says::Status(404),
    });
    let worker = WorkerId::new("web").expect("a good name");
    let spec = Spec::Docker(Docker { container: Container::Id("web".to_owned()) });
    run(async {
        driver.adopt(&worker, &spec, LONG).await.expect("it is there");
        let located = driver.locate(&worker, 80, LONG).await;
        assert!(matches!(located, Err(Error::Unreachable { .. })), "{located:?}");
    });
}

/// Its first process is none of a container's: here, this one. What that uses is not the container's.
fn without_files(id: &str) -> String {
    inspected(id).replace("\"Pid\":1,", &format!("\"Pid\":{},", std::process::id()))
}

#[test]
fn where_no_file_tells_the_engine_is_asked_and_what_it_does_not_tell_is_unknown() {
    let (_folder, driver) = engine(|path| match path {
        "/containers/told/json" => Says::Json(without_files("told")),
        "/containers/empty/json" => Says::Json(without_files("empty")),
        "/containers/hangs/json" => Says::Json(without_files("hangs")),
        "/containers/told/stats?stream=false&one-shot=true" => Says::Json(
            r#"{"cpu_stats":{"cpu_usage":{"total_usage":7000000}},"pids_stats":{"current":2}}"#.to_owned(),
        ),
        _ if path.starts_with("/containers/hangs/stats") => Says::Hangs,
        _ if path.contains("/stats") => Says::Json("{}".to_owned()),
        _ => Says::Status(404),
    });
    let wanted = Wanted::of(&[Signal::Cpu, Signal::Network], &[]);
    run(async {
        let read = async |name: &str| {
            let worker = WorkerId::new(name).expect("a good name");
            let spec = Spec::Docker(Docker { container: Container::Id(name.to_owned()) });
            driver.adopt(&worker, &spec, LONG).await.expect("it is there");
            driver.read(&worker, wanted, LONG).await.expect("it runs")
        };
        let (told, empty, hangs) = tokio::join!(read("told"), read("empty"), read("hangs"));
        let cpu = told.get(Signal::Cpu);
        assert!(matches!(cpu, Some(Measure::Total(total)) if total.value == 7_000), "{cpu:?}");
        for (name, measures) in [("empty", empty), ("hangs", hangs)] {
            let cpu = measures.get(Signal::Cpu);
            assert!(matches!(cpu, Some(Measure::Unknown(_))), "{name}: {cpu:?}");
            assert!(measures.because.iter().any(|(signal, _)| *signal == Signal::Cpu), "{name}");
        }
        // The engine says nothing about that.
        assert_eq!(told.get(Signal::Network), Some(Measure::Unknown(UnknownCause::NotCounted)));
    });
}
