//! Checks of workers that are on their way: every transition has a deadline and a lawful way out.

use std::sync::Arc;

use drowse_core::event::Event;
use drowse_core::hold::KeepAlive;
use drowse_core::machine::reissue;
use drowse_core::status::Status;
use drowse_core::worker::Power;
use drowse_drivers::Error;
use drowse_store::{Claimed, Lane};

use super::effects::RETRY;
use super::keep_alive;
use crate::fleet::{ControlError, Detection};
use crate::picture::Picture;
use crate::shared::Shared;
use crate::spec::WorkerSpec;

impl Shared {
    pub(super) async fn check_transition(
        self: &Arc<Self>,
        claimed: &Claimed,
        picture: &Picture,
        spec: &WorkerSpec,
    ) -> Result<Option<Detection>, ControlError> {
        let worker = &picture.worker;
        let now = self.clock.now();
        let deadline = worker.status.deadline().unwrap_or(now);
        let is_ours = worker.status.intent().is_some_and(|intent| self.known.contains(&worker.id, intent));
        let mut next = deadline;
        if !is_ours {
            self.take_over(&worker.id, spec).await?;
        } else if now >= deadline {
            return self.overdue(claimed, picture, spec).await;
        } else if self.work.is_busy(&worker.id) {
            // Somebody asked for this look, perhaps whoever is just about to give up.
            next = deadline.min(now + RETRY);
        } else {
            // The call was not answered, or its answer could not be written.
            for effect in reissue(worker) {
                self.perform(&worker.id, effect, None);
            }
        }
        self.finish(claimed, picture, Some(next)).await?;
        Ok(None)
    }

    /// A transition took longer than it may: the driver is asked for the truth, and what it says is adopted. If
    /// it says nothing, the worker is unknown until it does.
    async fn overdue(
        self: &Arc<Self>,
        claimed: &Claimed,
        picture: &Picture,
        spec: &WorkerSpec,
    ) -> Result<Option<Detection>, ControlError> {
        let worker = &picture.worker;
        let began_at = self.clock.now();
        let looked = self.hands.look(&worker.id, spec).await;
        let generation = worker.generation;
        let event = match looked {
            Ok(seen) => Event::Observed(seen.observation(generation)),
            Err(Error::Gone) => Event::Observed(drowse_core::event::Observation {
                power: Power::Gone,
                began_at,
                generation,
                boot: None,
                dated_at: None,
            }),
            Err(
                Error::Refused { .. }
                | Error::Unreachable { .. }
                | Error::Denied { .. }
                | Error::TimedOut { .. }
                | Error::Unsupported { .. },
            ) => Event::DriverSilent { generation },
        };
        let (stamp, epoch) = (claimed.clone(), picture.book.epoch());
        self.change("overdue", Lane::Ordinary, &claimed.worker, move |change| {
            match change.apply(&event) {
                Ok(_) | Err(ControlError::Refused(_)) => {}
                Err(other) => return Err(other),
            }
            let generation = change.worker().generation;
            let next = Some(change.now + RETRY);
            change.tx.finish_check(&stamp, generation, None, epoch, next, change.now)?;
            Ok(())
        })
        .await?;
        Ok(None)
    }

    /// A worker that drains goes when nothing holds it any more, and stays if something still does at the end.
    pub(super) async fn check_drain(
        self: &Arc<Self>,
        claimed: &Claimed,
        picture: &Picture,
        spec: &WorkerSpec,
    ) -> Result<Option<Detection>, ControlError> {
        let (stamp, epoch) = (claimed.clone(), picture.book.epoch());
        let generation = picture.worker.generation;
        // Somebody in it may ask to be left alone until the very end.
        let found = if matches!(picture.worker.status, Status::Draining { was_stopped: None, .. }) {
            self.look_for_keep_alive(&claimed.worker, spec, &picture.resolved.policy).await
        } else {
            KeepAlive::NotLooked
        };
        let interval = picture.interval();
        self.change("drain", Lane::Ordinary, &claimed.worker, move |change| {
            let worker = change.worker();
            let deadline = worker.status.deadline().unwrap_or(change.now);
            keep_alive::write_late(change, &found)?;
            let holds = change.locked.holds(change.now)?;
            let is_held = !holds.is_empty() || found == KeepAlive::Unreadable;
            let event = if is_held {
                (change.now >= deadline).then_some(Event::DrainTimedOut { generation, is_held: true })
            } else {
                Some(Event::Drained { generation })
            };
            if let Some(event) = event {
                match change.apply(&event) {
                    Ok(_) | Err(ControlError::Refused(_)) => {}
                    Err(other) => return Err(other),
                }
            }
            // A file can be taken away before its time.
            let again = matches!(found, KeepAlive::Holds(_) | KeepAlive::Unreadable);
            let again = again.then(|| change.now + interval);
            let next_end = holds.iter().filter_map(|hold| hold.until).chain(again).min();
            let next = next_end.map_or(deadline, |end| end.min(deadline)).max(change.now + RETRY);
            let generation = change.worker().generation;
            change.tx.finish_check(&stamp, generation, None, epoch, Some(next), change.now)?;
            Ok(())
        })
        .await?;
        Ok(None)
    }
}
