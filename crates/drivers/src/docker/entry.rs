//! One worker as this driver knows it.
//!
//! The lock is held for notes only, never across a conversation: `observe` must answer while a stop takes its
//! minute. Actions take turns by `acting` instead.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bollard::models::ContainerSummary;
use drowse_core::id::{BootId, WorkerId};
use drowse_core::worker::Power;
use drowse_sensors::container::Paths;

use super::inspected::Inspected;
use super::look::Look;
use super::record::{Frozen, Record};
use super::run::Held;
use super::{Container, Inside};
use crate::driver::{Error, Run as _};

/// One worker.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) worker: WorkerId,
    /// Where its record is.
    folder: PathBuf,
    /// Whose turn it is to act.
    pub(super) acting: tokio::sync::Mutex<()>,
    /// Whose turn it is to look into its files. Disks that do not answer keep one thread, and no more.
    pub(super) looking: Arc<tokio::sync::Mutex<()>>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    container: Container,
    /// The container that it is, once that is known.
    id: Option<String>,
    record: Record,
    /// What was last answered to anybody: what agrees with it is no news.
    last: Option<Look>,
    /// The container that was seen on a graphics processor.
    on_gpu: Option<String>,
    /// A container in which a file was not found, and the path of that; its disks are this machine's own.
    absent: Option<(String, String)>,
    /// Where the figures of a run are.
    paths: Option<(BootId, Arc<Paths>)>,
    /// The run whose addresses are known, as it was looked at then.
    held: Option<(Arc<Held>, Look)>,
    /// The run whose end has been told.
    told: Option<BootId>,
}

