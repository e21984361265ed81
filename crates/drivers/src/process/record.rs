//! What must outlive Drowse: one small file for each worker, beside its output.
//!
//! It is written *before* a command is let loose (see [`super::spawn`]), so there is never a run without its
//! record. Replaced as a whole by a rename, so it is never half written.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use drowse_core::Timestamp;
use drowse_core::grace::StopPlan;
use drowse_core::id::{IntentId, WorkerId};
use serde::{Deserialize, Serialize};

use super::cage::Cage;
use super::identity::Identity;

/// Grows when an older Drowse could not make sense of what a newer one wrote.
const VERSION: u32 = 1;

/// One run of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    version: u32,
    pub(crate) worker: WorkerId,
    pub(crate) identity: Identity,
    pub(crate) started_at: Timestamp,
    pub(crate) cage: Cage,
    /// Where its output goes.
    pub(crate) log: PathBuf,
    /// We froze it, or were about to. Written before the freeze: what is found stopped without this was
    /// stopped by somebody else.
    pub(crate) frozen_at: Option<Timestamp>,
    /// We thawed it.
    pub(crate) thawed_at: Option<Timestamp>,
    /// A stop that has begun.
    pub(crate) stop: Option<Stopping>,
    /// It has ended.
    pub(crate) exit: Option<Exit>,
}

/// A stop that has begun, for the intent that began it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stopping {
    pub(crate) intent: IntentId,
    pub(crate) plan: StopPlan,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exit {
    /// `None`: it was not our child when it ended.
    pub(crate) code: Option<i32>,
    /// When we noticed; `None` if it ended while nobody watched.
    pub(crate) at: Option<Timestamp>,
}

impl Record {
    pub(crate) fn new(
        worker: WorkerId,
        identity: Identity,
        started_at: Timestamp,
        cage: Cage,
        log: PathBuf,
    ) -> Self {
        Self {
            version: VERSION,
            worker,
            identity,
            started_at,
            cage,
            log,
            frozen_at: None,
            thawed_at: None,
            stop: None,
            exit: None,
        }
    }

    /// Not synced to the disk: it must outlive Drowse, not the machine. After a reboot no run is left to
    /// be found.
    pub(crate) fn save(&self, folder: &Path) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(self)?;
        let new = folder.join("state.json.new");
        // Its command may carry a secret.
        let mut options = fs::File::options();
        let mut file = options.create(true).write(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&text)?;
        fs::rename(new, folder.join("state.json"))
    }

    /// `None`: there has been no run.
    pub(crate) fn load(folder: &Path) -> io::Result<Option<Self>> {
        let path = folder.join("state.json");
        let invalid = |why: &dyn std::fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
        };
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let record: Record = serde_json::from_slice(&text).map_err(|error| invalid(&error))?;
        if record.version > VERSION {
            return Err(invalid(&"written by a newer Drowse"));
        }
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_record_outlives_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Record::load(folder.path()).unwrap(), None);
        let at = Timestamp::from_secs(1_700_000_000);
        let identity = Identity { machine_boot: "b".into(), pid: 7, start_ticks: 9 };
        let cage = Cage::V1 { path: "/x/w.a".into(), cpuacct: None };
        let mut record = Record::new(WorkerId::new("a").unwrap(), identity, at, cage, "/y/output.log".into());
        let (plan, _) = StopPlan::begin(true, Duration::from_secs(5), at);
        record.stop = Some(Stopping { intent: IntentId(4), plan });
        record.exit = Some(Exit { code: Some(137), at: Some(at) });
        record.save(folder.path()).unwrap();
        assert_eq!(Record::load(folder.path()).unwrap(), Some(record));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("state.json"), "{").unwrap();
        let error = Record::load(folder.path()).unwrap_err();
        assert!(error.to_string().contains("state.json"), "{error}");
    }
}
