//! How many files a process may open: Drowse itself as many as the machine lets it, its children as many as Drowse
//! was started with.
//!
//! Every connection through the front door is two files, and the usual soft limit is low. It is low for a reason:
//! programs that use `select` break above it, so nobody is given more than they would have had without Drowse.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
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

/// Gives a child what it would have had. For one that waits: before its command runs.
pub(super) fn give_back(child: i32) -> io::Result<()> {
    let Some(before) = BEFORE.get() else { return Ok(()) };
    match prlimit(Pid::from_raw(child), Resource::Nofile, *before) {
        // It has ended already, which is not for us to say.
        Ok(_) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Selects this among what the helper can do.
pub(super) const FLAG: &str = "--files";

/// What it says when it cannot.
const CANNOT: &str = "drowse: cannot run it: ";

/// A command with as many files as it would have had: it begins as the helper, which gives the rest back.
pub(super) fn command(helper: &[OsString], program: &str) -> Command {
    let soft = BEFORE.get().and_then(|before| before.current);
    let ([own, leading @ ..], Some(soft)) = (helper, soft) else { return Command::new(program) };
    let mut command = Command::new(own);
    command.args(leading).args([FLAG, &soft.to_string(), program]);
    command
}

/// Becomes such a command. Returns only if that failed.
pub(super) fn become_command(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let soft = args.next().and_then(|soft| soft.to_str()?.parse().ok());
    let (Some(soft), Some(program)) = (soft, args.next()) else { return ExitCode::from(127) };
    let limit = Rlimit { current: Some(soft), ..getrlimit(Resource::Nofile) };
    let error = match setrlimit(Resource::Nofile, limit) {
        Ok(()) => Command::new(program).args(args).exec(),
        Err(error) => error.into(),
    };
    let _ = writeln!(io::stderr(), "{CANNOT}{error}");
    ExitCode::from(127)
}

/// Why it could not become the command, by what it left: its exit code and its last words.
pub(super) fn why_not(code: i32, words: &str) -> Option<&str> {
    words.trim_end().strip_prefix(CANNOT).filter(|_| code == 127)
}
