//! Scenarios: a trace, a policy and the timeline that is expected of them, in one readable file.
//!
//! ```toml
//! title = "An idle process is frozen after its timeout"
//! start = "2026-03-02T08:00:00Z"
//! length = "2h"
//! worker = { driver = "process", routed = true }
//! policy = { idle_timeout = "30m" }
//! happens = ["0:00 cpu quiet", "0:10 cpu pulse"]
//! expect = ["0:40 paused idle_timeout", "0:45 stopped idle_timeout"]
//! ```

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Deserializer};

use super::mark::{BadLine, Timed};
use super::{Subject, Timeline, Trace, replay};
use crate::clock::Timestamp;
use crate::policy::{
    Conflict, Level, Policy, PolicyBook, PolicyLayer, Provenance, Selectors, Source, Values, conflicts,
};
use crate::signal::{DriverKind, Nature, Need, Signal};
use crate::units::Human;

/// What a scenario says about its worker.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkerPart {
    driver: DriverKind,
    #[serde(default)]
    routed: bool,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default, with = "crate::units::duration")]
    freezes_in: Duration,
    #[serde(default, with = "crate::units::duration")]
    stops_in: Duration,
    #[serde(default, with = "crate::units::duration")]
    wakes_in: Duration,
    #[serde(default = "one")]
    fleet: u32,
}

const fn one() -> u32 {
    1
}

/// A readable test of the rules.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it shows, as a sentence.
    pub title: String,
    /// Why it matters, for the reader.
    #[serde(default)]
    pub why: String,
    start: Timestamp,
    #[serde(with = "crate::units::duration")]
    length: Duration,
    worker: WorkerPart,
    #[serde(default)]
    policy: Values,
    #[serde(default, deserialize_with = "lines")]
    happens: Vec<Timed>,
    /// The timeline, a line a moment.
    #[serde(default)]
    pub expect: Vec<String>,
}

fn lines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Timed>, D::Error> {
    Vec::<String>::deserialize(deserializer)?
        .iter()
        .map(|line| line.parse::<Timed>().map_err(serde::de::Error::custom))
        .collect()
}

/// A scenario that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// Lines must be in order of time, so that the file reads as it happened.
    #[error(transparent)]
    OutOfOrder(#[from] BadLine),
    /// Times that Drowse does not deal with.
    #[error("a trace lies between 1970 and 9999")]
    OutOfTime,
    /// Two settings that do not go together.
    #[error("{0}")]
    Conflict(Box<Conflict>),
    /// It would take too long to run.
    #[error("the trace is {length} long and is looked at every {interval}: that is more than {most} looks")]
    TooLong { length: Human, interval: Human, most: u32 },
}

/// A year at one look a minute, and as much again.
const MOST_LOOKS: u32 = 1_000_000;

impl Scenario {
    /// The trace that it tells.
    pub fn trace(&self) -> Result<Trace, ScenarioError> {
        let year = Duration::from_hours(366 * 24);
        if self.start < Timestamp::EPOCH + year || self.start + self.length + year >= Timestamp::MAX {
            return Err(ScenarioError::OutOfTime);
        }
        for pair in self.happens.windows(2) {
            if pair[1].after < pair[0].after {
                return Err(ScenarioError::OutOfOrder(BadLine {
                    line: super::mark::format_offset(pair[1].after),
                    problem: "lines must be in order of time".to_string(),
                }));
            }
        }
        Ok(Trace {
            subject: Subject {
                driver: self.worker.driver,
                selectors: self.selectors(),
                is_routed: self.worker.routed,
                freezes_in: self.worker.freezes_in,
                stops_in: self.worker.stops_in,
                wakes_in: self.worker.wakes_in,
                fleet: self.worker.fleet,
            },
            start: self.start,
            length: self.length,
            marks: self.happens.clone(),
        })
    }

    /// The policy that it sets, with the built-in values of the worker's type.
    pub fn policy(&self) -> Policy {
        self.resolved().0
    }

    fn resolved(&self) -> (Policy, Provenance) {
        let layer = PolicyLayer {
            values: self.policy.0.clone(),
            ..PolicyLayer::new(Level::Worker, Some("scenario"), Source::File)
        };
        PolicyBook::new([layer].into()).resolve_for(&self.selectors())
    }

    fn selectors(&self) -> Selectors {
        Selectors { worker: "scenario".to_string(), kind: self.worker.kind.clone(), ..Selectors::default() }
    }

    /// Runs it.
    pub fn run(&self) -> Result<Timeline, ScenarioError> {
        let trace = self.trace()?;
        let (policy, provenance) = self.resolved();
        let nature = Nature {
            driver: self.worker.driver,
            is_cml: self.worker.kind.as_deref() == Some("cml"),
            is_routed: self.worker.routed,
            gpu_was_read: false,
        };
        let needs = policy.needs(nature);
        let reads_telemetry = needs[Signal::Telemetry as usize] == Need::Required;
        if let Some(conflict) = conflicts(&policy, &provenance, reads_telemetry).into_iter().next() {
            return Err(ScenarioError::Conflict(Box::new(conflict)));
        }
        let interval = policy.interval(&needs);
        if interval.saturating_mul(MOST_LOOKS) < self.length {
            let (length, interval) = (Human(self.length), Human(interval));
            return Err(ScenarioError::TooLong { length, interval, most: MOST_LOOKS });
        }
        Ok(replay(&trace, &policy))
    }

    /// A timeline as lines that can be compared with [`Scenario::expect`].
    pub fn lines(&self, timeline: &Timeline) -> Vec<String> {
        timeline.moments.iter().filter_map(|moment| moment.line(self.start)).collect()
    }
}
