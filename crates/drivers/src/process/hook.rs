//! Hooks: a command beside the worker, not in it.
//!
//! It runs outside the worker's cgroup and session, so that nothing it does is counted as the worker's work. Its
//! output goes to a file of its own, like the worker's: a pipe would be held open by whatever it leaves behind.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};

use super::entry::{Entry, cannot, refused};
use super::identity::{self, Life, open_pid};
use super::wait::until;
use super::{Inside, files, output, spawn};
use crate::driver::{Error, Hook, HookEnd};

/// As much of its words as the journal keeps.
const LONGEST_OUTPUT: u64 = 512;

pub(super) async fn run(inside: &Inside, entry: &Entry, hook: Hook<'_>) -> Result<HookEnd, Error> {
    let [program, args @ ..] = hook.command else { return Err(Error::refused("the hook has no command")) };
    let path = entry.folder.join(format!("{}.log", hook.name));
    let log = File::options().create(true).write(true).truncate(true).mode(0o600).open(&path);
    let log = log.map_err(refused("write the hook's output"))?;
    let too = log.try_clone().map_err(refused("write the hook's output"))?;

    let spec = entry.lock().spec.clone();
    let mut command = files::command(&inside.helper, program);
    command.args(args).process_group(0).stdin(Stdio::null()).stdout(log).stderr(too);
    spawn::environment(&mut command, entry, &spec);
    if let Some(dir) = &spec.dir {
        command.current_dir(dir);
    }
    let cannot_run =
        |error: &dyn std::fmt::Display| Error::refused(format!("cannot run the hook {program}: {error}"));
    let child = command.spawn().map_err(|error| cannot_run(&error))?;
    let pid = i32::try_from(child.id()).expect("the kernel's pids are positive and small");
    let pidfd = Arc::new(open_pid(pid).map_err(cannot("hold on to the hook"))?.ok_or(Error::Gone)?);
    let running = Running { inside, pid: Pid::from_raw(pid), pidfd };
    files::give_back(pid).map_err(cannot("limit the hook's files"))?;

    let mut ended = None;
    until(|| {
        if let Life::Ended(code) = identity::reap(&running.pidfd).map_err(cannot("wait for the hook"))? {
            ended = Some(code);
        }
        Ok(ended.is_some())
    })
    .await?;
    running.let_go();
    let code = ended.flatten().ok_or_else(|| Error::refused("somebody else took the hook's exit code"))?;
    let output = output::tail(&path, LONGEST_OUTPUT).unwrap_or_default();
    if let Some(error) = files::why_not(code, &output) {
        return Err(cannot_run(&error));
    }
    Ok(HookEnd { code, output })
}

/// A hook that has not ended. Whoever stops waiting for it ends it.
struct Running<'a> {
    inside: &'a Inside,
    /// `None` once it is over.
    pid: Option<Pid>,
    pidfd: Arc<OwnedFd>,
}

impl Running<'_> {
    /// Reaped: its number may be anybody's now.
    fn let_go(mut self) {
        self.pid = None;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let Some(pid) = self.pid else { return };
        // Not reaped yet, so the number of its group is still its own.
        let _ = kill_process_group(pid, Signal::KILL);
        self.inside.watch.reap(Arc::clone(&self.pidfd));
    }
}
