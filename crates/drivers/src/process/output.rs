//! The output of a worker: a file with a limit.
//!
//! The worker writes straight into the file, so that its output needs nobody: no reader can fall behind, and a
//! restart of Drowse breaks no pipe. The price is that Drowse cannot stop a write, it can only tidy up: once a
//! second ([`super::watch`]) a file over its limit is copied to `.1` and emptied. So on the disk are at most
//! twice the limit and what is written in one second; and a line that is written between the copy and the
//! emptying is lost.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Opens it as a worker does. Appending is what makes emptying possible: every write finds the end anew.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).mode(0o600).open(path)
}

/// Where the older output is.
pub(crate) fn older(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Moves a file over its limit aside: the newest `limit` bytes of it.
pub(crate) fn trim(path: &Path, limit: u64) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.len() > limit => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut file = File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let kept = older(path);
    let mut copy = File::options().create(true).write(true).truncate(true).mode(0o600).open(kept)?;
    io::copy(&mut (&file).take(limit), &mut copy)?;
    file.set_len(0)
}

/// The end of a file as text, for a person.
pub(crate) fn tail(path: &Path, most: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_newest_is_kept_and_the_writer_goes_on_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        let mut writer = open(&path).unwrap();
        writer.write_all(b"0123456789").unwrap();
        trim(&path, 10).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "0123456789", "equal to the limit is within it");
        writer.write_all(b"ab").unwrap();
        trim(&path, 10).unwrap();
        assert_eq!(fs::read_to_string(older(&path)).unwrap(), "23456789ab");
        writer.write_all(b"next").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "next");
        assert_eq!(tail(&path, 3).unwrap(), "ext");
    }

    #[test]
    fn no_file_is_no_trouble() {
        trim(Path::new("/nonexistent/output.log"), 1).unwrap();
    }
}
