//! What drivers say unasked. Hints make things quick, looks make them right.

use std::sync::Arc;

use drowse_core::event::Event;
use drowse_core::id::{BootId, WorkerId};
use drowse_core::status::StatusKind;
use drowse_drivers::{Driver, Hint};
use drowse_store::Lane;

use crate::fleet::ControlError;
use crate::ingest::FLUSH_INTERVAL;
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
                Hint::Exited { worker, boot, code: Some(code) } => {
                    let shared = Arc::clone(self);
                    self.tasks.spawn(async move { shared.exited(&worker, boot, code).await });
                }
                Hint::Exited { worker, code: None, .. } | Hint::Changed { worker } => {
                    self.look_soon(&worker).await;
                }
                Hint::Came => self.discovery.nudge(),
                Hint::Lost => {
                    self.discovery.nudge();
                    self.look_at_everybody().await;
                }
            }
        }
    }

    async fn exited(self: &Arc<Self>, worker: &WorkerId, boot: BootId, code: i32) {
        loop {
            let event = Event::Exited { boot: boot.clone(), code };
            let outcome = self.change("exited", Lane::Ordinary, worker, move |change| change.apply(&event));
            match outcome.await {
                // Of another run than we know, or in the middle of something: a look tells.
                Err(ControlError::Refused(_)) => return self.look_soon(worker).await,
                // A look would find it ended and not know that it was an error.
                Err(ControlError::Unavailable(error)) if error.is_outage() => {
                    self.clock.sleep_until(self.clock.now() + FLUSH_INTERVAL).await;
                }
                Ok(_) | Err(_) => return,
            }
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
