//! The data folder: ours alone, for one Drowse at a time.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::fs::{FlockOperation, flock};

use crate::output;

/// A data folder that no other Drowse uses. The kernel lets go of the lock when this process ends, however it
/// does.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    _lock: File,
}

const LOCK: &str = "drowse.lock";

/// How often it is looked whether the other is gone. There is no other way to be told of it that has a deadline.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Somebody else has it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct InUse(String);

impl Folder {
    /// The same, as soon as the other who uses it is gone.
    #[expect(
        clippy::disallowed_methods,
        reason = "a lock that is waited for with a deadline can only be tried"
    )]
    pub(super) fn open_when_free(path: &Path, within: Duration) -> anyhow::Result<Self> {
        let began = Instant::now();
        loop {
            match Self::open(path) {
                Err(error) if error.is::<InUse>() && began.elapsed() < within => {
                    std::thread::sleep(LOOK_EVERY);
                }
                opened => return opened,
            }
        }
    }

    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let unusable = || format!("cannot use the data folder {}", path.display());
        // 0700: the database, the output of workers and a token lie in it.
        DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(unusable)?;
        let mode = path.metadata().with_context(unusable)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            // Somebody made it so; they may have a reason.
            output::talk(&format!(
                "drowse: others may look into the data folder {} (mode {mode:o}): chmod 700 keeps them out\n",
                path.display()
            ));
        }
        let mut lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(path.join(LOCK))
            .with_context(unusable)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let _ = lock.read_to_string(&mut pid);
                let pid = pid.trim();
                let who = if pid.is_empty() { String::new() } else { format!(" (pid {pid})") };
                return Err(InUse(format!(
                    "the data folder {} is in use by another Drowse{who}",
                    path.display()
                ))
                .into());
            }
            Err(error) => return Err(error).with_context(unusable),
        }
        // Only now: before the lock it is somebody else's number.
        let number = |lock: &mut File| -> io::Result<()> {
            lock.set_len(0)?;
            lock.rewind()?;
            lock.write_all(format!("{}\n", std::process::id()).as_bytes())
        };
        number(&mut lock).with_context(unusable)?;
        // Paths in records and in the names of cgroups outlive this process and its working folder.
        let path = path.canonicalize().with_context(unusable)?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file that only its owner can read, whole or not at all.
    pub(super) fn write(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let (file, new) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            let mut out = options.create(true).write(true).truncate(true).mode(0o600).open(&new)?;
            out.write_all(text.as_bytes())?;
            fs::rename(&new, &file)
        };
        write().with_context(|| format!("cannot write {}", file.display()))
    }

    pub(super) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path.join(name)).ok()
    }

    pub(super) fn remove(&self, name: &str) {
        // What is not there need not be removed.
        let _ = fs::remove_file(self.path.join(name));
    }
}

/// Chance, from the system: this is the generator that is injected everywhere else.
pub(super) fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("cannot read /dev/urandom")?;
    Ok(bytes)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_for_its_owner_and_for_one_drowse() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let folder = Folder::open(&path).unwrap();
        folder.write("secret", "x").unwrap();
        for (path, mode) in [(path.clone(), 0o700), (path.join("secret"), 0o600), (path.join(LOCK), 0o600)] {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, mode, "{}", path.display());
        }
        let message = Folder::open(&path).unwrap_err().to_string();
        let pid = format!("is in use by another Drowse (pid {})", std::process::id());
        assert!(message.ends_with(&pid), "{message}");
        drop(folder);
        Folder::open(&path).unwrap();
    }
}
