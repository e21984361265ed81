//! Which freezer this machine offers, found by looking.
//!
//! The cgroup v2 freezer is preferred, then that of v1, then SIGSTOP. A freezer stops every process of a run
//! at once, also those that left its session; SIGSTOP misses some of those, and can be noticed by parents.
//!
//! Our cgroups lie below the one that Drowse itself runs in. Whoever started Drowse may have put limits
//! there, and they hold for its workers too; and it is the only place where an ordinary user with a
//! delegated cgroup may write.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Which freezer to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The best that works.
    #[default]
    Auto,
    /// cgroup v2 or nothing.
    V2,
    /// cgroup v1 or nothing.
    V1,
    /// SIGSTOP and SIGCONT.
    Signals,
}

/// The freezer that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Freezer {
    /// `cgroup.freeze`.
    V2 {
        /// Where our cgroups are made.
        base: PathBuf,
    },
    /// The freezer controller.
    V1 {
        /// Where our cgroups are made.
        base: PathBuf,
        /// The same for processor time, where that controller can be used too.
        cpuacct: Option<PathBuf>,
    },
    /// SIGSTOP and SIGCONT.
    Signals,
}

impl fmt::Display for Freezer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Freezer::V2 { base } => write!(f, "cgroup v2 freezer in {}", base.display()),
            Freezer::V1 { base, .. } => write!(f, "cgroup v1 freezer in {}", base.display()),
            Freezer::Signals => f.write_str("SIGSTOP"),
        }
    }
}

