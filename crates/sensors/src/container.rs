//! What a container uses, from the kernel's own files.
//!
//! Its engine can be asked too, but takes a second for each answer. Here a container is known by its first process:
//! [`Paths::of_container`] finds its files once, [`Paths::read`] reads them at every check.
//!
//! What must stay true:
//! - A figure that cannot be read is an error of its own. It is never zero, and it never spoils the others.
//! - What is read belongs to the container that was found. Its first process is looked at after everything else: if it
//!   is still the same one, by its start time, then no number was reused in between, neither its pid nor a path.
//! - What a container shares with the machine (the root cgroup, the host's network) is not its own and not counted.
//!
//! Figures are running totals of one run; what they mean over time is for the caller, who has the clock.

mod cgroup;
mod file;
mod handles;
mod parse;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use cgroup::{Atlas, Lack, Place, Version};
use file::Kept;
use handles::Permit;
use parse::Life;

/// Where a container's figures are, found by [`Paths::of_pid`] or [`Paths::of_container`].
#[derive(Debug)]
pub struct Paths {
    pid: u32,
    stat: PathBuf,
    /// When the first process started, in ticks since boot: with the pid, it says who it is.
    since: u64,
    cpu: Result<(Version, Kept), ReadError>,
    memory: Result<Memory, ReadError>,
    processes: Result<Kept, ReadError>,
    network: Result<PathBuf, ReadError>,
    /// The top of the container's cgroups, in a hierarchy where it has one of its own.
    tree: Result<PathBuf, ReadError>,
    /// For the three files above.
    _permit: Option<Permit>,
}

/// Memory in use, and what of it the kernel could take back without anybody noticing.
#[derive(Debug)]
struct Memory {
    usage: Kept,
    stat: PathBuf,
    reclaimable: &'static str,
}

/// What [`Paths::read`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Processor time of all its processes, dead ones included, in microseconds since it was started.
    pub cpu_micros: Result<u64, ReadError>,
    /// Memory without file pages that nobody has touched for long: what `docker stats` shows.
    pub memory_bytes: Result<u64, ReadError>,
    /// Its tasks, threads included: what `docker stats` shows as PIDS.
    pub processes: Result<u64, ReadError>,
    /// Bytes received and sent over all interfaces but loopback.
    pub network_bytes: Result<u64, ReadError>,
}

/// Why a figure could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The first process ended or the cgroup was removed: find it again, if the container still runs.
    #[error("the container is gone")]
    Gone,
    /// It has no such figure of its own.
    #[error("the container shares its {what} with the machine")]
    NotOwn {
        /// `network` or `cgroup`.
        what: &'static str,
    },
    /// The machine does not count this for containers, or it cannot be seen from here.
    #[error("no cgroup with the controller `{controller}` can be seen")]
    NoController {
        /// As the kernel calls it.
        controller: &'static str,
    },
    /// The cgroup is there and the file is not: the controller is not switched on for it.
    #[error("there is no {}", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file was read and does not say what it should.
    #[error("{} is not as expected", path.display())]
    Odd {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot read {}", path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What it said.
        #[source]
        errno: Errno,
    },
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Gone | ReadError::Missing { .. } => Self::new(io::ErrorKind::NotFound, error),
            ReadError::NotOwn { .. } | ReadError::NoController { .. } => {
                Self::new(io::ErrorKind::Unsupported, error)
            }
            ReadError::Odd { .. } => Self::new(io::ErrorKind::InvalidData, error),
            ReadError::Failed { errno, .. } => Self::new(errno.kind(), error),
        }
    }
}

impl Paths {
    /// Finds the files of the container whose first process is `pid`, by the id that its cgroup is named after.
    ///
    /// An error only if there is no such process: a file that is missing is an error of its figure.
    pub fn of_pid(pid: u32) -> io::Result<Self> {
        Self::on_machine(Path::new("/"), pid, None)
    }

    /// The same for an engine's container id, which is surer where an init has made cgroups of its own.
    pub fn of_container(pid: u32, id: &str) -> io::Result<Self> {
        Self::on_machine(Path::new("/"), pid, Some(id))
    }

    /// The same on a machine whose `/proc` and cgroup mounts lie below `root`: a simulated one.
    pub fn on_machine(root: &Path, pid: u32, id: Option<&str>) -> io::Result<Self> {
        let proc = root.join("proc");
        let process = proc.join(pid.to_string());
        let stat = process.join("stat");
        let since = since(&stat)?;

        let of_process = file::text(&process.join("cgroup"))?;
        // Without our own, nothing is taken for it.
        let of_self = file::text(&proc.join("self/cgroup")).unwrap_or_default();
        let mounts = cgroup::mounts(&file::text(&proc.join("self/mountinfo"))?);
        let atlas = Atlas {
            root,
            mounts: &mounts,
            of_process: &cgroup::memberships(&of_process),
            of_self: &cgroup::memberships(&of_self),
            id,
        };
        let place = |controller| atlas.place(controller).map_err(|lack| named(lack, controller));
        let (cpuacct, memory, pids) = (place("cpuacct"), place("memory"), place("pids"));
        let tree = [&pids, &cpuacct, &memory].into_iter().find_map(|place| place.as_ref().ok());
        let tree = tree.map(|place| place.folder.clone()).ok_or(match &pids {
            Ok(_) => ReadError::NoController { controller: "pids" },
            Err(error) => error.clone(),
        });

        let permit = Permit::take(3);
        let keep = permit.is_some();
        let paths = Self {
            pid,
            since,
            cpu: cpuacct.and_then(|place| cpu(&place, keep)),
            memory: memory.and_then(|place| Memory::at(&place, keep)),
            processes: pids.and_then(|place| Kept::open(place.folder.join("pids.current"), keep)),
            network: network(&proc, &process),
            tree,
            stat,
            _permit: permit,
        };
        // Everything above was found by number. If the process is still the same, it was this process's all along.
        paths.confirm()?;
        Ok(paths)
    }

