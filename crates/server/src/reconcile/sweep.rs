//! What is over is swept up: holds, sessions, replicas, and history that is old enough.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_store::{Lane, StoreError};

use crate::shared::{Shared, lock};

/// Connections of a router that fell silent are unknown for this long, and their rows are needed until then.
const SESSIONS_KEPT: Duration = Duration::from_mins(1);
/// Dead replicas tell, after a start, since when nobody took evidence in.
const REPLICAS_KEPT: Duration = Duration::from_hours(24);
/// Tokens and links that are over are shown for this long, for whoever wonders.
const TOKENS_KEPT: Duration = Duration::from_hours(30 * 24);
/// How much history is deleted in one transaction, so that nobody waits for long, and how often in one sweep.
const PRUNED_AT_ONCE: usize = 1_000;
const PRUNES: usize = 20;
/// How many workers are swept in one go.
const AT_ONCE: usize = 200;

impl Shared {
    pub(super) async fn sweep(self: &Arc<Self>) -> Result<(), StoreError> {
        let now = self.clock.now();
        let sessions_before = now - SESSIONS_KEPT;
        let unswept = self.db.read(move |view| view.unswept(now, sessions_before, AT_ONCE)).await?;
        for worker in unswept {
            self.db
                .tx("sweep", Lane::Ordinary, move |tx| {
                    if let Some(mut locked) = tx.lock_worker(&worker)? {
                        locked.sweep_holds(now, sessions_before)?;
                    }
                    Ok::<_, StoreError>(())
                })
                .await?;
        }
        self.db
            .tx("sweep", Lane::Ordinary, move |tx| {
                tx.forget_sessions(sessions_before)?;
                tx.sweep_tokens(now - TOKENS_KEPT)?;
                tx.forget_dead_replicas(now - REPLICAS_KEPT)
            })
            .await?;
        let keep_for = *lock(&self.keep_for);
        self.prune(now - keep_for).await
    }

    async fn prune(self: &Arc<Self>, before: Timestamp) -> Result<(), StoreError> {
        for _ in 0..PRUNES {
            let pruned = self
                .db
                .tx("prune", Lane::Ordinary, move |tx| {
                    let events = tx.prune_events(before, PRUNED_AT_ONCE)?;
                    Ok::<_, StoreError>(events.max(tx.prune_spans(before, PRUNED_AT_ONCE)?))
                })
                .await?;
            if pruned < PRUNED_AT_ONCE as u64 {
                break;
            }
        }
        Ok(())
    }
}
