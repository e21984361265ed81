//! A port that leads somewhere, as the pumps see it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::door::Door;
use crate::listener::Leads;
use crate::route::Route;

/// A route with the door that it leads to.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) route: Route,
    pub(crate) door: Arc<Door>,
}

/// A port that leads somewhere.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) id: u64,
    lane: Mutex<Arc<Lane>>,
}

impl Port {
    pub(crate) fn new(id: u64, lane: Lane) -> Self {
        Self { id, lane: Mutex::new(Arc::new(lane)) }
    }

    pub(crate) fn lane(&self) -> Arc<Lane> {
        Arc::clone(&self.lane.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_lane(&self, lane: Lane) {
        *self.lane.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(lane);
    }

    pub(crate) fn leads(&self) -> Leads {
        Leads::Port(self.lane().route.clone())
    }
}
