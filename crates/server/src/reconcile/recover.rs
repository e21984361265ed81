//! After a start, and where it says so after any absence of ours: what a former life left behind is completed or undone, and nobody suffers for our absence.
//!
//! - No lease that was alive when we went ends before its own TTL has passed once more.
//! - A transition that was under way is taken over: the driver is asked what is so, and the rules say whether
//!   the intent can be vouched for. A pause for idleness cannot: nobody watched meanwhile.
//! - What a former life had claimed is free, and the connections through it have ended with it.
//! - Counters begin with a baseline again, so that coverage does, and idleness is counted from there.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::event::Event;
use drowse_core::id::WorkerId;
use drowse_core::status::StatusKind;
use drowse_store::{Lane, Listing, StoreError};

use crate::fleet::{ControlError, Fleet};
use crate::shared::Shared;
use crate::spec::WorkerSpec;

/// How many workers are read at once.
const PAGE: usize = 1_000;

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
            self.db.run("leases", move |store| store.resume_leases(away_since.min(now), now)).await?;
        }
        self.present_at(now).await;
        for former in self.former.clone() {
            self.db.run("bury", move |store| store.bury_replica(&former, now)).await?;
        }
        // Announces this replica: before that nobody can be put to sleep.
        self.flush().await?;
        // The file may say something else than it did in the former life.
        self.db.tx("reload", Lane::Ordinary, |tx| tx.bump_policy_epoch()).await?;
        Fleet(Arc::clone(self)).apply_policy();
        for status in INTERRUPTED {
            for id in self.all_with(status).await? {
                let shared = Arc::clone(self);
                self.tasks.spawn(async move {
                    // Should it fail, the check at the deadline takes it over.
                    let _ = shared.take_over_by_id(&id).await;
                });
            }
        }
        // Evidence may have been written and not acted on. Their checks look at it.
        for id in self.all_with(StatusKind::Paused).await? {
            self.db.tx("nudge", Lane::Ordinary, move |tx| tx.nudge(&id, now)).await?;
        }
        Ok(())
    }

    /// Everything up to this instant has been taken in and written.
    pub(super) async fn present_at(&self, now: Timestamp) {
        let mut present = self.present.lock().await;
        *present = (*present).max(Some(now));
    }

    /// Gives leases their time again after a stall, a jump of the clock, or a stretch in which nothing could be
    /// written: whoever wanted to renew one was not heard. To be called before anything that lets one expire.
    pub(super) async fn make_up_for_absence(&self) -> Result<(), StoreError> {
        let mut present = self.present.lock().await;
        let now = self.clock.now();
        if let Some(since) = present.filter(|since| now.since(*since) >= ABSENT) {
            self.db.run("leases", move |store| store.resume_leases(since, now)).await?;
            *present = Some(now);
        }
        Ok(())
    }

    pub(crate) async fn all_with(&self, status: StatusKind) -> Result<Vec<WorkerId>, StoreError> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let listing = Listing { after: after.take(), limit: PAGE, status: Some(status) };
            let page = self.db.read(move |view| view.workers(&listing)).await?;
            found.extend(page.iter().map(|record| record.id().clone()));
            match page.last() {
                Some(last) if page.len() == PAGE => after = Some(last.id().clone()),
                Some(_) | None => return Ok(found),
            }
        }
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
