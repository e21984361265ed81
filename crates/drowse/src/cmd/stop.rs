//! `drowse stop WORKER…`.

use std::process::ExitCode;

use drowse_wire::client::Action;

use super::act::{self, Common};
use crate::connect::after_help;

/// Stop workers: SIGTERM, the grace of their policy, then SIGKILL.
///
/// Refused while somebody needs the worker, with a list of who does. A connection does not wake what a person
/// stopped; drowse resume does.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse stop web
  drowse stop web --force -m \"it hangs\""))]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Overrule the holds of others and a veto of the `before_pause` hook.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    act::run(&args.common, Action::Stop, args.force)
}
