//! One pass over a history.

use alloc::collections::BTreeSet;
use core::fmt;

use serde::de::{Deserializer, SeqAccess, Visitor};

use super::mark::{MAX_SEEN, Seen, fingerprint};
use super::{Activity, Categories, Digest, Event, Mark, RECENT_EVENTS, time};
use crate::Timestamp;

/// The most events of one pass that are remembered to find copies among them.
///
/// Memory must not grow with the history, and a first fetch can hold years of it. The oldest half is let
/// go: a copy of one of those would count twice, in a number and nowhere else. At least [`MAX_SEEN`] must
/// be left, or the mark would miss some.
const MAX_FRESH: usize = 4 * MAX_SEEN;

/// Takes a history event by event, in any order.
///
/// The mark is borrowed and not changed: if the fetch breaks off, drop the filter and nothing happened.
#[derive(Debug)]
pub struct Filter<'a> {
    categories: &'a Categories,
    mark: &'a Mark,
    now: Timestamp,
    keep: usize,
    fresh: BTreeSet<Seen>,
    digest: Digest,
}

impl<'a> Filter<'a> {
    /// Begins a pass at `now` over the history of the worker whose mark this is.
    pub fn new(categories: &'a Categories, mark: &'a Mark, now: Timestamp) -> Self {
        Self { categories, mark, now, keep: RECENT_EVENTS, fresh: BTreeSet::new(), digest: Digest::default() }
    }

    /// Keeps the newest `n` events in the digest instead of [`RECENT_EVENTS`].
    #[must_use]
    pub fn keeping(mut self, n: usize) -> Self {
        self.keep = n;
        self
    }

    /// Reads a whole answer: an array, of which one event at a time is in memory.
    ///
    /// What ends this is an answer that is no array or no JSON, never an event. Whether something follows the
    /// array is for the caller to see, who has the parser.
    pub fn read<'de, D: Deserializer<'de>>(&mut self, answer: D) -> Result<(), D::Error> {
        answer.deserialize_seq(Answer(self))
    }

    /// Takes one event.
    pub fn feed(&mut self, event: &Event<'_>) {
        self.digest.examined += 1;
        let (Some(category), Some(text)) = (event.category.as_deref(), event.timestamp.as_deref()) else {
            self.digest.skipped_bad += 1;
            return;
        };
        // Before the category: if no time at all can be read, not even of noise, the answer is worth
        // nothing, and that must show.
        let Some(time) = time::parse(text) else {
            self.digest.skipped_bad += 1;
            return;
        };
        if self.categories.counts(category, &event.user) {
            self.take(category, time, event);
        } else {
            self.digest.excluded += 1;
        }
    }

    /// Takes a person's event.
    fn take(&mut self, category: &str, time: Timestamp, event: &Event<'_>) {
        // First, because almost all of a history lies there, and needs no fingerprint.
        if self.mark.is_past(time) {
            self.digest.duplicates += 1;
            return;
        }
        let seen = Seen(time.as_micros(), fingerprint(category, event));
        if self.mark.has_seen(seen) || !self.fresh.insert(seen) {
            self.digest.duplicates += 1;
            return;
        }
        if self.fresh.len() > MAX_FRESH
            && let Some(middle) = self.fresh.iter().nth(MAX_FRESH / 2).copied()
        {
            self.fresh = self.fresh.split_off(&middle);
        }
        let at = time.min(self.now);
        let digest = &mut self.digest;
        digest.relevant += 1;
        digest.clamped += u64::from(time > self.now);
        digest.late += u64::from(self.mark.high.is_some_and(|high| time < high));
        digest.latest_activity_at = digest.latest_activity_at.max(Some(at));
        self.remember(at, category, event);
    }

    /// Keeps the event if it is among the newest. Events come oldest first as a rule, so this is also what
    /// the filter does most; nothing is copied before the time alone has let it in.
    fn remember(&mut self, at: Timestamp, category: &str, event: &Event<'_>) {
        let recent = &mut self.digest.recent;
        if recent.len() >= self.keep && recent.last().is_none_or(|oldest| at < oldest.at) {
            return;
        }
        let activity = Activity::new(at, category, event);
        // Equal times are ordered by content, so that the order of arrival leaves no trace.
        let place = recent.partition_point(|other| *other > activity);
        recent.insert(place, activity);
        recent.truncate(self.keep);
    }

    /// Ends the pass: what it brought, and the mark to store with it.
    pub fn finish(self) -> (Digest, Mark) {
        let Self { mark, fresh, mut digest, .. } = self;
        let mut next = mark.advanced(digest.latest_activity_at, fresh);
        next.bad = digest.skipped_bad;
        next.good = digest.examined - digest.skipped_bad;
        // More that cannot be read and not more that can: whatever came since the last fetch said nothing.
        let only_bad_is_new = next.bad > mark.bad && next.good <= mark.good;
        digest.unreadable = next.bad > 0 && (next.good == 0 || only_bad_is_new);
        (digest, next)
    }
}

struct Answer<'f, 'a>(&'f mut Filter<'a>);

impl<'de> Visitor<'de> for Answer<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of telemetry events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<Event<'de>>()? {
            self.0.feed(&event);
        }
        Ok(())
    }
}
