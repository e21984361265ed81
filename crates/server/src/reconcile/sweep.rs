//! What is over is swept up: holds, sessions, replicas.

use std::sync::Arc;
use std::time::Duration;

use drowse_store::{Lane, StoreError};

use crate::shared::Shared;

/// Connections of a router that fell silent are unknown for this long, and their rows are needed until then.
const SESSIONS_KEPT: Duration = Duration::from_mins(1);
/// Dead replicas tell, after a start, since when nobody took evidence in.
const REPLICAS_KEPT: Duration = Duration::from_hours(24);
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
                tx.forget_dead_replicas(now - REPLICAS_KEPT)
            })
            .await?;
        Ok(())
    }
}
