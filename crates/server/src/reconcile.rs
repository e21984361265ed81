//! The loop: deadlines, not scans.
//!
//! ```text
//!   due workers ──claim──▶ check ──▶ look, read, judge ──▶ one transaction ──▶ effects ──▶ driver
//!        ▲                                                       │                            │
//!        └───────────── next_check_at, nudges ◀──────────────────┴──────── answers ◀──────────┘
//! ```
//!
//! Each worker has one instant at which it is looked at next, in the store. The loop sleeps until the earliest
//! of them or until somebody nudges it. What a driver answers comes back as an event, with the intent that it
//! belongs to; what gets lost on the way is found again by the next look, because an intent that is open is due
//! at its deadline.

mod act;
mod begin;
mod check;
mod effects;
mod freeze;
mod hints;
mod keep_alive;
mod last_look;
mod ports;
mod queue;
mod recover;
mod signals;
mod standing;
mod sweep;
mod tell;
mod transition;
mod words;
mod work;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::brake::Trouble;
use drowse_store::{Lane, StoreError};

pub(crate) use act::JUDGED;
pub(crate) use effects::Subject;
pub(crate) use ports::Ports;
pub(crate) use queue::Queue;
pub(crate) use standing::Board;
pub(crate) use work::Work;

use crate::clock::Doubt;
use crate::fleet::Fleet;
use crate::ingest::FLUSH_INTERVAL;
use crate::shared::{Shared, lock};

/// How long a check may take. A replica that died is replaced after this time, and so is one that hangs.
const CLAIM_FOR: Duration = Duration::from_secs(30);

/// How often what is over is swept.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// A loop that comes this much later than it meant to has not seen what it should have.
pub(crate) const STALLED: Duration = Duration::from_secs(10);

/// The loop of one replica.
#[derive(Clone, Debug)]
pub struct Reconciler {
    shared: Arc<Shared>,
    done: Arc<Mutex<LastDone>>,
}

#[derive(Debug, Default)]
struct LastDone {
    flushed_at: Option<Timestamp>,
    swept_at: Option<Timestamp>,
    /// When it meant to come again at the latest.
    meant: Option<Timestamp>,
    /// The loop had stalled, and that is not written down yet.
    has_stalled: bool,
    /// The clock has jumped, and the brake does not know the new time yet.
    has_jumped: bool,
}

impl Reconciler {
    pub fn new(fleet: &Fleet) -> Self {
        Self { shared: Arc::clone(&fleet.0), done: Arc::default() }
    }

    /// Takes over what a former life left behind. To be called once, before the first tick.
    pub async fn start(&self) -> Result<(), StoreError> {
        self.shared.recover().await?;
        self.shared.heed_hints();
        self.shared.is_ready.store(true, Ordering::Release);
        Ok(())
    }

    /// Does everything that is due, and answers with when to come again. What takes time is started and goes on
    /// by itself.
    pub async fn tick(&self) -> Result<Timestamp, StoreError> {
        self.shared.queue.is_looking();
        let next = self.do_what_is_due().await;
        let soon = self.shared.clock.now() + FLUSH_INTERVAL;
        let meant = *next.as_ref().unwrap_or(&soon);
        lock(&self.done).meant = Some(meant);
        self.shared.queue.comes_at(meant);
        next
    }

    async fn do_what_is_due(&self) -> Result<Timestamp, StoreError> {
        self.note_stall();
        let now = self.shared.clock.now();
        let next_flush = now + FLUSH_INTERVAL;
        if let Err(error) = self.shared.make_up_for_absence().await {
            // Those who go by whether anything can be written hear of it by a flush that fails.
            let _ = self.shared.flush().await;
            return Err(error);
        }
        let is_due = |last: Option<Timestamp>, every: Duration| last.is_none_or(|last| now >= last + every);
        if is_due(lock(&self.done).flushed_at, FLUSH_INTERVAL) {
            lock(&self.done).flushed_at = Some(now);
            // It is kept and tried again; until it is written nobody is put to sleep.
            if self.shared.flush().await.is_ok() {
                self.shared.present_at(now).await;
            }
        }
        if self.shared.cannot_write() {
            return Ok(next_flush);
        }
        // What was done without the store goes first: else a check would take it for somebody else's doing.
        self.shared.tell_edges().await?;
        let is_each_second = lock(&self.done).flushed_at == Some(now);
        self.look_at_the_clock(is_each_second).await?;
        if is_each_second {
            self.shared.tend_brake().await?;
        }
        if is_due(lock(&self.done).swept_at, SWEEP_INTERVAL) {
            lock(&self.done).swept_at = Some(now);
            self.shared.sweep().await?;
        }
        let next_due = self.claim_due(now).await?;
        Ok(next_due.map_or(next_flush, |due| due.min(next_flush)))
    }

