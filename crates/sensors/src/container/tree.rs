//! The processes of a cgroup and of all cgroups below it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::{ReadError, file, parse};

/// All of them, without doubles: v1 may name one twice while it moves.
pub(super) fn pids(top: &Path) -> Result<BTreeSet<u32>, ReadError> {
    let mut pids = BTreeSet::new();
    members(top, &mut pids).map_err(file::gone_if_missing)?;
    let mut open = vec![top.to_owned()];
    while let Some(folder) = open.pop() {
        for child in children(&folder)? {
            match members(&child, &mut pids) {
                // The second is a threaded cgroup: its processes are named by the one above.
                Ok(()) | Err(ReadError::Failed { errno: Errno::OPNOTSUPP, .. }) => open.push(child),
                // Removed while we looked, and empty before that.
                Err(ReadError::Gone | ReadError::Missing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(pids)
}

fn members(folder: &Path, pids: &mut BTreeSet<u32>) -> Result<(), ReadError> {
    let path = folder.join("cgroup.procs");
    let text = file::text(&path)?;
    for line in text.lines() {
        // Zero is a process that has no number here, because it lives in a pid namespace that is not below ours.
        let pid = parse::number(line).and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        pids.insert(pid.ok_or_else(|| ReadError::Odd { path: path.clone() })?);
    }
    Ok(())
}

fn children(folder: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let list = || {
        let mut children = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // From the listing itself: links are not followed.
            if entry.file_type()?.is_dir() {
                children.push(entry.path());
            }
        }
        Ok(children)
    };
    match list() {
        Ok(children) => Ok(children),
        Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::NODEV)) => {
            Ok(Vec::new())
        }
        Err(error) => Err::<_, io::Error>(error).map_err(|error| file::failed(folder, &error)),
    }
}
