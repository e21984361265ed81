//! `cargo xtask test`: the one test command of the README.
//!
//! nextest runs the tests, `cargo test --doc` the examples in the documentation, which nextest cannot. Both
//! run to the end whatever fails, because whoever mends one failure wants to know the others.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::needs;
use crate::step::{duration, timed};
use crate::workspace::{Workspace, line};

/// How many tests of one kind were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    run: u64,
    failed: u64,
}

/// As .config/nextest.toml says it.
const NEXTEST_STORE: &str = "target/nextest";

/// Where property tests begin.
pub(crate) const SEED: &str = "PROPTEST_RNG_SEED";

/// nextest's way to say that it ran, and that tests failed; anything else means that it could not run.
const NEXTEST_TESTS_FAILED: i32 = 100;

pub(crate) fn run(workspace: &Workspace, filters: &[&str]) -> anyhow::Result<()> {
    needs::install(workspace)?;
    let (tests, tests_took) = timed(|| nextest(workspace, filters));
    let tests = tests?;
    let (examples, examples_took) = timed(|| doc_tests(workspace, filters));
    let examples = examples?;

    println!();
    report("tests", tests, tests_took);
    report("doc tests", examples, examples_took);
    let run = tests.run + examples.run;
    match tests.failed + examples.failed {
        // Without this a misspelt filter would look like success.
        0 if run == 0 => bail!("there is no test to run, or none matches the filter"),
        0 => {
            println!("All {run} tests passed.");
            Ok(())
        }
        failed => bail!("{failed} of {run} tests failed, see above"),
    }
}

fn report(name: &str, count: Count, took: Duration) {
    println!("{name:<10} {:>6} run, {} failed, in {}", count.run, count.failed, duration(took));
}

fn nextest(workspace: &Workspace, filters: &[&str]) -> anyhow::Result<Count> {
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let profile = if is_ci { "ci" } else { "default" };
    let junit = workspace.root().join(NEXTEST_STORE).join(profile).join("junit.xml");
    // An old report must not be taken for this run's.
    remove_if_present(&junit)?;

    // `--no-tests`: a filter may name only doc tests; that nothing at all matched is noticed above.
    let mut command = workspace.cargo(["nextest", "run", "--workspace", "--no-tests=pass", "--profile"]);
    command.arg(profile).args(filters);
    if std::env::var_os(SEED).is_none() {
        // The same tree gives the same result, today and on another machine. New seeds are looked for
        // with `cargo xtask explore`, where a find is welcome.
        command.env(SEED, "1");
    }
    println!("$ {}", line(&command));
    let status = command.status().context("cannot start cargo nextest")?;
    if !status.success() && status.code() != Some(NEXTEST_TESTS_FAILED) {
        bail!("the tests could not be run ({status})");
    }
    let count = if junit.exists() {
        let text = std::fs::read_to_string(&junit).context("cannot read nextest's report")?;
        for unsteady in unsteady(&text) {
            println!(
                "{unsteady} passed only at its second try: that is a defect, in it or in what it tests."
            );
        }
        count_junit(&text).context("nextest's report has no totals")?
    } else {
        Count::default()
    };
    if status.success() != (count.failed == 0) {
        bail!("nextest ended with {status} but reports {} failures", count.failed);
    }
    Ok(count)
}

fn remove_if_present(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).context("cannot remove the report of an earlier run")
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The totals in the first tag of a `JUnit` report.
///
/// Two attributes are all that is wanted, so no XML parser is compiled before the first test runs.
fn count_junit(report: &str) -> Option<Count> {
    let tag = report.split_once("<testsuites ")?.1.split_once('>')?.0;
    let attribute = |name: &str| -> Option<u64> {
        tag.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.parse().ok()
    };
    Some(Count { run: attribute("tests")?, failed: attribute("failures")? + attribute("errors")? })
}

/// The tests of a `JUnit` report that failed before they passed.
fn unsteady(report: &str) -> Vec<&str> {
    let tests = report.split("<testcase name=\"").skip(1).filter(|test| test.contains("<flakyFailure"));
    tests.filter_map(|test| test.split_once('"')).map(|(name, _)| name).collect()
}

fn doc_tests(workspace: &Workspace, filters: &[&str]) -> anyhow::Result<Count> {
    // `--no-fail-fast`: the doc tests of every crate, even when those of the first fail.
    let mut command = workspace.cargo(["test", "--doc", "--workspace", "--no-fail-fast", "--"]);
    command.args(filters).stdout(Stdio::piped());
    println!("\n$ {}", line(&command));
    let mut child = command.spawn().context("cannot start cargo test")?;
    let stdout = child.stdout.take().context("stdout was asked for")?;
    let mut count = Count::default();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("cannot read the output of cargo test")?;
        println!("{line}");
        if let Some(one) = count_libtest(&line) {
            count = Count { run: count.run + one.run, failed: count.failed + one.failed };
        }
    }
    let status = child.wait().context("cargo test went away")?;
    if !status.success() && count.failed == 0 {
        bail!("the doc tests could not be run ({status})");
    }
    Ok(count)
}

/// The counts of libtest's closing line, `test result: ok. 3 passed; 0 failed; …`.
fn count_libtest(line: &str) -> Option<Count> {
    let counts = line.strip_prefix("test result: ")?.split_once(". ")?.1;
    let of = |word: &str| -> Option<u64> {
        counts.split(';').find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok())
    };
    let (passed, failed) = (of("passed")?, of("failed")?);
    Some(Count { run: passed + failed, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_are_read_from_the_first_tag_of_the_report() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="nextest-run" tests="30" failures="2" errors="1" uuid="x" time="1.5">
                <testsuite name="drowse-core" tests="9" disabled="0" errors="0" failures="0">"#;
        assert_eq!(count_junit(report), Some(Count { run: 30, failed: 3 }));
        assert_eq!(count_junit("<testsuites name=\"x\">"), None);
        assert_eq!(count_junit(""), None);
    }

    #[test]
    fn whoever_needed_a_second_try_is_named() {
        let report = r#"<testsuite><testcase name="door::one" time="1"></testcase>
            <testcase name="door::two" time="9"><flakyFailure timestamp="x" message="m">panicked</flakyFailure></testcase>
            <testcase name="three"><failure>panicked</failure></testcase></testsuite>"#;
        assert_eq!(unsteady(report), ["door::two"]);
        assert_eq!(unsteady(""), Vec::<&str>::new());
    }

    #[test]
    fn the_closing_line_of_libtest_is_counted_and_no_other() {
        let ok =
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s";
        assert_eq!(count_libtest(ok), Some(Count { run: 3, failed: 0 }));
        let failed = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(count_libtest(failed), Some(Count { run: 3, failed: 2 }));
        assert_eq!(count_libtest("test crates/core/src/clock.rs - clock (line 3) ... ok"), None);
    }

    #[test]
    fn a_report_that_is_not_there_needs_no_removing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("junit.xml");
        remove_if_present(&path).unwrap();
        std::fs::write(&path, "old").unwrap();
        remove_if_present(&path).unwrap();
        assert!(!path.exists());
    }
}
