//! The door of a container leads to that container, whatever address it has and whoever had it before.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::stage::Stage;
use crate::up::running::{free_port, get, until};

fn serves(name: &str) -> String {
    format!("echo this is {name} > /workspace/index.html; exec httpd -f -p 80 -h /workspace")
}

/// Neither publishes a port. Both are stopped when idle, and whoever is woken first gets the lower address.
#[test]
fn two_containers_that_swap_addresses_are_never_mixed_up() {
    let stage = Stage::new("policy.idle_timeout = \"2s\"\npolicy.sleep = \"stop\"\npolicy.snooze = \"0s\"");
    let network = stage.engine.network();
    let doors = [("alpha", free_port()), ("beta", free_port())];
    for (name, door) in doors {
        let labels = [("drowse.port", "80"), ("drowse.listen", &door.to_string())];
        stage.run_with(name, &labels, &["--network", network], &serves(name));
    }
    let mut up = stage.up();
    let address = |name: &str| {
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        stage.engine.docker(&["inspect", "--format", format, name])
    };
    let mut before = Vec::new();
    for round in 0..3 {
        stage.wait_until("alpha", "exited");
        stage.wait_until("beta", "exited");
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for turn in order {
            let (name, door) = doors[turn];
            let answer = get(door, "/");
            assert!(answer.contains(&format!("this is {name}")), "round {round}: {answer}\n{}", up.told());
        }
        before.push((address("alpha"), address("beta")));
    }
    assert_eq!(before[0].0, before[1].1, "nobody had the other's address, so nothing was shown: {before:?}");
    assert_eq!(up.end(), Some(0), "{}", up.told());
}

/// A port of the container, by its own door, by host name and by the protocol that is spoken there.
#[test]
fn a_listed_container_is_found_by_port_host_and_protocol_wherever_it_is() {
    let stage = Stage::new("policy.idle_timeout = \"2s\"\npolicy.sleep = \"stop\"\npolicy.snooze = \"0s\"");
    let network = stage.engine.network();
    let [door, shared] = [free_port(), free_port()];
    stage.folder.append(&format!(
        "[router]\nhttp = [\"127.0.0.1:{shared}\"]\n\
         [[worker]]\nid = \"web\"\ndriver = \"docker\"\ncontainer = \"web-1\"\nlisten = \"127.0.0.1:{door}\"\n\
         protocol = \"http\"\nhost = \"localhost\"\ntarget = \":80\"\nready_path = \"/\"\n"
    ));
    // Listed before it is there.
    let mut up = stage.up();
    stage.engine.docker(&[
        "run",
        "--detach",
        "--init",
        "--name",
        "web-1",
        "--network",
        network,
        super::engine::IMAGE,
        "sh",
        "-c",
        &serves("web"),
    ]);
    up.wait_for("web running");
    for port in [door, shared] {
        stage.wait_until("web-1", "exited");
        let answer = get(port, "/");
        assert!(answer.contains("this is web"), "{answer}\n{}", up.told());
    }
}

/// Somebody who comes by the container's own address or a published port says next to nothing, and stays. The door
/// knows nothing of them; its own connection beside it is not taken for one of theirs.
#[test]
fn who_comes_past_the_door_is_seen_by_the_sockets_of_the_container() {
    let stage = Stage::new("policy.idle_timeout = \"2s\"\npolicy.signals.tcp.use = \"required\"");
    let network = stage.engine.network();
    let door = free_port();
    let labels = [("drowse.port", "80"), ("drowse.listen", &door.to_string())];
    stage.run_with("web", &labels, &["--network", network], "exec nc -ll -p 80 -e cat");
    let mut up = stage.up();
    up.wait_for("web paused");
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let address = stage.engine.docker(&["inspect", "--format", format, "web"]);
    // Through the door: while it lasts it counts, and afterwards it does not.
    let echo = |stream: &mut TcpStream| {
        stream.write_all(b"x").unwrap();
        let mut heard = [0];
        stream.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"x");
    };
    let mut visitor = TcpStream::connect(("127.0.0.1", door)).unwrap();
    echo(&mut visitor);
    let mut stranger = TcpStream::connect((address.as_str(), 80)).unwrap();
    echo(&mut stranger);
    drop(visitor);
    let api = stage.folder.api(&up);
    let signal = |name: &str| {
        let told = super::stage::json(&api, "workers/web/explain");
        let signals = told["signals"].as_array().cloned().unwrap_or_default();
        signals.into_iter().find(|signal| signal["signal"] == name).unwrap_or_default()
    };
    until("the door's visitor is gone and the stranger counts", || {
        signal("connections")["state"] == "quiet" && signal("tcp")["value"] == 1.0
    });
    echo(&mut stranger);
    assert_eq!(stage.state("web"), "running", "{}", up.told());
    drop(stranger);
    up.wait_for("web paused");
}

/// What somebody gets at a door, if they get anything.
fn ask(door: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", door)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Somebody else stops and starts both, again and again, in turns: nobody tells the door, and people come all the while.
#[test]
fn whoever_comes_while_two_containers_swap_addresses_gets_the_right_one_or_none() {
    let stage = Stage::new("policy.idle_timeout = \"1h\"");
    let network = stage.engine.network();
    let doors = [("alpha", free_port()), ("beta", free_port())];
    for (name, door) in doors {
        let labels = [("drowse.port", "80"), ("drowse.listen", &door.to_string())];
        stage.run_with(name, &labels, &["--network", network], &serves(name));
    }
    let mut up = stage.up();
    up.wait_for_all("running for the first time");
    let (is_over, answered) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    std::thread::scope(|scope| {
        for (turn, (name, door)) in doors.into_iter().enumerate().cycle().take(4) {
            let (is_over, answered) = (&is_over, &answered[turn]);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    if let Some(answer) = ask(door).filter(|answer| answer.contains("this is")) {
                        assert!(
                            answer.contains(&format!("this is {name}")),
                            "at the door of {name}: {answer}"
                        );
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        for round in 0..6 {
            let order = if round % 2 == 0 { ["beta", "alpha"] } else { ["alpha", "beta"] };
            stage.engine.docker(&["kill", "alpha", "beta"]);
            for name in order {
                stage.engine.docker(&["start", name]);
            }
            for answered in &answered {
                let before = answered.load(Ordering::SeqCst);
                until("somebody is served again", || answered.load(Ordering::SeqCst) > before + 3);
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(up.end(), Some(0), "{}", up.told());
}

/// What runs goes on running, and its run is held without the engine.
#[test]
fn an_engine_that_hangs_or_is_away_closes_no_door() {
    let mut stage = Stage::new("policy.idle_timeout = \"1h\"");
    let network = stage.engine.network();
    let door = free_port();
    let labels = [("drowse.port", "80"), ("drowse.listen", &door.to_string())];
    stage.run_with("alpha", &labels, &["--network", network], &serves("alpha"));
    let mut up = stage.up();
    up.wait_for("alpha running");
    assert!(get(door, "/").contains("this is alpha"), "{}", up.told());
    stage.engine.hang_daemon(true);
    assert!(get(door, "/").contains("this is alpha"), "{}", up.told());
    stage.engine.hang_daemon(false);
    stage.engine.kill_daemon();
    assert!(get(door, "/").contains("this is alpha"), "{}", up.told());
    stage.engine.start_daemon();
    until("it is asked for again", || get(door, "/").contains("this is alpha"));
}
