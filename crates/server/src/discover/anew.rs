//! Workers that somebody listed by the name or the label of a container: when that is removed they are over, and when it
//! is made anew they are there again, as another incarnation.

use drowse_core::id::WorkerId;
use drowse_core::status::StatusKind;
use drowse_core::worker::Power;
use drowse_drivers::Error;

use super::DISCOVERY;
use crate::doubts::{Doubt, Doubted, What};
use crate::fleet::{ControlError, Fleet};
use crate::spec::{NewWorker, WorkerSpec};

impl Fleet {
    /// Looks whether those who are over have been made anew. False: that could not be told.
    pub(super) async fn look_for_the_listed(
        &self,
        books: &[(WorkerId, WorkerSpec)],
    ) -> Result<bool, ControlError> {
        for (id, spec) in books.iter().filter(|(_, spec)| spec.found_by.is_none()) {
            let worker = match self.glance(id).await {
                Ok(worker) => worker,
                Err(ControlError::NotFound(_)) => continue,
                Err(other) => return Err(other),
            };
            match worker.status.kind() {
                StatusKind::Terminated => {}
                // Perhaps its label means one container by now.
                StatusKind::Provisioning | StatusKind::Unknown => {
                    self.0.look_at(id).await;
                    continue;
                }
                StatusKind::Running
                | StatusKind::Pausing
                | StatusKind::Paused
                | StatusKind::Waking
                | StatusKind::Stopping
                | StatusKind::Stopped
                | StatusKind::Draining
                | StatusKind::Terminating
                | StatusKind::Failed => continue,
            }
            match self.0.hands.look(id, spec).await {
                Ok(seen) if seen.power == Power::Gone => {}
                Ok(_) => {
                    let new = NewWorker {
                        id: id.clone(),
                        selectors: worker.selectors,
                        spec: spec.clone(),
                        in_service: worker.in_service,
                    };
                    self.remove(id, DISCOVERY).await?;
                    self.register(new, DISCOVERY).await?;
                }
                // An engine that does not answer for one does not answer for the others.
                Err(Error::Unreachable { .. } | Error::TimedOut { .. }) => return Ok(false),
                Err(error) => {
                    let mut doubted = Doubted::default();
                    doubted.insert(What::Itself, Doubt::from(&error));
                    self.0.doubt(id, &doubted).await;
                }
            }
        }
        Ok(true)
    }
}
