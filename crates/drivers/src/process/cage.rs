//! What one run of a worker lives in: a cgroup, or nothing but its session.
//!
//! All that differs between the freezers is here. Nothing here waits: callers ask again until what they want
//! is so, and each request is safe to repeat.

use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::cgroup::Freezer;
use super::identity::{self, Identity, machine_boot, open_pid};
use super::proc;

/// What one run lives in. Part of the record of a run, so that any later Drowse finds it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "freezer", rename_all = "snake_case")]
pub(crate) enum Cage {
    /// A cgroup v2.
    V2 { path: PathBuf },
    /// A cgroup of the v1 freezer, and one that counts processor time.
    V1 { path: PathBuf, cpuacct: Option<PathBuf> },
    /// Its session and descendants.
    Signals,
}

/// How frozen a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ice {
    /// All of it runs.
    Thawed,
    /// On its way, or only in part.
    Partly,
    /// All of it is frozen.
    Frozen,
}

impl Cage {
    /// The cage of a worker. Its name cannot be that of a file which every cgroup has.
    pub(crate) fn new(freezer: &Freezer, worker: &str) -> Self {
        let name = format!("w.{worker}");
        match freezer {
            Freezer::V2 { base } => Cage::V2 { path: base.join(name) },
            Freezer::V1 { base, cpuacct } => {
                Cage::V1 { path: base.join(&name), cpuacct: cpuacct.as_ref().map(|base| base.join(&name)) }
            }
            Freezer::Signals => Cage::Signals,
        }
    }

    /// Its cgroups, the freezer's first.
    pub(crate) fn cgroups(&self) -> impl Iterator<Item = &Path> {
        let (path, cpuacct) = match self {
            Cage::V2 { path } => (Some(path), None),
            Cage::V1 { path, cpuacct } => (Some(path), cpuacct.as_ref()),
            Cage::Signals => (None, None),
        };
        path.into_iter().chain(cpuacct).map(PathBuf::as_path)
    }

    pub(crate) fn create(&self) -> io::Result<()> {
        for path in self.cgroups() {
            // The folder above goes when the last worker in it goes, which may be at this moment.
            let made = (0..10).map(|_| fs::create_dir_all(path)).find(|made| !is_missing(made));
            made.unwrap_or_else(|| fs::create_dir_all(path))?;
        }
        Ok(())
    }

    /// True once nothing is left of it.
    pub(crate) fn remove(&self) -> io::Result<bool> {
        for path in self.cgroups() {
            match remove_tree(path) {
                Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => return Ok(false),
                removed => unless_missing(removed)?,
            }
            if let Some(base) = path.parent() {
                // Other workers may be in it.
                let _ = fs::remove_dir(base);
            }
        }
        Ok(true)
    }

    /// The processes of a run.
    pub(crate) fn pids(&self, main: &Identity) -> io::Result<Vec<i32>> {
        match self {
            Cage::V2 { path } | Cage::V1 { path, .. } => procs(path),
            Cage::Signals => Ok(family(main)?.iter().map(|stat| stat.pid).collect()),
        }
    }

