//! The append-only journal.
//!
//! Ids become visible in the order of the commits: whoever has seen number 7 will not see a number 6 appear
//! later, so a reader that goes on after its last id loses nothing. On PostgreSQL numbers are drawn under a
//! lock that is released after the commit is visible; without it a slow transaction with number 6 would
//! commit after a fast one with number 7, behind the back of every reader. SQLite has one writer.

use std::fmt;
use std::str::FromStr;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::journal::Entry;
use serde::Serialize;
use serde_json::Value;

use crate::error::StoreError;
use crate::meta::Epoch;
use crate::row::{from_json, to_json, without_nul, worker_id};
use crate::sql::{Append, Row};
use crate::tx::{Tx, View};

/// Something to be written down.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// When it happened.
    pub at: Timestamp,
    /// To which worker, if to one.
    pub worker: Option<WorkerId>,
    /// Its type, such as `worker.paused`.
    pub kind: String,
    /// The rest; only Rust looks into it.
    pub doc: Value,
}

impl NewEvent {
    /// What a step noted about a worker.
    pub fn of(entry: &Entry, worker: &WorkerId, at: Timestamp) -> Self {
        let doc = serde_json::to_value(entry).expect("an entry is an object with texts and numbers");
        Self { at, worker: Some(worker.clone()), kind: entry.event_type().to_owned(), doc }
    }

    fn columns(&self) -> impl Serialize + '_ {
        (self.at.as_micros(), &self.worker, without_nul(&self.kind), self.doc.to_string())
    }
}

/// Something that was written down.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredEvent {
    /// Its number: grows in the order of the commits, with gaps.
    pub seq: i64,
    pub event: NewEvent,
}

/// An event's id as others see it: the number alone would be ambiguous after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventId {
    pub epoch: Epoch,
    pub seq: i64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.seq)
    }
}

/// A text that is no event's id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an event's id such as 1f-42, found {found:?}")]
pub struct NotAnEventId {
    found: String,
}

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<Self, NotAnEventId> {
        let parse = || {
            let (epoch, seq) = text.split_once('-')?;
            let epoch = Epoch(u64::from_str_radix(epoch, 16).ok()?);
            Some(EventId { epoch, seq: seq.parse().ok().filter(|seq| *seq >= 0)? })
        };
        parse().ok_or_else(|| NotAnEventId { found: text.chars().take(64).collect() })
    }
}

/// Where a reader goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// After this number; nothing is lost.
    After(i64),
    /// What it saw last belongs to another life of the journal, or what came next has been pruned: it must
    /// look at the whole picture again.
    Lost,
}

/// Which events to read.
#[derive(Clone, Debug, Default)]
pub struct EventFilter<'a> {
    /// Only those of this worker.
    pub worker: Option<&'a WorkerId>,
    /// Only those of this type.
    pub kind: Option<&'a str>,
}

impl Tx<'_> {
    /// Deletes up to `limit` of the oldest events from before `before`; how many. In batches, so that nobody
    /// waits for long.
    pub fn prune_events(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.execute(
            "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE at < $1 ORDER BY id LIMIT $2)",
            &[before.into(), limit.into()],
        )
    }

    /// How far a sink has got; it never goes back.
    pub fn set_sink_cursor(&self, sink: &str, seq: i64) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO sink_cursor (sink, position) VALUES ($1, $2)
             ON CONFLICT (sink) DO UPDATE SET position = CASE
                WHEN excluded.position > sink_cursor.position
                THEN excluded.position ELSE sink_cursor.position END",
            &[sink.into(), seq.into()],
        )?;
        Ok(())
    }
}

