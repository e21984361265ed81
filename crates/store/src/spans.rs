//! History as spans: who was active, unknown, held or asleep, from when until when.
//!
//! Timeline, savings and backtest read the same rows. Readers must not rely on spans being disjoint: two
//! replicas may write overlapping ones, which say the same thing twice.

use core::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;

use crate::error::StoreError;
use crate::row::worker_id;
use crate::sql::Row;
use crate::tx::{Tx, View};
use crate::workers::Locked;

/// Activity over shorter gaps is one stretch of work: what a person does comes in bursts.
const MERGED_OVER: Duration = Duration::from_secs(30);

/// What a span tells about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanLane {
    /// The worker was in use.
    Activity,
    /// It was not known whether it was.
    Unknown,
    /// Something held it.
    Hold,
    /// What its power was.
    Power,
}

impl SpanLane {
    pub const ALL: [SpanLane; 4] = [SpanLane::Activity, SpanLane::Unknown, SpanLane::Hold, SpanLane::Power];

    pub const fn code(self) -> &'static str {
        match self {
            SpanLane::Activity => "activity",
            SpanLane::Unknown => "unknown",
            SpanLane::Hold => "hold",
            SpanLane::Power => "power",
        }
    }

    /// Which gaps do not count.
    const fn merged_over(self) -> Duration {
        match self {
            SpanLane::Activity => MERGED_OVER,
            SpanLane::Unknown | SpanLane::Hold | SpanLane::Power => Duration::ZERO,
        }
    }
}

/// A stretch of a worker's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Whose.
    pub worker: WorkerId,
    /// What it tells about.
    pub lane: SpanLane,
    /// Its first instant.
    pub from: Timestamp,
    /// The first instant after it; `None`: it goes on.
    pub until: Option<Timestamp>,
    /// What was so: a signal, a kind of hold, a power state with its cause.
    pub value: String,
}

impl Tx<'_> {
    /// Writes down a stretch that is over, as one with those of the same value that it touches.
    pub fn record_span(
        &self,
        worker: &WorkerId,
        lane: SpanLane,
        from: Timestamp,
        until: Timestamp,
        value: &str,
    ) -> Result<(), StoreError> {
        let reach = lane.merged_over();
        let touching = self.query(
            "DELETE FROM span
             WHERE worker_id = $1 AND lane = $2 AND value = $3 AND from_at <= $4 AND until_at >= $5
             RETURNING from_at, until_at",
            &[
                worker.as_str().into(),
                lane.code().into(),
                value.into(),
                (until + reach).into(),
                (from - reach).into(),
            ],
            |row| Ok((row.at(0)?, row.at(1)?)),
        )?;
        let from = touching.iter().map(|span| span.0).fold(from, Timestamp::min);
        let until = touching.iter().map(|span| span.1).fold(until, Timestamp::max);
        self.insert_span(worker, lane, from, Some(until), value)
    }

    /// Deletes up to `limit` spans that were over before `before`; how many.
    pub fn prune_spans(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        self.execute(
            "DELETE FROM span WHERE (worker_id, lane, from_at) IN (
                SELECT worker_id, lane, from_at FROM span WHERE until_at < $1 ORDER BY until_at LIMIT $2)",
            &[before.into(), limit.into()],
        )
    }

    fn insert_span(
        &self,
        worker: &WorkerId,
        lane: SpanLane,
        from: Timestamp,
        until: Option<Timestamp>,
        value: &str,
    ) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO span (worker_id, lane, from_at, until_at, value) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (worker_id, lane, from_at) DO UPDATE SET value = excluded.value,
                until_at = CASE
                    WHEN excluded.until_at > span.until_at OR excluded.until_at IS NULL
                    THEN excluded.until_at ELSE span.until_at END",
            &[worker.as_str().into(), lane.code().into(), from.into(), until.into(), value.into()],
        )?;
        Ok(())
    }
}

impl Locked<'_> {
    /// From `at` on, `value` is so: what was so before ends, unless it is the same. `None`: nothing is.
    pub fn switch_span(
        &mut self,
        lane: SpanLane,
        value: Option<&str>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let id = self.id().as_str();
        // The open one is the newest of its lane: a long history is not searched for it.
        let newest = self.tx.query_one(
            "SELECT from_at, value, until_at FROM span WHERE worker_id = $1 AND lane = $2
             ORDER BY from_at DESC LIMIT 1",
            &[id.into(), lane.code().into()],
            |row| Ok((row.at(0)?, row.text(1)?.to_owned(), row.opt_at(2)?)),
        )?;
        let open = newest.filter(|(_, _, until)| until.is_none());
        if open.as_ref().map(|(_, was, _)| was.as_str()) == value {
            return Ok(());
        }
        if let Some((from, _, _)) = open {
            // Never shorter than nothing, should the clock have gone back.
            self.tx.execute(
                "UPDATE span SET until_at = $1 WHERE worker_id = $2 AND lane = $3 AND from_at = $4",
                &[at.max(from).into(), id.into(), lane.code().into(), from.into()],
            )?;
        }
        match value {
            Some(value) => self.tx.insert_span(self.id(), lane, at, None, value),
            None => Ok(()),
        }
    }
}

impl View<'_> {
    /// A worker's spans that overlap a period, by their beginnings.
    pub fn spans(
        &self,
        worker: &WorkerId,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Span>, StoreError> {
        self.query(
            "SELECT worker_id, lane, from_at, until_at, value FROM span
             WHERE worker_id = $1 AND from_at < $2 AND (until_at IS NULL OR until_at > $3)
             ORDER BY from_at, lane",
            &[worker.as_str().into(), until.into(), from.into()],
            span,
        )
    }

    /// All workers' spans of one lane that overlap a period, by worker.
    pub fn lane_spans(
        &self,
        lane: SpanLane,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Span>, StoreError> {
        self.query(
            "SELECT worker_id, lane, from_at, until_at, value FROM span
             WHERE lane = $1 AND from_at < $2 AND (until_at IS NULL OR until_at > $3)
             ORDER BY worker_id, from_at",
            &[lane.code().into(), until.into(), from.into()],
            span,
        )
    }
}

fn span(row: &Row<'_>) -> Result<Span, StoreError> {
    let code = row.text(1)?;
    let lane = SpanLane::ALL
        .into_iter()
        .find(|lane| lane.code() == code)
        .ok_or_else(|| StoreError::Corrupt(format!("unknown lane {code}").into()))?;
    Ok(Span {
        worker: worker_id(row.text(0)?)?,
        lane,
        from: row.at(2)?,
        until: row.opt_at(3)?,
        value: row.text(4)?.to_owned(),
    })
}
