//! Plain processes on this machine.
//!
//! A worker's command runs in its own session and, where the machine allows, its own cgroup, started
//! through a small [helper](exec_helper). It belongs to itself: when Drowse ends or is killed it goes on, and
//! the next Drowse finds it again by its record.
//!
//! - [`cgroup`]: which freezer this machine offers; `cage`: what a run lives in, and all that differs
//!   between the freezers
//! - `identity`: which process is meant, beyond its number; `record`: what outlives Drowse; `entry`: one worker
//! - `helper`, `spawn`, `freeze`, `stop`, `read`, `hook`, `thaw`: what can be done; `calls`: by whom, how long
//! - `word`: what lets a frozen run go on at once; `watch`: the thread that notices ends and trims `output`
//!
//! What SIGSTOP cannot do, and the freezers can: a grandchild that began a session of its own and lost its
//! parent is not found and runs on; parents that wait for stopped children notice; programs can see SIGCONT.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::worker::Power;
use tokio::sync::Semaphore;

use crate::driver::{Acted, Error, Now, Seen, Terminate};
use crate::hint::Hints;

mod cage;
mod calls;
pub mod cgroup;
mod entry;
mod files;
mod freeze;
mod helper;
mod hook;
mod identity;
mod network;
mod output;
mod proc;
mod read;
mod record;
mod sockets;
mod spawn;
mod stop;
mod tables;
mod thaw;
mod wait;
mod watch;
mod word;

use entry::{Entry, Run, cannot, refused};
use wait::until;

pub use files::raise_file_limit;
pub use helper::exec_helper;
pub(crate) use sockets::established;
pub(crate) use tables::Tables;
pub use thaw::{Thawed, thaw_all};

/// A worker's command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The program and its arguments. It must stay in the foreground: its end is the end of the run.
    pub command: Vec<String>,
    /// Where it runs; Drowse's own folder if not given.
    pub dir: Option<PathBuf>,
    /// Its environment, beside Drowse's without what begins with `DROWSE_`.
    pub env: BTreeMap<String, String>,
}

/// What the driver is told at its start.
#[derive(Clone)]
pub struct Config {
    /// Where records and output are kept.
    pub data_dir: PathBuf,
    /// The program that runs [`exec_helper`], and the arguments that make it do so.
    pub helper: Vec<OsString>,
    /// Which freezer to use.
    pub freezer: cgroup::Choice,
    /// How large a worker's output may grow before the older half is let go.
    pub log_limit: u64,
    /// The clock.
    pub now: Now,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("data_dir", &self.data_dir)
            .field("helper", &self.helper)
            .field("freezer", &self.freezer)
            .field("log_limit", &self.log_limit)
            .finish_non_exhaustive()
    }
}

/// Why the driver cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nobody could be started.
    #[error("no helper program is given")]
    NoHelper,
    /// The data folder cannot be used.
    #[error("cannot use {}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The freezer that was asked for by name cannot be used.
    #[error("the chosen freezer cannot be used")]
    Freezer(#[source] cgroup::Lack),
    /// The watching thread cannot be started.
    #[error("cannot watch processes")]
    Watch(#[source] io::Error),
}

/// The driver.
#[derive(Debug)]
pub struct ProcessDriver {
    inside: Inside,
    folder: PathBuf,
    found: cgroup::Found,
    entries: Mutex<BTreeMap<WorkerId, Arc<Entry>>>,
}

/// What every action needs.
pub(crate) struct Inside {
    helper: Vec<OsString>,
    freezer: cgroup::Freezer,
    log_limit: u64,
    clock: Now,
    hints: Arc<Hints>,
    watch: watch::Watch,
    tables: Tables,
    /// Places for words that are kept ready.
    words: Arc<Semaphore>,
}

impl Inside {
    fn now(&self) -> Timestamp {
        (self.clock)()
    }
}

impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inside").field("freezer", &self.freezer).finish_non_exhaustive()
    }
}

