//! A port that leads somewhere, as the pumps see it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::door::Door;
use crate::listener::Leads;
use crate::route::Route;
use crate::router::Closing;

/// A route with the door that it leads to.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) route: Route,
    pub(crate) door: Arc<Door>,
}

/// What is done with those who come by a port.
#[derive(Clone, Debug)]
pub(crate) enum Leading {
    /// They all go to one worker.
    Straight(Arc<Lane>),
    /// They are listened to first, in a task.
    AsTheySay(Leads),
}

/// A port that leads somewhere.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) id: u64,
    leading: Mutex<(Leads, Leading)>,
    /// How far closing it has come, for tasks.
    pub(crate) closing: watch::Sender<Closing>,
}

impl Port {
    pub(crate) fn new(id: u64, leads: Leads, leading: Leading) -> Self {
        Self { id, leading: Mutex::new((leads, leading)), closing: watch::Sender::new(Closing::Open) }
    }

    pub(crate) fn leading(&self) -> Leading {
        self.leading.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    pub(crate) fn lead(&self, leads: Leads, leading: Leading) {
        *self.leading.lock().unwrap_or_else(PoisonError::into_inner) = (leads, leading);
    }

    /// Ends when whoever is in is cut.
    pub(crate) async fn until_cut(&self) {
        let mut closing = self.closing.subscribe();
        // It is not closed for as long as this is here.
        let _ = closing.wait_for(|closing| *closing == Closing::Cut).await;
    }

    pub(crate) fn leads(&self) -> Leads {
        self.leading.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}
