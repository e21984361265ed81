//! What the kernel says about a worker, without asking Drowse.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use drowse_core::worker::Power;

/// Every demo worker of this machine, and where it answers.
fn workers() -> impl Iterator<Item = (u32, SocketAddr)> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let target = words.get(3).filter(|_| words.get(1) == Some(&&b"__demo-worker"[..]))?;
        Some((pid, str::from_utf8(target).ok()?.parse().ok()?))
    })
}

/// The demo workers that answer at an address of `host`.
pub(crate) fn workers_at(host: Ipv4Addr) -> Vec<u32> {
    workers().filter(|(_, target)| target.ip() == host).map(|(pid, _)| pid).collect()
}

/// The processes of the demo worker that answers at `target`, and whether each is frozen.
pub(crate) fn processes(target: SocketAddr) -> Vec<(u32, bool)> {
    let of_it = workers().filter(|(_, answers_at)| *answers_at == target);
    of_it.filter_map(|(pid, _)| Some((pid, is_frozen(pid)?))).collect()
}

/// What Drowse should believe.
pub(crate) fn power(target: SocketAddr) -> Power {
    match processes(target).as_slice() {
        [] => Power::Stopped,
        [(_, false)] => Power::Running,
        [(_, true)] => Power::Paused,
        several => panic!("one worker is several processes: {several:?}"),
    }
}

/// As `ps` shows it.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether a process was stopped by a signal.
pub(crate) fn is_stopped(pid: u32) -> bool {
    state(pid) == Some('T')
}

/// By any of the freezers; `None`: it is gone.
fn is_frozen(pid: u32) -> Option<bool> {
    let state = state(pid)?;
    if state == 'Z' {
        return None;
    }
    let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let by_cgroup = cgroups.lines().any(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return false };
        let says = |file: &str, what: &str| {
            let text = mount(controllers).map(|mount| mount.join(&path[1..]).join(file));
            let text = text.and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
            text.lines().any(|line| line == what)
        };
        match controllers {
            "" => says("cgroup.events", "frozen 1"),
            "freezer" => says("freezer.state", "FROZEN"),
            _ => false,
        }
    });
    Some(by_cgroup || state == 'T')
}

/// Where the hierarchy of a controller is mounted; of none, the unified one.
fn mount(controller: &str) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, place, kind, options, ..] = fields.as_slice() else { return None };
        let is_it = match controller {
            "" => *kind == "cgroup2",
            _ => *kind == "cgroup" && options.split(',').any(|option| option == controller),
        };
        is_it.then(|| PathBuf::from(place))
    })
}

/// For how long the machine has been up, in seconds: a clock that nobody sets.
pub(crate) fn uptime() -> f64 {
    let text = fs::read_to_string("/proc/uptime").unwrap();
    text.split(' ').next().and_then(|seconds| seconds.parse().ok()).unwrap()
}
