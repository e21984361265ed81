//! Whether a worker can be heard: `online`, `offline`, or nothing at all if it never enrolled.
//!
//! ```text
//!            enrolled, heartbeat                    silent longer than stale_after,
//!   (null) ─────────────────────► online ─────────► goodbye, stopped ──► offline
//!                                    ▲                                      │
//!                                    └────── heartbeat of this boot ────────┘
//! ```
//!
//! Liveness stands beside the status and proves nothing about use. What must stay true:
//! - Only silence that nobody excuses condemns. A frozen worker cannot speak, a thawed one gets a whole
//!   threshold to speak again, and so does everybody after Drowse itself was away.
//! - Only a sign of life raises. That silence is excused again (a thaw, a restart of ours) makes nobody
//!   online who was offline before.
//! - `last_heartbeat_at` is a measurement. Marking a worker offline never touches it.
//! - What is answered depends on the times in [`Seen`], not on when somebody got round to asking.

pub mod beat;
pub mod machine;
pub mod reliability;

#[cfg(test)]
mod tests;

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
pub use beat::{Accepted, Beat, Boots, next_in};
pub use machine::machine_liveness;
pub use reliability::{Reliability, ReliabilityTerms, StaleAlert};

/// Whether a worker or a machine is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Heard within the threshold, or silent with an excuse.
    Online,
    /// Silent for too long, gone by its own word, or stopped.
    Offline,
}

/// Why a worker is offline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfflineReason {
    /// Its last heartbeat is older than the threshold.
    Stale,
    /// It enrolled and was never heard afterwards.
    NeverSeen,
    /// It said that it shuts down.
    Goodbye,
    /// It does not run.
    Stopped,
}

/// What is recorded about an enrolled worker, or about a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Standing {
    /// It is heard.
    Online {
        /// The sign of life that made it so.
        since: Timestamp,
    },
    /// It is not heard.
    Offline {
        /// When that became true: the missed deadline, the goodbye or the stop; not when somebody looked.
        since: Timestamp,
        /// Why; it may change while the worker stays offline.
        reason: OfflineReason,
    },
}

impl Standing {
    pub const fn state(self) -> State {
        match self {
            Self::Online { .. } => State::Online,
            Self::Offline { .. } => State::Offline,
        }
    }

    pub const fn since(self) -> Timestamp {
        match self {
            Self::Online { since } | Self::Offline { since, .. } => since,
        }
    }

    pub const fn offline_since(self) -> Option<Timestamp> {
        match self {
            Self::Online { .. } => None,
            Self::Offline { since, .. } => Some(since),
        }
    }

    pub const fn offline_reason(self) -> Option<OfflineReason> {
        match self {
            Self::Online { .. } => None,
            Self::Offline { reason, .. } => Some(reason),
        }
    }
}

/// What a worker's power allows us to expect of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// It runs, or it should as far as we know: it is expected to speak.
    Awake {
        /// When it last left sleep; none if it has not slept since it is known.
        resumed_at: Option<Timestamp>,
    },
    /// It is paused, or on its way into or out of sleep: silence is expected.
    Frozen,
    /// It does not run.
    Stopped {
        /// When it stopped.
        since: Timestamp,
    },
}

/// Everything that is known about whether a worker is heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// When it enrolled, itself or through its driver's channel; a sign of life like a heartbeat.
    pub enrolled_at: Option<Timestamp>,
    /// When its newest heartbeat was received; written by heartbeats only.
    pub last_heartbeat_at: Option<Timestamp>,
    /// Which runs of it have been heard.
    pub boots: Boots,
    /// Whether it can speak at all.
    pub power: Power,
    /// When it last announced a clean shutdown.
    pub said_goodbye_at: Option<Timestamp>,
    /// What is recorded now.
    pub was: Option<Standing>,
    /// When Drowse itself last came back: after a restart, a stalled loop or a clock jump.
    pub observer_resumed_at: Option<Timestamp>,
    /// Whether the fleet brake is engaged.
    pub brake_engaged: bool,
}

/// What policy says about liveness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivenessTerms {
    /// Silence strictly longer than this is stale.
    #[serde(with = "crate::units::duration")]
    pub stale_after: Duration,
}

impl Default for LivenessTerms {
    /// Three heartbeats of 30 s: one may be lost and one late before anybody is condemned.
    fn default() -> Self {
        Self { stale_after: Duration::from_secs(90) }
    }
}

