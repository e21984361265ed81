//! The last look at a worker that is to sleep: the shell looks, the rules say what it means.
//!
//! Before a stop, which cannot be taken back; before a freeze, so that no run is frozen that nobody judged; and after
//! it, when nobody in the worker can touch anything any more.

use std::sync::Arc;

use drowse_core::event::Event;
use drowse_core::hold::KeepAlive;
use drowse_core::id::IntentId;
use drowse_core::machine::{Answer, LastLook};
use drowse_core::step;
use drowse_core::worker::Power;
use drowse_drivers::{Error, Seen};

use super::check::is_made_by_us;
use super::effects::Job;
use super::keep_alive;
use crate::change::Change;
use crate::fleet::ControlError;
use crate::shared::Shared;

impl Shared {
    /// Looks before the driver acts. False: it may not, and that has been dealt with.
    pub(super) async fn passes_last_look(self: &Arc<Self>, job: &Job<'_>, intent: IntentId) -> bool {
        // Nobody else starts these anew, and they have no files of their own.
        if is_made_by_us(job.subject.worker.driver) {
            return true;
        }
        match self.hands.look(job.id, &job.subject.spec).await {
            Ok(seen) => {
                let look = self.last_look_at(job, &seen).await;
                self.may_act(job, intent, look).await
            }
            // Whoever cannot be looked at is not acted on; it is tried again until its deadline.
            Err(error @ (Error::Unreachable { .. } | Error::TimedOut { .. })) => {
                self.unanswered(job.id, &error).await;
                false
            }
            // The driver says so again when it is asked to act.
            Err(Error::Refused { .. } | Error::Gone | Error::Unsupported { .. }) => true,
        }
    }

    /// Which run there is, which has just been seen, and its keep-alive file.
    pub(super) async fn last_look_at(&self, job: &Job<'_>, seen: &Seen) -> LastLook {
        let keep_alive = match seen.power {
            Power::Running | Power::Paused => {
                let policy = &job.subject.resolved.policy;
                self.look_for_keep_alive(job.id, &job.subject.spec, policy).await
            }
            Power::Stopped | Power::Gone => KeepAlive::NotLooked,
        };
        LastLook { boot: seen.boot.clone(), keep_alive }
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
