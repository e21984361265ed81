//! What nobody can be faster than: a stopped process, SIGCONT, and a connection to it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::time::Duration;

use drowse_server::Clock;
use rustix::process::{Pid, Signal, kill_process};

use crate::up::{free_address, pause};

/// So that one visit has nothing to do with the one before.
pub(crate) const BREATH: Duration = Duration::from_millis(5);

/// A request as a worker of the demo takes it.
pub(crate) const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/// One request, up to its first byte.
pub(crate) fn first_byte(target: SocketAddr) {
    let mut stream = TcpStream::connect(target).expect("it listens");
    stream.write_all(REQUEST).expect("it reads");
    let mut byte = [0];
    stream.read_exact(&mut byte).expect("it answers");
}

/// A process that nobody looks after.
pub(crate) struct Floor {
    child: Child,
    target: SocketAddr,
    clock: Clock,
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Floor {
    pub(crate) fn start() -> Self {
        let (clock, target) = (Clock::system(), free_address());
        let child = Command::new(env!("CARGO_BIN_EXE_drowse"))
            .args(["__demo-worker", "floor", &target.to_string()])
            .spawn()
            .expect("it starts");
        let floor = Self { child, target, clock };
        let until = floor.clock.now() + Duration::from_secs(10);
        while TcpStream::connect(target).is_err() {
            assert!(floor.clock.now() < until, "it does not listen");
            std::thread::yield_now();
        }
        floor
    }

    fn timed(&self, work: impl FnOnce()) -> Duration {
        let began_at = self.clock.now();
        work();
        self.clock.now().since(began_at)
    }

    /// So many visits while it runs.
    pub(crate) fn running(&self, times: usize) -> Vec<Duration> {
        (0..times).map(|_| self.timed(|| first_byte(self.target))).collect()
    }

    /// So many visits, each of which lets it go on first.
    pub(crate) fn stopped(&self, times: usize) -> Vec<Duration> {
        let pid = Pid::from_child(&self.child);
        let visit = |_| {
            kill_process(pid, Signal::STOP).expect("ours");
            wait_until_stopped(&self.child);
            // As long as a worker rests before it is woken: both meet the same cold processor.
            pause(BREATH);
            self.timed(|| {
                kill_process(pid, Signal::CONT).expect("ours");
                first_byte(self.target);
            })
        };
        (0..times).map(visit).collect()
    }
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
