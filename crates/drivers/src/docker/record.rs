//! What must outlive Drowse: one small file for each worker.
//!
//! Whose ice it is, so that it can be thawed without a database, and how far a stop has got, so that a Drowse that
//! was killed in the middle sends no second signal and grants no second grace. Replaced as a whole by a rename.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use drowse_core::Timestamp;
use drowse_core::grace::StopPlan;
use drowse_core::id::{BootId, IntentId};
use serde::{Deserialize, Serialize};

/// What is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// We froze it, or were about to. Written before the freeze.
    pub(super) frozen: Option<Frozen>,
    /// A stop that has begun.
    pub(super) stop: Option<Stopping>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Frozen {
    /// The engine that was asked.
    pub(super) socket: PathBuf,
    pub(super) container: String,
    pub(super) boot: BootId,
    pub(super) at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stopping {
    pub(super) boot: BootId,
    pub(super) intent: IntentId,
    pub(super) plan: StopPlan,
}

const FILE: &str = "record.json";

impl Record {
    /// What was kept; nothing, if there is no such file.
    pub(super) fn load(folder: &Path) -> io::Result<Self> {
        match fs::read(folder.join(FILE)) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    pub(super) fn save(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let new = folder.join("record.new");
        let mut file = fs::File::options().create(true).write(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(self).map_err(io::Error::other)?)?;
        fs::rename(new, folder.join(FILE))
    }
}
