//! `cargo xtask explore FIRST COUNT`: property tests from seeds that nobody has tried yet.
//!
//! `cargo xtask test` always begins at the same seed, so that a red run means a red change. What it might
//! miss is looked for here, for as long as one likes; a find names the seed that shows it.

use anyhow::{Context, bail};

use crate::test::SEED;
use crate::workspace::{Workspace, line};

/// How many cases each property gets at each seed.
const CASES: &str = "5000";

pub(crate) fn run(workspace: &Workspace, args: &[&str]) -> anyhow::Result<()> {
    let [first, count] = args else {
        bail!("usage: cargo xtask explore FIRST_SEED COUNT");
    };
    let first: u64 = first.parse().context("FIRST_SEED is a whole number")?;
    let count: u64 = count.parse().context("COUNT is a whole number")?;
    for seed in first..first.saturating_add(count) {
        let mut command = workspace.cargo(["nextest", "run", "--package", "drowse-core"]);
        command.env(SEED, seed.to_string()).env("PROPTEST_CASES", CASES);
        println!("seed {seed}: $ {}", line(&command));
        let status = command.status().context("cannot start cargo nextest")?;
        if !status.success() {
            bail!("seed {seed} finds a failure; run it again with {SEED}={seed} PROPTEST_CASES={CASES}");
        }
    }
    println!("{count} seeds, nothing found");
    Ok(())
}
