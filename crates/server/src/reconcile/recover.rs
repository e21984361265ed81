//! After a start, and where it says so after any absence of ours: what a former life left behind is completed or undone, and nobody suffers for our absence.
//!
//! - No lease that was alive when we went ends before its own TTL has passed once more, and no session of a router
//!   elsewhere before it had time to be renewed.
//! - A transition that was under way is taken over: the driver is asked what is so, and the rules say whether
//!   the intent can be vouched for. A pause for idleness cannot: nobody watched meanwhile.
//! - What a former life had claimed is free, and the connections through it have ended with it.
//! - Counters go on where they were, if no two checks were missed and what was used meanwhile proves something; else they
//!   begin with a baseline again, so that coverage does, and idleness is counted from there.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::event::Event;
use drowse_core::id::WorkerId;
use drowse_core::status::{StatusKind, WakeCause};
use drowse_store::{Lane, Store, StoreError, WorkerRecord};

use crate::fleet::{ControlError, Fleet};
use crate::ingest::ALIVE_FOR;
use crate::shared::Shared;
use crate::spec::WorkerSpec;

/// How many workers are nudged in one transaction.
const NUDGED_AT_ONCE: usize = 200;

/// Who takes nothing in for this long refuses what comes, so that a renewal may have been lost. The loop comes by
/// three times as often.
const ABSENT: Duration = Duration::from_secs(3);

/// Statuses in which a former life may have been interrupted.
const INTERRUPTED: [StatusKind; 4] =
    [StatusKind::Pausing, StatusKind::Waking, StatusKind::Stopping, StatusKind::Terminating];