/// What goes into the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It is heard now and was not before.
    WentOnline,
    /// It is not heard any more.
    WentOffline {
        /// Why.
        reason: OfflineReason,
    },
    /// Nothing to journal. The reason of an offline worker may still differ from the recorded one.
    None,
}

/// The answer of [`assess`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liveness {
    /// What is true now; none if the worker never enrolled. To be recorded if it differs from `was`.
    pub standing: Option<Standing>,
    /// What that changes.
    pub change: Change,
    /// The first instant at which the answer is another one if nothing is heard until then; always later
    /// than now. None if silence changes nothing: asleep, already offline, or held back by the brake,
    /// whose release looks at everybody again.
    pub deadline: Option<Timestamp>,
    /// Whether the brake alone keeps this worker from being marked offline.
    pub is_held_back: bool,
}

impl Liveness {
    pub fn state(&self) -> Option<State> {
        self.standing.map(Standing::state)
    }

    pub fn offline_since(&self) -> Option<Timestamp> {
        self.standing.and_then(Standing::offline_since)
    }

    pub fn offline_reason(&self) -> Option<OfflineReason> {
        self.standing.and_then(Standing::offline_reason)
    }
}

/// What the evidence says, before it meets what is recorded.
#[derive(Clone, Copy)]
enum Target {
    /// A sign of life within the threshold.
    Heard { at: Timestamp },
    /// Silent, and not to be blamed: it cannot speak, or has not had a whole threshold to do so.
    Excused,
    /// Silent for longer than the threshold and without excuse.
    Silent { since: Timestamp, reason: OfflineReason },
    /// Gone by its own word, and not heard afterwards.
    Left { at: Timestamp },
    /// Not running.
    Stopped { since: Timestamp },
}

/// Says whether a worker is heard, since when, and when that would change.
pub fn assess(seen: &Seen, terms: &LivenessTerms, now: Timestamp) -> Liveness {
    let Some(enrolled_at) = seen.enrolled_at else {
        return Liveness { standing: None, change: Change::None, deadline: None, is_held_back: false };
    };
    let contact = seen.last_heartbeat_at.map_or(enrolled_at, |beat| beat.max(enrolled_at));
    let stale_at = stale_at(seen, terms, contact);
    let target = target(seen, terms, contact, stale_at, now);
    let standing = standing(seen, contact, target);
    let is_silent = matches!(target, Target::Silent { .. });
    let may_fall_silent = matches!(target, Target::Heard { .. } | Target::Excused);
    let deadline = match standing {
        // The stop is over, so its reason will not do for ever.
        Some(Standing::Online { .. } | Standing::Offline { reason: OfflineReason::Stopped, .. }) => stale_at,
        Some(Standing::Offline { .. }) | None => None,
    };
    Liveness {
        standing,
        change: change(seen.was, standing),
        deadline: deadline.filter(|_| may_fall_silent),
        is_held_back: is_silent && standing.map(Standing::state) != Some(State::Offline),
    }
}

/// The first instant at which silence counts, if it ever does.
fn stale_at(seen: &Seen, terms: &LivenessTerms, contact: Timestamp) -> Option<Timestamp> {
    let Power::Awake { resumed_at } = seen.power else { return None };
    // Whoever slept, or was not listened to, gets a whole threshold from then on.
    let silent_from = [resumed_at, seen.observer_resumed_at].into_iter().flatten().fold(contact, Ord::max);
    // One microsecond, the tick of our clock, later: exactly the threshold is still online.
    let stale_at = silent_from.after(terms.stale_after).after(Duration::from_micros(1));
    (stale_at < Timestamp::MAX).then_some(stale_at)
}

fn target(
    seen: &Seen,
    terms: &LivenessTerms,
    contact: Timestamp,
    stale_at: Option<Timestamp>,
    now: Timestamp,
) -> Target {
    // A goodbye at the very instant of the last heartbeat was sent after it.
    let left_at = seen.said_goodbye_at.filter(|at| *at >= contact);
    match (seen.power, left_at) {
        (Power::Stopped { since }, _) => Target::Stopped { since },
        // Its own word counts even while it is being put to sleep: it is no guess from silence.
        (Power::Frozen, Some(at)) => Target::Left { at },
        (Power::Frozen, None) => Target::Excused,
        // A goodbye from before the resume may be that of a run that is over.
        (Power::Awake { resumed_at }, Some(at)) if resumed_at.is_none_or(|resumed| resumed <= at) => {
            Target::Left { at }
        }
        (Power::Awake { .. }, _) => match stale_at {
            Some(since) if now >= since => {
                let heard_ever = seen.last_heartbeat_at.is_some();
                let reason = if heard_ever { OfflineReason::Stale } else { OfflineReason::NeverSeen };
                Target::Silent { since, reason }
            }
            _ if now.since(contact) <= terms.stale_after => Target::Heard { at: contact },
            _ => Target::Excused,
        },
    }
}

