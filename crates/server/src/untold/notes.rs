//! Whom the door let go on ahead of the books, on disk, for the case that this program is killed before they know.
//!
//! A line each, `GENERATION WORKER`, appended with one write: that outlives `kill -9`, and costs microseconds where a
//! transaction costs hundreds. A line says nothing any more as soon as the worker's generation is another, which the
//! wake itself sees to; so lines are taken out when it suits us, not one by one.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use drowse_core::id::{Generation, WorkerId};

/// Beyond this it is emptied at the next opportunity.
const LONG: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct Notes {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Notes {
    /// Opens the file, and says what a former life left in it.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Vec<(WorkerId, Generation)>)> {
        let mut file = File::options().read(true).append(true).create(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        // Half a line is of somebody who had not been let go on yet.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let left = whole.lines().filter_map(read).collect();
        let notes = Self { path: path.to_owned(), file, length: bytes.len() as u64 };
        Ok((notes, left))
    }

    pub(crate) fn add(&mut self, worker: &WorkerId, generation: Generation) -> io::Result<()> {
        let line = format!("{generation} {worker}\n");
        self.file.write_all(line.as_bytes())?;
        self.length += line.len() as u64;
        Ok(())
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
            Ok(()) => self.length = 0,
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
        assert_eq!(left, []);
        notes.add(&id("web"), Generation(7)).unwrap();
        notes.add(&id("db"), Generation(1)).unwrap();
        let (_, left) = Notes::open(&path).unwrap();
        assert_eq!(left, [(id("web"), Generation(7)), (id("db"), Generation(1))]);
    }

    #[test]
    fn half_a_line_and_rubbish_are_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        std::fs::write(&path, b"7 web\nx y\n\xff\xfe 3\n9\n8 d").unwrap();
        let (_, left) = Notes::open(&path).unwrap();
        assert_eq!(left, [(id("web"), Generation(7))]);
    }

    #[test]
    fn it_is_emptied_when_it_has_grown_long_and_nobody_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        let (mut notes, _) = Notes::open(&path).unwrap();
        notes.add(&id("web"), Generation(7)).unwrap();
        notes.rest();
        assert!(std::fs::metadata(&path).unwrap().len() > 0, "not for a line");
        while notes.length <= LONG {
            notes.add(&id("web"), Generation(7)).unwrap();
        }
        notes.rest();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        notes.add(&id("web"), Generation(8)).unwrap();
        let (_, left) = Notes::open(&path).unwrap();
        assert_eq!(left, [(id("web"), Generation(8))]);
    }
}
