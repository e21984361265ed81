//! How a simulated worker behaves.

use std::time::Duration;

/// What can be asked of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// A look.
    Observe,
    /// A freeze.
    Freeze,
    /// A thaw.
    Thaw,
    /// A start.
    Start,
    /// A stop.
    Stop,
    /// A deletion.
    Terminate,
    /// A read of signals.
    Read,
    /// A hook.
    Hook,
    /// Not asked: the time from a start to a crash.
    Crash,
}

impl Op {
    pub(crate) const COUNT: usize = 9;
}

/// How long something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub at_least: Duration,
    pub at_most: Duration,
}

impl Span {
    pub const fn exactly(duration: Duration) -> Self {
        Self { at_least: duration, at_most: duration }
    }

    pub const fn between(at_least: Duration, at_most: Duration) -> Self {
        Self { at_least, at_most }
    }
}

/// How long each call takes. A stop and a deletion also take as long as the worker needs to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takes {
    pub observe: Span,
    pub freeze: Span,
    pub thaw: Span,
    pub start: Span,
    pub stop: Span,
    pub read: Span,
    pub hook: Span,
}

impl Takes {
    pub(crate) fn of(&self, op: Op) -> Span {
        match op {
            Op::Observe => self.observe,
            Op::Freeze => self.freeze,
            Op::Thaw => self.thaw,
            Op::Start => self.start,
            Op::Stop | Op::Terminate => self.stop,
            Op::Read => self.read,
            Op::Hook => self.hook,
            Op::Crash => Span::default(),
        }
    }
}

/// Whether an action answers when it is done or when it has begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// As a process: the call lasts as long as the action.
    #[default]
    Waits,
    /// As EC2: the call says that it has begun, and looks tell the rest.
    Begins,
}

/// What a worker does when it is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTerm {
    /// It ends after this time, unless its grace is over before.
    Ends {
        /// What it needs to put things in order.
        after: Duration,
        /// Its exit code.
        code: i32,
    },
    /// It ignores it and is killed.
    Ignores,
}

/// A worker that ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// How long a run lasts. Frozen time counts: the simulation has no use for the difference.
    pub after: Span,
    /// Its exit code.
    pub code: i32,
}

/// How a simulated worker behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// It runs when it is first taken on.
    pub is_running: bool,
    pub takes: Takes,
    pub manner: Manner,
    pub on_term: OnTerm,
    /// One action in so many is refused.
    pub refuses_one_in: Option<u64>,
    /// It cannot be started at all, for this reason.
    pub cannot_start: Option<String>,
    pub crash: Option<Crash>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            is_running: true,
            takes: Takes::default(),
            manner: Manner::default(),
            on_term: OnTerm::Ends { after: Duration::ZERO, code: 143 },
            refuses_one_in: None,
            cannot_start: None,
            crash: None,
        }
    }
}

/// Something that happens to a worker without Drowse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It ends by itself.
    Exits {
        /// With this code.
        code: i32,
    },
    /// Somebody stops it.
    Stopped,
    /// Somebody starts it.
    Started,
    /// Somebody freezes it.
    Frozen,
    /// Somebody thaws it.
    Thawed,
    /// Somebody deletes it.
    Deleted,
}

/// How the way to a worker is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Calls do not arrive: nothing happens, and nothing is answered.
    Deaf,
    /// Calls arrive and are carried out, but no answer comes back.
    Mute,
    /// Calls fail at once.
    Down,
}

/// What a signal of a running worker shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Load {
    /// It has no such signal.
    #[default]
    Absent,
    /// It counts up: microseconds or bytes in each second that it runs.
    PerSecond(u64),
    /// It stands at this value.
    Level(f64),
    /// It cannot be read.
    Unreadable,
}
