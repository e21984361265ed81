//! `drowse brake`: whether automatic actions are held back for the whole fleet.

use std::process::ExitCode;

use clap::Subcommand;
use drowse_wire::v1::{Brake, ReleaseBrake};

use crate::connect::{Connect, after_help};
use crate::output;

/// Look at the fleet's brake, or release it.
///
/// It engages when many workers fall silent at once, or when Drowse's own loop or clock is in trouble: then the
/// observer may be wrong, and nobody is put to sleep automatically.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Status(Status),
    Release(Release),
}

/// Say whether the brake is engaged, why and until when.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse brake status"))]
struct Status {
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

/// Let automatic actions go ahead, because you know that the silence is real.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse brake release -m \"the east rack is switched off on purpose\""))]
struct Release {
    /// Why, for the journal.
    #[arg(short, long, value_name = "TEXT")]
    message: String,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (brake, json) = match &args.what {
        What::Status(args) => (args.connect.client()?.brake()?, args.json),
        What::Release(args) => {
            let release = ReleaseBrake { message: args.message.clone() };
            (args.connect.client()?.release_brake(&release)?, args.json)
        }
    };
    if json {
        output::json(&brake)?;
    } else {
        output::data(&text(&brake))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(brake: &Brake) -> String {
    let mut parts = vec![if brake.is_engaged { "engaged".to_owned() } else { "not engaged".to_owned() }];
    if let Some(cause) = &brake.cause {
        let cause = cause.replace('_', " ");
        parts.push(match (brake.gone_count, brake.total_count) {
            (Some(gone), Some(total)) => format!("{cause} ({gone} of {total} workers)"),
            _ => cause,
        });
    }
    parts.extend(brake.since.map(|since| format!("since {since}")));
    parts.extend(brake.releases_at.map(|at| format!("releases by itself at {at} or sooner")));
    let mut lines = vec![parts.join(", ")];
    if let Some(last) = &brake.last_release {
        let by = last.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let why = last.message.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!("last released {} ({}{by}){why}", last.at, last.how));
    }
    lines.join("\n") + "\n"
}
