//! One worker as this driver knows it.
//!
//! The lock is held for short looks and notes only, never across a wait: `observe` must answer while a stop
//! takes its minute. Actions take turns by `acting` instead.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::worker::Power;
use tokio::sync::Semaphore;

use super::Spec;
use super::cage::Cage;
use super::identity::{self, Identity, Life};
use super::record::{Exit, Record};
use super::word::Word;
use crate::driver::{Error, Seen};
use crate::hint::Hint;

/// One worker.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) worker: WorkerId,
    /// Where its record and output are.
    pub(crate) folder: PathBuf,
    /// Whose turn it is to act.
    pub(crate) acting: tokio::sync::Mutex<()>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) spec: Spec,
    /// The latest run, over or not.
    pub(crate) run: Option<Run>,
    /// It was deleted.
    pub(crate) is_gone: bool,
    /// A stop or a deletion is under way and will tell of the end itself.
    pub(crate) is_ending: bool,
}

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) record: Record,
    /// `None`: it was over before we could hold on to it.
    pub(crate) pidfd: Option<Arc<OwnedFd>>,
    /// Somebody has been told that it ended.
    pub(crate) is_told: bool,
    /// It is frozen, and this is kept ready for whoever comes.
    word: Option<Arc<Word>>,
}

impl Run {
    pub(crate) fn new(record: Record, pidfd: Option<Arc<OwnedFd>>, is_told: bool) -> Self {
        Self { record, pidfd, is_told, word: None }
    }

    /// The run that an earlier Drowse began, over or not.
    pub(crate) fn find(folder: &Path) -> Result<Option<Self>, Error> {
        let Some(mut record) = Record::load(folder).map_err(refused("read its record"))? else {
            return Ok(None);
        };
        if record.exit.is_some() {
            return Ok(Some(Self::new(record, None, true)));
        }
        let pidfd = record.identity.open().map_err(cannot("look for it"))?.map(Arc::new);
        let is_told = pidfd.is_none();
        if is_told {
            // It ended while nobody watched; the answer to `adopt` says so.
            record.exit = Some(Exit { code: None, at: None });
        }
        Ok(Some(Self::new(record, pidfd, is_told)))
    }
}

impl Entry {
    pub(crate) fn new(worker: WorkerId, folder: PathBuf, spec: Spec, run: Option<Run>) -> Self {
        let inner = Inner { spec, run, is_gone: false, is_ending: false };
        Self { worker, folder, acting: tokio::sync::Mutex::default(), inner: Mutex::new(inner) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest run's process and where it lives.
    pub(crate) fn whereabouts(&self) -> Option<(Identity, Cage)> {
        let inner = self.lock();
        let record = &inner.run.as_ref()?.record;
        Some((record.identity.clone(), record.cage.clone()))
    }

    /// Whether the record of the latest run says that we froze it.
    pub(crate) fn is_marked_frozen(&self) -> bool {
        self.lock().run.as_ref().is_some_and(|run| run.record.frozen_at.is_some())
    }

    /// What lets the latest run go on at once, if its process is still there and one word will do.
    pub(crate) fn word(&self, now: Timestamp) -> Option<Arc<Word>> {
        let mut inner = self.lock();
        self.settle(&mut inner, now);
        let run = inner.run.as_ref().filter(|run| run.record.exit.is_none())?;
        run.word.clone().or_else(|| Word::find(&run.record.cage).map(Arc::new))
    }

    /// It was frozen: somebody will want that word.
    pub(crate) fn keep_word(&self, places: &Arc<Semaphore>) {
        if let Some(run) = &mut self.lock().run {
            run.word = Word::keep(&run.record.cage, places).map(Arc::new);
        }
    }

    /// It runs.
    pub(crate) fn forget_word(&self) {
        if let Some(run) = &mut self.lock().run {
            run.word = None;
        }
    }

    /// Changes the record of the latest run and writes it down.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Record)) -> io::Result<()> {
        let mut inner = self.lock();
        let Some(run) = inner.run.as_mut() else { return Ok(()) };
        change(&mut run.record);
        run.record.save(&self.folder)
    }

    /// Looks. `now` is when the look begins.
    pub(crate) fn look(&self, now: Timestamp) -> Result<Seen, Error> {
        let mut inner = self.lock();
        self.settle(&mut inner, now);
        let mut seen = Seen {
            power: Power::Stopped,
            began_at: now,
            boot: None,
            boot_started_at: None,
            dated_at: None,
            exit_code: None,
        };
        if inner.is_gone {
            seen.power = Power::Gone;
            return Ok(seen);
        }
        let Some(run) = &inner.run else { return Ok(seen) };
        let record = &run.record;
        seen.boot = Some(record.identity.boot_id());
        seen.boot_started_at = Some(record.started_at);
        if let Some(exit) = record.exit {
            seen.exit_code = exit.code;
            seen.dated_at = exit.at;
        } else if record.cage.is_frozen(&record.identity).map_err(cannot("look at it"))? {
            seen.power = Power::Paused;
            seen.dated_at = record.frozen_at;
        } else {
            seen.power = Power::Running;
            // If it is marked as frozen and is not, somebody else thawed it, and we do not know when.
            seen.dated_at =
                if record.frozen_at.is_some() { None } else { record.thawed_at.or(Some(record.started_at)) };
        }
        Ok(seen)
    }

    /// Whether its process is still there.
    pub(crate) fn is_alive(&self, now: Timestamp) -> bool {
        let mut inner = self.lock();
        self.settle(&mut inner, now);
        inner.run.as_ref().is_some_and(|run| run.record.exit.is_none())
    }

    /// Notes the end of the run if it has ended, and says so unless somebody else will or has.
    pub(crate) fn tell_end(&self, now: Timestamp) -> Option<Hint> {
        let mut inner = self.lock();
        self.settle(&mut inner, now);
        if inner.is_ending {
            return None;
        }
        let run = inner.run.as_mut()?;
        let exit = run.record.exit?;
        if std::mem::replace(&mut run.is_told, true) {
            return None;
        }
        let boot = run.record.identity.boot_id();
        Some(Hint::Exited { worker: self.worker.clone(), boot, code: exit.code })
    }

    fn settle(&self, inner: &mut Inner, now: Timestamp) {
        let Some(run) = inner.run.as_mut().filter(|run| run.record.exit.is_none()) else { return };
        let life = match &run.pidfd {
            // An error here is one of ours (no more memory, say), and says nothing about the process.
            Some(pidfd) => identity::reap(pidfd).unwrap_or(Life::Alive),
            None => Life::Ended(None),
        };
        if let Life::Ended(code) = life {
            run.record.exit = Some(Exit { code, at: Some(now) });
            run.word = None;
            // Its ice ends with it: what it leaves behind would never be thawed.
            if run.record.frozen_at.take().is_some() {
                let _ = run.record.cage.thaw(&run.record.identity);
            }
            // If the disk is full, a later Drowse will find the process gone and not know the code.
            let _ = run.record.save(&self.folder);
        }
    }
}

/// For errors of the machine while we look: they say nothing about the worker.
pub(crate) fn cannot(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Unreachable { message: format!("cannot {what}: {error}") }
}

/// For errors of the machine while we act.
pub(crate) fn refused(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::refused(format!("cannot {what}: {error}"))
}
