//! The ways to a worker whose addresses are good for one run.
//!
//! A container that is stopped gives its address back, and the next one that starts may get it. So an address is asked
//! for before it is dialled, and the run that it belongs to is looked at again once somebody has picked up: as long as
//! that run stands, it was the one that did. What is remembered here needs no forgetting for that to be true.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drowse_wire::control::{Run, Way};

use super::Door;
use crate::route::Place;
use crate::router::lock;

/// How long the control plane may take to say where a worker is.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

/// What was said of the ports of a worker.
#[derive(Debug, Default)]
pub(crate) struct Ways(Mutex<HashMap<u16, Way>>);

/// Where to dial, and who vouches for it.
#[derive(Clone, Debug)]
pub(crate) struct Dial {
    pub(crate) address: SocketAddr,
    /// `None`: the address is written down, and whoever answers there is meant.
    pub(crate) run: Option<Arc<dyn Run>>,
}

impl Dial {
    /// Whether whoever picks up there, or just did, is the worker.
    pub(crate) fn stands(&self) -> bool {
        self.run.as_ref().is_none_or(|run| run.stands())
    }
}

impl Door {
    /// Where a place is, as far as that has been said and holds.
    pub(crate) fn known(&self, place: Place) -> Option<Dial> {
        let port = match place {
            Place::Address(address) => return Some(Dial { address, run: None }),
            Place::Port(port) => port,
        };
        let mut ways = lock(&self.ways.0);
        let Way { address, run } = ways.get(&port)?.clone();
        let dial = Dial { address, run: Some(run) };
        if dial.stands() {
            return Some(dial);
        }
        ways.remove(&port);
        None
    }

    /// Where a place is. `None`: nobody can say just now.
    pub(crate) async fn find(&self, place: Place) -> Option<Dial> {
        let port = match (self.known(place), place) {
            (Some(known), _) => return Some(known),
            (None, Place::Port(port)) => port,
            (None, Place::Address(_)) => return None,
        };
        let router = self.router.upgrade()?;
        let asked = tokio::time::timeout(TOLD_WITHIN, router.control.way(&self.worker, port));
        let way = asked.await.ok()?.ok()?;
        lock(&self.ways.0).insert(port, way);
        self.known(place)
    }

    /// Whoever was to answer there does not: it is asked for again.
    pub(super) fn doubt_way(&self, place: Place) {
        if let Place::Port(port) = place {
            lock(&self.ways.0).remove(&port);
        }
    }
}