impl Shared {
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "a method is not general over its lifetime"
    )]
    pub(super) async fn recover(self: &Arc<Self>) -> Result<(), StoreError> {
        let now = self.clock.now();
        let away_since = self.db.read(|view| view.ingested_through()).await?;
        if let Some(away_since) = away_since {
            self.was_away(away_since.min(now), now).await?;
        }
        self.present_at(now).await;
        for former in self.former.clone() {
            self.db.run("bury", move |store| store.bury_replica(&former, now)).await?;
        }
        // Announces this replica: before that nobody can be put to sleep.
        self.flush().await?;
        // The file may say something else than it did in the former life.
        self.db.tx("reload", Lane::Ordinary, |tx| tx.bump_policy_epoch()).await?;
        self.catch_up_with_doors().await;
        for status in INTERRUPTED {
            for id in self.all_with(status).await? {
                let shared = Arc::clone(self);
                self.tasks.spawn(async move {
                    // Should it fail, the check at the deadline takes it over.
                    let _ = shared.take_over_by_id(&id).await;
                });
            }
        }
        let shared = Arc::clone(self);
        self.tasks.spawn(async move {
            // Evidence may have been written and not acted on. Their checks look at it, ahead of the others'.
            let _ = shared.look_soon_at_all(StatusKind::Paused).await;
            Fleet(shared).apply_policy();
        });
        Ok(())
    }

    /// What the doors of a former life had let go on, and the books were not told, is wanted by now: else it would be
    /// found awake and taken for somebody else's doing.
    async fn catch_up_with_doors(self: &Arc<Self>) {
        let Some(path) = &self.head_starts else { return };
        let left = match self.untold.note_in(path) {
            Ok(left) => left,
            Err(error) => {
                tracing::warn!(file = %path.display(), %error, "cannot be used: whoever comes waits for the books");
                return;
            }
        };
        for (id, generation) in left {
            let worker = id.clone();
            let known = self.db.read(move |view| view.worker(&worker)).await;
            // Mostly that was written down long ago.
            let is_old = |record: &WorkerRecord| record.without_terms().generation != generation;
            if matches!(&known, Ok(record) if record.as_ref().is_none_or(is_old)) {
                continue;
            }
            let wanted = self.change("head-start", Lane::Wake, &id, move |change| {
                if change.worker().generation == generation {
                    change.apply(&Event::WakeRequested { cause: WakeCause::Connection })?;
                }
                Ok(())
            });
            if let Err(error @ ControlError::Unavailable(_)) = wanted.await {
                // It stays noted for the next start, and is found awake in this one.
                tracing::warn!(worker = %id, %error, "that it was let go on cannot be written down");
                return;
            }
        }
        self.untold.forget_former();
    }

    /// Has everybody with a status looked at now, a few at a time.
    pub(super) async fn look_soon_at_all(&self, status: StatusKind) -> Result<(), StoreError> {
        let all = self.all_with(status).await?;
        for some in all.chunks(NUDGED_AT_ONCE) {
            let (some, clock) = (some.to_vec(), self.clock.clone());
            self.db.tx("nudge", Lane::Ordinary, move |tx| tx.nudge_all(&some, clock.now())).await?;
            self.queue.nudge();
        }
        Ok(())
    }

    /// Nobody was heard for a while: leases get their time again. That is so at once, and written down in each of
    /// them when there is time.
    async fn was_away(self: &Arc<Self>, since: Timestamp, now: Timestamp) -> Result<(), StoreError> {
        let resume = move |tx: &drowse_store::Tx<'_>| {
            tx.note_outage(since, now)?;
            // Connections through a door in another process are as little over as a lease is.
            tx.resume_sessions(since, now + ALIVE_FOR)
        };
        self.db.tx("leases", Lane::Ordinary, resume).await?;
        let shared = Arc::clone(self);
        self.tasks.spawn(async move {
            // Failed: it stays noted, and the next outage or start settles it too.
            let _ = shared.db.run("settle", Store::settle_outages).await;
        });
        Ok(())
    }

    /// Everything up to this instant has been taken in and written.
    pub(super) async fn present_at(&self, now: Timestamp) {
        let mut present = self.present.lock().await;
        *present = (*present).max(Some(now));
    }

    /// Gives leases their time again after a stall, a jump of the clock, or a stretch in which nothing could be
    /// written: whoever wanted to renew one was not heard. To be called before anything that lets one expire.
    pub(super) async fn make_up_for_absence(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut present = self.present.lock().await;
        let now = self.clock.now();
        if let Some(since) = present.filter(|since| now.since(*since) >= ABSENT) {
            self.was_away(since, now).await?;
            *present = Some(now);
        }
        Ok(())
    }

    pub(crate) async fn all_with(&self, status: StatusKind) -> Result<Vec<WorkerId>, StoreError> {
        self.db.read(move |view| view.ids_with(status)).await
    }

    async fn take_over_by_id(self: &Arc<Self>, id: &WorkerId) -> Result<(), ControlError> {
        let worker = id.clone();
        let record = self.db.read(move |view| view.worker(&worker)).await?;
        let Some(record) = record else { return Ok(()) };
        let spec: WorkerSpec = serde_json::from_value(record.spec)
            .map_err(|error| ControlError::invalid("spec", error.to_string()))?;
        self.take_over(id, &spec).await
    }

    /// Completes or undoes what a former life had begun, after asking the driver for the truth.
    pub(super) async fn take_over(
        self: &Arc<Self>,
        id: &WorkerId,
        spec: &WorkerSpec,
    ) -> Result<(), ControlError> {
        let power = self.hands.look(id, spec).await.ok().map(|seen| seen.power);
        let shared = Arc::clone(self);
        self.change("recovered", Lane::Ordinary, id, move |change| {
            // Two may come here, the start and a check; the second finds it done.
            let worker = change.worker();
            let is_ours =
                worker.status.intent().is_none_or(|intent| shared.known.contains(&worker.id, intent));
            if is_ours {
                return Ok(());
            }
            change.apply(&Event::Recovered { power }).map(|_| ())
        })
        .await?;
        Ok(())
    }
}
