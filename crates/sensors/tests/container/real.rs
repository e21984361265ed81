//! Processes of ours in cgroups of ours: what the kernel of this machine really says.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use drowse_sensors::container::{Paths, ReadError};

/// cgroups with one name in every hierarchy that counts something, gone with the test.
struct Cage {
    folders: Vec<PathBuf>,
    name: String,
}

/// A process, gone with the test.
struct Workload(Child);

impl Cage {
    fn make(name: &str) -> Self {
        let name = format!("drowse-sensors-test-{}-{name}", std::process::id());
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("every Linux has it");
        let folders: Vec<PathBuf> = mounts
            .lines()
            .filter_map(|line| {
                let (before, after) = line.split_once(" - ")?;
                let counts = |option: &str| matches!(option, "cpuacct" | "memory" | "pids");
                let is_ours = after.starts_with("cgroup2 ")
                    || after.starts_with("cgroup ") && after.rsplit(' ').next()?.split(',').any(counts);
                is_ours.then(|| Path::new(before.split(' ').nth(4)?).join(&name).into()).flatten()
            })
            .collect();
        assert!(!folders.is_empty(), "no cgroups are mounted");
        for folder in &folders {
            fs::create_dir(folder).unwrap_or_else(|error| {
                panic!("{}: {error}; these tests need root, as the drivers' do", folder.display())
            });
        }
        Self { folders, name }
    }

    fn put(&self, process: &Workload) {
        for folder in &self.folders {
            fs::write(folder.join("cgroup.procs"), process.pid().to_string()).expect("a process of ours");
        }
    }

    /// Waits until the last process has left, because a cgroup with processes cannot be removed.
    fn remove(&mut self) {
        for folder in self.folders.drain(..) {
            until("an empty cgroup", || match fs::remove_dir(&folder) {
                Ok(()) => Ok(()),
                Err(error) => Err(format!("{}: {error}", folder.display())),
            });
        }
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.remove();
        }
        for folder in &self.folders {
            let _ = fs::remove_dir(folder);
        }
    }
}

impl Workload {
    /// Waits for a line on its input before it begins, so that everything it does is counted.
    fn start(program: &str, args: &[&str]) -> Self {
        let child = Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Self(child.expect("a program of every Linux"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Its input ends, and with it its waiting.
    fn begin(&mut self) {
        drop(self.0.stdin.take());
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        self.end();
    }
}

#[expect(clippy::disallowed_methods, reason = "a deadline for a state of the kernel's")]
fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started_at = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(last) => {
                assert!(started_at.elapsed() < Duration::from_mins(1), "waited for {what}; last: {last}");
            }
        }
        thread::park_timeout(Duration::from_millis(2));
    }
}

#[test]
fn what_a_process_uses_is_counted_and_its_end_is_noticed() {
    let mut cage = Cage::make("busy");
    let mut busy = Workload::start("sh", &["-c", "read x; while :; do :; done"]);
    cage.put(&busy);
    let paths = Paths::of_pid(busy.pid()).unwrap();
    let first = paths.read();
    let (cpu, memory) = (first.cpu_micros.clone().unwrap(), first.memory_bytes.clone());
    assert!(memory.is_ok(), "{first:?}");
    assert_eq!(first.processes, Ok(1));
    assert_eq!(first.network_bytes, Err(ReadError::NotOwn { what: "network" }), "it shares ours");
    assert_eq!(paths.pids(), Ok(BTreeSet::from([busy.pid()])));

    busy.begin();
    until("100 ms of processor time", || {
        let used = paths.read().cpu_micros.map_err(|error| error.to_string())?;
        if used >= cpu + 100_000 { Ok(()) } else { Err(format!("{used} µs after {cpu}")) }
    });

    busy.end();
    let after = paths.read();
    assert_eq!(after.cpu_micros, Err(ReadError::Gone), "its last figures do not stand for ever");
    assert_eq!(
        [after.memory_bytes, after.processes, after.network_bytes],
        [const { Err(ReadError::Gone) }; 3]
    );
    assert_eq!(paths.pids(), Err(ReadError::Gone));
    cage.remove();
    assert_eq!(paths.read().cpu_micros, Err(ReadError::Gone));
}

