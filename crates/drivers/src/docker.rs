//! Containers of a Docker engine.
//!
//! The engine makes and runs them; Drowse pauses, stops and starts them and never takes one for another: what is
//! known belongs to a container's id and the time it was started, not to its name.
//!
//! - `engine`: the only file that speaks to the engine, and what its errors mean; `kept`: connections that stay open
//! - `entry`: one worker; `inspected`, `look`: what the engine says of it; `record`: what outlives Drowse
//! - `run`: that an address is a run's, and whether that stands
//! - `freeze`, `stop`, `read`, `stats`, `gpu`, `hook`, `inside`: what can be done; `calls`: by whom, how long
//! - `events`: what the engine says unasked; `discover`: containers that ask to be looked after
//!
//! An engine that is away, hangs or is being restarted says nothing about its containers: every call ends by its
//! budget as [`Unreachable`](crate::Error::Unreachable) or [`TimedOut`](crate::Error::TimedOut), and only the engine's own
//! "no such container" is [`Gone`](crate::Error::Gone).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::worker::Power;

use crate::driver::{Acted, Error, Now, Seen, Terminate};
use crate::hint::Hints;
use crate::process::Tables;

mod calls;
mod discover;
mod engine;
mod entry;
mod events;
mod freeze;
mod gpu;
mod hook;
mod inside;
mod inspected;
mod kept;
mod look;
mod read;
mod record;
mod run;
mod stats;
mod stop;
mod thaw;

pub use inside::WARNING_FILE;
pub use thaw::thaw_all;

use engine::Engine;
use entry::Entry;
use inside::Root;

/// Where an engine answers unless somebody says otherwise.
pub const USUAL_SOCKET: &str = "/var/run/docker.sock";

/// Which container a worker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Container {
    /// The one with this id, and no other.
    Id(String),
    /// Whichever bears this name, or has this id. One that is made anew by that name is the same worker.
    Named(String),
    /// Whichever has this label, `KEY` or `KEY=VALUE`; there must be one.
    Labelled(String),
}

/// As many digits of an id as the engine's own client shows: fewer are a name, or the beginning of anybody's id.
const SHORT_ID: usize = 12;

impl Container {
    /// Whether a container with this id, this name and these labels is meant.
    pub fn is(&self, id: &str, name: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Container::Id(own) => own == id,
            // The engine also takes the beginning of an id for a container, and so a name for a stranger.
            Container::Named(own) => {
                own.strip_prefix('/').unwrap_or(own) == name
                    || own == id
                    || (own.len() >= SHORT_ID && id.starts_with(own.as_str()))
            }
            Container::Labelled(label) => match label.split_once('=') {
                Some((key, value)) => labels.get(key).is_some_and(|found| found == value),
                None => labels.contains_key(label),
            },
        }
    }
}

impl std::fmt::Display for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Container::Id(text) | Container::Named(text) => write!(f, "container {text}"),
            Container::Labelled(label) => write!(f, "container with the label {label}"),
        }
    }
}

/// A worker that is a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Which.
    pub container: Container,
}

/// What the driver is told at its start.
#[derive(Clone)]
pub struct Config {
    /// Where records are kept.
    pub data_dir: PathBuf,
    /// The engine's socket.
    pub socket: PathBuf,
    /// NVIDIA's library, if not the one that its driver installs.
    pub nvml: Option<PathBuf>,
    /// The clock.
    pub now: Now,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("data_dir", &self.data_dir)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// Why the driver cannot be had. That the engine does not answer is no reason: it may come.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data folder cannot be used.
    #[error("cannot use {}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The thread that speaks to the engine cannot be started.
    #[error("cannot start the thread that speaks to the engine")]
    Thread(#[source] io::Error),
}

/// The driver.
#[derive(Debug)]
pub struct DockerDriver {
    inside: Arc<Inside>,
    folder: PathBuf,
}

/// What every action needs, and the thread that listens to the engine.
pub(crate) struct Inside {
    engine: Engine,
    clock: Now,
    hints: Hints,
    gpus: gpu::Gpus,
    tables: Tables,
    /// Turns to ask the engine what a container uses.
    stats: tokio::sync::Semaphore,
    seen: discover::Seen,
    entries: Mutex<BTreeMap<WorkerId, Arc<Entry>>>,
}

impl Inside {
    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<WorkerId, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inside").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl DockerDriver {
    /// Begins to listen to the engine, whether it answers yet or not. Workers are taken on one by one by
    /// [`adopt`](crate::Driver::adopt).
    pub fn open(config: Config) -> Result<Self, OpenError> {
        let folder = folder_of_workers(&config.data_dir);
        fs::create_dir_all(&folder).map_err(|source| OpenError::Folder { path: folder.clone(), source })?;
        let engine = Engine::open(config.socket).map_err(OpenError::Thread)?;
        let tables = Tables::start(Arc::clone(&config.now)).map_err(OpenError::Thread)?;
        let inside = Arc::new(Inside {
            engine,
            tables,
            stats: tokio::sync::Semaphore::new(stats::AT_ONCE),
            clock: config.now,
            hints: Hints::default(),
            gpus: gpu::Gpus::new(config.nvml),
            seen: discover::Seen::default(),
            entries: Mutex::default(),
        });
        events::listen(&inside);
        Ok(Self { inside, folder })
    }

