//! The end of Drowse: nothing stays frozen that nothing wakes.
//!
//! Whatever sleeps because Drowse decided so is thawed; as an undo, so that nobody's counters or snoozes know of
//! it. What a person paused stays paused: they would not expect a restart of Drowse to overrule them, and a
//! connection would not have woken it either. What is stopped stays stopped.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::event::Event;
use drowse_core::id::WorkerId;
use drowse_core::reason::PauseReason;
use drowse_core::status::{Status, StatusKind, WakeCause, WakeFrom};
use drowse_store::{Lane, NewEvent};
use serde_json::json;

use super::{ControlError, Fleet};

/// What became of those who slept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// They run again.
    pub thawed: Vec<WorkerId>,
    /// Somebody else than Drowse put them to sleep: they stay frozen.
    pub kept: Vec<WorkerId>,
    /// They did not come back in time.
    pub late: Vec<WorkerId>,
}

/// How often it is looked whether all are back. Told changes would do, but for what a check that is still under
/// way decides last.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Fleet {
    /// Thaws what Drowse froze and waits until it runs. To be called when the loop and the doors are closed.
    pub async fn leave(&self, within: Duration) -> Result<Left, ControlError> {
        let deadline = self.0.clock.now() + within;
        let mut left = Left::default();
        loop {
            left.late.clear();
            left.kept.clear();
            // Before the look: a check that ends in between may have decided on one more sleep.
            let had_checks = self.0.queue.is_busy();
            for status in [StatusKind::Pausing, StatusKind::Paused, StatusKind::Waking] {
                for id in self.0.all_with(status).await? {
                    match self.let_go(&id).await? {
                        Some(true) => left.late.push(id),
                        Some(false) => left.kept.push(id),
                        None => {}
                    }
                }
            }
            for id in &left.late {
                if !left.thawed.contains(id) {
                    left.thawed.push(id.clone());
                }
            }
            let now = self.0.clock.now();
            if (left.late.is_empty() && !had_checks) || now >= deadline {
                left.thawed.retain(|id| !left.late.contains(id));
                self.note_end(&left).await?;
                return Ok(left);
            }
            self.0.clock.sleep_until(now + LOOK_EVERY).await;
        }
    }

    /// Whether it is on its way back now; `None` if it does not sleep at all.
    async fn let_go(&self, id: &WorkerId) -> Result<Option<bool>, ControlError> {
        let outcome = self
            .0
            .change("leave", Lane::Wake, id, |change| {
                let is_ours = match &change.worker().status {
                    Status::Pausing { sleep, .. } | Status::Paused { sleep, .. } => match sleep.reason {
                        PauseReason::IdleTimeout
                        | PauseReason::Schedule
                        | PauseReason::MaxRuntime
                        | PauseReason::ScaleDown => true,
                        PauseReason::Manual | PauseReason::External => false,
                    },
                    Status::Waking { from: WakeFrom::Frozen | WakeFrom::Undone, .. } => {
                        return Ok(Some(true));
                    }
                    // Nothing of it is frozen, and it may be waiting for its next try: the next start goes on.
                    Status::Waking { from: WakeFrom::Stopped, .. }
                    | Status::Provisioning { .. }
                    | Status::Running { .. }
                    | Status::Stopping { .. }
                    | Status::Stopped { .. }
                    | Status::Draining { .. }
                    | Status::Terminating { .. }
                    | Status::Terminated { .. }
                    | Status::Failed { .. }
                    | Status::Unknown { .. } => return Ok(None),
                };
                if is_ours {
                    change.apply(&Event::WakeRequested { cause: WakeCause::Shutdown })?;
                }
                Ok(Some(is_ours))
            })
            .await;
        match outcome {
            Ok((is_on_its_way, _)) => Ok(is_on_its_way),
            Err(ControlError::NotFound(_) | ControlError::Refused(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    async fn note_end(&self, left: &Left) -> Result<(), ControlError> {
        let clock = self.0.clock.clone();
        let doc = json!({ "thawed": left.thawed, "kept_frozen": left.kept, "late": left.late });
        self.0
            .db
            .tx("ended", Lane::Ordinary, move |tx| {
                let kind = "drowse.ended".to_owned();
                tx.append(NewEvent { at: clock.now(), worker: None, kind, doc });
                Ok::<_, ControlError>(())
            })
            .await?;
        self.0.notices.journal_advanced();
        Ok(())
    }

    /// The same without thawing: who is frozen stays so until the next start.
    pub async fn leave_frozen(&self) -> Result<Left, ControlError> {
        let kept = Arc::clone(&self.0).all_with(StatusKind::Paused).await?;
        let left = Left { kept, ..Left::default() };
        self.note_end(&left).await?;
        Ok(left)
    }
}
