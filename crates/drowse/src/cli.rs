//! The command line. Wrong usage ends with exit code 2, which is clap's; everything else is decided by the
//! commands.

use clap::Parser;

use crate::cmd::Command;

/// Puts idle compute to sleep, wakes it on demand, and never sleeps something that is in use.
#[derive(Debug, Parser)]
#[command(
    name = "drowse",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Data goes to stdout, talk to stderr.
Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no answer from Drowse."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
