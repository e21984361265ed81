//! `drowse completions SHELL`.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::output;

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  drowse completions bash > ~/.local/share/bash-completion/completions/drowse
  drowse completions zsh > ~/.zfunc/_drowse
  drowse completions fish > ~/.config/fish/completions/drowse.fish")]
pub(crate) struct Args {
    /// Which shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "drowse", &mut text);
    output::data(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::SUCCESS)
}
