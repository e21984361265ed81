//! `drowse forget WORKER…`.

use std::process::ExitCode;

use crate::connect::{Connect, after_help, for_each};
use crate::output;

/// Take workers off the books, and leave what stands behind them alone.
///
/// What a file lists or a driver discovers comes back while it is there. Refused while the worker is frozen: nothing would
/// wake it. The journal keeps what it was.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse forget jovial_matsumoto"))]
pub(crate) struct Args {
    /// The workers.
    #[arg(required = true, value_name = "WORKER")]
    workers: Vec<String>,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let client = args.connect.client()?;
    for_each(&args.workers, |id| {
        client.delete_worker(id)?;
        Ok(output::data(&format!("{id} is forgotten\n"))?)
    })
}
