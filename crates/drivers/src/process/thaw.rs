//! `drowse thaw --all`: lets everything go on, without server, database or runtime.
//!
//! For the day when nothing else works. It trusts the records in the data folder and what it sees in our
//! cgroups, and touches nothing that we did not freeze.

use std::fs;
use std::io;
use std::path::Path;

use super::cage::{Cage, Ice, thaw_cgroup};
use super::cgroup::{Choice, Freezer, find};
use super::record::Record;
use super::{cgroups_name, folder_of_workers};

/// One worker that was looked at.
#[derive(Debug)]
pub struct Thawed {
    /// Its id, or the path of a cgroup without a record.
    pub worker: String,
    /// Whether there was something to thaw, or why it could not be thawed.
    pub outcome: io::Result<bool>,
}

/// Thaws every worker below a data folder.
pub fn thaw_all(data_dir: &Path) -> io::Result<Vec<Thawed>> {
    let mut thawed = Vec::new();
    match fs::read_dir(folder_of_workers(data_dir)) {
        Ok(folders) => {
            for folder in folders {
                let folder = folder?.path();
                let worker = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let outcome = thaw_worker(&folder);
                thawed.push(Thawed { worker, outcome });
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Cgroups whose record was lost. What has a record is thawed by now and is not told twice.
    let name = cgroups_name(data_dir);
    for choice in [Choice::V2, Choice::V1] {
        let base = match find(choice, &name).map(|found| found.freezer) {
            Ok(Freezer::V2 { base } | Freezer::V1 { base, .. }) => base,
            Ok(Freezer::Signals) | Err(_) => continue,
        };
        for cgroup in fs::read_dir(&base).into_iter().flatten().flatten() {
            let path = cgroup.path();
            if !path.is_dir() {
                continue;
            }
            match thaw_cgroup(&path) {
                Ok(false) => {}
                outcome => thawed.push(Thawed { worker: path.display().to_string(), outcome }),
            }
        }
    }
    Ok(thawed)
}

fn thaw_worker(folder: &Path) -> io::Result<bool> {
    let Some(mut record) = Record::load(folder)? else { return Ok(false) };
    let main = record.identity.clone();
    // Without a cgroup, only the record tells our ice from a debugger's.
    let is_ours = record.frozen_at.is_some() || record.cage != Cage::Signals;
    if !is_ours || record.cage.ice(&main)? == Ice::Thawed {
        return Ok(false);
    }
    record.cage.thaw(&main)?;
    record.frozen_at = None;
    record.save(folder)?;
    Ok(true)
}
