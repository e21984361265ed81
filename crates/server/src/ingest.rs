//! Evidence that arrives by itself: bytes through the front door, later what agents say.
//!
//! It is kept in memory, the newest of each worker and source, and written in one batch a second: a byte is O(1)
//! and re-arms no timer. What must stay true is that nobody is put to sleep while evidence to the contrary waits
//! here. Three things see to it:
//! - flushes are one after the other, and each says up to when everything is written;
//! - a pause goes ahead only after a flush that began after it was judged (the barrier);
//! - after its commit a flush looks whom it touched, and who is on the way to sleep is woken.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::event::Event;
use drowse_core::id::WorkerId;
use drowse_core::signal::Signal;
use drowse_store::{Arrival, Lane, Replica, RouterSession, StoreError};

use crate::shared::{Shared, lock};

/// How often evidence is written.
pub(crate) const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// How long this replica and its router are taken for alive after they last said so.
pub(crate) const ALIVE_FOR: Duration = Duration::from_secs(15);

/// The front door stops forwarding this long before others take it for gone: a byte that is on its way through
/// the loop still arrives before that.
pub(crate) const BEFORE_THE_END: Duration = Duration::from_secs(1);

/// How often they say so.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(5);

/// Whoever cannot write for this long takes in nothing more.
const GIVES_UP_AFTER: Duration = Duration::from_secs(3);

/// Evidence on its way.
#[derive(Debug, Default)]
pub(crate) struct Ingest {
    buffer: Mutex<Buffer>,
    /// Held during a flush. A second one beside it would say "all written up to now" while the first has not
    /// committed what it took.
    flushing: tokio::sync::Mutex<Flushing>,
    /// The last flush failed. Beside the buffer: the door asks for every bunch of bytes.
    is_failing: AtomicBool,
}

#[derive(Debug, Default)]
struct Buffer {
    arrivals: HashMap<(WorkerId, &'static str), Arrival>,
    /// What a flush has taken and not yet committed.
    in_transit: HashMap<WorkerId, Timestamp>,
    /// Since when nothing could be written.
    failing_since: Option<Timestamp>,
}

#[derive(Debug, Default)]
struct Flushing {
    announced_at: Option<Timestamp>,
    /// Everything that had arrived by then is written.
    through: Option<Timestamp>,
}

/// Bytes through the front door.
pub(crate) const ROUTER: &str = "router";

impl Shared {
    /// Notes that a worker was in use, by bytes through the front door. False: it cannot be written, so whoever
    /// brings it must not rely on it.
    pub(crate) fn saw_bytes(&self, worker: &WorkerId) -> bool {
        let mut buffer = lock(&self.ingest.buffer);
        // Under the lock, as in a flush: what is noted after a flush took the buffer is not older than it.
        let now = self.clock.now();
        if buffer.failing_since.is_some_and(|since| now.since(since) >= GIVES_UP_AFTER) {
            return false;
        }
        let arrival = buffer.arrivals.entry((worker.clone(), ROUTER)).or_insert_with(|| Arrival {
            worker: worker.clone(),
            source: ROUTER.to_owned(),
            boot: None,
            activity_at: None,
            read_at: now,
            doc: serde_json::Value::Null,
        });
        // A tick later than now: at the very instant of a decision it must still count as newer, because the
        // decision may have looked into the buffer before.
        arrival.activity_at = Some(now + Duration::from_micros(1));
        arrival.read_at = now;
        true
    }

    /// The newest activity of a worker that is not yet written.
    ///
    /// Asked under the worker's lock when a pause commits: what arrived between the barrier and the commit is
    /// older than the intent, so that no later flush would undo it.
    pub(crate) fn unwritten_activity(&self, worker: &WorkerId) -> Option<Timestamp> {
        let buffer = lock(&self.ingest.buffer);
        let waiting = buffer.arrivals.get(&(worker.clone(), ROUTER)).and_then(|arrival| arrival.activity_at);
        let written_soon = waiting.max(buffer.in_transit.get(worker).copied());
        drop(buffer);
        // Whoever is connected uses it now. A tick later, as with bytes.
        let at_the_door = self.untold.get(worker).map(|pending| {
            if pending.edge.count > 0 { self.clock.now() + Duration::from_micros(1) } else { pending.at }
        });
        written_soon.max(at_the_door)
    }

    /// Whether the last attempt to write failed. Nothing is decided then.
    pub(crate) fn cannot_write(&self) -> bool {
        self.ingest.is_failing.load(Ordering::Acquire)
    }

    /// Whether evidence can be taken in.
    pub(crate) fn takes_evidence(&self) -> bool {
        let failing = lock(&self.ingest.buffer).failing_since;
        failing.is_none_or(|since| self.clock.now().since(since) < GIVES_UP_AFTER)
    }

