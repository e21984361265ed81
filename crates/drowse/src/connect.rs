//! How the commands find Drowse, and how they end when they do not.

use std::path::PathBuf;
use std::process::ExitCode;

use drowse_wire::client::{Client, ClientError};
use drowse_wire::place::{Given, Place};

use crate::output;

/// Nobody answered, neither yes nor no.
pub(crate) const NO_ANSWER: u8 = 3;

/// Where Drowse is.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connect {
    /// Where Drowse answers; else `DROWSE_URL` with `DROWSE_TOKEN`, else the address in the data folder.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The data folder of a Drowse on this machine; else `DROWSE_DATA`, else ./drowse-data.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Connect {
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let given = Given { url: self.url.as_deref(), data: self.data.as_deref() };
        Ok(Client::new(Place::find(given, |name| std::env::var(name).ok())?))
    }
}

/// The exit code for what kept a command from its work.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<ClientError>() {
        Some(error) if error.is_without_answer() => NO_ANSWER.into(),
        _ => ExitCode::FAILURE,
    }
}

/// Does something for each id and goes on after a refusal. The code of the worst: no answer, then a refusal.
pub(crate) fn for_each(
    ids: &[String],
    mut act: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for id in ids {
        if let Err(error) = act(id) {
            // Without an answer there will be none for the others either.
            if ids.len() == 1 || exit_code(&error) == NO_ANSWER.into() {
                return Err(error);
            }
            output::talk(&format!("drowse: {id}: {error:#}\n"));
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// What stands below the options of a command that talks to Drowse: examples, then the exit codes.
pub(crate) fn after_help(examples: &str) -> String {
    format!(
        "Examples:\n{examples}\n\nExit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no answer from Drowse."
    )
}