impl Entry {
    pub(super) fn find(worker: WorkerId, folder: PathBuf, container: Container) -> Result<Self, Error> {
        let record = Record::load(&folder)
            .map_err(|error| Error::refused(format!("cannot read its record: {error}")))?;
        let inner = Inner {
            container,
            id: None,
            record,
            last: None,
            on_gpu: None,
            absent: None,
            paths: None,
            held: None,
            told: None,
        };
        Ok(Self {
            worker,
            folder,
            acting: tokio::sync::Mutex::default(),
            looking: Arc::default(),
            inner: Mutex::new(inner),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is this container from now on.
    pub(super) fn is_now(&self, container: &Container) {
        let mut inner = self.lock();
        inner.container = container.clone();
        inner.id = None;
        drop(inner);
        self.let_go();
    }

    /// The run whose addresses are known, if it stands.
    pub(super) fn held(&self) -> Option<(Arc<Held>, Look)> {
        let mut inner = self.lock();
        if inner.held.as_ref().is_some_and(|(held, _)| !held.stands()) {
            inner.held = None;
        }
        inner.held.clone()
    }

    pub(super) fn hold(&self, held: &Arc<Held>, look: &Look) {
        self.lock().held = Some((Arc::clone(held), look.clone()));
    }

    /// Its addresses may have changed: whoever knows them has to ask again.
    pub(super) fn let_go(&self) {
        if let Some((held, _)) = self.lock().held.take() {
            held.revoke();
        }
    }

    /// Whether an event of this container is about this worker.
    pub(super) fn is_about(&self, id: &str) -> bool {
        self.lock().id.as_deref() == Some(id)
    }

    /// Whether it may become a container that it is not yet.
    pub(super) fn may_become(&self) -> bool {
        let inner = self.lock();
        let is_open = !matches!(inner.container, Container::Id(_));
        is_open && inner.last.as_ref().is_none_or(|look| look.seen.power == Power::Gone)
    }

    /// Whether a container that comes or goes may change which one is meant.
    pub(super) fn is_labelled(&self) -> bool {
        matches!(self.lock().container, Container::Labelled(_))
    }

    /// What was last answered.
    pub(super) fn last(&self) -> Option<Look> {
        self.lock().last.clone()
    }

    /// Where the figures of the run are that was last seen; looked for with the first question.
    pub(super) fn paths(&self, find: impl FnOnce() -> Result<Paths, Error>) -> Result<Arc<Paths>, Error> {
        let mut inner = self.lock();
        let boot = inner.last.as_ref().and_then(|look| look.seen.boot.clone());
        let boot = boot.ok_or_else(|| Error::refused("it does not run"))?;
        if let Some((of, paths)) = &inner.paths
            && *of == boot
        {
            return Ok(Arc::clone(paths));
        }
        let paths = Arc::new(find()?);
        inner.paths = Some((boot, Arc::clone(&paths)));
        Ok(paths)
    }

    /// Whether this container was ever seen on a graphics processor.
    pub(super) fn was_on_gpu(&self, id: &str) -> bool {
        self.lock().on_gpu.as_deref() == Some(id)
    }

    pub(super) fn is_on_gpu(&self, id: &str) {
        self.lock().on_gpu = Some(id.to_owned());
    }

    /// Whether this file was not there when it was last looked for.
    pub(super) fn was_absent(&self, id: &str, path: &str) -> bool {
        self.lock().absent.as_ref().is_some_and(|(of, absent)| of == id && absent == path)
    }

    pub(super) fn is_absent(&self, absent: Option<(String, String)>) {
        self.lock().absent = absent;
    }

    pub(super) fn forget_paths(&self) {
        self.lock().paths = None;
    }

    /// Looks, and remembers what was seen.
    pub(super) async fn look(&self, inside: &Inside) -> Result<Look, Error> {
        let look = self.peek(inside).await?;
        let is_open = {
            let mut inner = self.lock();
            inner.last = Some(look.clone());
            !matches!(inner.container, Container::Id(_))
        };
        if look.seen.power == Power::Gone && !is_open {
            // Nothing comes again by that id.
            self.forget_record();
        }
        Ok(look)
    }

    /// Looks without telling anybody.
    pub(super) async fn peek(&self, inside: &Inside) -> Result<Look, Error> {
        self.peek_at(inside, Which::Meant).await
    }

    /// The same at the one that it was last, though its label may mean several by now: whoever is led to it is served.
    pub(super) async fn peek_at_known(&self, inside: &Inside) -> Result<Look, Error> {
        self.peek_at(inside, Which::Known).await
    }

    async fn peek_at(&self, inside: &Inside, which: Which) -> Result<Look, Error> {
        let began_at = inside.now();
        let (id, container, iced) = {
            let inner = self.lock();
            let ours = |frozen: &&Frozen| frozen.socket == inside.engine.socket();
            let iced = inner.record.frozen.as_ref().filter(ours).map(|frozen| frozen.container.clone());
            (inner.id.clone(), inner.container.clone(), iced)
        };
        let known = match &id {
            // A label has to mean one container each time: another may have come.
            Some(id) if which == Which::Known || !matches!(container, Container::Labelled(_)) => {
                match inside.engine.inspect(id).await {
                    // It bears another name by now, and whoever bears this one is meant.
                    Ok(found) if !is_meant(&container, &found) && iced.as_ref() != Some(id) => None,
                    // It may have been made anew, by the same name.
                    Err(Error::Gone) => None,
                    other => Some(other),
                }
            }
            Some(_) | None => None,
        };
        let found = match known {
            Some(found) => found,
            None => resolve(inside, &container, id.as_deref(), iced.as_deref()).await,
        };
        let found = match found {
            Ok(found) => found,
            Err(Error::Gone) => {
                // It may live on under another name, and is nobody's then.
                self.let_go();
                return Ok(Look::gone(began_at));
            }
            Err(error) => return Err(error),
        };
        let mut look = Look::of(&found, began_at).ok_or_else(|| Error::Unreachable {
            message: "the engine's answer about the container makes no sense".to_owned(),
        })?;
        if id.is_some_and(|id| id != look.id) {
            self.let_go();
        }
        let mut inner = self.lock();
        inner.id = Some(look.id.clone());
        if look.seen.power == Power::Paused
            && let Some(frozen) = &inner.record.frozen
            && Some(&frozen.boot) == look.seen.boot.as_ref()
        {
            look.seen.dated_at = Some(frozen.at);
        }
        Ok(look)
    }

    /// The record as it is.
    pub(super) fn record(&self) -> Record {
        self.lock().record.clone()
    }

    /// Changes the record and writes it down.
    pub(super) fn note(&self, change: impl FnOnce(&mut Record)) -> io::Result<()> {
        let mut inner = self.lock();
        let mut record = inner.record.clone();
        change(&mut record);
        if record == inner.record {
            return Ok(());
        }
        inner.record = record;
        inner.record.save(&self.folder)
    }

    /// It exists no more, and so does what was kept of it.
    pub(super) fn forget_record(&self) {
        self.lock().record = Record::default();
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// Notes that the end of this run is told; false if it was before.
    pub(super) fn tell(&self, boot: &BootId) -> bool {
        let mut inner = self.lock();
        let is_news = inner.told.as_ref() != Some(boot);
        inner.told = Some(boot.clone());
        is_news
    }
}

/// Which container is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// The one that is meant.
    Meant,
    /// The one that it was last, if that is still there.
    Known,
}

/// Finds the container that a worker is; but not the one that is known to be gone. Of several the one that we froze:
/// nobody else would ever wake it.
async fn resolve(
    inside: &Inside,
    container: &Container,
    gone: Option<&str>,
    iced: Option<&str>,
) -> Result<Inspected, Error> {
    match container {
        Container::Id(_) if gone.is_some() => Err(Error::Gone),
        Container::Id(id) => inside.engine.inspect(id).await,
        Container::Named(name) => match (inside.engine.inspect(name).await, iced) {
            (Ok(found), _) if is_meant(container, &found) => Ok(found),
            // It was given another name in its sleep.
            (Ok(_) | Err(Error::Gone), Some(iced)) => inside.engine.inspect(iced).await,
            (Ok(_), None) => Err(Error::Gone),
            (Err(error), _) => Err(error),
        },
        Container::Labelled(label) => {
            let found = inside.engine.list(label).await?;
            let ids: Vec<&str> = found.iter().filter_map(|one| one.id.as_deref()).collect();
            match (&ids[..], iced) {
                ([], _) => Err(Error::Gone),
                ([id], _) => inside.engine.inspect(id).await,
                (ids, Some(iced)) if ids.contains(&iced) => inside.engine.inspect(iced).await,
                _ => Err(Error::refused(ambiguous(label, &found))),
            }
        }
    }
}

/// Whether this is the container that a worker is, by what it is called.
fn is_meant(container: &Container, found: &Inspected) -> bool {
    let name = found.name.as_deref().unwrap_or_default();
    let id = found.id.as_deref().unwrap_or_default();
    let labels = found.config.as_ref().and_then(|config| config.labels.clone()).unwrap_or_default();
    container.is(id, name.strip_prefix('/').unwrap_or(name), &labels.into_iter().collect())
}

fn ambiguous(label: &str, found: &[ContainerSummary]) -> String {
    let mut names: Vec<&str> = found.iter().map(name_of).collect();
    names.sort_unstable();
    let all = names.join(", ");
    format!("{} containers have the label {label}, and a worker is one: {all}", names.len())
}

fn name_of(one: &ContainerSummary) -> &str {
    let names = one.names.as_deref().unwrap_or_default();
    let name = names.first().and_then(|name| name.strip_prefix('/'));
    name.or(one.id.as_deref()).unwrap_or("one without a name")
}
