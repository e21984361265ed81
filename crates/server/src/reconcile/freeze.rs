//! A freeze: what the driver did counts only when it is written down, and only if nothing has arrived meanwhile.
//!
//! ```text
//!   last look ──▶ freeze ──▶ last look ──▶ wait for evidence on its way ──▶ flush ──▶ confirm ──▶ paused, or undone
//!     │                                                      │
//!     └── somebody at the door ──────────────────────────────┴── the store is away ──▶ thaw, ask again later
//! ```

use std::sync::Arc;

use drowse_core::event::Event;
use drowse_core::id::{IntentId, WorkerId};
use drowse_core::machine::{Answer, LastLook};
use drowse_core::refusal::Refusal;
use drowse_core::signal::Signal;
use drowse_core::status::Status;
use drowse_core::worker::Power;
use drowse_store::{Lane, StoreError};
use tokio::task::JoinError;

use super::effects::{Job, MARGIN, RETRY};
use super::last_look::told_late;
use crate::fleet::ControlError;
use crate::ingest::FLUSH_INTERVAL;
use crate::shared::Shared;
use crate::tasks::Blocking;

impl Shared {
    pub(super) async fn freeze(self: &Arc<Self>, job: &Job<'_>, intent: IntentId) {
        // Somebody is at the door of whom the store does not know yet.
        if self.untold.holds(job.id) {
            return self.ask_again(job.id).await;
        }
        let mut frozen_at = self.clock.now();
        let mut lane = Lane::Wake;
        let mut look = None;
        // Somebody waits for it already: it is not frozen only to be thawed.
        if !matches!(job.subject.worker.status, Status::Pausing { wake: Some(_), .. }) {
            if !self.passes_last_look(job, intent).await {
                return;
            }
            let within = job.within(self.clock.now());
            let answer = self.hands.call("freeze", job.driver.freeze(job.id, within)).await;
            let Some(seen) = self.settled(job, intent, answer, &[Power::Paused]).await else { return };
            debug_assert_eq!(seen.power, Power::Paused);
            frozen_at = self.clock.now();
            if job.driver.capabilities().is_shared {
                // Nobody in it can ask for anything from now on, and until now somebody could.
                look = Some(self.last_look_at(job, &seen).await);
            }
            let is_wanted = self.wait_for_evidence(job).await;
            // A fleet that falls asleep stands in nobody's way, and what is due is decided first.
            lane = if is_wanted { Lane::Wake } else { Lane::Late };
        }
        if self.untold.holds(job.id) {
            return self.take_back(job).await;
        }
        // The barrier again: what was in use up to the freeze is written before anybody calls it paused.
        let _ = self.flush_past(frozen_at).await;
        let mut may_be_written = false;
        loop {
            match self.confirm(job, intent, look.as_ref(), lane).await {
                Err(ControlError::Unavailable(error)) => {
                    may_be_written |= matches!(error, StoreError::CommitUnknown(_));
                    // What cannot be written down is not left frozen.
                    if !may_be_written || self.untold.holds(job.id) {
                        return self.take_back(job).await;
                    }
                    // If it is written, it sleeps by the book, and the next attempt tells. Whoever needs it
                    // meanwhile is not kept waiting for that.
                    self.clock.sleep_until(self.clock.now() + MARGIN).await;
                }
                // It is written, or it was frozen after the intent had been given up. The rules remember that,
                // and put it right as soon as they are shown.
                Err(ControlError::Refused(Refusal::Late { .. })) => return self.look_soon(job.id).await,
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Confirms a pause. One that waits for its turn is overtaken by another when somebody waits for the worker: the
    /// one that comes second is too late, which harms nobody.
    async fn confirm(
        self: &Arc<Self>,
        job: &Job<'_>,
        intent: IntentId,
        look: Option<&LastLook>,
        lane: Lane,
    ) -> Result<Answer, ControlError> {
        let look = look.cloned();
        if lane == Lane::Wake || self.tasks.blocking() == Blocking::Inline {
            return self.confirm_pause(job.id, intent, look, lane).await;
        }
        let (shared, id, found) = (Arc::clone(self), job.id.clone(), look.clone());
        let mut in_turn =
            self.tasks.spawn(async move { shared.confirm_pause(&id, intent, found, lane).await });
        let overtook = tokio::select! {
            biased;
            confirmed = &mut in_turn => return or_failed(confirmed),
            () = self.is_asked_for(job) => self.confirm_pause(job.id, intent, look, Lane::Wake).await,
        };
        let Err(ControlError::Unavailable(error)) = overtook else { return overtook };
        // The other may yet be written, and nobody says before it has ended that none was.
        match or_failed(in_turn.await) {
            Err(ControlError::Unavailable(_)) if matches!(error, StoreError::CommitUnknown(_)) => {
                Err(ControlError::Unavailable(error))
            }
            confirmed => confirmed,
        }
    }

    /// Waits until somebody waits for a worker that is on its way to sleep.
    async fn is_asked_for(&self, job: &Job<'_>) {
        let mut changes = self.notices.worker(job.id);
        loop {
            match self.falls_asleep(job.id).await {
                Ok(true) => changes.next().await,
                Ok(false) => return,
                // Nobody can tell, and the confirmation that is on its way meets the same store.
                Err(_) => self.clock.sleep_until(self.clock.now() + MARGIN).await,
            }
        }
    }

    /// Whether it is on its way to sleep, and nobody has asked for it.
    async fn falls_asleep(&self, id: &WorkerId) -> Result<bool, StoreError> {
        let id = id.clone();
        let record = self.db.glance(move |view| view.worker(&id)).await?;
        Ok(record.is_some_and(|record| matches!(record.status(), Status::Pausing { wake: None, .. })))
    }

    /// The second transaction of a pause: if anything arrived since the first, it is undone.
    async fn confirm_pause(
        self: &Arc<Self>,
        id: &WorkerId,
        intent: IntentId,
        look: Option<LastLook>,
        lane: Lane,
    ) -> Result<Answer, ControlError> {
        let shared = Arc::clone(self);
        let confirmed = self.change("paused", lane, id, move |change| {
            if let Some(look) = &look
                && told_late(change, intent, look)? == Answer::Accepted
            {
                return Ok(Answer::Accepted);
            }
            let worker = change.worker();
            if worker.status.intent() == Some(intent)
                && let Some(sleep) = worker.status.sleep()
            {
                let written = change.tx.activity_at(&worker.id)?;
                let newest = written.max(shared.unwritten_activity(&worker.id));
                let is_held = change.locked.held()?.is_held(change.now);
                if sleep.is_undone_by_activity() && (is_held || newest.is_some_and(|at| at > sleep.at)) {
                    change.apply(&Event::ActivityArrived { by: Signal::Connections })?;
                }
            }
            change.apply(&Event::DriverDone { intent, exit_code: None, asked_at: None })
        });
        Ok(confirmed.await?.0)
    }

    /// Thaws what was frozen for a pause that could not be completed. The intent is still open, and is taken up
    /// again when the store is back.
    async fn take_back(&self, job: &Job<'_>) {
        loop {
            let within = job.within(self.clock.now());
            match self.hands.call("thaw", job.driver.thaw(job.id, within)).await {
                Ok(_) => return self.ask_again(job.id).await,
                // Somebody is connected to what is frozen, and nobody else will look before the store is back.
                Err(_) if self.untold.holds(job.id) => {
                    self.metrics.count(|counted| counted.driver_errors += 1);
                    self.clock.sleep_until(self.clock.now() + RETRY).await;
                }
                // A look finds it frozen, and the deadline of its transition comes.
                Err(error) => return self.unanswered(job.id, &error).await,
            }
        }
    }

    /// The second transaction of a pause comes no sooner than one flush after the first, so that evidence that
    /// was on its way has arrived. If somebody waits for the worker already, there is nothing to wait for: true.
    async fn wait_for_evidence(&self, job: &Job<'_>) -> bool {
        let until = job.subject.worker.status.since() + FLUSH_INTERVAL;
        let mut changes = self.notices.worker(job.id);
        let mut is_over = false;
        loop {
            // Where nobody can tell, nobody is known to wait.
            if matches!(self.falls_asleep(job.id).await, Ok(false)) {
                return true;
            }
            if is_over {
                return false;
            }
            tokio::select! {
                biased;
                () = self.clock.sleep_until(until) => is_over = true,
                () = changes.next() => {}
            }
        }
    }
}

/// A task that ended without an answer has written nothing that anybody knows of.
fn or_failed(ended: Result<Result<Answer, ControlError>, JoinError>) -> Result<Answer, ControlError> {
    ended.unwrap_or_else(|_| Err(ControlError::Unavailable(StoreError::Failed)))
}
