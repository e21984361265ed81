//! `drowse login`: a link that opens the page.

use std::process::ExitCode;

use crate::connect::{Connect, after_help};
use crate::output;

/// Print a link that signs a browser in: once, within the hour, with the role of your token.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse login
  xdg-open \"$(drowse login)\""))]
pub(crate) struct Args {
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let url = args.connect.client()?.login_link()?;
    if args.json {
        output::json(&serde_json::json!({ "url": url }))?;
    } else {
        output::data(&format!("{url}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