    /// The barrier: what had arrived by `at` is written. Of many who wait for it at once, the first flushes for
    /// all who came before it began.
    pub(crate) async fn flush_past(self: &Arc<Self>, at: Timestamp) -> Result<(), StoreError> {
        let flushing = self.ingest.flushing.lock().await;
        if flushing.through.is_some_and(|through| through >= at) {
            return Ok(());
        }
        self.flush_now(flushing).await
    }

    /// Writes what has arrived, and that everything up to now is written.
    pub(crate) async fn flush(self: &Arc<Self>) -> Result<(), StoreError> {
        self.flush_now(self.ingest.flushing.lock().await).await
    }

    async fn flush_now(
        self: &Arc<Self>,
        mut flushing: tokio::sync::MutexGuard<'_, Flushing>,
    ) -> Result<(), StoreError> {
        let (through, batch) = {
            let mut buffer = lock(&self.ingest.buffer);
            let arrivals: Vec<Arrival> = buffer.arrivals.drain().map(|(_, arrival)| arrival).collect();
            buffer.in_transit = arrivals
                .iter()
                .filter_map(|arrival| arrival.activity_at.map(|at| (arrival.worker.clone(), at)))
                .collect();
            (self.clock.now(), arrivals)
        };
        let outcome = self.write_batch(&mut flushing, through, &batch).await;
        match outcome {
            Ok(touched) => {
                flushing.through = Some(through);
                let mut buffer = lock(&self.ingest.buffer);
                if buffer.failing_since.take().is_some() {
                    tracing::info!("activity can be written again");
                }
                buffer.in_transit.clear();
                drop(buffer);
                self.ingest.is_failing.store(false, Ordering::Release);
                self.notices.store_is(None);
                for worker in touched {
                    self.wake_touched(worker);
                }
                Ok(())
            }
            Err(error) => {
                if self.put_back(batch, through) {
                    tracing::warn!(%error, "activity cannot be written; nothing is put to sleep until it can");
                }
                self.notices.store_is(Some(&error));
                self.metrics.count(|counted| counted.failed_flushes += 1);
                Err(error)
            }
        }
    }

    async fn write_batch(
        &self,
        flushing: &mut Flushing,
        through: Timestamp,
        batch: &[Arrival],
    ) -> Result<Vec<WorkerId>, StoreError> {
        if flushing.announced_at.is_none_or(|at| through >= at + ANNOUNCE_INTERVAL) {
            self.announce(through).await?;
            flushing.announced_at = Some(through);
        }
        let replica = self.replica.clone();
        if batch.is_empty() {
            let say = move |tx: &drowse_store::Tx<'_>| tx.say_flushed(&replica, through);
            self.db.tx("flush", Lane::Ordinary, say).await?;
            return Ok(Vec::new());
        }
        let batch = batch.to_vec();
        let flushed =
            self.db.run("flush", move |store| store.flush_evidence(&replica, &batch, through)).await?;
        Ok(flushed.touched.into_iter().map(|touched| touched.worker).collect())
    }

    /// Says that this replica and its router are alive.
    async fn announce(&self, now: Timestamp) -> Result<(), StoreError> {
        let (id, started_at) = (self.replica.clone(), self.started_at);
        self.db
            .tx("announce", Lane::Ordinary, move |tx| {
                let alive_until = now + ALIVE_FOR;
                tx.announce_replica(&Replica {
                    id: id.clone(),
                    doc: serde_json::Value::Null,
                    started_at,
                    alive_until,
                    // Only a flush moves this on; a new replica has nothing from before its start.
                    flushed_through: Some(started_at),
                })?;
                tx.renew_session(&RouterSession { id, started_at, alive_until })
            })
            .await?;
        let valid_until = now + ALIVE_FOR - BEFORE_THE_END;
        self.session_until.store(valid_until.as_micros(), Ordering::Release);
        Ok(())
    }

    /// It could not be written: it is kept, and what has arrived since is newer. Whether that is news.
    fn put_back(&self, batch: Vec<Arrival>, since: Timestamp) -> bool {
        let mut buffer = lock(&self.ingest.buffer);
        let is_news = buffer.failing_since.is_none();
        buffer.failing_since.get_or_insert(since);
        self.ingest.is_failing.store(true, Ordering::Release);
        buffer.in_transit.clear();
        for arrival in batch {
            buffer.arrivals.entry((arrival.worker.clone(), ROUTER)).or_insert(arrival);
        }
        is_news
    }

    /// A worker was in use after it was decided to put it to sleep.
    ///
    /// The evidence was on its way while the pause committed: the barrier had waited for the flush before this
    /// one. The pause is undone, whatever stage it is in.
    fn wake_touched(self: &Arc<Self>, worker: WorkerId) {
        let shared = Arc::clone(self);
        self.tasks.spawn(async move {
            // Refused or failed, the next check of the worker looks at the same evidence again.
            let arrived = Event::ActivityArrived { by: Signal::Connections };
            let _ = shared.change("touched", Lane::Wake, &worker, move |change| change.apply(&arrived)).await;
        });
    }
}
