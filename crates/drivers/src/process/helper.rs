//! What runs between Drowse and a worker's command: `drowse __exec`.
//!
//! A child must join its cgroup and session *before* its command runs, or its first children escape. Doing
//! that between `fork` and `exec` needs unsafe code in a process with threads; so the child is this small
//! program, which does it in the open and then becomes the command, with the same pid.
//!
//! ```text
//!   Drowse                                   helper
//!   spawn ─────────────────────────────────▶ setsid, join cgroups, open output
//!   write the record (pid, start time) ┐
//!   "go" on its stdin ─────────────────┴───▶ exec ──▶ the command
//!   its stdout: closed = it runs,        ◀── or what went wrong, as text
//! ```
//!
//! The wait for "go" closes a gap: if Drowse dies before the record is written, the helper reads the end
//! of its input and ends; there is never a command that nobody knows about. The new session matters too:
//! the kernel hangs up a stopped group whose parent dies, but not across sessions.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::io::fcntl_dupfd_cloexec;

use super::{files, output};

/// What the helper is to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    /// Cgroups to join.
    pub(crate) join: Vec<PathBuf>,
    /// Where output goes.
    pub(crate) log: PathBuf,
    /// Where to run.
    pub(crate) dir: Option<PathBuf>,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
}

impl Orders {
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        for path in &self.join {
            args.extend(["--join".into(), path.into()]);
        }
        args.extend(["--log".into(), self.log.clone().into()]);
        if let Some(dir) = &self.dir {
            args.extend(["--dir".into(), dir.into()]);
        }
        args.push("--".into());
        args.extend(self.command.iter().cloned());
        args
    }

    fn from_args(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut orders = Orders::default();
        loop {
            let flag = args.next()?;
            if flag == "--" {
                orders.command = args.collect();
                return (!orders.command.is_empty()).then_some(orders);
            }
            let path = PathBuf::from(args.next()?);
            match flag.to_str()? {
                "--join" => orders.join.push(path),
                "--log" => orders.log = path,
                "--dir" => orders.dir = Some(path),
                _ => return None,
            }
        }
    }
}

/// Becomes the command. Returns only if that failed; Drowse has been told why.
///
/// `args` are those after the leading ones that select the helper.
pub fn exec_helper(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    // As in a shell: 127 if it cannot be found or run.
    let failed = ExitCode::from(127);
    let mut args = args.into_iter().peekable();
    if args.next_if(|flag| flag == files::FLAG).is_some() {
        return files::become_command(args);
    }
    let Some(orders) = Orders::from_args(args) else {
        let _ = writeln!(io::stderr(), "this is started by Drowse itself and by nobody else");
        return failed;
    };
    // Closed by a successful exec, which is how Drowse learns of it.
    let Ok(report) = fcntl_dupfd_cloexec(io::stdout(), 3) else { return failed };
    let Err(message) = become_command(&orders);
    let _ = File::from(report).write_all(message.as_bytes());
    failed
}

fn become_command(orders: &Orders) -> Result<std::convert::Infallible, String> {
    rustix::process::setsid().map_err(|error| format!("cannot begin a session: {error}"))?;
    for cgroup in &orders.join {
        join(cgroup).map_err(|error| format!("cannot join {}: {error}", cgroup.display()))?;
    }
    let log = output::open(&orders.log)
        .map_err(|error| format!("cannot write to {}: {error}", orders.log.display()))?;
    let nothing = File::open("/dev/null").map_err(|error| format!("cannot open /dev/null: {error}"))?;

    let mut go = [0];
    if io::stdin().read_exact(&mut go).is_err() {
        // Drowse died before it could write down that we exist.
        return Err("nobody said go".into());
    }
    let redirected = rustix::stdio::dup2_stdin(&nothing)
        .and_then(|()| rustix::stdio::dup2_stdout(&log))
        .and_then(|()| rustix::stdio::dup2_stderr(&log));
    redirected.map_err(|error| format!("cannot redirect its output: {error}"))?;
    if let Some(dir) = &orders.dir {
        std::env::set_current_dir(dir)
            .map_err(|error| format!("cannot run in {}: {error}", dir.display()))?;
    }
    let [program, args @ ..] = orders.command.as_slice() else { return Err("no command".into()) };
    let error = Command::new(program).args(args).exec();
    Err(format!("cannot run {}: {}", Path::new(program).display(), plain(program, &error)))
}

/// "No such file" is true and useless when the file is there and what it names in its first line is not.
fn plain(program: &OsStr, error: &io::Error) -> String {
    let is_there = Path::new(program).components().count() > 1 && Path::new(program).exists();
    if error.kind() != io::ErrorKind::NotFound {
        error.to_string()
    } else if is_there {
        "its interpreter does not exist".into()
    } else {
        "no such program".into()
    }
}

fn join(cgroup: &Path) -> io::Result<()> {
    // 0 is whoever writes it.
    File::options().write(true).open(cgroup.join("cgroup.procs"))?.write_all(b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_the_command_line() {
        let orders = Orders {
            join: vec!["/a".into(), "/b c".into()],
            log: "/log".into(),
            dir: Some("/dir".into()),
            command: ["--log", "--", "x"].map(OsString::from).to_vec(),
        };
        assert_eq!(Orders::from_args(orders.to_args().into_iter()), Some(orders));
        for wrong in [&["--log", "/x"][..], &["--log", "/x", "--"], &["--what", "/x", "--", "y"], &[]] {
            assert_eq!(Orders::from_args(wrong.iter().map(OsString::from)), None, "{wrong:?}");
        }
    }
}
