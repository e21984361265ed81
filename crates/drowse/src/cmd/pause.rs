//! `drowse pause WORKER…`.

use std::process::ExitCode;

use drowse_wire::client::Action;

use super::act::{self, Common};
use crate::connect::after_help;

/// Put workers to sleep: frozen where the driver can, else stopped.
///
/// Refused while somebody needs the worker (a lease, a connection, a keep-alive file, another person's keep-awake),
/// with a list of who does. A connection does not wake what a person put to sleep; drowse resume does.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse pause web
  drowse pause web db -m \"maintenance until noon\"
  drowse pause web --force                        even though somebody is connected"))]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Overrule the holds of others and a veto of the `before_pause` hook.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    act::run(&args.common, Action::Pause, args.force)
}
