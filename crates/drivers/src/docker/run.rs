//! A run of a container, held by its first process: its addresses are its own for as long as that lives.
//!
//! The engine gives a container's address to the next one that asks as soon as the run is over. A descriptor of the first
//! process says at once, without the engine, that it is: so whoever has dialled the address can make sure of who picked
//! up. See `docs/decisions/0014-an-address-belongs-to-a-run.md`.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::entry::Entry;
use super::look::Look;
use super::{Inside, events};
use crate::driver::{Error, Located, Run};

/// How often it is tried to hold a run: containers that are started anew meanwhile are rare.
const TRIES: usize = 3;

/// A run.
#[derive(Debug)]
pub(super) struct Held {
    first: OwnedFd,
    is_over: AtomicBool,
}

impl Held {
    /// The run of this container whose first process has this number.
    fn open(pid: u32, container: &str) -> io::Result<Self> {
        let number = Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::InvalidInput)?;
        let first = pidfd_open(number, PidfdFlags::empty())?;
        // Looked at afterwards: if the number is still one of the container's, it was when it was opened.
        check_is_of(pid, container)?;
        Ok(Self { first, is_over: AtomicBool::new(false) })
    }

    /// What was said of its addresses holds no more, though it may live.
    pub(super) fn revoke(&self) {
        self.is_over.store(true, Ordering::Release);
    }
}

impl Run for Held {
    fn stands(&self) -> bool {
        if self.is_over.load(Ordering::Acquire) {
            return false;
        }
        // It can be read once the process has ended, and never before.
        let mut ended = [PollFd::new(&self.first, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if matches!(poll(&mut ended, Some(&at_once)), Ok(0)) {
            return true;
        }
        self.revoke();
        false
    }
}

/// Whether the process with this number is one of the container's. Engines put the id into the names of cgroups.
pub(super) fn check_is_of(pid: u32, container: &str) -> io::Result<()> {
    if std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?.contains(container) {
        Ok(())
    } else {
        Err(io::Error::other("that process is another's"))
    }
}

/// Where a port of a container is found in its present run.
pub(super) async fn locate(inside: &Arc<Inside>, entry: &Arc<Entry>, port: u16) -> Result<Located, Error> {
    if let Some((held, look)) = entry.held() {
        return at(held, &look, port);
    }
    let mut seen = match entry.last().filter(|look| look.pid.is_some()) {
        Some(last) => last,
        None => look(inside, entry).await?,
    };
    let mut cannot = String::new();
    for _ in 0..TRIES {
        let pid = seen.pid.ok_or_else(|| Error::refused("it does not run"))?;
        let held = Held::open(pid, &seen.id);
        // After it is held: what the engine says now, it says of this process.
        let again = look(inside, entry).await?;
        match held {
            Ok(held) if again.is_same_run(&seen) && held.stands() => {
                let held = Arc::new(held);
                entry.hold(&held, &again);
                return at(held, &again, port);
            }
            Ok(_) => "it is being started or stopped".clone_into(&mut cannot),
            Err(error) => cannot = format!("its first process cannot be seen: {error}"),
        }
        seen = again;
    }
    Err(Error::Unreachable { message: cannot })
}

/// Looks without keeping what was seen from anybody: that a container has ended is news, whoever notices.
async fn look(inside: &Arc<Inside>, entry: &Arc<Entry>) -> Result<Look, Error> {
    let look = entry.peek_at_known(inside).await?;
    events::tell_of(inside, entry, &look);
    Ok(look)
}

fn at(run: Arc<Held>, look: &Look, port: u16) -> Result<Located, Error> {
    let address = look.at(port).ok_or_else(|| {
        Error::refused(format!("port {port} is not published, and the container has no address of its own"))
    })?;
    Ok(Located { address, boot: look.seen.boot.clone(), run })
}
