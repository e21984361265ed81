//! Chance, and what is really so about a worker: what the laws of a life are held against.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::status::StatusKind;
use tokio::task::JoinHandle;

/// The shortest idle timeout that is ever in force.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// What a processor did for less than this may be overlooked: it is less than 2 % of an interval.
pub(crate) const OVERLOOKED: Duration = Duration::from_millis(400);
/// Chance from a seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    pub(crate) fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    pub(crate) fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.roll(most - least + 1))
    }
}

/// What is really so about a worker, as far as its users are concerned.
pub(crate) struct Subject {
    pub(crate) id: WorkerId,
    pub(crate) busy_since: Option<Timestamp>,
    /// The last instant at which its processor worked.
    pub(crate) worked_at: Option<Timestamp>,
    pub(crate) bytes_at: Option<Timestamp>,
    pub(crate) connected_since: Option<Timestamp>,
    pub(crate) disconnected_at: Option<Timestamp>,
    pub(crate) leased_until: Option<Timestamp>,
    pub(crate) kept_until: Option<Timestamp>,
    pub(crate) waiting: Vec<JoinHandle<StatusKind>>,
}

impl Subject {
    pub(crate) fn new(id: WorkerId) -> Self {
        Self {
            id,
            busy_since: None,
            worked_at: None,
            bytes_at: None,
            connected_since: None,
            disconnected_at: None,
            leased_until: None,
            kept_until: None,
            waiting: Vec::new(),
        }
    }

    /// Nobody may have been put to sleep for idleness at `at` who was not idle.
    pub(crate) fn check_idle(&self, at: Timestamp, is_decision: bool, story: &dyn Fn() -> String) {
        let idle_since = |then: Option<Timestamp>| then.is_none_or(|then| at >= then + IDLE_TIMEOUT);
        let story = || {
            let seen = (self.busy_since, self.worked_at, self.bytes_at, self.disconnected_at);
            format!("{} was put to sleep at {at}, {seen:?}: {}", self.id, story())
        };
        assert!(self.leased_until.is_none_or(|until| until <= at), "leased: {}", story());
        assert!(self.kept_until.is_none_or(|until| until <= at), "kept awake: {}", story());
        assert!(self.connected_since.is_none_or(|since| since > at), "connected: {}", story());
        assert!(idle_since(self.disconnected_at.filter(|then| *then <= at)), "just left: {}", story());
        assert!(idle_since(self.bytes_at.filter(|then| *then <= at)), "bytes: {}", story());
        // What its processor does is read before the decision and not again.
        if !is_decision {
            return;
        }
        let has_worked = self.busy_since.is_some_and(|since| since + OVERLOOKED <= at);
        assert!(!has_worked, "busy: {}", story());
        assert!(idle_since(self.worked_at.map(|then| then - OVERLOOKED)), "worked: {}", story());
    }
}
