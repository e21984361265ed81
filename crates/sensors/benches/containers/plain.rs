//! The plainest reader: knows its files, opens each of them each time, and takes it apart whole.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Plain {
    cpu: PathBuf,
    memory: PathBuf,
    memory_stat: PathBuf,
    tasks: PathBuf,
    network: PathBuf,
}

#[derive(Debug)]
#[expect(dead_code, reason = "read and thrown away")]
pub(crate) struct Figures {
    cpu: HashMap<String, u64>,
    memory: u64,
    memory_stat: HashMap<String, u64>,
    tasks: u64,
    pub(crate) network_bytes: u64,
}

impl Plain {
    /// Its cgroups are below the usual mounts.
    pub(crate) fn find(root: &Path, pid: u32) -> Self {
        let process = root.join("proc").join(pid.to_string());
        let memberships = text(&process.join("cgroup"));
        let v1 = |controller: &str| {
            memberships.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':');
                let controllers = parts.nth(1).filter(|all| all.split(',').any(|one| one == controller))?;
                let folder = root.join("sys/fs/cgroup").join(controllers);
                Some(folder.join(parts.next()?.trim_start_matches('/')))
            })
        };
        let v2 = || {
            let path = memberships.lines().find_map(|line| line.strip_prefix("0::/")).expect("v1 or v2");
            root.join("sys/fs/cgroup").join(path)
        };
        let choose = |controller, v1_file: &str, v2_file: &str| {
            v1(controller).map_or_else(|| v2().join(v2_file), |folder| folder.join(v1_file))
        };
        Self {
            cpu: choose("cpuacct", "cpuacct.usage", "cpu.stat"),
            memory: choose("memory", "memory.usage_in_bytes", "memory.current"),
            memory_stat: choose("memory", "memory.stat", "memory.stat"),
            tasks: choose("pids", "pids.current", "pids.current"),
            network: process.join("net/dev"),
        }
    }

    pub(crate) fn read(&self) -> Figures {
        Figures {
            cpu: table(&text(&self.cpu)),
            memory: number(&text(&self.memory)),
            memory_stat: table(&text(&self.memory_stat)),
            tasks: number(&text(&self.tasks)),
            network_bytes: text(&self.network)
                .lines()
                .skip(2)
                .filter(|line| !line.trim_start().starts_with("lo:"))
                .map(|line| {
                    let fields: Vec<&str> = line.split_whitespace().collect();
                    number(fields[1]) + number(fields[9])
                })
                .sum(),
        }
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("it is there")
}

fn number(text: &str) -> u64 {
    text.trim().parse().expect("a number")
}

fn table(text: &str) -> HashMap<String, u64> {
    text.lines()
        .map(|line| {
            let (key, value) = line.split_once(' ').unwrap_or(("usage", line));
            (key.to_owned(), number(value))
        })
        .collect()
}