impl View<'_> {
    pub(crate) fn insert_events(&self, events: &[NewEvent]) -> Result<(), StoreError> {
        match self.dialect().append {
            Append::Each(statement) => {
                for event in events {
                    let (kind, doc) = (without_nul(&event.kind), event.doc.to_string());
                    let worker = event.worker.as_ref().map(WorkerId::as_str);
                    self.execute(
                        statement,
                        &[event.at.into(), worker.into(), kind.as_ref().into(), (&doc).into()],
                    )?;
                }
            }
            Append::All(statement) => {
                let rows: Vec<_> = events.iter().map(NewEvent::columns).collect();
                self.execute(statement, &[(&to_json(&rows)).into()])?;
            }
        }
        Ok(())
    }

    /// Events after a number, oldest first.
    pub fn events_after(
        &self,
        seq: i64,
        limit: usize,
        filter: &EventFilter<'_>,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.query(
            "SELECT id, at, worker_id, kind, doc FROM event
             WHERE id > $1 AND (CAST($2 AS TEXT) IS NULL OR worker_id = $2)
                AND (CAST($3 AS TEXT) IS NULL OR kind = $3)
             ORDER BY id LIMIT $4",
            &[seq.into(), filter.worker.map(WorkerId::as_str).into(), filter.kind.into(), limit.into()],
            stored,
        )
    }

    /// Events before a number, newest first: a page of history. From `i64::MAX` on for the latest.
    pub fn events_before(
        &self,
        seq: i64,
        limit: usize,
        filter: &EventFilter<'_>,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.query(
            "SELECT id, at, worker_id, kind, doc FROM event
             WHERE id < $1 AND (CAST($2 AS TEXT) IS NULL OR worker_id = $2)
                AND (CAST($3 AS TEXT) IS NULL OR kind = $3)
             ORDER BY id DESC LIMIT $4",
            &[seq.into(), filter.worker.map(WorkerId::as_str).into(), filter.kind.into(), limit.into()],
            stored,
        )
    }

    /// Events of a worker up to an instant, newest first.
    pub fn events_until(
        &self,
        worker: &WorkerId,
        at: Timestamp,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, StoreError> {
        self.query(
            "SELECT id, at, worker_id, kind, doc FROM event
             WHERE worker_id = $1 AND at <= $2 ORDER BY id DESC LIMIT $3",
            &[worker.as_str().into(), at.into(), limit.into()],
            stored,
        )
    }

    /// The number of the newest event; 0 if there is none.
    pub fn newest_event(&self) -> Result<i64, StoreError> {
        let found = self.query_one("SELECT id FROM event ORDER BY id DESC LIMIT 1", &[], |row| row.int(0))?;
        Ok(found.unwrap_or_default())
    }

    /// Where a reader goes on that has seen `last`.
    pub fn resume_after(&self, last: EventId) -> Result<Resume, StoreError> {
        if last.epoch != self.epoch()? {
            return Ok(Resume::Lost);
        }
        let oldest = self.query_one("SELECT id FROM event ORDER BY id LIMIT 1", &[], |row| row.int(0))?;
        // Numbers have gaps, so an event that is not there may never have been. But one that is older than
        // the oldest has certainly been pruned, and its successors maybe too.
        let is_pruned = oldest.is_some_and(|oldest| last.seq + 1 < oldest) && last.seq > 0;
        Ok(if is_pruned { Resume::Lost } else { Resume::After(last.seq) })
    }

    /// How far a sink has got; 0 if it has not begun.
    pub fn sink_cursor(&self, sink: &str) -> Result<i64, StoreError> {
        let found =
            self.query_one("SELECT position FROM sink_cursor WHERE sink = $1", &[sink.into()], |row| {
                row.int(0)
            })?;
        Ok(found.unwrap_or_default())
    }
}

fn stored(row: &Row<'_>) -> Result<StoredEvent, StoreError> {
    let seq = row.int(0)?;
    Ok(StoredEvent {
        seq,
        event: NewEvent {
            at: row.at(1)?,
            worker: row.opt_text(2)?.map(worker_id).transpose()?,
            kind: row.text(3)?.to_owned(),
            doc: from_json(row.text(4)?, "event", &seq.to_string())?,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_goes_out_and_comes_back() {
        let id = EventId { epoch: Epoch(0xfeed), seq: 42 };
        assert_eq!(id.to_string(), "feed-42");
        assert_eq!("feed-42".parse(), Ok(id));
        for bad in ["", "42", "feed", "feed-", "-42", "feed--1", "xyz-1", "feed-1-2"] {
            assert!(bad.parse::<EventId>().is_err(), "{bad:?} was taken for an id");
        }
    }
}
