//! `drowse enable WORKER…`.

use std::process::ExitCode;

use super::idle_detection::{self, Common};
use crate::connect::after_help;

/// Let Drowse put workers to sleep again when they are idle, unless another layer says no.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse enable web
  drowse enable web db"))]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    idle_detection::run(&args.common, true)
}
