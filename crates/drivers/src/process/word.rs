//! The one word to the kernel that lets a frozen run go on, with its file open before anybody comes.
//!
//! Somebody waits while it is said, and to look a file up in a cgroup takes as long as to thaw what is in it.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::cage::Cage;

/// How many files are kept open for it: one for each frozen run, and doors need files too. Whoever is left out has its
/// file opened when somebody comes.
pub(crate) const KEPT_AT_MOST: usize = 256;

/// The word, and where to say it.
#[derive(Debug)]
pub(crate) struct Word {
    file: File,
    text: &'static str,
    /// Its place among those that are kept.
    _kept: Option<OwnedSemaphorePermit>,
}

impl Word {
    /// For a run that will be asked for. `None`: a word would not do, or there is no place to keep it.
    pub(crate) fn keep(cage: &Cage, places: &Arc<Semaphore>) -> Option<Self> {
        let place = Arc::clone(places).try_acquire_owned().ok()?;
        Some(Self { _kept: Some(place), ..Self::find(cage)? })
    }

    /// For a run that is asked for now.
    pub(crate) fn find(cage: &Cage) -> Option<Self> {
        let (path, text) = cage.thaws_by()?;
        let file = File::options().write(true).open(path).ok()?;
        Some(Self { file, text, _kept: None })
    }

    /// Says it. Where the cgroup is not there any more this fails, although another may have its name.
    pub(crate) fn say(&self) -> io::Result<()> {
        (&self.file).write_all(self.text.as_bytes())
    }
}
