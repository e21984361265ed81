//! `drowse up --demo`: three small workers on this machine, with timeouts short enough to watch.
//!
//! Everything of it lies in a folder of its own, which is cleared when the demo ends. After a crash the folder
//! is still there, and the next demo goes on where the last one was.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::CommandFactory as _;
use drowse_core::status::StatusKind;
use drowse_server::Fleet;
use drowse_server::fleet::Order;

use super::folder::Folder;
use super::settings::Settings;
use crate::cli::Cli;

const FILE: &str = "drowse.toml";

/// Name, idle timeout, whether it works all the time.
const WORKERS: [(&str, &str, bool); 3] =
    [("web-1", "10s", false), ("web-2", "15s", false), ("build", "10s", true)];

/// Where people look first; the next free ones if these are taken.
const FIRST_API: u16 = 7070;
const FIRST_DOOR: u16 = 8081;
const FIRST_TARGET: u16 = 9081;

/// How long the workers may take to end.
const END_FOR: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Writes the configuration of the demo, unless a demo that crashed has left one, whose workers still run.
pub(super) fn write_config(folder: &Folder, listen: Option<SocketAddr>) -> anyhow::Result<PathBuf> {
    let file = folder.path().join(FILE);
    if !file.exists() {
        folder.write(FILE, &config(listen)?)?;
    }
    Ok(file)
}

fn config(listen: Option<SocketAddr>) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let program = toml::Value::String(program.to_string_lossy().into_owned());
    let api = match listen {
        Some(listen) => listen,
        None => Ports(FIRST_API).next()?,
    };
    let mut text = format!("# Written by `drowse up --demo`.\n[server]\nlisten = \"{api}\"\n");
    let (mut doors, mut targets) = (Ports(FIRST_DOOR), Ports(FIRST_TARGET));
    for (name, idle_timeout, is_busy) in WORKERS {
        let (door, target) = (doors.next()?, targets.next()?);
        let busy = if is_busy { ", \"--busy\"" } else { "" };
        let _ = write!(
            text,
            "\n[[worker]]\nid = \"{name}\"\ndriver = \"process\"\n\
             command = [{program}, \"__demo-worker\", \"{name}\", \"{target}\"{busy}]\n\
             listen = \"{door}\"\ntarget = \"{target}\"\npolicy.idle_timeout = \"{idle_timeout}\"\n"
        );
    }
    Ok(text)
}

/// Free ports of this machine from a number on.
struct Ports(u16);

impl Ports {
    fn next(&mut self) -> anyhow::Result<SocketAddr> {
        while self.0 < u16::MAX {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.0));
            self.0 += 1;
            if TcpListener::bind(address).is_ok() {
                return Ok(address);
            }
        }
        bail!("no free port is left on {}", Ipv4Addr::LOCALHOST)
    }
}

/// What a newcomer may do now. Only commands that there are.
pub(super) fn what_to_try(settings: &Settings, folder: &Folder) -> String {
    let mut text = String::from("\n");
    for (door, (name, idle_timeout, is_busy)) in settings.doors().iter().zip(WORKERS) {
        let what = if is_busy {
            "works all the time and stays awake".to_owned()
        } else {
            format!("falls asleep after {idle_timeout} without use")
        };
        let _ = writeln!(text, "  {name:<6} http://{}  {what}", door.listen);
    }
    text.push_str("\nWait for a worker to fall asleep, then wake it from another terminal:\n");
    if let Some(door) = settings.doors().first() {
        let _ = writeln!(text, "  curl http://{}", door.listen);
    }
    let program = std::env::args().next().unwrap_or_else(|| "drowse".to_owned());
    let known = Cli::command();
    for (command, args) in [("ps", ""), ("explain", " build")] {
        if known.find_subcommand(command).is_some() {
            let _ = writeln!(text, "  DROWSE_DATA={} {program} {command}{args}", folder.path().display());
        }
    }
    text.push_str("Ctrl-C ends the demo and its workers.\n\n");
    text
}

/// Ends the workers: three processes that nobody asked for would be a poor souvenir.
pub(super) async fn end_workers(fleet: &Fleet, settings: &Settings) {
    let order = || Order { force: true, ..Order::new("demo") };
    for new in &settings.listed {
        // One that cannot be ended is left, as after a crash.
        let _ = fleet.terminate(&new.id, order()).await;
    }
    let all_gone = async {
        loop {
            let counts = fleet.count_by_status().await.unwrap_or_default();
            if counts.iter().all(|(status, count)| *status == StatusKind::Terminated || *count == 0) {
                return;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let _ = tokio::time::timeout(END_FOR, all_gone).await;
}

/// Clears the folder. It was made for the demo, and says so.
pub(super) fn clear(folder: Folder) {
    let is_demo = folder.read(FILE).is_some_and(|text| text.starts_with("# Written by `drowse up --demo`"));
    // A worker that could not be ended has its record there, and the next demo finds it by that.
    let has_workers = folder.path().join("process").read_dir().is_ok_and(|mut left| left.next().is_some());
    if is_demo && !has_workers {
        let _ = std::fs::remove_dir_all(folder.path());
    }
    drop(folder);
}
