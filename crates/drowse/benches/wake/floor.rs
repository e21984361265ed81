//! What nobody can be faster than: a stopped process, SIGCONT, and a connection to it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::Duration;

use drowse_server::Clock;
use rustix::process::{Pid, Signal, kill_process};

const TIMES: usize = 500;

pub(crate) struct Floor {
    pub(crate) running: Vec<Duration>,
    pub(crate) stopped: Vec<Duration>,
}

/// An address that nobody listens on just now.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

/// One request, up to its first byte.
pub(crate) fn first_byte(target: SocketAddr) {
    let mut stream = TcpStream::connect(target).expect("it listens");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").expect("it reads");
    let mut byte = [0];
    stream.read_exact(&mut byte).expect("it answers");
}

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn measure() -> Floor {
    let (clock, target) = (Clock::system(), free_address());
    let child = Command::new(env!("CARGO_BIN_EXE_drowse"))
        .args(["__demo-worker", "floor", &target.to_string()])
        .spawn()
        .expect("it starts");
    let child = Ended(child);
    let until = clock.now() + Duration::from_secs(10);
    while TcpStream::connect(target).is_err() {
        assert!(clock.now() < until, "it does not listen");
        std::thread::yield_now();
    }
    let timed = |work: &dyn Fn()| {
        let began_at = clock.now();
        work();
        clock.now().since(began_at)
    };
    let pid = Pid::from_child(&child.0);
    let running = (0..TIMES).map(|_| timed(&|| first_byte(target))).collect();
    let stopped = (0..TIMES)
        .map(|_| {
            kill_process(pid, Signal::STOP).expect("ours");
            wait_until_stopped(&child.0);
            timed(&|| {
                kill_process(pid, Signal::CONT).expect("ours");
                first_byte(target);
            })
        })
        .collect();
    Floor { running, stopped }
}

fn wait_until_stopped(child: &Child) {
    let stat = format!("/proc/{}/stat", child.id());
    loop {
        let text = std::fs::read_to_string(&stat).expect("it lives");
        if text.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T')) {
            return;
        }
        std::thread::yield_now();
    }
}
