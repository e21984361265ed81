//! The last look at a worker that is to sleep: the shell looks, the rules say what it means.
//!
//! Before a stop, which cannot be taken back; before a freeze, so that no run is frozen that nobody judged; and after
//! it, when nobody in the worker can touch anything any more.

use std::sync::Arc;

use drowse_core::event::Event;
use drowse_core::hold::KeepAlive;
use drowse_core::id::{BootId, IntentId};
use drowse_core::machine::{Answer, LastLook};
use drowse_core::step;
use drowse_core::worker::Power;
use drowse_drivers::{Error, Seen};

use super::effects::Job;
use super::keep_alive;
use crate::change::Change;
use crate::fleet::ControlError;
use crate::shared::Shared;

impl Shared {
    /// Looks before the driver acts. False: it may not, and that has been dealt with.
    pub(super) async fn passes_last_look(self: &Arc<Self>, job: &Job<'_>, intent: IntentId) -> bool {
        match self.look_again(job).await {
            Ok(Some(seen)) => {
                let look = self.last_look_at(job, &seen).await;
                self.may_act(job, intent, look).await
            }
            Ok(None) => true,
            Err(NotNow) => false,
        }
    }

    /// The run that the driver may be asked to end, after a last look; `None`: whichever there is.
    ///
    /// What has been told to end is not taken back, so that a call that is made again is not looked at again but for
    /// one thing: whether it is still the same run. One that somebody began meanwhile is theirs.
    pub(super) async fn run_to_end(
        self: &Arc<Self>,
        job: &Job<'_>,
        intent: IntentId,
    ) -> Result<Option<BootId>, NotNow> {
        let Some(seen) = self.look_again(job).await? else {
            if self.asked.run(job.id, intent).is_none() {
                self.asked.insert(job.id, intent, None, self.clock.now());
            }
            return Ok(None);
        };
        if let Some(run) = self.asked.run(job.id, intent) {
            // What has ended, whichever run it was, needs no end.
            if is_another(run.as_ref(), &seen) && !matches!(seen.power, Power::Stopped | Power::Gone) {
                self.leave_alone(job, intent, &seen).await;
                return Err(NotNow);
            }
            return Ok(run);
        }
        let look = self.last_look_at(job, &seen).await;
        if !self.may_act(job, intent, look).await {
            return Err(NotNow);
        }
        self.asked.insert(job.id, intent, seen.boot.clone(), self.clock.now());
        Ok(seen.boot)
    }

    /// Looks at a worker that others start and stop too; `None`: there is nothing to see.
    async fn look_again(self: &Arc<Self>, job: &Job<'_>) -> Result<Option<Seen>, NotNow> {
        // Nobody else starts these anew, and they have no files of their own.
        if !job.driver.capabilities().is_shared {
            return Ok(None);
        }
        match self.hands.look(job.id, &job.subject.spec).await {
            Ok(seen) => Ok(Some(seen)),
            // The driver says so again when it is asked to act.
            Err(Error::Gone | Error::Unsupported { .. }) => Ok(None),
            // Whoever cannot be looked at is not acted on; it is tried again until its deadline.
            Err(
                error @ (Error::Unreachable { .. }
                | Error::Denied { .. }
                | Error::TimedOut { .. }
                | Error::Refused { .. }),
            ) => {
                self.unanswered(job.id, &error).await;
                Err(NotNow)
            }
        }
    }

    /// The run that was to end is over, and this one was begun by somebody else: the rules are told.
    pub(super) async fn leave_alone(self: &Arc<Self>, job: &Job<'_>, intent: IntentId, seen: &Seen) {
        let (power, boot) = (seen.power, seen.boot.clone());
        let look = LastLook { power, boot, keep_alive: KeepAlive::NotLooked, is_later: true };
        // Too late for this intent: then nothing is done for it any more either.
        let _ = self.answer_with(job.id, move |change| told_late(change, intent, &look)).await;
    }

    /// Which run there is, which has just been seen, and its keep-alive file.
    pub(super) async fn last_look_at(&self, job: &Job<'_>, seen: &Seen) -> LastLook {
        let keep_alive = match seen.power {
            // What is stopped can be looked into too, and matters when it is deleted.
            Power::Running | Power::Paused | Power::Stopped => {
                let policy = &job.subject.resolved.policy;
                self.look_for_keep_alive(job.id, &job.subject.spec, policy).await
            }
            Power::Gone => KeepAlive::NotLooked,
        };
        LastLook { power: seen.power, boot: seen.boot.clone(), keep_alive, is_later: false }
    }

    /// Whether the driver may act after this look; if not, its sleep has been taken back.
    async fn may_act(self: &Arc<Self>, job: &Job<'_>, intent: IntentId, look: LastLook) -> bool {
        let event = Event::LookedAgain { intent, look: look.clone() };
        // Nothing is written for a look that changes nothing.
        let told = step(&job.subject.worker, &event, self.clock.now());
        if told.is_ok_and(|step| step.answer == Answer::AlreadyTrue) {
            return true;
        }
        let answered = self.answer_with(job.id, move |change| told_late(change, intent, &look));
        // Too late for this intent: then it is not this one that may act.
        matches!(answered.await, Ok(Answer::AlreadyTrue))
    }
}

/// It may not be acted on now, and that has been dealt with.
pub(super) struct NotNow;

/// Whether another run than this is there.
pub(super) fn is_another(run: Option<&BootId>, seen: &Seen) -> bool {
    run.zip(seen.boot.as_ref()).is_some_and(|(run, found)| run != found)
}

/// Tells the rules of a last look, and keeps the hold that it found.
pub(super) fn told_late(
    change: &mut Change<'_>,
    intent: IntentId,
    look: &LastLook,
) -> Result<Answer, ControlError> {
    let answer = change.apply(&Event::LookedAgain { intent, look: look.clone() })?;
    if answer == Answer::Accepted {
        keep_alive::write_late(change, &look.keep_alive)?;
    }
    Ok(answer)
}
