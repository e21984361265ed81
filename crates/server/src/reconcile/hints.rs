//! What drivers say unasked. Hints make things quick, looks make them right.

use std::sync::Arc;

use drowse_core::event::Event;
use drowse_core::id::{BootId, WorkerId};
use drowse_core::status::StatusKind;
use drowse_drivers::{Driver, Hint};
use drowse_store::Lane;

use crate::fleet::ControlError;
use crate::shared::Shared;

impl Shared {
    /// Listens to every driver, for as long as there is a runtime.
    pub(super) fn heed_hints(self: &Arc<Self>) {
        for driver in self.hands.drivers().iter() {
            let (shared, driver) = (Arc::clone(self), Arc::clone(driver));
            self.tasks.spawn(async move { shared.listen(&driver).await });
        }
    }

    async fn listen(self: &Arc<Self>, driver: &Arc<dyn Driver>) {
        loop {
            match driver.next_hint().await {
                Hint::Exited { worker, boot, code: Some(code) } => self.exited(&worker, boot, code).await,
                Hint::Exited { worker, code: None, .. } | Hint::Changed { worker } => {
                    self.look_soon(&worker).await;
                }
                Hint::Lost => self.look_at_everybody().await,
            }
        }
    }

    async fn exited(self: &Arc<Self>, worker: &WorkerId, boot: BootId, code: i32) {
        let event = Event::Exited { boot, code };
        let outcome = self.change("exited", Lane::Ordinary, worker, move |change| change.apply(&event)).await;
        if let Err(ControlError::Refused(_)) = outcome {
            // Of another run than we know, or in the middle of something: a look tells.
            self.look_soon(worker).await;
        }
    }

    /// Has a worker looked at now. Failed: it is looked at when it is due.
    pub(super) async fn look_soon(&self, worker: &WorkerId) {
        let (worker, clock) = (worker.clone(), self.clock.clone());
        let _ = self.db.tx("nudge", Lane::Ordinary, move |tx| tx.nudge(&worker, clock.now())).await;
        self.queue.nudge();
    }

    async fn look_at_everybody(&self) {
        for status in StatusKind::ALL.into_iter().filter(|status| *status != StatusKind::Terminated) {
            // Failed: they are looked at when they are due.
            let _ = self.look_soon_at_all(status).await;
        }
    }
}
