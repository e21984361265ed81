//! From signals to one three-valued answer.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::clock::Timestamp;
use crate::evidence::Streak;
use crate::policy::Policy;
use crate::reason::IdlePolicy;
use crate::signal::{Need, PerSignal, Reading, Signal, UnknownCause};

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

/// What one signal says in this look; `None` if it is neither required nor present.
pub(super) fn effective(
    snapshot: &Snapshot<'_>,
    policy: &Policy,
    signal: Signal,
    need: Need,
) -> Option<Reading> {
    let sample = match (need, snapshot.evidence.sample(signal)) {
        (Need::Off, _) | (Need::Counted, None) => return None,
        (Need::Required, None) => return Some(Reading::unknown(UnknownCause::NeverRead)),
        (Need::Counted | Need::Required, Some(sample)) => sample,
    };
    if signal == Signal::Telemetry && !policy.activity_detection {
        return Some(Reading::unknown(UnknownCause::SwitchedOff));
    }
    let is_old = snapshot.check_began_at.is_some_and(|began| sample.read_at < began);
    if signal.is_pulled() && is_old {
        return Some(Reading::unknown(UnknownCause::NotReadInThisCheck));
    }
    let is_discounted = signal == Signal::Activity && policy.idle_policy == IdlePolicy::LeasesOnly;
    // The channel being up reads as quiet; what the agent tells is shown, not counted.
    let is_active = matches!(sample.reading, Reading::Active { .. });
    Some(if is_active && is_discounted { Reading::Quiet } else { sample.reading })
}

/// Weighs all signals: idle only when ALL are quiet, and never on missing data.
pub(super) fn weigh(snapshot: &Snapshot<'_>, policy: &Policy, needs: &PerSignal<Need>) -> (Signals, Use) {
    let mut signals = Signals::default();
    for signal in Signal::ALL {
        let need = needs[signal as usize];
        match effective(snapshot, policy, signal, need) {
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
    (signals, used)
}

/// The streak after this look. Only a check changes it.
pub(super) fn streak(snapshot: &Snapshot<'_>, used: Use, interval: Duration, now: Timestamp) -> Streak {
    let streak = snapshot.evidence.streak;
    match (snapshot.check_began_at, used) {
        (None, _) => streak,
        (Some(_), Use::Quiet) => streak.after_quiet(now, interval),
        (Some(_), Use::Active | Use::Unknown) => Streak::reset(now),
    }
}

/// Whether the agent counts here and has not spoken since the check began.
pub(super) fn agent_is_behind(snapshot: &Snapshot<'_>, policy: &Policy) -> bool {
    let need = policy.needs(snapshot.worker.nature())[Signal::Activity as usize];
    match (need, snapshot.evidence.sample(Signal::Activity), snapshot.check_began_at) {
        (Need::Counted | Need::Required, Some(sample), Some(began)) => sample.read_at < began,
        (_, _, _) => false,
    }
}
