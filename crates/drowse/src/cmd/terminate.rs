//! `drowse terminate WORKER…`.

use std::process::ExitCode;

use drowse_wire::client::Action;

use super::act::{self, Common};
use crate::connect::after_help;

/// Delete workers for good, with everything in them.
///
/// Refused while somebody needs the worker, with a list of who does.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse terminate old-lab --yes
  drowse terminate old-lab --yes --force          even though somebody is connected"))]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Required: what is deleted cannot be brought back.
    #[arg(long, required = true)]
    yes: bool,
    /// Overrule holds.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    act::run(&args.common, Action::Terminate, args.force)
}
