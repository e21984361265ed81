//! From signals to one three-valued answer.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::clock::Timestamp;
use crate::evidence::{Evidence, Streak};
use crate::policy::Policy;
use crate::reason::IdlePolicy;
use crate::signal::{Need, PerSignal, Reading, Sample, Signal, UnknownCause};

/// What all signals of a worker say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    /// A counted signal is active.
    Active,
    /// No signal is active, and all that are required are quiet.
    Quiet,
    /// A required signal is unknown, or nothing at all was read. It never sleeps a worker.
    Unknown,
}

impl Use {
    pub const fn code(self) -> &'static str {
        match self {
            Use::Active => "active",
            Use::Quiet => "quiet",
            Use::Unknown => "unknown",
        }
    }
}

/// A set of signals.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct SignalSet(u16);

impl SignalSet {
    pub fn insert(&mut self, signal: Signal) {
        self.0 |= 1 << signal as u16;
    }

    pub const fn contains(self, signal: Signal) -> bool {
        self.0 & (1 << signal as u16) != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Signal> {
        Signal::ALL.into_iter().filter(move |signal| self.contains(*signal))
    }
}

impl fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Serialize for SignalSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for SignalSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut set = SignalSet::default();
        for signal in Vec::<Signal>::deserialize(deserializer)? {
            set.insert(signal);
        }
        Ok(set)
    }
}

/// Which signals say what. Those that are off are in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals {
    /// They keep it awake.
    pub active: SignalSet,
    /// They were read, and nothing was there.
    pub quiet: SignalSet,
    /// They are required and cannot be told.
    pub unknown: SignalSet,
    /// They cannot be told either, and are judged by the others.
    pub unread: SignalSet,
}

/// How a look reads what was recorded.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) now: Timestamp,
    /// When the check began; `None` between checks.
    began_at: Option<Timestamp>,
    interval: Duration,
    idle_policy: IdlePolicy,
    reads_telemetry: bool,
}

impl Look {
    pub(super) fn new(snapshot: &Snapshot<'_>, policy: &Policy, interval: Duration, now: Timestamp) -> Self {
        Self {
            now,
            began_at: snapshot.check_began_at,
            interval,
            idle_policy: policy.idle_policy,
            reads_telemetry: policy.activity_detection,
        }
    }

    /// What one signal says in this look; `None` if it is neither required nor present.
    pub(super) fn reading(self, signal: Signal, need: Need, sample: Option<&Sample>) -> Option<Reading> {
        if need == Need::Off {
            return None;
        }
        if signal == Signal::Telemetry && !self.reads_telemetry {
            return Some(Reading::unknown(UnknownCause::SwitchedOff));
        }
        let Some(sample) = sample else {
            return (need == Need::Required).then_some(Reading::unknown(UnknownCause::NeverRead));
        };
        if signal.is_pulled() && self.began_at.is_some_and(|began| sample.read_at < began) {
            return Some(Reading::unknown(UnknownCause::NotReadInThisCheck));
        }
        let is_silent = signal == Signal::Activity
            && matches!(sample.reading, Reading::Active { at } if self.is_silent_since(at));
        Some(if is_silent { Reading::Quiet } else { sample.reading })
    }

    /// How old a sample is.
    pub(super) fn age(self, sample: &Sample) -> Duration {
        self.now.since(sample.read_at)
    }

    /// Whether the agent's "busy" of that time reads as quiet by now.
    ///
    /// It tells of use at one time, which `last_activity_at` keeps. After an interval without another, its
    /// silence is quiet; before anything is done about that, the agent is asked. Under `leases_only` the
    /// channel being up reads as quiet whatever the agent tells.
    fn is_silent_since(self, at: Timestamp) -> bool {
        self.idle_policy == IdlePolicy::LeasesOnly || at + self.interval <= self.now
    }
}

/// What all signals come to.
pub(super) struct Weighed {
    pub(super) signals: Signals,
    pub(super) used: Use,
    /// The start of the unbroken stretch in which every required signal could be read; `None` while one
    /// cannot.
    pub(super) covered_since: Option<Timestamp>,
}

/// Weighs all signals: idle only when ALL are quiet, and never on missing data.
pub(super) fn weigh(evidence: &Evidence, look: Look, needs: &PerSignal<Need>) -> Weighed {
    let mut signals = Signals::default();
    // The latest beginning among those that are required, and among those that are counted.
    let mut required = Coverage::Nothing;
    let mut counted = None;
    for signal in Signal::ALL {
        let need = needs[signal as usize];
        if need == Need::Off {
            continue;
        }
        let sample = evidence.sample(signal);
        let since = sample.and_then(|sample| sample.covered_since);
        if need == Need::Required {
            required = required.and(since);
        } else {
            counted = counted.max(since);
        }
        match look.reading(signal, need, sample) {
            None => {}
            Some(Reading::Active { .. }) => signals.active.insert(signal),
            Some(Reading::Quiet) => signals.quiet.insert(signal),
            Some(Reading::Unknown { .. }) if need == Need::Required => signals.unknown.insert(signal),
            Some(Reading::Unknown { .. }) => signals.unread.insert(signal),
        }
    }
    let used = if !signals.active.is_empty() {
        Use::Active
    } else if !signals.unknown.is_empty() || signals.quiet.is_empty() {
        // Nothing at all was read: that is no evidence of anything.
        Use::Unknown
    } else {
        Use::Quiet
    };
    let covered_since = match required {
        Coverage::Since(since) => Some(since),
        Coverage::Broken => None,
        // Nothing is required: then what is counted and can be read must carry the verdict.
        Coverage::Nothing => counted,
    };
    Weighed { signals, used, covered_since }
}

/// How far back all of several signals could be read.
#[derive(Clone, Copy)]
enum Coverage {
    /// There are none.
    Nothing,
    /// All of them since then.
    Since(Timestamp),
    /// One of them cannot.
    Broken,
}

impl Coverage {
    fn and(self, since: Option<Timestamp>) -> Coverage {
        match (self, since) {
            (Coverage::Broken, _) | (_, None) => Coverage::Broken,
            (Coverage::Nothing, Some(since)) => Coverage::Since(since),
            (Coverage::Since(before), Some(since)) => Coverage::Since(before.max(since)),
        }
    }
}

/// The streak after this look. Only a check raises it.
pub(super) fn streak(snapshot: &Snapshot<'_>, used: Use, interval: Duration, now: Timestamp) -> Streak {
    let streak = snapshot.evidence.streak.broken_by(snapshot.evidence.last_activity_at());
    match (snapshot.check_began_at, used) {
        (None, _) => streak,
        (Some(_), Use::Quiet) => streak.after_quiet(now, interval),
        (Some(_), Use::Active | Use::Unknown) => Streak::reset(now),
    }
}

/// Whether the agent counts here and has not spoken since the check began.
pub(super) fn agent_is_behind(snapshot: &Snapshot<'_>, needs: &PerSignal<Need>) -> bool {
    let need = needs[Signal::Activity as usize];
    match (need, snapshot.evidence.sample(Signal::Activity), snapshot.check_began_at) {
        (Need::Counted | Need::Required, Some(sample), Some(began)) => sample.read_at < began,
        (_, _, _) => false,
    }
}
