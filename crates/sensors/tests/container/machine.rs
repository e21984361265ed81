//! A machine in a folder: `/proc` and cgroup mounts as plain files, with containers in it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use drowse_sensors::container::Paths;
use tempfile::TempDir;

/// How the machine counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A hierarchy for each controller.
    V1,
    /// One for all.
    V2,
}

/// The network namespace of the machine itself.
pub(crate) const HOST_NETWORK: u32 = 4_026_531_840;

#[derive(Debug)]
pub(crate) struct Machine {
    folder: TempDir,
    kind: Kind,
}

/// What a container has used so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) cpu_micros: u64,
    pub(crate) memory: u64,
    pub(crate) inactive_file: u64,
    pub(crate) tasks: u64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl Machine {
    pub(crate) fn new(kind: Kind) -> Self {
        let machine = Self { folder: tempfile::tempdir().expect("a folder"), kind };
        let mounts = match kind {
            Kind::V1 => {
                "22 1 0:20 / /proc rw - proc proc rw\n\
                 31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:12 - cgroup cgroup rw,cpu,cpuacct\n\
                 32 30 0:28 / /sys/fs/cgroup/memory rw shared:13 - cgroup cgroup rw,memory\n\
                 33 30 0:29 / /sys/fs/cgroup/pids rw shared:14 - cgroup cgroup rw,pids\n"
            }
            Kind::V2 => "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
        };
        machine.write("proc/self/mountinfo", mounts);
        machine.write("proc/self/cgroup", "0::/system.slice/drowse.service\n");
        for process in ["self", "1"] {
            machine.network_namespace(process, HOST_NETWORK);
        }
        machine
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    /// A container whose first process is `pid`, with a network of its own.
    pub(crate) fn start(&self, pid: u32, used: Used) {
        let path = Self::path(pid);
        let memberships = match self.kind {
            Kind::V1 => {
                format!("4:pids:{path}\n3:memory:{path}\n2:cpu,cpuacct:{path}\n1:name=systemd:{path}\n")
            }
            Kind::V2 => format!("0::{path}\n"),
        };
        self.write(&format!("proc/{pid}/cgroup"), &memberships);
        self.lives_since(pid, 1_000 + u64::from(pid));
        self.network_namespace(&pid.to_string(), HOST_NETWORK + pid);
        self.write(&self.cgroup(pid, "pids", "cgroup.procs"), &format!("{pid}\n"));
        self.uses(pid, used);
    }

    pub(crate) fn uses(&self, pid: u32, used: Used) {
        let Used { cpu_micros, memory, inactive_file, tasks, received, sent } = used;
        let others = "anon 4096\nfile 8192\nkernel_stack 16384\nslab 0\n".repeat(10);
        match self.kind {
            Kind::V1 => {
                self.write(
                    &self.cgroup(pid, "cpu,cpuacct", "cpuacct.usage"),
                    &format!("{}\n", cpu_micros * 1_000),
                );
                self.write(&self.cgroup(pid, "memory", "memory.usage_in_bytes"), &format!("{memory}\n"));
                let stat = format!("{others}inactive_file 1\ntotal_inactive_file {inactive_file}\n");
                self.write(&self.cgroup(pid, "memory", "memory.stat"), &stat);
            }
            Kind::V2 => {
                let stat =
                    format!("usage_usec {cpu_micros}\nuser_usec {cpu_micros}\nsystem_usec 0\nnr_periods 0\n");
                self.write(&self.cgroup(pid, "cpu", "cpu.stat"), &stat);
                self.write(&self.cgroup(pid, "memory", "memory.current"), &format!("{memory}\n"));
                self.write(
                    &self.cgroup(pid, "memory", "memory.stat"),
                    &format!("{others}inactive_file {inactive_file}\n"),
                );
            }
        }
        self.write(&self.cgroup(pid, "pids", "pids.current"), &format!("{tasks}\n"));
        let network = format!(
            "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
             lo: 7777 7 0 0 0 0 0 0 7777 7 0 0 0 0 0 0\n  \
             eth0: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n"
        );
        self.write(&format!("proc/{pid}/net/dev"), &network);
    }

    /// The process with this number started then; another time is another process.
    pub(crate) fn lives_since(&self, pid: u32, ticks: u64) {
        self.stat(pid, 'S', ticks);
    }

    pub(crate) fn stat(&self, pid: u32, state: char, ticks: u64) {
        let stat = format!(
            "{pid} (a (b) c) {state} 1 {pid} {pid} 0 -1 4194560 1 2 0 0 5 3 0 0 20 0 1 0 {ticks} 5124096 925 \
             18446744073709551615 1 2 3 0 0 0 65536 4 1132560123 1 0 0 17 1 0 0 0 0 0\n"
        );
        self.write(&format!("proc/{pid}/stat"), &stat);
    }

    pub(crate) fn network_namespace(&self, process: &str, number: u32) {
        let folder = self.root().join("proc").join(process).join("ns");
        fs::create_dir_all(&folder).expect("a folder");
        let link = folder.join("net");
        let _ = fs::remove_file(&link);
        symlink(format!("net:[{number}]"), link).expect("a link");
    }

    /// A file of the container's cgroup, below the root.
    pub(crate) fn cgroup(&self, pid: u32, hierarchy: &str, file: &str) -> String {
        let path = Self::path(pid);
        match self.kind {
            Kind::V1 => format!("sys/fs/cgroup/{hierarchy}{path}/{file}"),
            Kind::V2 => format!("sys/fs/cgroup{path}/{file}"),
        }
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path: PathBuf = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder");
        fs::write(path, text).expect("room");
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.root().join(path)).expect("it was there");
    }

    pub(crate) fn find(&self, pid: u32) -> std::io::Result<Paths> {
        Paths::on_machine(self.root(), pid, None)
    }

    fn path(pid: u32) -> String {
        format!("/system.slice/docker-{pid:064x}.scope")
    }
}
