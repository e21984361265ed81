//! `cargo xtask ci`: everything that must be green before a change goes in.
//!
//! It stops at the first failure: a format error is cheap to see and cheap to mend, and whoever waits for
//! the tests behind it waits for nothing.

use anyhow::Context;

use crate::step::{Outcome, Step, table, timed};
use crate::workspace::{Workspace, must};
use crate::{probe_api, reference, test};

/// Whether the tests are among the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tests {
    Run,
    /// `.ci/run` has run the README's own test command just before; twice proves nothing more.
    AlreadyRun,
}

type Check = fn(&Workspace) -> anyhow::Result<()>;

/// In the order of what they cost, so that the cheap mistakes are told first.
const CHECKS: &[(&str, Check)] = &[
    ("format", format),
    ("lints", lints),
    (TESTS, tests),
    ("docs", docs),
    ("generated files", generated),
    ("api", api),
];

const TESTS: &str = "tests";

pub(crate) fn run(workspace: &Workspace, tests: Tests) -> anyhow::Result<()> {
    let mut steps = Vec::new();
    let failure = CHECKS
        .iter()
        .filter(|(name, _)| *name != TESTS || tests == Tests::Run)
        .find_map(|(name, check)| perform(&mut steps, name, || check(workspace)).err());

    println!("\n{}", table(&steps));
    if let Some(error) = failure {
        return Err(error);
    }
    println!("All checks passed.");
    Ok(())
}

/// Announces a step, runs it and notes how it went.
fn perform(
    steps: &mut Vec<Step>,
    name: &'static str,
    check: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    println!("\n== {name}");
    let (result, took) = timed(check);
    let outcome = if result.is_ok() { Outcome::Passed } else { Outcome::Failed };
    steps.push(Step { name, took, outcome });
    result.with_context(|| format!("the step `{name}` failed"))
}

fn format(workspace: &Workspace) -> anyhow::Result<()> {
    must(&mut workspace.cargo(["fmt", "--all", "--check"]))
}

fn lints(workspace: &Workspace) -> anyhow::Result<()> {
    must(&mut workspace.cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn tests(workspace: &Workspace) -> anyhow::Result<()> {
    test::run(workspace, &[])
}

fn docs(workspace: &Workspace) -> anyhow::Result<()> {
    must(workspace.cargo(["doc", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn generated(workspace: &Workspace) -> anyhow::Result<()> {
    reference::run(workspace, reference::Mode::Check)
}

fn api(workspace: &Workspace) -> anyhow::Result<()> {
    probe_api::run(workspace, None)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_failing_step_is_noted_and_named() {
        let mut steps = Vec::new();
        perform(&mut steps, "format", || Ok(())).unwrap();
        let error = perform(&mut steps, "lints", || bail!("a warning")).unwrap_err();

        assert_eq!(format!("{error:#}"), "the step `lints` failed: a warning");
        let outcomes: Vec<_> = steps.iter().map(|step| (step.name, step.outcome)).collect();
        assert_eq!(outcomes, [("format", Outcome::Passed), ("lints", Outcome::Failed)]);
    }

    #[test]
    fn the_tests_are_one_of_the_checks() {
        assert!(CHECKS.iter().any(|(name, _)| *name == TESTS));
    }
}
