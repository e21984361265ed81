//! Can processes be frozen, and how well?

use drowse_drivers::process::cgroup::{Choice, Freezer, find};

use super::{Check, State};

/// The name of the cgroup that is made and removed.
const TRIAL: &str = "drowse-doctor";

pub(super) fn check() -> Check {
    let check = |state, found: String| Check::new("freezer", "freezing processes", state, found);
    let found = match find(Choice::Auto, TRIAL) {
        Ok(found) => found,
        Err(lack) => return check(State::Missing, lack.to_string()).advise(ADVICE),
    };
    match found.freezer {
        Freezer::V2 { .. } => check(State::Ok, "the cgroup v2 freezer can be used".to_owned()),
        Freezer::V1 { .. } => check(State::Ok, "the cgroup v1 freezer can be used".to_owned()),
        Freezer::Signals => {
            let lacks: Vec<String> =
                found.passed_over.iter().map(|(name, lack)| format!("{name}: {lack}")).collect();
            let found = format!(
                "only SIGSTOP, which misses processes that leave their session ({})",
                lacks.join("; ")
            );
            check(State::Limited, found).advise(ADVICE)
        }
    }
}

const ADVICE: &str =
    "run as root, or in a cgroup of one's own: systemd-run --user --scope -p Delegate=yes drowse up";