impl ProcessDriver {
    /// Looks what the machine offers and begins to watch. Workers are taken on one by one by
    /// [`adopt`](crate::Driver::adopt).
    pub fn open(config: Config) -> Result<Self, OpenError> {
        if config.helper.is_empty() {
            return Err(OpenError::NoHelper);
        }
        let folder = folder_of_workers(&config.data_dir);
        fs::create_dir_all(&folder).map_err(|source| OpenError::Folder { path: folder.clone(), source })?;
        // Worker processes may change folder, and records outlive ours.
        let folder =
            folder.canonicalize().map_err(|source| OpenError::Folder { path: folder.clone(), source })?;
        let found =
            cgroup::find(config.freezer, &cgroups_name(&config.data_dir)).map_err(OpenError::Freezer)?;
        let hints = Arc::new(Hints::default());
        let watch = watch::Watch::start(Arc::clone(&hints), Arc::clone(&config.now), config.log_limit)
            .map_err(OpenError::Watch)?;
        let tables = Tables::start(Arc::clone(&config.now)).map_err(OpenError::Watch)?;
        let inside = Inside {
            helper: config.helper,
            freezer: found.freezer.clone(),
            log_limit: config.log_limit,
            clock: config.now,
            hints,
            watch,
            tables,
            words: Arc::new(Semaphore::new(word::KEPT_AT_MOST)),
        };
        Ok(Self { inside, folder, found, entries: Mutex::default() })
    }

    /// Which freezer is used and what would have been better; for `doctor`.
    pub fn freezer(&self) -> &cgroup::Found {
        &self.found
    }

    /// Where a worker's output is; the older part lies beside it, with `.1` at the end.
    pub fn output_of(&self, worker: &WorkerId) -> PathBuf {
        self.folder.join(worker.as_str()).join("output.log")
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<WorkerId, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(&self, worker: &WorkerId) -> Result<Arc<Entry>, Error> {
        self.entries()
            .get(worker)
            .cloned()
            .ok_or_else(|| Error::refused(format!("the process driver does not know {worker}")))
    }

    fn take_on(&self, worker: &WorkerId, spec: &Spec) -> Result<Seen, Error> {
        let known = self.entries().get(worker).cloned();
        if let Some(entry) = known.filter(|entry| !entry.lock().is_gone) {
            entry.lock().spec = spec.clone();
            return entry.look(self.inside.now());
        }
        let folder = self.folder.join(worker.as_str());
        fs::create_dir_all(&folder).map_err(refused("make its folder"))?;
        let run = Run::find(&folder)?;
        let pidfd = run.as_ref().and_then(|run| run.pidfd.clone());
        let entry = Arc::new(Entry::new(worker.clone(), folder, spec.clone(), run));
        if let Some(pidfd) = pidfd {
            self.inside.watch.watch(&entry, pidfd).map_err(cannot("watch it"))?;
        }
        let seen = entry.look(self.inside.now())?;
        self.entries().insert(worker.clone(), entry);
        Ok(seen)
    }

    async fn delete(&self, entry: &Arc<Entry>, terminate: Terminate) -> Result<Acted, Error> {
        let seen = entry.look(self.inside.now())?;
        if seen.power == Power::Gone {
            return Ok(Acted::AlreadyTrue(seen));
        }
        stop::stop(&self.inside, entry, terminate.intent, terminate.grace).await?;
        if let Some((_, cage)) = entry.whereabouts() {
            until(|| cage.remove().map_err(refused("remove its cgroup"))).await?;
        }
        match fs::remove_dir_all(&entry.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(refused("remove its folder")(error));
            }
            Ok(()) | Err(_) => {}
        }
        entry.lock().is_gone = true;
        Ok(Acted::Done(entry.look(self.inside.now())?))
    }
}

fn folder_of_workers(data_dir: &Path) -> PathBuf {
    data_dir.join("process")
}

/// The name of the folder for our cgroups: two Drowses on one machine must not take each other's workers for
/// remains of their own. FNV-1a over the data folder's real path.
fn cgroups_name(data_dir: &Path) -> String {
    let path = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
    let hash = path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("drowse-{hash:016x}")
}
