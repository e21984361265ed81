//! Starts a command through the helper, so that its record is written before it runs.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use drowse_core::worker::Power;
use tokio::net::unix::pipe;

use super::cage::Cage;
use super::entry::{Entry, Run, cannot, refused};
use super::helper::Orders;
use super::identity::{Identity, open_pid};
use super::record::Record;
use super::wait::until;
use super::{Inside, Spec, files, freeze, output, stop};
use crate::driver::{Acted, Error};

/// As much of the helper's complaint as a journal can use.
const LONGEST_MESSAGE: usize = 2_048;

/// Makes it run.
pub(super) async fn start(inside: &Inside, entry: &Arc<Entry>) -> Result<Acted, Error> {
    let seen = entry.look(inside.now())?;
    match seen.power {
        Power::Running => return Ok(Acted::AlreadyTrue(seen)),
        Power::Gone => return Err(Error::Gone),
        // Whoever asks for a start wants it to run.
        Power::Paused => return freeze::thaw(inside, entry).await,
        Power::Stopped => {}
    }
    let cage = Cage::new(&inside.freezer, entry.worker.as_str());
    // What an earlier run left behind holds its ports and is counted as its work.
    stop::sweep(entry, &cage).await?;
    cage.create().map_err(refused("make its cgroup"))?;

    let spec = entry.lock().spec.clone();
    let log = entry.folder.join("output.log");
    output::trim(&log, inside.log_limit).map_err(refused("trim its output"))?;
    let orders = Orders {
        join: cage.cgroups().map(Into::into).collect(),
        log: log.clone(),
        dir: spec.dir.clone(),
        command: spec.command.iter().map(Into::into).collect(),
    };
    let mut child = command(inside, entry, &spec, &orders).spawn().map_err(|error| {
        Error::refused(format!("cannot start the helper {}: {error}", inside.helper[0].display()))
    })?;
    let pid = i32::try_from(child.id()).expect("the kernel's pids are positive and small");
    let pidfd = Arc::new(open_pid(pid).map_err(cannot("hold on to it"))?.ok_or(Error::Gone)?);
    // From here on the child is reaped whatever happens.
    let watched = Watched { inside, entry, pidfd: Arc::clone(&pidfd) };
    // Before "go": the command never sees another.
    files::give_back(pid).map_err(cannot("limit its files"))?;

    let identity = Identity::of_child(pid).map_err(cannot("look at it"))?;
    let record = Record::new(entry.worker.clone(), identity, inside.now(), cage.clone(), log);
    let saved = record.save(&entry.folder);
    if saved.is_ok() {
        entry.lock().run = Some(Run::new(record, Some(pidfd), false));
    }
    let started = match saved {
        Ok(()) => go(&mut child).await,
        Err(error) => Err(Error::refused(format!("cannot write its record: {error}"))),
    };
    if let Err(error) = started {
        // Without "go" the helper ends by itself, and with a complaint it has.
        drop(child);
        entry.lock().run = None;
        let _ = std::fs::remove_file(entry.folder.join("state.json"));
        drop(watched);
        until(|| cage.remove().map_err(refused("remove its cgroup"))).await?;
        return Err(error);
    }
    Ok(Acted::Done(entry.look(inside.now())?))
}

/// Hands the child over to the watching thread, also when the caller loses patience half-way.
struct Watched<'a> {
    inside: &'a Inside,
    entry: &'a Arc<Entry>,
    pidfd: Arc<OwnedFd>,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let is_run = self
            .entry
            .lock()
            .run
            .as_ref()
            .is_some_and(|run| run.pidfd.as_ref().is_some_and(|pidfd| Arc::ptr_eq(pidfd, &self.pidfd)));
        let pidfd = Arc::clone(&self.pidfd);
        if is_run {
            // Without a watch its end is found by the next look.
            let _ = self.inside.watch.watch(self.entry, pidfd);
        } else {
            self.inside.watch.reap(pidfd);
        }
    }
}

fn command(inside: &Inside, entry: &Entry, spec: &Spec, orders: &Orders) -> Command {
    let mut command = Command::new(&inside.helper[0]);
    command.args(&inside.helper[1..]).args(orders.to_args());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    environment(&mut command, entry, spec);
    command
}

/// The worker's environment: ours without our own settings and secrets, then its own.
pub(super) fn environment(command: &mut Command, entry: &Entry, spec: &Spec) {
    for (name, _) in std::env::vars_os() {
        let name_bytes = name.as_encoded_bytes();
        // What systemd says to us is not for them either.
        if name_bytes.starts_with(b"DROWSE_")
            || name_bytes.starts_with(b"LISTEN_")
            || [&b"NOTIFY_SOCKET"[..], b"WATCHDOG_USEC", b"WATCHDOG_PID"].contains(&name_bytes)
        {
            command.env_remove(name);
        }
    }
    command.env("DROWSE_WORKER", entry.worker.as_str()).envs(&spec.env);
}

/// Lets the command loose and waits until it runs or the helper says why not.
async fn go(child: &mut Child) -> Result<(), Error> {
    if let Some(mut stdin) = child.stdin.take() {
        // If the helper has given up already, its complaint says why.
        let _ = stdin.write_all(b"g");
    }
    let Some(stdout) = child.stdout.take() else { return Ok(()) };
    let report = pipe::Receiver::from_owned_fd(stdout.into()).map_err(cannot("listen to the helper"))?;
    let mut message = Vec::new();
    let mut buffer = [0; 512];
    loop {
        report.readable().await.map_err(cannot("listen to the helper"))?;
        match report.try_read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => message.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(cannot("listen to the helper")(error)),
        }
        message.truncate(LONGEST_MESSAGE);
    }
    if message.is_empty() {
        Ok(())
    } else {
        Err(Error::refused(String::from_utf8_lossy(&message).into_owned()))
    }
}
