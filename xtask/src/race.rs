//! `cargo xtask race [CYCLES]`: people who come just when a worker falls asleep, for as long as it takes.
//!
//! The ordinary tests run a few dozen such cycles. This is the same test with many workers at once, optimised; the
//! workers that stop instead of freezing get a tenth of it, and those with visitors who stay a quarter.

use crate::needs;
use crate::workspace::{Workspace, must};

/// Enough to meet what happens once in thousands of times, and over in a few minutes.
pub(crate) const CYCLES: u32 = 20_000;

/// A cycle takes one worker about two seconds, most of it waiting.
const WORKERS: &str = "200";

pub(crate) fn run(workspace: &Workspace, cycles: u32) -> anyhow::Result<()> {
    needs::install(workspace)?;
    must(
        workspace
            .cargo(["test", "--release", "--package", "drowse", "--test", "cli", "door::race::", "--"])
            // One after the other: each uses the whole machine.
            .args(["--nocapture", "--test-threads", "1"])
            .env("DROWSE_RACE_CYCLES", cycles.to_string())
            .env("DROWSE_RACE_WORKERS", WORKERS),
    )
}
