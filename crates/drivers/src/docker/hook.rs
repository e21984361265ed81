//! Hooks: a command in the container, beside what runs there.
//!
//! It counts as the container's own processor time, because the engine puts it into the same cgroup; whoever judges
//! has to know that.

use bollard::Docker;
use bollard::errors::Error as Failure;
use bollard::exec::StartExecResults;
use bollard::models::{ExecConfig, ExecInspectResponse};
use futures_util::StreamExt as _;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use drowse_core::worker::Power;

use super::Inside;
use super::entry::Entry;
use crate::driver::{Error, Hook, HookEnd};

/// As much of its words as the journal keeps.
const LONGEST_OUTPUT: usize = 512;

/// How often it is asked whether it has ended: what it leaves behind may hold its output open.
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(super) async fn run(inside: &Arc<Inside>, entry: &Entry, hook: Hook<'_>) -> Result<HookEnd, Error> {
    if hook.command.is_empty() {
        return Err(Error::refused("the hook has no command"));
    }
    let look = entry.look(inside).await?;
    match look.seen.power {
        Power::Running => {}
        Power::Gone => return Err(Error::Gone),
        Power::Paused | Power::Stopped => return Err(Error::refused("it does not run")),
    }
    let config = ExecConfig {
        cmd: Some(hook.command.to_vec()),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        ..ExecConfig::default()
    };
    let container = look.id.clone();
    let made = inside.engine.ask(async move |docker: Docker| docker.create_exec(&container, config).await);
    let exec = made.await?.id;
    let running = Running { inside, exec: Some(exec.clone()), container: look.id };
    let (end, output) = inside.engine.ask(async move |docker: Docker| follow(&docker, &exec).await).await?;
    running.let_go();
    let output = tail(&output);
    let code = end.exit_code.and_then(|code| i32::try_from(code).ok());
    let code = code.ok_or_else(|| Error::refused("the engine does not tell the hook's exit code"))?;
    // The engine tells that a command cannot be run by a code that the command itself might have given.
    if matches!(code, 126 | 127) && output.starts_with("OCI runtime exec failed") {
        return Err(Error::refused(format!("cannot run the hook {}: {output}", hook.command[0])));
    }
    Ok(HookEnd { code, output })
}

/// Starts it and waits for its end.
async fn follow(docker: &Docker, exec: &str) -> Result<(ExecInspectResponse, Vec<u8>), Failure> {
    let mut output = Vec::new();
    let StartExecResults::Attached { output: mut said, input } = docker.start_exec(exec, None).await? else {
        return Ok((docker.inspect_exec(exec).await?, output));
    };
    let mut is_said = false;
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let mut ended = None;
    loop {
        let is_time = tokio::select! {
            words = said.next(), if !is_said => {
                match words {
                    Some(Ok(words)) => {
                        output.extend_from_slice(&words.into_bytes());
                        let excess = output.len().saturating_sub(4 * LONGEST_OUTPUT);
                        output.drain(..excess);
                    }
                    Some(Err(_)) | None => is_said = true,
                }
                is_said
            }
            _ = looks.tick() => true,
        };
        if !is_time {
            continue;
        }
        // Its last words may be on their way still when the engine knows of its end; a look later they have come.
        if let Some(end) = ended.take() {
            drop(input);
            return Ok((end, output));
        }
        // Whatever it says or holds open: a child that it left behind may keep its output for ever. Before it was
        // started it does not run either, but has no code.
        let found = docker.inspect_exec(exec).await?;
        if found.running == Some(false) && (is_said || found.exit_code.is_some()) {
            if is_said {
                return Ok((found, output));
            }
            ended = Some(found);
        }
    }
}

/// The end of what it said.
fn tail(output: &[u8]) -> String {
    let excess = output.len().saturating_sub(LONGEST_OUTPUT);
    String::from_utf8_lossy(&output[excess..]).trim_end().to_owned()
}

/// A hook that has not ended. Whoever stops waiting for it ends it.
struct Running<'a> {
    inside: &'a Arc<Inside>,
    /// `None` once it is over.
    exec: Option<String>,
    container: String,
}

impl Running<'_> {
    fn let_go(mut self) {
        self.exec = None;
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let Some(exec) = self.exec.take() else { return };
        let (line, container) = (self.inside.engine.line(), self.container.clone());
        self.inside.engine.spawn(async move {
            let Ok(docker) = line.client().await else { return };
            if let Ok(found) = docker.inspect_exec(&exec).await
                && found.running == Some(true)
                && let Some(pid) = found.pid.and_then(|pid| i32::try_from(pid).ok())
            {
                kill(pid, &container);
            }
        });
    }
}

/// The engine has no call for this. The number is one of this machine's, and is made sure to be one of the container's:
/// it may have ended since.
fn kill(pid: i32, container: &str) {
    let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    if !cgroups.contains(container) {
        return;
    }
    if let Some(pid) = Pid::from_raw(pid) {
        // The engine makes it the first of a session, and so of a group.
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = kill_process(pid, Signal::KILL);
    }
}