#[test]
fn a_cgroup_that_is_removed_under_a_living_process_is_noticed() {
    let mut cage = Cage::make("removed");
    let alive = Workload::start("sh", &["-c", "read x"]);
    cage.put(&alive);
    let paths = Paths::of_pid(alive.pid()).unwrap();
    assert!(paths.read().cpu_micros.is_ok());
    let folders = cage.folders.clone();
    for folder in &folders {
        let top = folder.parent().unwrap().join("cgroup.procs");
        fs::write(top, alive.pid().to_string()).unwrap();
    }
    cage.remove();
    // Another cgroup with the same path is another cgroup.
    for folder in &folders {
        fs::create_dir(folder).unwrap();
    }
    let reading = paths.read();
    for folder in &folders {
        fs::remove_dir(folder).unwrap();
    }
    let gone = || Err(ReadError::Gone);
    assert_eq!((reading.cpu_micros, reading.memory_bytes, reading.processes), (gone(), gone(), gone()));
    assert_eq!(paths.pids(), gone().map(|_: u64| BTreeSet::new()));
}

#[test]
fn children_are_the_containers_processes_too() {
    let cage = Cage::make("family");
    let mut parent = Workload::start("sh", &["-c", "read x; sleep 600 & sleep 600 & wait"]);
    cage.put(&parent);
    let paths = Paths::of_pid(parent.pid()).unwrap();
    parent.begin();
    let pids = until("two children", || {
        let (reading, pids) = (paths.read().processes, paths.pids());
        match (&reading, &pids) {
            (Ok(3), Ok(found)) if found.len() == 3 => Ok(found.clone()),
            _ => Err(format!("{reading:?}, {pids:?}")),
        }
    });
    assert!(pids.contains(&parent.pid()));
    for pid in pids.iter().filter(|pid| **pid != parent.pid()) {
        let number = rustix::process::Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
        rustix::process::kill_process(number, rustix::process::Signal::KILL).unwrap();
    }
}

#[test]
fn a_network_of_its_own_is_counted() {
    let cage = Cage::make("network");
    let alone = Workload::start("unshare", &["--net", "sh", "-c", "read x"]);
    cage.put(&alone);
    // It begins in our namespace and then leaves it.
    let paths = until("a namespace of its own", || {
        let paths = Paths::of_pid(alone.pid()).map_err(|error| error.to_string())?;
        match paths.read().network_bytes {
            Ok(0) => Ok(paths),
            other => Err(format!("{other:?}")),
        }
    });
    assert!(paths.read().cpu_micros.is_ok());
    drop(alone);
    assert_eq!(paths.read().network_bytes, Err(ReadError::Gone));
}

/// On a machine with v1 controllers the v2 hierarchy counts processor time all the same: as the machine sees it that has
/// nothing else.
#[test]
fn the_files_of_v2_are_read_where_the_kernel_has_them() {
    let mut cage = Cage::make("unified");
    let mut busy = Workload::start("sh", &["-c", "read x; while :; do :; done"]);
    cage.put(&busy);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount =
        mounts.lines().find(|line| line.contains(" - cgroup2 ")).expect("every Linux of today mounts it");

    let machine = tempfile::tempdir().unwrap();
    let (own, real) = (format!("proc/{}", busy.pid()), format!("/proc/{}", busy.pid()));
    fs::create_dir_all(machine.path().join(&own)).unwrap();
    fs::create_dir_all(machine.path().join("proc/self")).unwrap();
    for name in ["stat", "ns", "net"] {
        symlink(Path::new(&real).join(name), machine.path().join(&own).join(name)).unwrap();
    }
    symlink("/sys", machine.path().join("sys")).unwrap();
    symlink("/proc/self/ns", machine.path().join("proc/self/ns")).unwrap();
    fs::write(machine.path().join("proc/self/mountinfo"), mount).unwrap();
    fs::write(machine.path().join(&own).join("cgroup"), format!("0::/{}\n", cage.name)).unwrap();

    let paths = Paths::on_machine(machine.path(), busy.pid(), None).unwrap();
    let before = paths.read().cpu_micros.unwrap();
    assert_eq!(paths.pids(), Ok(BTreeSet::from([busy.pid()])));
    busy.begin();
    until("20 ms of processor time", || match paths.read().cpu_micros {
        Ok(used) if used >= before + 20_000 => Ok(()),
        other => Err(format!("{other:?} after {before}")),
    });
    busy.end();
    cage.remove();
    assert_eq!(paths.read().cpu_micros, Err(ReadError::Gone));
}