    /// Starts a check of everybody who is due, as far as there is room; when the next one is due.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "a method is not general over its lifetime"
    )]
    async fn claim_due(&self, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        loop {
            let Some(room) = self.shared.queue.room_for_some() else {
                // Whoever finishes nudges the loop.
                return Ok(None);
            };
            let due = self.shared.db.glance(|view| view.next_due_at()).await?;
            if due.is_none_or(|due| due > now) {
                return Ok(due);
            }
            let by = self.shared.replica.clone();
            let claimed = self
                .shared
                .db
                .tx("claim", Lane::Ordinary, move |tx| tx.claim_due(&by, now, now + CLAIM_FOR, room, None))
                .await?;
            if claimed.is_empty() {
                return Ok(Some(now + Duration::from_millis(100)));
            }
            if let Some(due) = due {
                self.shared.metrics.lag(now.since(due));
            }
            self.shared.begin_checks(claimed);
        }
    }

    /// Waits until somebody says that something may be due sooner than the last tick thought. Something that was
    /// said since the last wait counts.
    pub async fn nudged(&self) {
        self.shared.queue.nudged().await;
    }

    /// Ticks until `stop` is over.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        loop {
            let next = match self.tick().await {
                Ok(next) => next,
                // The store is away: nothing is decided, and a moment later it may be back.
                Err(error) => {
                    tracing::warn!(%error, "nothing is decided while the database does not answer");
                    self.shared.clock.now() + FLUSH_INTERVAL
                }
            };
            tokio::select! {
                biased;
                () = &mut stop => return,
                () = self.nudged() => {}
                () = self.shared.clock.sleep_until(next) => {}
            }
        }
    }

    /// Finds out whether the loop comes much later than it meant to.
    fn note_stall(&self) {
        let now = self.shared.clock.now();
        let mut done = lock(&self.done);
        done.has_stalled |= done.meant.is_some_and(|meant| now.since(meant) >= STALLED);
    }

    /// Nobody is put to sleep on ages that nobody can vouch for: first the brake is put on, then a jump of the
    /// clock is followed, then checks may rely on the loop again.
    async fn look_at_the_clock(&self, asks_the_store: bool) -> Result<(), StoreError> {
        let shared = &self.shared;
        if lock(&self.done).has_stalled {
            shared.note_trouble(Trouble::LoopStalled).await?;
            lock(&self.done).has_stalled = false;
        }
        if asks_the_store && shared.clock.is_of_the_store() {
            let clock = shared.clock.clone();
            shared.db.read(move |view| clock.measure(view)).await?;
        }
        match shared.clock.doubt() {
            Some(Doubt::Jumped(_)) => {
                shared.note_trouble(Trouble::ClockJumped).await?;
                lock(&self.done).has_jumped = true;
                shared.clock.follow();
            }
            // Whoever waits so long for the store does not come when it should.
            Some(Doubt::Slow(_)) => {
                shared.note_trouble(Trouble::LoopStalled).await?;
            }
            None => {}
        }
        if lock(&self.done).has_jumped {
            // Again in the new time: by that, the brake would have been on for as long as the jump was.
            shared.note_trouble(Trouble::ClockJumped).await?;
            lock(&self.done).has_jumped = false;
        }
        shared.looked_at.store(shared.clock.now().as_micros(), Ordering::Release);
        Ok(())
    }
}
