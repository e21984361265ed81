//! What `pause`, `resume`, `stop`, `drain` and `terminate` have in common.

use std::process::ExitCode;

use drowse_wire::client::Action;
use drowse_wire::v1::{ActionAnswer, ActionRequest, Answer};

use crate::connect::{Connect, for_each};
use crate::output;

/// Which workers, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// The workers.
    #[arg(required = true, value_name = "WORKER")]
    pub(super) workers: Vec<String>,
    /// Why, for the journal and for whoever wonders later.
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(super) message: String,
    /// Print JSON to stdout, one object a line.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) connect: Connect,
}

pub(super) fn run(common: &Common, action: Action, force: bool) -> anyhow::Result<ExitCode> {
    let client = common.connect.client()?;
    let request = ActionRequest { message: common.message.clone(), force };
    for_each(&common.workers, |id| show(&client.act(id, action, &request)?, common.json))
}

/// Says what became of a request, never more than is true: `pausing` is not `paused`.
pub(super) fn show(answer: &ActionAnswer, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json_line(answer);
    }
    let already = match answer.answer {
        Answer::Accepted => "",
        Answer::AlreadyTrue => " already",
    };
    Ok(output::data(&format!("{} is{already} {}\n", answer.worker_id, answer.status))?)
}
