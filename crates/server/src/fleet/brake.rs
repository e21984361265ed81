//! The fleet's brake.

use std::sync::Arc;

use drowse_core::brake::{Brake, Change, Fleet as Looked, Trouble};
use drowse_core::status::StatusKind;
use drowse_store::{Lane, StoreError};

use super::policy::journal;
use super::{ControlError, Fleet};
use crate::shared::Shared;

impl Fleet {
    pub async fn brake(&self) -> Result<Brake, ControlError> {
        self.0.db.read(|view| Ok(view.brake()?)).await
    }

    /// A person lets go; false if it was not engaged.
    pub async fn release_brake(&self, by: &str, why: &str) -> Result<bool, ControlError> {
        let (by, why) = (by.to_owned(), why.to_owned());
        let now = self.0.clock.now();
        let released = self
            .0
            .change_brake(move |brake| {
                brake.release(by, why, now).map(|(after, change)| (after, Some(change)))
            })
            .await?;
        Ok(released)
    }

    /// Holds all automatic actions back, as when Drowse had been in trouble itself; false if it is engaged.
    pub async fn engage_brake(&self, trouble: Trouble) -> Result<bool, ControlError> {
        Ok(self.0.note_trouble(trouble).await?)
    }
}

impl Shared {
    /// Drowse itself was in trouble: what it did not see is not silent.
    pub(crate) async fn note_trouble(self: &Arc<Self>, trouble: Trouble) -> Result<bool, StoreError> {
        let (terms, now) = (self.brake_terms, self.clock.now());
        self.change_brake(move |brake| {
            let looked = Looked { total: 0, gone: 0, trouble: Some(trouble) };
            let (after, change) = brake.update(&looked, &terms, now);
            (after != *brake).then_some((after, change))
        })
        .await
    }

    /// Looks whether too many workers are unknown at once, or the brake may let go.
    pub(crate) async fn tend_brake(self: &Arc<Self>) -> Result<(), StoreError> {
        let (terms, now) = (self.brake_terms, self.clock.now());
        let (brake, total) = {
            let shared = Arc::clone(self);
            self.db
                .glance(move |view| {
                    let brake = view.brake()?;
                    let gone = shared.gone.since(brake.counts_from(&terms, now));
                    // The fleet is counted only where its size matters.
                    let total = if gone >= terms.min || brake.is_engaged() {
                        let counts = view.count_by_status()?;
                        counts.iter().find(|(kind, _)| *kind == StatusKind::Running).map_or(0, |(_, n)| *n)
                    } else {
                        0
                    };
                    Ok::<_, StoreError>((brake, u32::try_from(total).unwrap_or(u32::MAX)))
                })
                .await?
        };
        if total == 0 && !brake.is_engaged() {
            return Ok(());
        }
        let shared = Arc::clone(self);
        self.change_brake(move |brake| {
            let gone = shared.gone.since(brake.counts_from(&terms, now));
            let (after, change) = brake.update(&Looked { total, gone, trouble: None }, &terms, now);
            // Since when it is calm is kept too, without an entry.
            (after != *brake).then_some((after, change))
        })
        .await
        .map(|_| ())
    }

    async fn change_brake(
        self: &Arc<Self>,
        change: impl FnOnce(&Brake) -> Option<(Brake, Option<Change>)> + Send + 'static,
    ) -> Result<bool, StoreError> {
        let clock = self.clock.clone();
        let changed = self
            .db
            .tx("brake", Lane::Ordinary, move |tx| {
                let changed = tx.change_brake(change)?.flatten();
                if let Some(change) = &changed {
                    let kind = match change {
                        Change::Engaged(_) => "brake.engaged",
                        Change::Released(_) => "brake.released",
                    };
                    let doc = serde_json::to_value(change).unwrap_or_default();
                    journal(tx, kind, doc, clock.now());
                }
                Ok::<_, StoreError>(changed.is_some())
            })
            .await?;
        if changed {
            self.notices.journal_advanced();
        }
        Ok(changed)
    }
}
