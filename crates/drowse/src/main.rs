//! The command `drowse`: reads arguments, calls what does the work, and shows what came of it.

mod cli;
mod cmd;
mod connect;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cmd::run(&cli.command) {
        Ok(code) => code,
        Err(error) => {
            output::talk(&format!("drowse: {error:#}\n"));
            connect::exit_code(&error)
        }
    }
}