    /// Whether nobody is left. Zombies are nobody.
    pub(crate) fn is_empty(&self, main: &Identity) -> io::Result<bool> {
        for pid in self.pids(main)? {
            if proc::stat(pid)?.is_some_and(|stat| !stat.is_dead()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends a signal to every process of a run that is there now.
    pub(crate) fn signal(&self, main: &Identity, signal: Signal) -> io::Result<()> {
        for pidfd in self.open(main)? {
            identity::send(pidfd, signal)?;
        }
        Ok(())
    }

    /// Ends every process of a run. SIGKILL to a task in a frozen v1 cgroup waits until it is thawed.
    pub(crate) fn kill(&self, main: &Identity) -> io::Result<()> {
        match self {
            Cage::V2 { path } => {
                thaw_v2(path)?;
                // All at once, so that no fork escapes; kernels before 5.14 do not have it.
                let killed = write(&path.join("cgroup.kill"), "1");
                if is_missing(&killed) { self.signal(main, Signal::KILL) } else { killed }
            }
            Cage::V1 { path, .. } => {
                self.signal(main, Signal::KILL)?;
                thaw_v1(path)
            }
            Cage::Signals => self.signal(main, Signal::KILL),
        }
    }

    /// Asks for a freeze. Ask again until [`ice`](Self::ice) says so: without a cgroup, a fork may have
    /// slipped through.
    pub(crate) fn freeze(&self, main: &Identity) -> io::Result<()> {
        match self {
            Cage::V2 { path } => write(&path.join("cgroup.freeze"), "1"),
            Cage::V1 { path, .. } => write(&path.join("freezer.state"), "FROZEN"),
            Cage::Signals => {
                // Parents first: they start no more children.
                for stat in family(main)?.iter().filter(|stat| !stat.is_stopped()) {
                    signal_process(stat, Signal::STOP)?;
                }
                Ok(())
            }
        }
    }

    /// Asks for a thaw. A cgroup that is no longer there holds nobody; what somebody stopped by hand goes on too.
    pub(crate) fn thaw(&self, main: &Identity) -> io::Result<()> {
        match self {
            Cage::V2 { path } => thaw_v2(path)?,
            Cage::V1 { path, .. } => thaw_v1(path)?,
            Cage::Signals => {
                // Children first: a shell that finds its child stopped would take it for a job to report. And
                // all of them: one that waits in the kernel has not stopped yet and would do so later.
                for stat in family(main)?.iter().rev() {
                    signal_process(stat, Signal::CONT)?;
                }
                return Ok(());
            }
        }
        if self.is_halted(main)? { self.signal(main, Signal::CONT) } else { Ok(()) }
    }

    /// The file and the word that thaw it; `None`: without a cgroup, each process would have to be looked for.
    pub(crate) fn thaws_by(&self) -> Option<(PathBuf, &'static str)> {
        match self {
            Cage::V2 { path } => Some((path.join("cgroup.freeze"), "0")),
            Cage::V1 { path, .. } => Some((path.join("freezer.state"), "THAWED")),
            Cage::Signals => None,
        }
    }

    /// Whether every process of it is stopped by a signal: by hand, where we freeze by cgroup.
    pub(crate) fn is_halted(&self, main: &Identity) -> io::Result<bool> {
        let first = proc::stat(main.pid)?.filter(|stat| stat.start_ticks == main.start_ticks);
        // Mostly this is all there is to look at.
        if !first.is_some_and(|stat| stat.is_stopped()) {
            return Ok(false);
        }
        for pid in self.pids(main)? {
            if proc::stat(pid)?.is_some_and(|stat| !stat.is_stopped() && !stat.is_dead()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How frozen it is, looked at closely.
    pub(crate) fn ice(&self, main: &Identity) -> io::Result<Ice> {
        match self {
            Cage::V2 { path } => {
                let Some(asked) = read_if_there(&path.join("cgroup.freeze"))? else { return Ok(Ice::Thawed) };
                Ok(match (asked.trim() == "1", is_frozen_v2(path)?) {
                    (true, true) => Ice::Frozen,
                    (false, false) => Ice::Thawed,
                    // Also: a cgroup above is frozen.
                    (true, false) | (false, true) => Ice::Partly,
                })
            }
            Cage::V1 { path, .. } => {
                let state = read_if_there(&path.join("freezer.state"))?;
                Ok(match state.as_deref().map(str::trim) {
                    None | Some("THAWED") => Ice::Thawed,
                    Some("FROZEN") => Ice::Frozen,
                    Some(_) => Ice::Partly,
                })
            }
            Cage::Signals => {
                let family = family(main)?;
                let halted = proc::halted(&family);
                Ok(match halted {
                    0 => Ice::Thawed,
                    all if all == family.len() => Ice::Frozen,
                    _ => Ice::Partly,
                })
            }
        }
    }

    /// Whether it is frozen, at a glance: without a cgroup only the first process is looked at.
    pub(crate) fn is_frozen(&self, main: &Identity) -> io::Result<bool> {
        match self {
            Cage::V2 { path } => Ok(is_frozen_v2(path)? || self.is_halted(main)?),
            Cage::V1 { .. } => Ok(self.ice(main)? == Ice::Frozen || self.is_halted(main)?),
            Cage::Signals => {
                let stat = proc::stat(main.pid)?.filter(|stat| stat.start_ticks == main.start_ticks);
                match stat {
                    Some(stat) if stat.is_waiting() => Ok(self.ice(main)? == Ice::Frozen),
                    Some(stat) => Ok(stat.is_stopped()),
                    None => Ok(false),
                }
            }
        }
    }

    /// Processor time of the whole run in microseconds.
    pub(crate) fn cpu_micros(&self, main: &Identity) -> io::Result<u64> {
        match self {
            Cage::V2 { path } => {
                let text = fs::read_to_string(path.join("cpu.stat"))?;
                keyed(&text, "usage_usec").ok_or_else(|| unexpected("cpu.stat"))
            }
            Cage::V1 { cpuacct: Some(path), .. } => {
                let text = fs::read_to_string(path.join("cpuacct.usage"))?;
                Ok(text.trim().parse::<u64>().map_err(|_| unexpected("cpuacct.usage"))? / 1_000)
            }
            Cage::V1 { cpuacct: None, .. } => {
                let mut ticks = 0;
                for pid in self.pids(main)? {
                    ticks += proc::stat(pid)?.map_or(0, |stat| stat.cpu_ticks);
                }
                Ok(proc::micros(ticks))
            }
            Cage::Signals => Ok(proc::micros(family(main)?.iter().map(|stat| stat.cpu_ticks).sum())),
        }
    }

    /// Holds on to those that would be out of reach without the others: a child in a session of its own is
    /// found through its parent, which may end first. A cgroup lets nobody out of reach.
    pub(crate) fn hold(&self, main: &Identity) -> io::Result<Vec<OwnedFd>> {
        match self {
            Cage::V2 { .. } | Cage::V1 { .. } => Ok(Vec::new()),
            Cage::Signals => self.open(main),
        }
    }

    /// Handles on the processes of a run, none of which can be a stranger.
    fn open(&self, main: &Identity) -> io::Result<Vec<OwnedFd>> {
        let mut opened = Vec::new();
        match self {
            Cage::V2 { path } | Cage::V1 { path, .. } => {
                let mut by_pid = Vec::new();
                for pid in procs(path)? {
                    by_pid.extend(open_pid(pid)?.map(|pidfd| (pid, pidfd)));
                }
                // A number that is still in the cgroup after its handle was opened is one of ours; one that
                // was reused in between belongs to somebody outside.
                let still = procs(path)?;
                opened.extend(
                    by_pid.into_iter().filter(|(pid, _)| still.contains(pid)).map(|(_, pidfd)| pidfd),
                );
            }
            Cage::Signals => {
                for stat in family(main)? {
                    opened.extend(open_process(&stat)?);
                }
            }
        }
        Ok(opened)
    }
}

/// Thaws a cgroup of unknown make; for `thaw_all`. True if there was something to thaw.
pub(crate) fn thaw_cgroup(path: &Path) -> io::Result<bool> {
    if let Some(asked) = read_if_there(&path.join("cgroup.freeze"))? {
        thaw_v2(path)?;
        return Ok(asked.trim() == "1");
    }
    if let Some(state) = read_if_there(&path.join("freezer.state"))? {
        thaw_v1(path)?;
        return Ok(state.trim() != "THAWED");
    }
    Ok(false)
}

fn thaw_v2(path: &Path) -> io::Result<()> {
    unless_missing(write(&path.join("cgroup.freeze"), "0"))
}

fn thaw_v1(path: &Path) -> io::Result<()> {
    unless_missing(write(&path.join("freezer.state"), "THAWED"))
}

fn is_frozen_v2(path: &Path) -> io::Result<bool> {
    let Some(text) = read_if_there(&path.join("cgroup.events"))? else { return Ok(false) };
    keyed(&text, "frozen").map(|frozen| frozen == 1).ok_or_else(|| unexpected("cgroup.events"))
}

fn family(main: &Identity) -> io::Result<Vec<proc::Stat>> {
    if main.machine_boot != machine_boot()? {
        return Ok(Vec::new());
    }
    Ok(proc::family(&proc::all()?, main.pid, main.start_ticks))
}

fn open_process(stat: &proc::Stat) -> io::Result<Option<OwnedFd>> {
    let Some(pidfd) = open_pid(stat.pid)? else { return Ok(None) };
    let is_same = proc::stat(stat.pid)?.is_some_and(|now| now.start_ticks == stat.start_ticks);
    Ok(is_same.then_some(pidfd))
}

fn signal_process(stat: &proc::Stat, signal: Signal) -> io::Result<()> {
    match open_process(stat)? {
        Some(pidfd) => identity::send(pidfd, signal),
        None => Ok(()),
    }
}

/// The processes in a cgroup and in those that a worker made below it.
fn procs(path: &Path) -> io::Result<Vec<i32>> {
    let text = read_if_there(&path.join("cgroup.procs"))?.unwrap_or_default();
    let own = text.lines().map(|line| line.parse().map_err(|_| unexpected("cgroup.procs")));
    let mut pids = own.collect::<io::Result<Vec<i32>>>()?;
    for below in cgroups_below(path)? {
        pids.extend(procs(&below)?);
    }
    Ok(pids)
}

fn cgroups_below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path);
    if is_missing(&entries) {
        return Ok(Vec::new());
    }
    let mut below = Vec::new();
    for entry in entries? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            below.push(entry.path());
        }
    }
    Ok(below)
}

/// The files of a cgroup go with it; only the cgroups below must go first.
fn remove_tree(path: &Path) -> io::Result<()> {
    for below in cgroups_below(path)? {
        unless_missing(remove_tree(&below))?;
    }
    fs::remove_dir(path)
}

/// `NAME VALUE`, a line each.
fn keyed(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

fn unexpected(file: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{file} is not as expected"))
}

/// A cgroup that was removed answers in one of two ways, by when the file was opened.
fn is_missing<T>(result: &io::Result<T>) -> bool {
    let codes = [Errno::NOENT, Errno::NODEV].map(|errno| Some(errno.raw_os_error()));
    result.as_ref().is_err_and(|error| codes.contains(&error.raw_os_error()))
}

/// Never creates: in a cgroup that fails with an error that does not say what is missing.
fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::File::options().write(true).open(path)?.write_all(text.as_bytes())
}

fn unless_missing(result: io::Result<()>) -> io::Result<()> {
    if is_missing(&result) { Ok(()) } else { result }
}

fn read_if_there(path: &Path) -> io::Result<Option<String>> {
    let read = fs::read_to_string(path);
    if is_missing(&read) { Ok(None) } else { read.map(Some) }
}
