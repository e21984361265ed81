//! `drowse __reference WHAT`: the program describes itself, for the generated files of the repository.

use std::process::ExitCode;

use drowse_server::{config, http};

use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    what: What,
}

/// What can be described.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum What {
    /// The page of all configuration keys.
    Config,
    /// The example configuration file.
    Example,
    /// The `OpenAPI` document.
    Openapi,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let text = match args.what {
        What::Config => config::reference(),
        What::Example => config::example(),
        What::Openapi => format!("{}\n", serde_json::to_string_pretty(http::document())?),
    };
    output::data(&text)?;
    Ok(ExitCode::SUCCESS)
}
