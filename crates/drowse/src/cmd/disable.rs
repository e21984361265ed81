//! `drowse disable WORKER…`.

use std::process::ExitCode;

use super::idle_detection::{self, Common};
use crate::connect::after_help;

/// Only observe workers: verdicts are computed and journalled, nothing is touched.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse disable web
  drowse disable web db"))]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    idle_detection::run(&args.common, false)
}
