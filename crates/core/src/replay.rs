//! Recorded life against a policy: [`judge`](crate::judge) and [`step`](crate::step) over a trace.
//!
//! The same rules that run in production run here, with an ideal driver and a clock that jumps from one
//! thing to the next. Scenarios use it as tests; `backtest` uses it to say what another policy would have
//! done.

mod mark;
mod moment;
mod scenario;
mod world;

use alloc::vec::Vec;
use core::time::Duration;

pub use mark::{BadLine, DriverMood, Mark, Shows, Timed, Until};
pub use moment::{Happening, Moment};
pub use scenario::{Scenario, ScenarioError};

use crate::clock::Timestamp;
use crate::policy::{Policy, Selectors};
use crate::savings::PowerSpan;
use crate::signal::DriverKind;
use crate::worker::Worker;

/// What a recorded worker was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Who looks after it.
    pub driver: DriverKind,
    /// The attributes that select its policy.
    pub selectors: Selectors,
    /// The front door has a port for it.
    pub is_routed: bool,
    /// How long its driver takes to freeze it.
    pub freezes_in: Duration,
    /// How long its driver takes to stop it.
    pub stops_in: Duration,
    /// How long it takes to answer again.
    pub wakes_in: Duration,
    /// How many workers of its region the fleet has, for scale-down.
    pub fleet: u32,
}

/// A recorded stretch of a worker's life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// What it is about.
    pub subject: Subject,
    /// When it begins; the worker is running then.
    pub start: Timestamp,
    /// How long it lasts.
    pub length: Duration,
    /// What happened, in order of time.
    pub marks: Vec<Timed>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Everything that was done, said or refused, in order.
    pub moments: Vec<Moment>,
    /// When it ran, was frozen and was stopped, and who caused it.
    pub spans: Vec<PowerSpan>,
    /// The worker at the end.
    pub worker: Worker,
}

/// Runs a trace against a policy.
pub fn replay(trace: &Trace, policy: &Policy) -> Timeline {
    world::World::new(trace, policy).run()
}
