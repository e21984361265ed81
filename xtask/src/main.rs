//! The chores of the repository, run as `cargo xtask COMMAND`.
//!
//! One file per command. What a command decides (which files are stale, what a table says) is a function
//! with tests; what it does to the machine is announced before it happens.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a command-line tool: what it prints is what it is for")]

mod bench;
mod ci;
mod explore;
mod needs;
mod probe_api;
mod race;
mod reference;
mod step;
mod test;
mod workspace;

use std::process::ExitCode;

use anyhow::bail;

use crate::workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [FILTER...]     install what the tests need, run all tests and doc tests
  ci [--after-tests]   format, lints, tests, docs, generated files; --after-tests leaves the tests out
  gen [--check]        write the generated files; --check only says which are stale
  explore FIRST COUNT  run the property tests from other seeds than the usual one
  probe-api [EXAMPLES] run schemathesis against the API of a running drowse (a CI step)
  race [CYCLES]        people who come just when a worker falls asleep, 20000 times unless said otherwise
  bench NAME [OPTION...]  run a benchmark and refresh docs/benchmarks/NAME.md (names: core, fleet, restart,
                       router, wake); with options for it, such as --rounds 2, only show what it measures
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

// By hand, not with clap: four commands with at most one flag do not pay for the half minute that
// everybody's first `cargo xtask test` would wait longer.
fn run(args: &[&str]) -> anyhow::Result<()> {
    match args {
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        ["test", filters @ ..] => match filters.iter().find(|filter| filter.starts_with('-')) {
            Some(flag) => bail!("`test` takes filters, not the flag `{flag}`\n\n{USAGE}"),
            None => test::run(&Workspace::find()?, filters),
        },
        ["ci"] => ci::run(&Workspace::find()?, ci::Tests::Run),
        ["ci", "--after-tests"] => ci::run(&Workspace::find()?, ci::Tests::AlreadyRun),
        ["gen"] => reference::run(&Workspace::find()?, reference::Mode::Write),
        ["gen", "--check"] => reference::run(&Workspace::find()?, reference::Mode::Check),
        ["explore", args @ ..] => explore::run(&Workspace::find()?, args),
        ["probe-api"] => probe_api::run(&Workspace::find()?, None),
        ["probe-api", examples] => match examples.parse() {
            Ok(examples) => probe_api::run(&Workspace::find()?, Some(examples)),
            Err(_) => bail!("EXAMPLES is a whole number, found `{examples}`\n\n{USAGE}"),
        },
        ["race"] => race::run(&Workspace::find()?, race::CYCLES),
        ["race", cycles] => match cycles.parse() {
            Ok(cycles) => race::run(&Workspace::find()?, cycles),
            Err(_) => bail!("CYCLES is a whole number, found `{cycles}`\n\n{USAGE}"),
        },
        ["bench"] => bail!("which benchmark?\n\n{USAGE}"),
        ["bench", name, options @ ..] => match options {
            [first, ..] if !first.starts_with("--") => {
                bail!("`bench` does not take `{}`\n\n{USAGE}", args[1..].join(" "))
            }
            _ => bench::run(&Workspace::find()?, name, options),
        },
        [command @ ("ci" | "gen"), rest @ ..] => {
            bail!("`{command}` does not take `{}`\n\n{USAGE}", rest.join(" "))
        }
        [unknown, ..] => bail!("there is no command `{unknown}`\n\n{USAGE}"),
    }
}

#[cfg(test)]
mod tests {
    use super::run;

    fn refusal(args: &[&str]) -> String {
        run(args).expect_err("such a command line is refused").to_string()
    }

    #[test]
    fn a_misspelt_command_is_refused_with_the_usage() {
        let message = refusal(&["tset"]);
        assert!(message.starts_with("there is no command `tset`"), "{message}");
        assert!(message.contains("usage: cargo xtask"), "{message}");
    }

    #[test]
    fn a_benchmark_is_asked_for_by_name() {
        assert!(refusal(&["bench"]).starts_with("which benchmark?"));
    }

    #[test]
    fn a_flag_that_a_command_does_not_know_is_never_ignored() {
        assert!(refusal(&["ci", "--skip-tests"]).starts_with("`ci` does not take `--skip-tests`"));
        assert!(refusal(&["gen", "--check", "x"]).starts_with("`gen` does not take `--check x`"));
        assert!(refusal(&["test", "--release"]).contains("not the flag `--release`"));
        assert!(refusal(&["bench", "core", "all"]).starts_with("`bench` does not take `core all`"));
    }
}
