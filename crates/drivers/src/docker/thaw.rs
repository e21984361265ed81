//! `drowse thaw --all` for containers: without server, database or configuration.
//!
//! It trusts the records in the data folder, which name the engine too, and touches nothing that we did not freeze.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::engine::Engine;
use super::folder_of_workers;
use super::record::Record;
use crate::driver::Error;
use crate::process::Thawed;

/// How long an engine may take to let one container go on.
const WITHIN: Duration = Duration::from_secs(20);

/// Thaws every container below a data folder. Blocks, and must not be called on a runtime.
pub fn thaw_all(data_dir: &Path) -> io::Result<Vec<Thawed>> {
    let folders = match fs::read_dir(folder_of_workers(data_dir)) {
        Ok(folders) => folders,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut thawed = Vec::new();
    for folder in folders {
        let folder = folder?.path();
        let worker = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        thawed.push(Thawed { worker, outcome: thaw(&folder) });
    }
    Ok(thawed)
}

fn thaw(folder: &Path) -> io::Result<bool> {
    let mut record = Record::load(folder)?;
    let Some(frozen) = record.frozen.take() else { return Ok(false) };
    let engine = Engine::open(frozen.socket)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let unpaused =
        runtime.block_on(async { tokio::time::timeout(WITHIN, engine.unpause(&frozen.container)).await });
    let was_frozen = match unpaused {
        Ok(Ok(())) => true,
        // It is gone, or somebody was quicker.
        Ok(Err(Error::Gone | Error::Refused { .. })) => false,
        Ok(Err(error)) => return Err(io::Error::other(error)),
        Err(_) => return Err(io::Error::other(Error::TimedOut { within: WITHIN })),
    };
    record.save(folder)?;
    Ok(was_frozen)
}
