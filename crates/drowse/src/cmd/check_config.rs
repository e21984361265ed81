//! `drowse check-config FILE`: is the file right, and what does each worker get?

mod json;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use drowse_server::config::{self, LoadError, Parsed, Worker, nearest};

use super::up::terms::Terms;
use crate::output;

/// Check a configuration file and show what each worker gets.
///
/// Reads the file, the pages and tokens that it names, the members files in groups/ beside it and the environment, and
/// touches nothing else. All mistakes are shown at once, with line and column. The exit code is 0 if the file is right, 1 if it is not, and 2
/// for wrong usage.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  drowse check-config drowse.toml
  drowse check-config drowse.toml --worker web    every setting of a worker and the layer that set it
  drowse check-config drowse.toml --json | jq '.errors[]'")]
pub(crate) struct Args {
    /// The configuration file.
    file: PathBuf,
    /// Show every setting of this worker.
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    /// Print JSON to stdout, whether the file is right or not.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match config::load(&args.file, &variables()) {
        Ok(parsed) if parsed.problems.is_empty() => {
            let beside = args.file.parent().unwrap_or(Path::new(""));
            match Terms::read(&parsed.config, beside) {
                Ok(_) => show(args, &parsed),
                Err(error) => refuse(args, &format!("{}: {error:#}", args.file.display())),
            }
        }
        Ok(parsed) => show(args, &parsed),
        Err(error) => refuse(args, &error_line(&error)),
    }
}

fn refuse(args: &Args, why: &str) -> anyhow::Result<ExitCode> {
    if args.json {
        output::data(&json::unreadable(&args.file, why))?;
    } else {
        output::talk(&format!("{why}\n"));
    }
    Ok(ExitCode::FAILURE)
}

/// One line, with the reason that the system gives.
pub(super) fn error_line(error: &LoadError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn show(args: &Args, parsed: &Parsed) -> anyhow::Result<ExitCode> {
    let is_right = parsed.problems.is_empty();
    let worker = match &args.worker {
        Some(id) if is_right => Some(find(parsed, id)?),
        _ => None,
    };
    if args.json {
        output::data(&json::report(parsed, worker))?;
    } else if is_right {
        let text = match worker {
            Some(worker) => summary::worker(&parsed.config, worker),
            None => summary::whole(&parsed.config, &args.file),
        };
        output::data(&text)?;
    } else {
        for problem in &parsed.problems {
            output::talk(&problem.to_string());
        }
        let count = parsed.problems.len();
        let noun = if count == 1 { "problem" } else { "problems" };
        output::talk(&format!("{}: {count} {noun}\n", args.file.display()));
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn find<'a>(parsed: &'a Parsed, id: &str) -> anyhow::Result<&'a Worker> {
    let workers = &parsed.config.workers;
    if let Some(worker) = workers.iter().find(|worker| worker.id.as_str() == id) {
        return Ok(worker);
    }
    match nearest(id, workers.iter().map(|worker| worker.id.as_str())) {
        Some(other) => bail!("the file lists no worker {id:?}; did you mean {other:?}?"),
        None => bail!("the file lists no worker {id:?}"),
    }
}

/// The environment. What is not UTF-8 cannot be one of ours.
pub(super) fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, text)| Some((name.into_string().ok()?, text.to_string_lossy().into_owned())))
        .collect()
}
