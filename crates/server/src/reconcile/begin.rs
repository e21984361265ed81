//! How checks begin: those that are due together, and one that somebody asks for.
//!
//! What they share is what is read of the store, at one instant. From there on each is a task of its own, so that one that
//! fails or hangs concerns nobody else.

use std::sync::Arc;

use drowse_core::id::WorkerId;
use drowse_store::{Claimed, Lane, View};

use super::CLAIM_FOR;
use super::queue::Place;
use crate::fleet::{ControlError, Detection};
use crate::picture::Picture;
use crate::shared::Shared;

/// How many workers that are due at once are read in one go: a millisecond or so, during which its thread does nothing
/// else.
const LOADED_AT_ONCE: usize = 16;

/// How often a check on demand is tried before it answers with what is known.
const MOST_TRIES: usize = 3;

/// Where a check begins.
pub(super) struct Loaded {
    /// `None`: there is no such worker any more.
    pub(super) picture: Option<Box<Picture>>,
    /// What the doors had counted before it was read.
    pub(super) count: u64,
    /// How its end is written if nothing follows from it: whether somebody waits for that.
    pub(super) lane: Lane,
}

impl Shared {
    /// Starts checks of workers that are ours.
    pub(super) fn begin_checks(self: &Arc<Self>, mut claimed: Vec<Claimed>) {
        while !claimed.is_empty() {
            let rest = claimed.split_off(claimed.len().min(LOADED_AT_ONCE));
            let some = claimed.into_iter().map(|claimed| (claimed, self.queue.place())).collect();
            claimed = rest;
            let shared = Arc::clone(self);
            self.tasks.spawn(async move { shared.begin_some(some).await });
        }
    }

    async fn begin_some(self: &Arc<Self>, some: Vec<(Claimed, Place)>) {
        let workers = some.iter().map(|(claimed, _)| claimed.worker.clone()).collect();
        if let Ok(loaded) = self.load(workers, Lane::Unhurried).await {
            for ((claimed, place), loaded) in some.into_iter().zip(loaded) {
                self.begin_check(claimed, loaded, place);
            }
            return;
        }
        // What is stored of one may be damaged, and that concerns nobody else.
        for (claimed, place) in some {
            match self.load_one(&claimed, Lane::Unhurried).await {
                Ok(loaded) => self.begin_check(claimed, loaded, place),
                Err(error) => self.not_checked(&claimed, &error),
            }
        }
    }

    fn begin_check(self: &Arc<Self>, claimed: Claimed, loaded: Loaded, place: Place) {
        let shared = Arc::clone(self);
        self.tasks.spawn(async move {
            if let Err(error) = Box::pin(shared.check(&claimed, loaded)).await {
                shared.not_checked(&claimed, &error);
            }
            drop(place);
        });
    }

    /// A check that fails leaves its claim, and with it the worker is due again when that is over.
    fn not_checked(&self, claimed: &Claimed, error: &ControlError) {
        tracing::warn!(worker = %claimed.worker, %error, "a check failed");
        self.metrics.count(|counted| counted.failed_checks += 1);
    }

    /// Checks a worker on demand. One that is being checked already is waited for and then checked again:
    /// whoever asks wants to know what is so now.
    pub(crate) async fn check_now(self: &Arc<Self>, id: &WorkerId) -> Result<Detection, ControlError> {
        // Some checks find something that changes the question, such as a worker that is gone.
        for _ in 0..MOST_TRIES {
            let mut finished = self.queue.finished();
            let (worker, by, clock) = (id.clone(), self.replica.clone(), self.clock.clone());
            let (claimed, record) = self
                .db
                .tx("claim", Lane::Ordinary, move |tx| {
                    let now = clock.now();
                    let claimed = tx.claim(&worker, &by, now, now + CLAIM_FOR)?;
                    let record = tx.worker(&worker)?.filter(|record| record.removed_at.is_none());
                    let record = record.ok_or(ControlError::NotFound(worker))?;
                    Ok::<_, ControlError>((claimed, record))
                })
                .await?;
            if let Some(claimed) = claimed {
                let (shared, place) = (Arc::clone(self), self.queue.place());
                // What it decides is done, whether somebody still waits for the answer or not.
                let checking = self.tasks.see_through(Box::pin(async move {
                    let _place = place;
                    let loaded = shared.load_one(&claimed, Lane::Ordinary).await?;
                    shared.check(&claimed, loaded).await
                }));
                match checking.await {
                    Ok(Some(detection)) => return Ok(detection),
                    Ok(None) => continue,
                    Err(error) => return Err(error),
                }
            }
            // A claim that a dead replica left is over by itself.
            let until = record.claim_until.unwrap_or(self.clock.now());
            tokio::select! {
                biased;
                _ = finished.changed() => {}
                () = self.clock.sleep_until(until) => {}
            }
        }
        let (shared, worker) = (Arc::clone(self), id.clone());
        self.db
            .read(move |view| {
                let now = shared.clock.now();
                let picture = Picture::load(view, &shared.policies, &worker, now)?;
                let picture = picture.ok_or(ControlError::NotFound(worker))?;
                Ok(Detection::new(&picture, &picture.judge(None, now), &picture.worker))
            })
            .await
    }

    async fn load_one(self: &Arc<Self>, claimed: &Claimed, lane: Lane) -> Result<Loaded, ControlError> {
        let mut loaded = self.load(vec![claimed.worker.clone()], lane).await?;
        loaded.pop().ok_or_else(|| ControlError::NotFound(claimed.worker.clone()))
    }

    /// What is known about workers, read at one instant: where a check begins.
    async fn load(self: &Arc<Self>, workers: Vec<WorkerId>, lane: Lane) -> Result<Vec<Loaded>, ControlError> {
        // A check that a stall interrupted comes before the loop does.
        self.make_up_for_absence().await?;
        let began_at = self.clock.now();
        let (shared, count) = (Arc::clone(self), self.untold.count());
        let load = move |view: &View<'_>| {
            let load = |id: &WorkerId| {
                let picture = Picture::load(view, &shared.policies, id, began_at)?;
                Ok(Loaded { picture: picture.map(Box::new), count, lane })
            };
            workers.iter().map(load).collect()
        };
        self.db.glance(load).await
    }
}
