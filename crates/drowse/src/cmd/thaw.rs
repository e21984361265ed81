//! `drowse thaw --all`: for the day when nothing else works.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use drowse_drivers::process::Thawed;
use drowse_drivers::thaw_all;
use drowse_wire::place::DATA_FOLDER;
use serde_json::json;

use crate::output;

/// Let every process and container go on that Drowse froze, without server and database.
///
/// Reads the records in the data folder and the cgroups of Drowse, and touches nothing that Drowse did not freeze.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  drowse thaw --all
  drowse thaw --all --data /var/lib/drowse

Exit codes: 0 done, 1 something could not be thawed, 2 wrong usage.")]
pub(crate) struct Args {
    /// Required: all of them.
    #[arg(long, required = true)]
    all: bool,
    /// The data folder; else `DROWSE_DATA`, else ./drowse-data.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let from_environment = std::env::var_os("DROWSE_DATA").filter(|folder| !folder.is_empty());
    let folder = args
        .data
        .clone()
        .or_else(|| from_environment.map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from(DATA_FOLDER));
    let thawed = thaw_all(&folder).with_context(|| format!("cannot look into {}", folder.display()))?;
    if args.json {
        output::json(&thawed.iter().map(as_json).collect::<Vec<_>>())?;
    } else {
        show(&thawed, &folder)?;
    }
    let all_well = thawed.iter().all(|thawed| thawed.outcome.is_ok());
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn as_json(thawed: &Thawed) -> serde_json::Value {
    match &thawed.outcome {
        Ok(was_frozen) => json!({ "worker": thawed.worker, "was_frozen": was_frozen, "error": null }),
        Err(error) => json!({ "worker": thawed.worker, "was_frozen": null, "error": error.to_string() }),
    }
}

fn show(thawed: &[Thawed], folder: &Path) -> anyhow::Result<()> {
    if thawed.is_empty() {
        output::talk(&format!("nothing to thaw: {} knows nobody\n", folder.display()));
    }
    let rows: Vec<Vec<String>> = thawed
        .iter()
        .map(|thawed| {
            let outcome = match &thawed.outcome {
                Ok(true) => "thawed".to_owned(),
                Ok(false) => "was not frozen".to_owned(),
                Err(error) => format!("cannot be thawed: {error}"),
            };
            vec![thawed.worker.clone(), outcome]
        })
        .collect();
    Ok(output::data(&output::columns(0, &rows))?)
}