    fn entry(&self, worker: &WorkerId) -> Result<Arc<Entry>, Error> {
        self.inside
            .entries()
            .get(worker)
            .cloned()
            .ok_or_else(|| Error::refused(format!("the docker driver does not know {worker}")))
    }

    async fn take_on(&self, worker: &WorkerId, spec: &Spec) -> Result<Seen, Error> {
        let known = self.inside.entries().get(worker).cloned();
        let entry = if let Some(entry) = known {
            entry.is_now(&spec.container);
            entry
        } else {
            let folder = self.folder.join(worker.as_str());
            Arc::new(Entry::find(worker.clone(), folder, spec.container.clone())?)
        };
        let look = entry.look(&self.inside).await?;
        self.inside.entries().insert(worker.clone(), entry);
        Ok(look.seen)
    }

    /// Does something inside of a container that runs, on a thread: its disks may be slow or far away.
    async fn within<T: Send + 'static>(
        &self,
        worker: &WorkerId,
        work: impl FnOnce(&Root) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let entry = self.entry(worker)?;
        let look = match entry.last().filter(|look| look.pid.is_some()) {
            Some(look) => look,
            None => entry.look(&self.inside).await?,
        };
        let cannot = |why: String| Error::Unreachable { message: format!("cannot look into it: {why}") };
        let pid = look.pid.ok_or_else(|| cannot("it does not run".to_owned()))?;
        // Kept until the work is done, however long that is after everybody has stopped waiting for it.
        let turn = Arc::clone(&entry.looking).lock_owned().await;
        let done = self.inside.engine.block(move || {
            let done = Root::of(pid, &look.id).map(|root| work(&root));
            drop(turn);
            done
        });
        let done = done.await;
        let done = done.ok_or_else(|| cannot("the driver is being closed".to_owned()))?;
        done.map_err(|error| not_inside(&error))
    }

    async fn delete(&self, entry: &Arc<Entry>, terminate: Terminate) -> Result<Acted, Error> {
        let look = entry.look(&self.inside).await?;
        if look.seen.power == Power::Gone {
            entry.forget_record();
            return Ok(Acted::AlreadyTrue(look.seen));
        }
        let Terminate { intent, grace, run } = terminate;
        if stop::is_another(&look, run.as_ref()) {
            return Ok(Acted::AlreadyTrue(look.seen));
        }
        let stopped = stop::stop(&self.inside, entry, intent, grace, run.as_ref()).await?;
        // Somebody has started it since. The engine itself deletes nothing that runs.
        if stopped.seen().is_some_and(|seen| matches!(seen.power, Power::Running | Power::Paused)) {
            return Ok(stopped);
        }
        match self.inside.engine.remove(&look.id).await {
            Ok(()) | Err(Error::Gone) => {}
            Err(error) => return Err(error),
        }
        entry.forget_record();
        Ok(Acted::Done(entry.look(&self.inside).await?.seen))
    }
}

/// Whether a file that was not there before is not there now, if that can be said without waiting for any disk.
///
/// Nearly every check finds this, and a thread's turn costs ten times as much.
fn is_still_absent(entry: &Entry, path: &str) -> bool {
    let known = entry.last().filter(|look| entry.was_absent(&look.id, path));
    known.is_some_and(|look| {
        let root = look.pid.map(|pid| Root::of(pid, &look.id));
        root.is_some_and(|root| root.is_ok_and(|root| root.is_absent_at_a_glance(path)))
    })
}

fn folder_of_workers(data_dir: &Path) -> PathBuf {
    data_dir.join("docker")
}

/// Why a container cannot be looked into.
fn not_inside(error: &io::Error) -> Error {
    let message = format!("cannot look into it: {error}");
    if error.kind() == io::ErrorKind::PermissionDenied {
        Error::Denied { message }
    } else {
        Error::Unreachable { message }
    }
}
