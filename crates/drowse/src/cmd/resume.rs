//! `drowse resume WORKER…`.

use std::process::ExitCode;

use drowse_wire::client::Action;

use super::act::{self, Common};
use crate::connect::after_help;

/// Bring workers back: thaw what is frozen, start what is stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse resume web
  drowse resume web db -m \"back from maintenance\""))]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    act::run(&args.common, Action::Resume, false)
}
