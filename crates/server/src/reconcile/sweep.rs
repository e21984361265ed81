//! What is over is swept up: holds, sessions, replicas, and history that is old enough.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_store::{Lane, NewEvent, StoreError};
use serde_json::json;

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
        self.tell_expiring(now).await?;
        let keep_for = *lock(&self.keep_for);
        self.prune(now - keep_for).await
    }

    /// Tells of exemptions that end within a week, once each.
    async fn tell_expiring(self: &Arc<Self>, now: Timestamp) -> Result<(), StoreError> {
        let shared = Arc::clone(self);
        let (expiring, told) = self
            .db
            .read(move |view| {
                let book = shared.policies.book(view)?;
                let granted = book.granted.iter().map(|granted| &granted.exemption);
                let all = book.file_exemptions().iter().chain(granted);
                let expiring =
                    all.filter(|exemption| exemption.is_expiring(now)).cloned().collect::<Vec<_>>();
                Ok::<_, StoreError>((expiring, view.exemptions_told()?))
            })
            .await?;
        let keys: Vec<String> = expiring.iter().map(|exemption| json!(exemption).to_string()).collect();
        let is_news = |key: &String| !told.contains(key);
        if !keys.iter().any(is_news) && keys.len() == told.len() {
            return Ok(());
        }
        let news = expiring.into_iter().zip(&keys).filter(|(_, key)| is_news(key));
        let news: Vec<_> = news.map(|(exemption, _)| exemption).collect();
        let has_news = !news.is_empty();
        let write = self.db.tx("expiring", Lane::Ordinary, move |tx| {
            for exemption in news {
                let doc = json!({ "exemption": exemption });
                tx.append(NewEvent { at: now, worker: None, kind: "exemption.expiring".to_owned(), doc });
            }
            tx.set_exemptions_told(&keys)
        });
        write.await?;
        if has_news {
            self.notices.journal_advanced();
        }
        Ok(())
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
