//! `drowse drain WORKER…`.

use std::process::ExitCode;

use drowse_wire::client::Action;

use super::act::{self, Common};
use crate::connect::{after_help, for_each};

/// Take workers out of use and delete them when nothing holds them any more.
///
/// What still holds a worker after its `drain_timeout` puts it back to work. --cancel does so at once.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse drain web -m \"the host is being replaced\"
  drowse drain web --cancel"))]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// Take a drain back.
    #[arg(long, conflicts_with = "force")]
    cancel: bool,
    /// Overrule holds.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if !args.cancel {
        return act::run(&args.common, Action::Drain, args.force);
    }
    let client = args.common.connect.client()?;
    for_each(&args.common.workers, |id| act::show(&client.cancel_drain(id)?, args.common.json))
}
