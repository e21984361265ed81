//! Whom the door let go on ahead of the books, on disk, for the case that this program is killed before they know.
//!
//! A line each, `GENERATION WORKER`, appended with one write: that outlives `kill -9`, and costs microseconds where a
//! transaction costs hundreds. A line says nothing any more as soon as the worker's generation is another, which the
//! wake itself sees to; so lines are taken out when it suits us, not one by one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use drowse_core::id::{Generation, WorkerId};

/// Beyond this it is emptied at the next opportunity.
const LONG: u64 = 64 << 10;

/// More than we ever write is not ours.
const READ_AT_MOST: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Notes {
    path: PathBuf,
    file: File,
    length: u64,
    /// It ends with a whole line.
    is_usable: bool,
}

impl Notes {
    /// Opens the file, and says what a former life left in it: of each worker the last line, because generations only
    /// grow.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, BTreeMap<WorkerId, Generation>)> {
        // Before it is opened: whoever opens a pipe waits.
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other("it is no ordinary file"));
        }
        let file = File::options().read(true).append(true).create(true).open(path)?;
        let mut bytes = Vec::new();
        (&file).take(READ_AT_MOST).read_to_end(&mut bytes)?;
        // Half a line is of somebody who had not been let go on yet. It would spoil the next.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        let left = String::from_utf8_lossy(&bytes[..whole]).lines().filter_map(read).collect();
        Ok((Self { path: path.to_owned(), file, length: whole as u64, is_usable: true }, left))
    }

    /// False: it could not be written.
    pub(crate) fn add(&mut self, worker: &WorkerId, generation: Generation) -> bool {
        let line = format!("{generation} {worker}\n");
        if !self.is_usable {
            return false;
        }
        if self.file.write_all(line.as_bytes()).is_ok() {
            self.length += line.len() as u64;
            return true;
        }
        // Half a line would spoil the next; if it cannot be taken back, there is no next.
        self.is_usable = self.file.set_len(self.length).is_ok();
        false
    }

    /// Nobody is ahead of the books.
    pub(crate) fn rest(&mut self) {
        if self.length > LONG {
            self.clear();
        }
    }

    /// Everything in it has been dealt with.
    pub(crate) fn clear(&mut self) {
        match self.file.set_len(0) {
            Ok(()) => (self.length, self.is_usable) = (0, true),
            // It only grows: it is tried again.
            Err(error) => tracing::warn!(file = %self.path.display(), %error, "cannot be emptied"),
        }
    }
}

fn read(line: &str) -> Option<(WorkerId, Generation)> {
    let (generation, worker) = line.split_once(' ')?;
    Some((worker.parse().ok()?, Generation(generation.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> WorkerId {
        name.parse().unwrap()
    }

    #[test]
    fn what_was_noted_is_found_by_the_next_life() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        let (mut notes, left) = Notes::open(&path).unwrap();
        assert!(left.is_empty());
        assert!(notes.add(&id("web"), Generation(7)));
        assert!(notes.add(&id("db"), Generation(1)));
        assert!(notes.add(&id("web"), Generation(11)));
        let (_, left) = Notes::open(&path).unwrap();
        assert_eq!(left, BTreeMap::from([(id("web"), Generation(11)), (id("db"), Generation(1))]));
    }

    #[test]
    fn half_a_line_and_rubbish_are_nobody_and_spoil_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        std::fs::write(&path, b"7 web\nx y\n\xff\xfe 3\n9\n8 d").unwrap();
        let (mut notes, left) = Notes::open(&path).unwrap();
        assert_eq!(left, BTreeMap::from([(id("web"), Generation(7))]));
        assert!(notes.add(&id("db"), Generation(3)));
        let (_, left) = Notes::open(&path).unwrap();
        assert_eq!(left[&id("db")], Generation(3));
    }

    #[test]
    fn what_is_no_ordinary_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Notes::open(folder.path()).is_err(), "a folder");
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(Notes::open(&pipe).is_err(), "a pipe");
    }

    #[test]
    fn it_is_emptied_when_it_has_grown_long_and_nobody_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        let (mut notes, _) = Notes::open(&path).unwrap();
        assert!(notes.add(&id("web"), Generation(7)));
        notes.rest();
        assert!(std::fs::metadata(&path).unwrap().len() > 0, "not for a line");
        while notes.length <= LONG {
            assert!(notes.add(&id("web"), Generation(7)));
        }
        notes.rest();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        assert!(notes.add(&id("web"), Generation(8)));
        let (_, left) = Notes::open(&path).unwrap();
        assert_eq!(left, BTreeMap::from([(id("web"), Generation(8))]));
    }
}
