//! Ports that are open before and after: a planned restart, and systemd's sockets.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::super::up::running::{Folder, free_port, get, pid_in};

#[test]
fn a_planned_restart_refuses_nobody() {
    let folder = Folder::new();
    let ports = folder.worker("web", "1h");
    let asleep = folder.worker("asleep", "2s");
    let mut old = folder.up(&[]);
    let pid = pid_in(&get(ports.door, "/"));
    old.wait_for_all("asleep paused: idle for 2s");
    // Somebody is in the middle of a conversation.
    let mut talking = TcpStream::connect(("127.0.0.1", ports.door)).unwrap();
    talking.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n").unwrap();

    let (is_over, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (is_over, asked) = (Arc::clone(&is_over), Arc::clone(&asked));
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(pid_in(&get(ports.door, "/")), pid);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut new = folder.start(&["--listen", "127.0.0.1:0", "--take-over"]);
    old.wait_for("drowse: another takes over");
    talking.write_all(b"connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    talking.read_to_string(&mut answer).unwrap();
    assert_eq!(pid_in(&answer), pid, "whoever is in is answered to the end");
    new.wait_for("drowse: up at http://127.0.0.1:");
    let before = asked.load(Ordering::Relaxed);
    while asked.load(Ordering::Relaxed) < before + 20 {
        std::thread::yield_now();
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("nobody is refused");
    }
    assert!(old.is_over() || old.end() == Some(0), "the old one has ended");
    // What slept goes on sleeping, and is woken by the new one.
    assert!(!new.told().contains("asleep running"), "{}", new.told());
    pid_in(&get(asleep.door, "/"));
    new.wait_for("asleep running again: wake, by connection");
    // And once more: it can be taken over from in its turn.
    let mut third = folder.start(&["--listen", "127.0.0.1:0", "--take-over"]);
    new.wait_for("drowse: another takes over");
    third.wait_for("drowse: up at http://127.0.0.1:");
    assert_eq!(pid_in(&get(ports.door, "/")), pid);
}

#[test]
fn where_nobody_runs_taking_over_is_an_ordinary_start() {
    let folder = Folder::new();
    let ports = folder.worker("web", "1h");
    let _up = folder.up(&["--take-over"]);
    pid_in(&get(ports.door, "/"));
}

#[test]
fn a_port_that_systemd_opened_is_used_and_who_came_before_the_start_is_answered() {
    let mut folder = Folder::new();
    let ports = folder.worker("web", "1h");
    let other = free_port();
    // It listens, and starts Drowse when somebody connects.
    folder.through = [
        "systemd-socket-activate",
        "-l",
        &format!("127.0.0.1:{}", ports.door),
        "-l",
        &format!("127.0.0.1:{other}"),
        "-E",
        "DROWSE_DATA",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut up = folder.start(&["--listen", "127.0.0.1:0"]);
    up.wait_for("Listening on");
    up.wait_for("Listening on");
    pid_in(&get(ports.door, "/"));
    up.wait_for_all(&format!("drowse: 127.0.0.1:{other} was handed over and leads nowhere: it is closed"));
    assert!(TcpStream::connect(("127.0.0.1", other)).is_err());
}
