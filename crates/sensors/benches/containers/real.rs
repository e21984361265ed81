//! Real processes that sleep, each in cgroups and a network namespace of its own, as containers are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

pub(crate) struct Crowd {
    members: Vec<Child>,
    /// Children before their parents.
    folders: Vec<PathBuf>,
}

impl Crowd {
    pub(crate) fn start(members: u32) -> Self {
        let mut crowd = Self { members: Vec::new(), folders: Vec::new() };
        let tops: Vec<PathBuf> = hierarchies().iter().map(|at| at.join("drowse-bench")).collect();
        for top in &tops {
            fs::create_dir_all(top).expect("cgroups of our own: run as root");
        }
        for number in 0..members {
            let member = Command::new("unshare")
                .args(["--net", "sh", "-c", "echo; exec sleep 3600"])
                .stdout(Stdio::piped())
                .spawn()
                .expect("util-linux is installed");
            for top in &tops {
                let folder = top.join(format!("{number:064x}"));
                fs::create_dir_all(&folder).expect("a cgroup");
                fs::write(folder.join("cgroup.procs"), member.id().to_string()).expect("a process of ours");
                crowd.folders.push(folder);
            }
            crowd.members.push(member);
        }
        crowd.folders.extend(tops);
        for member in &mut crowd.members {
            // Its line says that it has left our network.
            let mut line = [0];
            let output = member.stdout.as_mut().expect("it is piped");
            io::Read::read_exact(output, &mut line).expect("it began");
        }
        crowd
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        self.members.iter().map(Child::id).collect()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.kill();
            let _ = member.wait();
        }
        for folder in &self.folders {
            // The last process leaves its cgroup a moment after it was waited for.
            for _ in 0..1_000 {
                match fs::remove_dir(folder) {
                    Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                        thread::park_timeout(Duration::from_millis(1));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Where the controllers that count are mounted: v1's, or the one of v2.
fn hierarchies() -> Vec<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    if top.join("cgroup.controllers").exists() {
        return vec![top.to_owned()];
    }
    ["cpuacct", "memory", "pids"].into_iter().map(|controller| top.join(controller)).collect()
}
