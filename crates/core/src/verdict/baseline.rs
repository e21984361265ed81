//! From when idleness is counted.

use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::clock::Timestamp;

/// What the idle clock was last started by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaselineSource {
    /// Drowse first heard of the worker.
    Created,
    /// This run began.
    BootStarted,
    /// It came back from sleep.
    Resumed,
    /// It was last in use.
    Activity,
    /// A lease, a connection, a keep-alive file or an exemption ended.
    HoldEnded,
    /// Since then every required signal could be read. Time that nobody observed is not idle time.
    CoveredSince,
}

impl BaselineSource {
    pub const fn sentence(self) -> &'static str {
        match self {
            BaselineSource::Created => "it was registered",
            BaselineSource::BootStarted => "it started",
            BaselineSource::Resumed => "it came back from sleep",
            BaselineSource::Activity => "it was last in use",
            BaselineSource::HoldEnded => "the last hold on it ended",
            BaselineSource::CoveredSince => "all its signals can be read",
        }
    }
}

/// From when idleness is counted, and why from then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    pub at: Timestamp,
    pub source: BaselineSource,
}

/// The latest of everything that starts the clock; of equals, the later in the list is named. Coverage that
/// is broken begins now at the earliest.
pub(super) fn baseline(
    snapshot: &Snapshot<'_>,
    covered_since: Option<Timestamp>,
    now: Timestamp,
) -> Baseline {
    let worker = snapshot.worker;
    let expired = snapshot
        .holds
        .iter()
        .filter(|hold| hold.kind.end_restarts_clock() && !hold.is_live(now))
        .filter_map(|hold| hold.until)
        .max();
    let hold_ended = expired.max(snapshot.hold_ended_at).max(snapshot.exempt.idle_ended_at);
    let mut baseline = Baseline { at: worker.created_at.min(now), source: BaselineSource::Created };
    for (at, source) in [
        (Some(covered_since.unwrap_or(now)), BaselineSource::CoveredSince),
        (worker.boot_started_at, BaselineSource::BootStarted),
        (worker.last_resume.as_ref().map(|last| last.at), BaselineSource::Resumed),
        (hold_ended, BaselineSource::HoldEnded),
        (snapshot.evidence.last_activity_at(), BaselineSource::Activity),
    ] {
        if let Some(at) = at.filter(|at| *at >= baseline.at) {
            baseline = Baseline { at: at.min(now), source };
        }
    }
    baseline
}
