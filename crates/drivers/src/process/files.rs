//! How many files a process may open: Drowse itself as many as the machine lets it, its children as many as Drowse
//! was started with.
//!
//! Every connection through the front door is two files, and the usual soft limit is low. It is low for a reason:
//! programs that use `select` break above it, so nobody is given more than they would have had without Drowse.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// What we were started with, if we have taken more. The limit is the process's, and so is this.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Takes as many as there are to be had.
pub fn raise_file_limit() -> io::Result<()> {
    let before = getrlimit(Resource::Nofile);
    if before.current == before.maximum {
        return Ok(());
    }
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, maximum: before.maximum })?;
    // Only the first was there before us.
    let _ = BEFORE.set(before);
    Ok(())
}

/// Gives a child what it would have had.
pub(super) fn give_back(child: i32) -> io::Result<()> {
    let Some(before) = BEFORE.get() else { return Ok(()) };
    match prlimit(Pid::from_raw(child), Resource::Nofile, *before) {
        // It has ended already, which is not for us to say.
        Ok(_) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
