//! The words in which a gate is asked and answers.

use std::net::IpAddr;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_wire::control::EdgeCause;

use crate::queue::Ticket;
use crate::route::Target;
use crate::turned::Turned;

/// What a gate goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// How many wait at most.
    pub(crate) places: usize,
    /// How long a worker is still held after the last connection has left: connections that follow each other
    /// closely are one hold, and cost the control plane nothing.
    pub(crate) linger: Duration,
}

/// Somebody at the gate.
#[derive(Debug)]
pub(crate) struct Visitor<W> {
    pub(crate) from: IpAddr,
    /// Where they want to go.
    pub(crate) target: Target,
    /// Whether the worker may be woken for them.
    pub(crate) may_wake: bool,
    /// How long they wait at most.
    pub(crate) wait_for: Duration,
    /// How they are told.
    pub(crate) who: W,
}

/// What became of somebody who came.
#[derive(Debug)]
pub(crate) enum Arrival<W> {
    /// Go on. The caller says when they leave.
    Pass(W, Round),
    /// They wait, and will be told. The keeper has to look if `is_news`.
    Wait { ticket: Ticket, evicted: Option<W>, is_news: bool },
    /// Turned away at once.
    Turned(W, Turned),
}

/// Those who pass between two cuts. Whoever belongs to an older one has been told to end and counts no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Round(pub(super) u64);

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing, until somebody comes.
    Rest,
    /// Nothing, until then or until something changes. The worker may fall asleep meanwhile.
    Wait { until: Option<Timestamp>, is_awake: bool },
    /// Tell of an edge.
    Tell { count: u64, cause: EdgeCause },
    /// Wait until the worker is awake.
    Wake,
    /// Try to reach these.
    Prove(Vec<Target>),
}

/// What has been decided for those at the gate.
#[derive(Debug)]
pub(crate) struct Decided<W> {
    /// They go on, in this order.
    pub(crate) pass: Vec<W>,
    /// All of them in this round.
    pub(crate) round: Round,
    /// The worker was asleep when they asked for it.
    pub(crate) was_asleep: bool,
    /// They do not.
    pub(crate) turned: Vec<(W, Turned)>,
    /// What becomes of those who went on before.
    pub(crate) flow: Option<Flow>,
    /// The worker is in a run that has not been seen before.
    pub(crate) is_other_run: bool,
}

impl<W> Default for Decided<W> {
    fn default() -> Self {
        Self {
            pass: Vec::new(),
            round: Round::default(),
            was_asleep: false,
            turned: Vec::new(),
            flow: None,
            is_other_run: false,
        }
    }
}

/// What becomes of those who have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Not a byte until further notice: they hold nothing just now.
    Stop,
    /// On.
    Go,
    /// They end.
    Cut,
}