    /// The first process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads everything, now.
    pub fn read(&self) -> Reading {
        let reading = Reading {
            cpu_micros: self.cpu_micros(),
            memory_bytes: self.memory_bytes(),
            processes: of(&self.processes).and_then(|file| file.read(parse::number)),
            network_bytes: of(&self.network).and_then(|path| file::read(path, parse::network)),
        };
        match self.confirm() {
            Ok(()) => reading,
            Err(error) => Reading {
                cpu_micros: Err(error.clone()),
                memory_bytes: Err(error.clone()),
                processes: Err(error.clone()),
                network_bytes: Err(error),
            },
        }
    }

    /// All its processes, as this machine numbers them.
    ///
    /// One that moves from one cgroup of the container to another meanwhile can be missed, and one can end at any time.
    pub fn pids(&self) -> Result<BTreeSet<u32>, ReadError> {
        let pids = tree::pids(of(&self.tree)?)?;
        self.confirm()?;
        Ok(pids)
    }

    fn cpu_micros(&self) -> Result<u64, ReadError> {
        let (version, file) = of(&self.cpu)?;
        match version {
            Version::V1 => file.read(parse::number).map(|nanos| nanos / 1_000),
            Version::V2 => file.read(|text| parse::keyed(text, "usage_usec")),
        }
    }

    fn memory_bytes(&self) -> Result<u64, ReadError> {
        let Memory { usage, stat, reclaimable } = of(&self.memory)?;
        let used = usage.read(parse::number)?;
        let reclaimable = file::read(stat, |text| parse::keyed(text, reclaimable))?;
        // Two files, one after the other: the second can already count what the first did not.
        Ok(used.saturating_sub(reclaimable))
    }

    /// The first process is still the one that was found.
    fn confirm(&self) -> Result<(), ReadError> {
        if since(&self.stat)? == self.since { Ok(()) } else { Err(ReadError::Gone) }
    }
}

impl Memory {
    fn at(place: &Place, keep: bool) -> Result<Self, ReadError> {
        let (usage, reclaimable) = match place.version {
            Version::V1 => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::V2 => ("memory.current", "inactive_file"),
        };
        Ok(Self {
            usage: Kept::open(place.folder.join(usage), keep)?,
            // Not kept open: writing it out takes the kernel longer than opening it.
            stat: place.folder.join("memory.stat"),
            reclaimable,
        })
    }
}

fn cpu(place: &Place, keep: bool) -> Result<(Version, Kept), ReadError> {
    let name = match place.version {
        Version::V1 => "cpuacct.usage",
        Version::V2 => "cpu.stat",
    };
    Kept::open(place.folder.join(name), keep).map(|file| (place.version, file))
}

/// The file that counts the container's traffic, which is that of its network namespace.
///
/// Never kept open: an open one would keep the namespace alive after the container, and go on telling its last figures.
fn network(proc: &Path, process: &Path) -> Result<PathBuf, ReadError> {
    let namespace = |of: &Path| {
        let link = of.join("ns/net");
        fs::read_link(&link).map_err(|error| file::failed(&link, &error))
    };
    let own = namespace(process)?;
    // The machine's is that of its first process. Drowse may live in another one, or not be allowed to look.
    let machine = namespace(&proc.join("1"));
    if own == namespace(&proc.join("self"))? || machine.is_ok_and(|machine| machine == own) {
        return Err(ReadError::NotOwn { what: "network" });
    }
    Ok(process.join("net/dev"))
}

/// When the process started. One that only waits to be buried is gone.
fn since(stat: &Path) -> Result<u64, ReadError> {
    let text = file::text(stat).map_err(file::gone_if_missing)?;
    match parse::life(&text) {
        Some(Life::Since(ticks)) => Ok(ticks),
        Some(Life::Dead) => Err(ReadError::Gone),
        None => Err(ReadError::Odd { path: stat.to_owned() }),
    }
}

fn named(lack: Lack, controller: &'static str) -> ReadError {
    match lack {
        Lack::NotThere => ReadError::NoController { controller },
        Lack::NotOwn => ReadError::NotOwn { what: "cgroup" },
        Lack::Gone => ReadError::Gone,
    }
}

fn of<T>(found: &Result<T, ReadError>) -> Result<&T, ReadError> {
    found.as_ref().map_err(Clone::clone)
}
