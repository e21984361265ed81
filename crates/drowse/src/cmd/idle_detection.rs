//! What `enable` and `disable` have in common: the worker's own switch.

use std::process::ExitCode;

use crate::connect::{Connect, for_each};
use crate::output;

/// Which workers.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// The workers.
    #[arg(required = true, value_name = "WORKER")]
    workers: Vec<String>,
    /// Print JSON to stdout, one object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(super) fn run(common: &Common, enabled: bool) -> anyhow::Result<ExitCode> {
    let client = common.connect.client()?;
    for_each(&common.workers, |id| {
        let now = client.set_idle_detection(id, enabled)?;
        if common.json {
            return output::json_line(&now);
        }
        // The switch alone does not decide: another layer may still say no.
        let text = match (now.is_idle_detection_enabled, now.auto_pause_enabled) {
            (true, true) => "sleeps when it is idle",
            (true, false) => "is enabled, and another layer of its policy still lets Drowse only observe",
            (false, _) => "is only observed",
        };
        Ok(output::data(&format!("{id} {text}\n"))?)
    })
}
