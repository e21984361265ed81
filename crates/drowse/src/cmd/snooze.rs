//! `drowse snooze WORKER`: keep awake.

use std::process::ExitCode;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::units::parse_duration;
use drowse_wire::v1::SnoozeRequest;

use crate::connect::{Connect, after_help};
use crate::output;

/// Keep a worker awake for a while, whatever its idle timeout says.
///
/// A paused worker is woken; a stopped one is refused (drowse resume starts it).
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse snooze web --for 2h -m \"demo at noon\"
  drowse snooze web --until 2026-03-01T18:00:00Z
  drowse snooze web --end                         it may sleep again"))]
pub(crate) struct Args {
    /// The worker.
    worker: String,
    /// For how long, such as 90m or 2h; else as long as the policy's snooze.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration, conflicts_with = "until")]
    for_: Option<Duration>,
    /// Until when, such as 2026-03-01T18:00:00Z.
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
    /// End your own keep-awake.
    #[arg(long, conflicts_with_all = ["for_", "until", "message"])]
    end: bool,
    /// Why, for the journal and for whoever wonders later.
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Print JSON to stdout: the hold.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let client = args.connect.client()?;
    if args.end {
        client.end_snooze(&args.worker)?;
        output::talk(&format!("{} may sleep again\n", args.worker));
        return Ok(ExitCode::SUCCESS);
    }
    let message = args.message.clone().unwrap_or_default();
    let hold = client.snooze(&args.worker, &SnoozeRequest { for_: args.for_, until: args.until, message })?;
    if args.json {
        output::json(&hold)?;
    } else {
        let until = hold.until.map_or("it is ended".to_owned(), |until| until.to_string());
        output::data(&format!("{} is kept awake until {until}\n", args.worker))?;
    }
    Ok(ExitCode::SUCCESS)
}
