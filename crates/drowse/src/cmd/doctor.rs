//! `drowse doctor`: what works on this machine, and how to get the rest.
//!
//! By looking, not by guessing: a cgroup is made and removed, a socket is asked, a device is opened. It needs no
//! server and changes nothing.

mod docker;
mod freezer;
mod program;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use drowse_server::config;
use serde::Serialize;

use super::check_config::{error_line, variables};
use crate::output;

/// Tell what works on this machine and how to get the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  drowse doctor
  drowse doctor --config /etc/drowse/drowse.toml
  drowse doctor --json | jq '.checks[] | select(.state != \"ok\")'

The exit code is 0 whatever is missing: Drowse needs none of this to run.")]
pub(crate) struct Args {
    /// The configuration that says where the engine answers; else drowse.toml, if it is there.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
}

/// How well something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It works.
    Ok,
    /// It works with limits that are told.
    Limited,
    /// It is not there.
    Missing,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    /// Its name, which does not change.
    name: &'static str,
    /// How well it works.
    state: State,
    /// What Drowse uses it for.
    used_for: &'static str,
    /// What was found.
    found: String,
    /// How to get the rest; none if there is nothing to do.
    advice: Option<String>,
}

impl Check {
    fn new(name: &'static str, used_for: &'static str, state: State, found: impl Into<String>) -> Self {
        Self { name, state, used_for, found: found.into(), advice: None }
    }

    fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

#[derive(Debug, Serialize)]
struct Report {
    /// The version of this program.
    version: &'static str,
    /// Such as `linux`.
    os: &'static str,
    /// Such as `x86_64`.
    arch: &'static str,
    checks: Vec<Check>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let checks = vec![
        freezer::check(),
        docker::check(socket(args.config.as_deref())?.as_deref()),
        program::qemu(),
        kvm(Path::new("/dev/kvm")),
        gpu(&program::library_folders()),
        program::postgresql(),
    ];
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        os: std::env::consts::OS,
        arch: std::env::consts::ARCH,
        checks,
    };
    if args.json {
        output::json(&report)?;
    } else {
        output::data(&text(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The engine's socket, where the configuration names one.
fn socket(file: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let usual = Path::new("drowse.toml");
    let Some(file) = file.or_else(|| usual.exists().then_some(usual)) else { return Ok(None) };
    let parsed = config::load(file, &variables()).map_err(|error| anyhow!("{}", error_line(&error)))?;
    // What is wrong with the rest of it is for check-config.
    Ok(parsed.lenient().ok().and_then(|(config, _)| config.docker.socket))
}

fn text(report: &Report) -> String {
    let word = |state| match state {
        State::Ok => "ok",
        State::Limited => "limited",
        State::Missing => "missing",
    };
    let mut rows = Vec::new();
    for check in &report.checks {
        rows.push(vec![check.name.to_owned(), word(check.state).to_owned(), check.found.clone()]);
        if check.state != State::Ok {
            rows.push(vec![String::new(), String::new(), format!("for {}", check.used_for)]);
        }
        if let Some(advice) = &check.advice {
            rows.push(vec![String::new(), String::new(), format!("-> {advice}")]);
        }
    }
    format!("drowse {} on {} {}\n\n{}", report.version, report.os, report.arch, output::columns(0, &rows))
}

fn kvm(device: &Path) -> Check {
    let check = |state, found: String| Check::new("kvm", "microVMs at full speed", state, found);
    match File::options().read(true).write(true).open(device) {
        Ok(_) => check(State::Ok, format!("{} can be opened", device.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            check(State::Missing, format!("{} is not there", device.display())).advise(
                "switch on virtualisation in the firmware, or nested virtualisation of the VM; without it QEMU emulates and is slow",
            )
        }
        Err(error) => check(State::Missing, format!("{} cannot be opened: {error}", device.display()))
            .advise("add the user to the group kvm: usermod -aG kvm USER, then log in again"),
    }
}

/// NVML is a library that comes with NVIDIA's driver; without it no load can be read.
fn gpu(folders: &[PathBuf]) -> Check {
    const LIBRARY: &str = "libnvidia-ml.so.1";
    let check = |state, found: String| Check::new("gpu", "the signal gpu of containers", state, found);
    match folders.iter().map(|folder| folder.join(LIBRARY)).find(|path| path.exists()) {
        Some(path) => check(State::Ok, format!("NVML is {}", path.display())),
        None => check(State::Missing, format!("NVML ({LIBRARY}) is not there"))
            .advise("install NVIDIA's driver if this machine has such a GPU; workers without a readable GPU are judged by their other signals"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_and_a_library_are_found_where_they_are() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(kvm(&dir.path().join("kvm")).state, State::Missing);
        std::fs::write(dir.path().join("kvm"), "").unwrap();
        assert_eq!(kvm(&dir.path().join("kvm")).state, State::Ok);

        let folders = [dir.path().join("elsewhere"), dir.path().to_path_buf()];
        assert_eq!(gpu(&folders).state, State::Missing);
        std::fs::write(dir.path().join("libnvidia-ml.so.1"), "").unwrap();
        assert_eq!(gpu(&folders).state, State::Ok);
    }

    #[test]
    fn what_is_missing_always_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        for check in [kvm(&dir.path().join("kvm")), gpu(&[])] {
            assert!(check.advice.is_some(), "{check:?}");
        }
    }
}
