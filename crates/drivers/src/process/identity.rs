//! Which process is meant, beyond its number.
//!
//! A pid is reused. The machine's boot id, the pid and the time it started name one process for good. Signals
//! go through a pidfd that is opened first and compared afterwards: once it is open it can only mean the
//! process that bore the number *then*, and if the start time still agrees after that, it is ours.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use drowse_core::id::BootId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};
use serde::{Deserialize, Serialize};

use super::proc;

/// One process, for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The boot id of the machine: after a reboot every pid is a stranger.
    pub(crate) machine_boot: String,
    pub(crate) pid: i32,
    pub(crate) start_ticks: u64,
}

/// How a process that we hold a pidfd of is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It runs, or is frozen.
    Alive,
    /// It has ended; the code is known only to its parent, and only once.
    Ended(Option<i32>),
}

impl Identity {
    /// Names the process that bears this number now. Only for a child of ours that nobody has reaped: its
    /// number cannot have been reused.
    pub(crate) fn of_child(pid: i32) -> io::Result<Self> {
        let stat = proc::stat(pid)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Self { machine_boot: machine_boot()?, pid, start_ticks: stat.start_ticks })
    }

    pub(crate) fn boot_id(&self) -> BootId {
        BootId::new(format!("{}:{}:{}", self.machine_boot, self.pid, self.start_ticks))
    }

    /// A pidfd of this very process; `None` if it no longer exists.
    pub(crate) fn open(&self) -> io::Result<Option<OwnedFd>> {
        if self.machine_boot != machine_boot()? {
            return Ok(None);
        }
        let Some(pidfd) = open_pid(self.pid)? else { return Ok(None) };
        let is_same = proc::stat(self.pid)?.is_some_and(|stat| stat.start_ticks == self.start_ticks);
        Ok(is_same.then_some(pidfd))
    }
}

/// `None`: there is no such process.
pub(crate) fn open_pid(pid: i32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = Pid::from_raw(pid) else { return Ok(None) };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Some(pidfd)),
        // EINVAL: the number belongs to a thread now.
        Err(Errno::SRCH | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the whole process has ended. A zombie has: it only waits to be asked for its code. One whose first
/// thread has ended while others go on has not, although `/proc` shows it as a zombie.
pub(crate) fn has_ended(pidfd: impl AsFd) -> io::Result<bool> {
    let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    loop {
        match poll(&mut fds, Some(&now)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Looks at a process and, if it is a child of ours that has ended, reaps it.
pub(crate) fn reap(pidfd: impl AsFd) -> io::Result<Life> {
    if !has_ended(&pidfd)? {
        return Ok(Life::Alive);
    }
    match waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(Some(status)) => {
            let by_signal = status.terminating_signal().map(|signal| 128 + signal);
            Ok(Life::Ended(status.exit_status().or(by_signal)))
        }
        // Somebody else's child, or reaped before: its code is not ours to know.
        Ok(None) | Err(Errno::CHILD) => Ok(Life::Ended(None)),
        Err(error) => Err(error.into()),
    }
}

/// Sends a signal. One that has ended does not need it.
pub(crate) fn send(pidfd: impl AsFd, signal: Signal) -> io::Result<()> {
    match pidfd_send_signal(pidfd, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn machine_boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ourselves() -> Identity {
        Identity::of_child(i32::try_from(std::process::id()).expect("a pid fits")).unwrap()
    }

    #[test]
    fn only_the_very_same_process_is_opened() {
        let us = ourselves();
        assert!(us.open().unwrap().is_some());
        assert!(Identity { start_ticks: us.start_ticks + 1, ..us.clone() }.open().unwrap().is_none());
        assert!(Identity { machine_boot: "another".into(), ..us }.open().unwrap().is_none());
    }

    #[test]
    fn a_zombie_is_dead_and_tells_its_code_once() {
        #[expect(clippy::zombie_processes, reason = "this is how it is reaped")]
        let child = std::process::Command::new("/bin/sh").args(["-c", "exit 3"]).spawn().unwrap();
        let pidfd =
            open_pid(i32::try_from(child.id()).expect("a pid fits")).unwrap().expect("it is not reaped");
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        poll(&mut fds, None).unwrap();
        assert_eq!(reap(&pidfd).unwrap(), Life::Ended(Some(3)));
        assert_eq!(reap(&pidfd).unwrap(), Life::Ended(None));
    }
}
