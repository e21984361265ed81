//! `drowse detect WORKER`: one check now.

use std::process::ExitCode;

use drowse_wire::v1::IdleDetectionResult;

use crate::connect::{Connect, after_help};
use crate::output;

/// Check a worker now instead of at its next check, and act on what is found.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse detect web
  drowse detect web --json | jq .is_idle"))]
pub(crate) struct Args {
    /// The worker.
    worker: String,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let result = args.connect.client()?.detect_idle(&args.worker)?;
    if args.json {
        output::json(&result)?;
    } else {
        output::data(&format!("{}: {}\n", result.worker_id, words(&result)))?;
    }
    // A check that could not be made is no answer to the question whether the worker is idle.
    Ok(if result.error.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn words(result: &IdleDetectionResult) -> String {
    let idle = format!("idle for {:.1} minutes", result.idle_minutes);
    match result {
        IdleDetectionResult { error: Some(error), .. } => format!("could not be checked: {error}"),
        IdleDetectionResult { auto_pause_triggered: true, .. } => format!("{idle}; it is being put to sleep"),
        IdleDetectionResult { in_snooze_period: true, .. } => format!("{idle}; a snooze protects it"),
        IdleDetectionResult { is_idle: true, eligible_for_pause: false, .. } => {
            format!("{idle}; something keeps it awake (drowse explain {} says what)", result.worker_id)
        }
        IdleDetectionResult { is_idle: true, .. } => format!("{idle}; it is eligible for sleep"),
        _ => format!("{idle}; not idle yet"),
    }
}
