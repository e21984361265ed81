//! How many connections a door has, and the two edges of that count of which the store is told.

use drowse_core::id::WorkerId;
use tokio::sync::Mutex;

use crate::fleet::{ControlError, Fleet};

/// One worker's count.
pub(super) struct Tally {
    fleet: Fleet,
    worker: WorkerId,
    /// Held while an edge is told: they are told one after the other.
    count: Mutex<Count>,
}

#[derive(Default)]
struct Count {
    open: usize,
    /// The store knows that there are some.
    is_told: bool,
}

impl Tally {
    pub(super) fn new(fleet: Fleet, worker: WorkerId) -> Self {
        Self { fleet, worker, count: Mutex::default() }
    }

    /// Counts one in. Refused: it does not count.
    pub(super) async fn enter(&self) -> Result<(), ControlError> {
        let mut count = self.count.lock().await;
        if !count.is_told {
            count.is_told = self.fleet.enter_door(&self.worker).await?;
        }
        count.open += 1;
        Ok(())
    }

    /// Counts one out.
    pub(super) async fn leave(&self) {
        let mut count = self.count.lock().await;
        count.open -= 1;
        if count.open == 0 {
            self.fleet.leave_door(&self.worker).await;
            count.is_told = false;
        }
    }
}
