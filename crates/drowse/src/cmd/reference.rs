//! `drowse __reference WHAT`: the program describes itself, for the generated files of the repository.

use std::process::ExitCode;

use clap::CommandFactory as _;
use drowse_server::{config, http};

use crate::cli::Cli;
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    what: What,
}

/// What can be described.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum What {
    /// The page of all commands.
    Cli,
    /// The page of all configuration keys.
    Config,
    /// The example configuration file.
    Example,
    /// The page of all metrics.
    Metrics,
    /// The `OpenAPI` document.
    Openapi,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let text = match args.what {
        What::Cli => commands(),
        What::Config => config::reference(),
        What::Example => config::example(),
        What::Metrics => http::metrics_reference(),
        What::Openapi => format!("{}\n", serde_json::to_string_pretty(http::document())?),
    };
    output::data(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What `--help` says, command by command.
fn commands() -> String {
    let mut page =
        "# Every command\n\nThis page is written by `cargo xtask gen`; it is what `--help` says.\n"
            .to_owned();
    let mut root = Cli::command();
    root.build();
    let mut add = |command: &mut clap::Command| {
        let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
        let help = command.render_long_help().to_string();
        // Terminals do not mind spaces at the end of a line; files do.
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        page.extend(["\n## `", &name, "`\n\n```text\n", help.join("\n").trim_end(), "\n```\n"]);
    };
    add(&mut root);
    for command in root.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        if command.get_name() != "help" {
            add(command);
        }
    }
    page
}
