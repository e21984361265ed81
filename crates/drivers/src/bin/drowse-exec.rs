//! The helper of the process driver as a program of its own: for tests, and for whoever embeds the driver.
//! The `drowse` binary brings it as a hidden command.

use std::process::ExitCode;

fn main() -> ExitCode {
    drowse_drivers::process::exec_helper(std::env::args_os().skip(1))
}
