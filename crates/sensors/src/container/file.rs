//! Reading the kernel's small files, over and over.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::ReadError;

/// Larger than any file that is kept open.
const ROOM: usize = 4096;

/// A cgroup file that is read at every check.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    /// Bound to the cgroup that was found: after its removal it answers `ENODEV`, even if another one has the same path.
    open: Option<File>,
}

impl Kept {
    /// A file that cannot be opened now is named here, once, and not at every check.
    pub(super) fn open(path: PathBuf, keep: bool) -> Result<Self, ReadError> {
        let file = File::open(&path).map_err(|error| failed(&path, &error))?;
        Ok(Self { path, open: keep.then_some(file) })
    }

    /// What `parse` makes of it.
    pub(super) fn read(&self, parse: impl FnOnce(&str) -> Option<u64>) -> Result<u64, ReadError> {
        let Some(file) = &self.open else { return read(&self.path, parse) };
        let mut room = [0; ROOM];
        // One call: a cgroup file is written out whole for each read at its beginning.
        let length = loop {
            match file.read_at(&mut room, 0) {
                Ok(length) => break length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(&self.path, &error)),
            }
        };
        let text = room.get(..length).filter(|text| text.len() < ROOM);
        text.and_then(|text| str::from_utf8(text).ok())
            .and_then(parse)
            .ok_or_else(|| ReadError::Odd { path: self.path.clone() })
    }
}

/// Opens, reads, closes. For files that were there when the container was found: one that is missing went with it.
pub(super) fn read(path: &Path, parse: impl FnOnce(&str) -> Option<u64>) -> Result<u64, ReadError> {
    let text = text(path).map_err(gone_if_missing)?;
    parse(&text).ok_or_else(|| ReadError::Odd { path: path.to_owned() })
}

/// For what was there before.
pub(super) fn gone_if_missing(error: ReadError) -> ReadError {
    if matches!(error, ReadError::Missing { .. }) { ReadError::Gone } else { error }
}

/// A whole file as text.
pub(super) fn text(path: &Path) -> Result<String, ReadError> {
    let mut text = Vec::new();
    let mut room = [0; ROOM];
    // `read_to_end` would ask for the size first, which these files do not have.
    let whole = File::open(path).and_then(|mut file| {
        loop {
            match file.read(&mut room) {
                Ok(0) => return Ok(()),
                Ok(length) => text.extend_from_slice(&room[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    });
    whole.map_err(|error| failed(path, &error))?;
    String::from_utf8(text).map_err(|_| ReadError::Odd { path: path.to_owned() })
}

/// Names what the system said.
pub(super) fn failed(path: &Path, error: &io::Error) -> ReadError {
    match Errno::from_io_error(error) {
        Some(Errno::NODEV | Errno::SRCH) => ReadError::Gone,
        Some(Errno::NOENT) => ReadError::Missing { path: path.to_owned() },
        Some(errno) => ReadError::Failed { path: path.to_owned(), errno },
        None => ReadError::Odd { path: path.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::parse;

    #[test]
    fn a_file_says_the_same_whether_it_is_kept_open_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pids.current");
        for keep in [true, false] {
            std::fs::write(&path, "7\n").unwrap();
            let file = Kept::open(path.clone(), keep).unwrap();
            assert_eq!(file.read(parse::number), Ok(7));
            std::fs::write(&path, "11\n").unwrap();
            assert_eq!(file.read(parse::number), Ok(11));
            std::fs::write(&path, "1".repeat(2 * ROOM)).unwrap();
            assert_eq!(file.read(parse::number), Err(ReadError::Odd { path: path.clone() }));
        }
    }

    #[test]
    fn one_that_was_never_there_is_missing_and_one_that_was_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pids.current");
        let missing = ReadError::Missing { path: path.clone() };
        assert_eq!(Kept::open(path.clone(), false).unwrap_err(), missing);
        std::fs::write(&path, "7\n").unwrap();
        let file = Kept::open(path.clone(), false).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.read(parse::number), Err(ReadError::Gone));
    }
}