/// Why a freezer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Lack {
    /// This machine does not have it.
    #[error("not mounted on this machine")]
    NotMounted,
    /// The kernel is too old, or the cgroup is of a kind that cannot have processes.
    #[error("{} has no {what}", path.display())]
    NotThere {
        /// The file that should be there.
        what: &'static str,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// It is there and not ours to use: run as root, or in a delegated cgroup
    /// (`systemd-run --user --scope -p Delegate=yes`).
    #[error("{} cannot be used ({source}); run as root or in a delegated cgroup", path.display())]
    NotOurs {
        /// What was tried.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

/// What was found, and why what stands before it was not. For `doctor`.
#[derive(Debug)]
pub struct Found {
    /// What will be used.
    pub freezer: Freezer,
    /// What would have been better.
    pub passed_over: Vec<(&'static str, Lack)>,
}

/// Looks for a freezer. `name` is the folder for all our cgroups.
pub fn find(choice: Choice, name: &str) -> Result<Found, Lack> {
    let chosen = |freezer| Found { freezer, passed_over: Vec::new() };
    match choice {
        Choice::Signals => Ok(chosen(Freezer::Signals)),
        Choice::V2 => find_v2(name).map(chosen),
        Choice::V1 => find_v1(name).map(chosen),
        Choice::Auto => {
            let mut passed_over = Vec::new();
            for (label, found) in [("cgroup v2", find_v2(name)), ("cgroup v1", find_v1(name))] {
                match found {
                    Ok(freezer) => return Ok(Found { freezer, passed_over }),
                    Err(lack) => passed_over.push((label, lack)),
                }
            }
            Ok(Found { freezer: Freezer::Signals, passed_over })
        }
    }
}

fn find_v2(name: &str) -> Result<Freezer, Lack> {
    let own = own_cgroup(Hierarchy::V2)?;
    let base = own.join(name);
    try_out(&own, &base, &["cgroup.freeze", "cgroup.events"])?;
    Ok(Freezer::V2 { base })
}

fn find_v1(name: &str) -> Result<Freezer, Lack> {
    let own = own_cgroup(Hierarchy::V1("freezer"))?;
    let base = own.join(name);
    try_out(&own, &base, &["freezer.state"])?;
    // Without it processor time is summed over the processes.
    let cpuacct = own_cgroup(Hierarchy::V1("cpuacct")).ok().and_then(|own| {
        let base = own.join(name);
        try_out(&own, &base, &["cpuacct.usage"]).ok().map(|()| base)
    });
    Ok(Freezer::V1 { base, cpuacct })
}

/// Makes a cgroup the way a start does, looks whether it has what we need and can be joined, and removes it.
fn try_out(own: &Path, base: &Path, files: &[&'static str]) -> Result<(), Lack> {
    let trial = base.join("trial");
    let not_ours = |path: &Path| {
        let path = path.to_owned();
        move |source| Lack::NotOurs { path, source }
    };
    let writable = |path: PathBuf| File::options().write(true).open(&path).map(drop).map_err(not_ours(&path));
    fs::create_dir_all(&trial).map_err(not_ours(&trial))?;
    let tried = (|| {
        for what in files {
            if !trial.join(what).exists() {
                return Err(Lack::NotThere { what, path: trial.clone() });
            }
        }
        writable(trial.join(files[0]))?;
        writable(trial.join("cgroup.procs"))?;
        // To move a process between two cgroups one must be allowed to write to what they have in common,
        // and that is the cgroup Drowse runs in.
        writable(own.join("cgroup.procs"))?;
        match fs::read_to_string(trial.join("cgroup.type")) {
            Ok(kind) if kind.trim() != "domain" => {
                Err(Lack::NotThere { what: "place for processes (it is threaded)", path: trial.clone() })
            }
            Ok(_) | Err(_) => Ok(()),
        }
    })();
    // Whatever came of it, nothing is left behind. Another worker may be in `base`.
    let _ = fs::remove_dir(&trial);
    let _ = fs::remove_dir(base);
    tried
}

#[derive(Clone, Copy)]
enum Hierarchy {
    V2,
    V1(&'static str),
}

/// The folder of the cgroup that Drowse runs in.
fn own_cgroup(hierarchy: Hierarchy) -> Result<PathBuf, Lack> {
    let read =
        |path: &str| fs::read_to_string(path).map_err(|source| Lack::NotOurs { path: path.into(), source });
    let mounts = read("/proc/self/mountinfo")?;
    let cgroups = read("/proc/self/cgroup")?;
    let (root, mounted_at) = mount_of(&mounts, hierarchy).ok_or(Lack::NotMounted)?;
    let path = path_in(&cgroups, hierarchy).ok_or(Lack::NotMounted)?;
    Ok(folder_of(&root, &mounted_at, path))
}

/// In a container the mount shows only a part of the hierarchy, and the path may be told from its root.
fn folder_of(root: &str, mounted_at: &str, path: &str) -> PathBuf {
    let below = Path::new(path).strip_prefix(root).or_else(|_| Path::new(path).strip_prefix("/"));
    Path::new(mounted_at).join(below.unwrap_or(Path::new("")))
}

/// `36 35 98:0 ROOT MOUNTPOINT options [tags] - TYPE source super-options`, spaces written as `\040`.
fn mount_of(mountinfo: &str, hierarchy: Hierarchy) -> Option<(String, String)> {
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let kind = after.next()?;
        let mut options = after.nth(1).unwrap_or_default().split(',');
        let is_it = match hierarchy {
            Hierarchy::V2 => kind == "cgroup2",
            Hierarchy::V1(controller) => kind == "cgroup" && options.any(|option| option == controller),
        };
        let mut before = before.split(' ');
        let root = before.nth(3)?;
        let mounted_at = before.next()?;
        is_it.then(|| (unescape(root), unescape(mounted_at)))
    })
}

fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// `ID:CONTROLLERS:PATH`; v2 has no controllers here.
fn path_in(cgroups: &str, hierarchy: Hierarchy) -> Option<&str> {
    cgroups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let id = parts.next()?;
        let mut controllers = parts.next()?.split(',');
        let path = parts.next()?;
        let is_it = match hierarchy {
            Hierarchy::V2 => id == "0",
            Hierarchy::V1(controller) => controllers.any(|name| name == controller),
        };
        is_it.then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
24 1 0:22 / /proc rw,relatime - proc proc rw
30 25 0:26 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
31 25 0:27 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
32 25 0:28 / /sys/fs/a\\040b rw,relatime shared:3 - cgroup2 cgroup2 rw,nsdelegate
";
    const CGROUPS: &str =
        "7:freezer:/\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/x\n0::/user.slice/a:b.scope\n";

    fn own(hierarchy: Hierarchy) -> Option<PathBuf> {
        let (root, mounted_at) = mount_of(MOUNTS, hierarchy)?;
        Some(folder_of(&root, &mounted_at, path_in(CGROUPS, hierarchy)?))
    }

    #[test]
    fn our_own_cgroup_is_found_in_each_hierarchy() {
        assert_eq!(own(Hierarchy::V1("freezer")), Some("/sys/fs/cgroup/freezer".into()));
        assert_eq!(own(Hierarchy::V1("cpuacct")), Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(own(Hierarchy::V2), Some("/sys/fs/a b/user.slice/a:b.scope".into()));
        assert_eq!(own(Hierarchy::V1("memory")), None);
    }

    #[test]
    fn signals_need_nothing() {
        assert_eq!(find(Choice::Signals, "drowse-test").unwrap().freezer, Freezer::Signals);
    }
}