/// What becomes of what is recorded. Every pair is looked at.
#[expect(clippy::match_same_arms, reason = "pairs that keep the record do so for different reasons")]
fn standing(seen: &Seen, contact: Timestamp, target: Target) -> Option<Standing> {
    use OfflineReason::{Goodbye, NeverSeen, Stale, Stopped};
    use Standing::{Offline, Online};

    // Times never run backwards within one record, however late a message was.
    let no_sooner = |at: Timestamp| seen.was.map_or(at, |was| at.max(was.since()));
    match (seen.was, target) {
        (None, Target::Heard { at }) => Some(Online { since: at }),
        // Nobody has looked since it enrolled, and enrolling was a sign of life.
        (None, Target::Excused) => Some(Online { since: contact }),

        // The brake: we may be the ones who are deaf, so nobody is newly marked for silence. A goodbye and
        // a stop are facts and pass.
        (was @ (None | Some(Online { .. })), Target::Silent { .. }) if seen.brake_engaged => was,
        (None | Some(Online { .. }), Target::Silent { since, reason }) => {
            Some(Offline { since: no_sooner(since), reason })
        }
        (None | Some(Online { .. }), Target::Left { at }) => {
            Some(Offline { since: no_sooner(at), reason: Goodbye })
        }
        (None | Some(Online { .. }), Target::Stopped { since }) => {
            Some(Offline { since: no_sooner(since), reason: Stopped })
        }
        (was @ Some(Online { .. }), Target::Heard { .. } | Target::Excused) => was,

        // A sign of life from before the goodbye or the stop: it does not undo what came after it, recent
        // as it is. (After a quick restart the last heartbeat of the old run is only seconds old.)
        (was @ Some(Offline { since, reason: Goodbye | Stopped }), Target::Heard { at }) if at <= since => {
            was
        }
        (Some(Offline { .. }), Target::Heard { at }) => Some(Online { since: no_sooner(at) }),
        // A thaw excuses the silence from now on; it does not prove that anybody is there.
        (was @ Some(Offline { .. }), Target::Excused) => was,
        // It runs again and says nothing: "stopped" would be untrue now. Offline all the same, so this is
        // no transition, and the brake does not mind.
        (Some(Offline { since, reason: Stopped }), Target::Silent { reason, .. }) => {
            Some(Offline { since, reason })
        }
        // After a goodbye, silence is what was promised.
        (was @ Some(Offline { reason: Stale | NeverSeen | Goodbye, .. }), Target::Silent { .. }) => was,
        // Silent first, then heard of: a goodbye that was under way for long tells more than silence.
        (Some(Offline { since, reason: Stale | NeverSeen }), Target::Left { .. }) => {
            Some(Offline { since, reason: Goodbye })
        }
        // It was started again, said nothing but goodbye: the stop is not the reason any more.
        (Some(Offline { since, reason: Stopped }), Target::Left { at }) if at > since => {
            Some(Offline { since, reason: Goodbye })
        }
        // The goodbye was part of the stop.
        (was @ Some(Offline { reason: Goodbye | Stopped, .. }), Target::Left { .. }) => was,
        // Offline since it fell silent, and now we know why it stays so.
        (Some(Offline { since, .. }), Target::Stopped { .. }) => Some(Offline { since, reason: Stopped }),
    }
}

fn change(was: Option<Standing>, is: Option<Standing>) -> Change {
    match (was, is) {
        (None | Some(Standing::Offline { .. }), Some(Standing::Online { .. })) => Change::WentOnline,
        (None | Some(Standing::Online { .. }), Some(Standing::Offline { reason, .. })) => {
            Change::WentOffline { reason }
        }
        (Some(Standing::Online { .. }), Some(Standing::Online { .. }))
        | (Some(Standing::Offline { .. }), Some(Standing::Offline { .. }))
        | (_, None) => Change::None,
    }
}
