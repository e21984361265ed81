//! How far a worker's history has been counted.
//!
//! ```text
//!   known, never counted again │ counted unless seen          │ new
//!  ────────────────────────────┼──────────────────────────────┼─────────▶ event time
//!                            floor = high − OVERLAP          high ≤ now
//! ```
//!
//! The mark is a time of the *events*, not of the check: a fetch at 10:00 need not show what happened at
//! 9:59. `high` is never later than the check's now, so that one event from the future cannot push the
//! mark past the real ones that follow; such an event is remembered by its fingerprint alone.
//!
//! An event below the floor that was never seen is not told from one that was counted long ago, and does
//! not count. No activity is lost by that: `high` is the time of an event that did count, so
//! `last_activity_at`, which never goes back, is already later.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Event, User};
use crate::Timestamp;

/// How far below the mark an event may lie and still be new.
///
/// The largest honest error of a clock is a wrong time zone, which is at most 26 hours (UTC−12 to UTC+14),
/// and a service that writes late does so by minutes. Two days hold both, and a worker sees some
/// fifty of a person's events in them.
pub const OVERLAP: Duration = Duration::from_hours(48);

/// The most events that are remembered one by one: 64 KiB, and ninety times what a
/// usual worker has in the overlap.
///
/// Past it the floor rises over the oldest of them, so that forgetting never counts an event twice. Events
/// from the future cannot be let go that way; if there are more of those than this, they count again at
/// each check, and the worker stays awake until its clock is put right.
pub const MAX_SEEN: usize = 4_096;

/// How far one worker's history has been counted; stored with the worker.
///
/// It must be stored in the same transaction as the `last_activity_at` that came with it: what the mark
/// knows is not told again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mark {
    /// The latest time of a counted event; `None` before the first.
    pub(super) high: Option<Timestamp>,
    /// Events strictly before this are known.
    pub(super) floor: Option<Timestamp>,
    /// The counted events from the floor on, sorted.
    #[serde(deserialize_with = "sorted")]
    pub(super) seen: Vec<Seen>,
    /// Readable events of the last fetch.
    pub(super) good: u64,
    /// Unreadable events of the last fetch.
    pub(super) bad: u64,
}

/// One counted event: its own time in microseconds, even if that is in the future, and its fingerprint.
///
/// A collision needs two events of the same instant with the same 64 bits, and costs nothing but a count:
/// the one that was counted has set the same `last_activity_at` as the other would.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Seen(pub(super) i64, pub(super) u64);

/// A stored mark that was edited by hand must still be searchable.
fn sorted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Seen>, D::Error> {
    let mut seen = Vec::deserialize(deserializer)?;
    seen.sort_unstable();
    Ok(seen)
}

impl Mark {
    /// The latest time of a counted event; `None` before the first.
    pub fn high(&self) -> Option<Timestamp> {
        self.high
    }

    /// How many events are remembered one by one.
    pub fn remembered(&self) -> usize {
        self.seen.len()
    }

    /// Whether an event of this time must be taken for one that was counted at an earlier fetch.
    pub(super) fn is_past(&self, time: Timestamp) -> bool {
        self.floor.is_some_and(|floor| time < floor)
    }

    /// Whether this very event was counted at an earlier fetch.
    pub(super) fn has_seen(&self, event: Seen) -> bool {
        self.seen.binary_search(&event).is_ok()
    }

    /// The mark after `fresh` events, sorted, the newest of which is at `latest` (never later than now).
    pub(super) fn advanced(&self, latest: Option<Timestamp>, fresh: impl IntoIterator<Item = Seen>) -> Self {
        let mut next = self.clone();
        let Some(high) = self.high.max(latest) else {
            return next;
        };
        next.high = Some(high);
        next.seen.extend(fresh);
        // Two sorted runs: the stable sort sees that and merges.
        next.seen.sort();
        next.raise_floor(high.before(OVERLAP));
        if let Some(excess) = next.seen.len().checked_sub(MAX_SEEN + 1) {
            let above_oldest = Timestamp::from_micros(next.seen[excess].0.saturating_add(1));
            next.seen.drain(..=excess);
            // Not above the mark: what is forgotten there lies in the future, and so would the floor.
            next.raise_floor(above_oldest.min(Timestamp::from_micros(high.as_micros().saturating_add(1))));
        }
        next
    }

    fn raise_floor(&mut self, to: Timestamp) {
        let floor = self.floor.map_or(to, |floor| floor.max(to));
        self.floor = Some(floor);
        let known = self.seen.partition_point(|seen| seen.0 < floor.as_micros());
        self.seen.drain(..known);
    }
}

/// 64-bit FNV-1a.
///
/// By hand because it is stored: a hash from elsewhere may change with a version, and then everything in
/// the overlap would count once more.
#[derive(Clone, Copy)]
pub(super) struct Fnv(u64);

impl Fnv {
    pub(super) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) const fn byte(self, byte: u8) -> Self {
        Self((self.0 ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3))
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        bytes.iter().fold(self, |hash, byte| hash.byte(*byte))
    }

    /// A text and its end: 0xff is in no UTF-8, so "ab" + "c" is not "a" + "bc".
    pub(super) fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).byte(0xff)
    }

    pub(super) const fn get(self) -> u64 {
        self.0
    }
}

/// What tells an event from others of the same instant: category, user and all data.
///
/// The time itself is compared as an instant, so `…59` and `…59Z` are one event.
pub(super) fn fingerprint(category: &str, event: &Event<'_>) -> u64 {
    let hash = Fnv::new().text(category);
    let hash = match &event.user {
        User::Missing => hash.byte(0),
        User::Null => hash.byte(1),
        User::NotText => hash.byte(2),
        User::Text(id) => hash.byte(3).text(id),
    };
    // A sum, because the order of the fields means nothing and may change from fetch to fetch.
    let fields = event
        .data
        .iter()
        .fold(0u64, |sum, (key, value)| sum.wrapping_add(value.fingerprint(Fnv::new().text(key)).get()));
    hash.bytes(&fields.to_le_bytes()).get()
}
