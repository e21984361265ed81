//! The commands, one file each. To add one: a file, a variant with its arguments, an arm in [`run`].

mod check_config;
mod demo_worker;
mod reference;
mod replay;
mod up;

use std::process::ExitCode;

use clap::Subcommand;

/// The hidden command that becomes a worker's own.
pub(crate) const EXEC: &str = "__exec";

/// What `drowse` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Up(up::Args),
    CheckConfig(check_config::Args),
    Replay(replay::Args),
    #[command(name = "__reference", hide = true)]
    Reference(reference::Args),
    #[command(name = "__demo-worker", hide = true)]
    DemoWorker(demo_worker::Args),
}

/// Runs a command. An error is something that kept it from doing its work; a "no" that is its work, such as
/// an invalid file, is an exit code.
pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Up(args) => up::run(args),
        Command::CheckConfig(args) => check_config::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Reference(args) => reference::run(args),
        Command::DemoWorker(args) => demo_worker::run(args),
    }
}
