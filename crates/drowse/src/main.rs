//! The command `drowse`: reads arguments, calls what does the work, and shows what came of it.

mod cli;
mod cmd;
mod connect;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // Before the command line is parsed: what follows is a worker's own command, dashes and all.
    if args.next().is_some_and(|arg| arg == cmd::EXEC) {
        return drowse_drivers::process::exec_helper(args);
    }
    let cli = cli::Cli::parse();
    match cmd::run(&cli.command) {
        Ok(code) => code,
        Err(error) => {
            output::talk(&format!("drowse: {error:#}\n"));
            connect::exit_code(&error)
        }
    }
}
