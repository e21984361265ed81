//! `drowse man DIR`: manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::output;

/// Write manual pages into a folder, one for each command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  drowse man ~/.local/share/man/man1 && man drowse-explain")]
pub(crate) struct Args {
    /// The folder; it is made if it is not there.
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(&args.folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.folder))
        .with_context(|| format!("cannot write into {}", args.folder.display()))?;
    output::talk(&format!("manual pages are in {}\n", args.folder.display()));
    Ok(ExitCode::SUCCESS)
}
