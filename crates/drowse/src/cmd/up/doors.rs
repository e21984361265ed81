//! The doors of all workers: which stand open, and what changes when the configuration does.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;

use anyhow::anyhow;
use drowse_core::id::WorkerId;
use drowse_router::{Closing, Counts, Leads, Listener, Open, Router};
use drowse_server::http::{AllDoors, DoorCounts};
use rustix::fd::OwnedFd;

use super::inherit::Inherited;

/// A port and where it leads.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) listen: SocketAddr,
    pub(super) leads: Leads,
    /// Who it is for, for messages.
    pub(super) whose: String,
}

/// Doors that stand open.
#[derive(Debug, Default)]
pub(super) struct Doors {
    open: BTreeMap<SocketAddr, Open>,
}

/// Ports that are ours and lead nowhere yet.
#[derive(Debug)]
pub(super) struct Bound(Vec<(Door, Listener)>);

impl Bound {
    pub(super) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }
}

impl Doors {
    /// Takes the ports that are not ours yet: all of them, or none.
    pub(super) fn bind(&self, wanted: &[Door], inherited: &mut Inherited) -> anyhow::Result<Bound> {
        let new = wanted.iter().filter(|door| !self.open.contains_key(&door.listen));
        let bound = new.map(|door| {
            let listener = match inherited.take(door.listen) {
                Some(ours) => Listener::of(ours),
                None => Listener::bind(door.listen),
            };
            Ok((door.clone(), listener.map_err(|error| in_use(error, door.listen, &door.whose))?))
        });
        bound.collect::<anyhow::Result<_>>().map(Bound)
    }

    /// The same for each on its own: what cannot be had is not wanted any more, and the reasons are told.
    pub(super) fn bind_each(
        &self,
        wanted: &mut Vec<Door>,
        inherited: &mut Inherited,
    ) -> (Bound, BTreeMap<WorkerId, String>) {
        let (mut all, mut shut) = (Vec::new(), BTreeMap::new());
        wanted.retain(|door| match self.bind(std::slice::from_ref(door), inherited) {
            Ok(Bound(bound)) => {
                all.extend(bound);
                true
            }
            Err(error) => {
                if let Leads::Port(route) = &door.leads {
                    shut.insert(route.worker.clone(), format!("{error:#}"));
                }
                false
            }
        });
        (Bound(all), shut)
    }

    /// Opens what is wanted, closes what no longer is, and has the rest lead where they are to. Connections
    /// through a door that closes or leads elsewhere go on.
    pub(super) async fn apply(
        &mut self,
        bound: Bound,
        wanted: &[Door],
        router: &Router,
    ) -> anyhow::Result<()> {
        let is_wanted = |listen: &SocketAddr| wanted.iter().any(|door| door.listen == *listen);
        let old: Vec<SocketAddr> = self.open.keys().filter(|listen| !is_wanted(listen)).copied().collect();
        for listen in old {
            if let Some(open) = self.open.remove(&listen) {
                // The port is free when it is over.
                open.closed().await;
            }
        }
        for door in wanted {
            if let Some(open) = self.open.get(&door.listen) {
                open.lead(door.leads.clone());
            }
        }
        for (door, listener) in bound.0 {
            let open = router.open(listener, door.leads);
            self.open.insert(door.listen, open);
        }
        let led_to: BTreeSet<&WorkerId> = wanted.iter().flat_map(|door| door.leads.workers()).collect();
        // Names come and go with the containers that bear them, and what they leave behind would add up.
        router.keep_only(|worker| led_to.contains(worker));
        Ok(())
    }

    /// Closes all of them, as far as that.
    pub(super) fn close(&self, how_far: Closing) {
        for open in self.open.values() {
            open.close(how_far);
        }
    }

    /// Lets nobody in any more, and waits until that is so.
    pub(super) async fn let_nobody_in(&self) {
        for open in self.open.values() {
            open.let_nobody_in().await;
        }
    }

    /// The ports themselves, for whoever takes them over.
    pub(super) fn sockets(&self) -> io::Result<Vec<OwnedFd>> {
        self.open.values().filter_map(|open| open.socket().transpose()).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

/// What went through all doors, for whoever asks.
pub(super) fn counts_of(router: Router) -> AllDoors {
    AllDoors::new(move || {
        let counted = router.counts().into_iter();
        let figures =
            counted.map(|(worker, Counts { let_through, turned_away, to_worker, to_client, open })| {
                DoorCounts { worker, open, let_through, turned_away, to_worker, to_client }
            });
        figures.collect()
    })
}

/// One line that says whose port it was to be.
pub(super) fn in_use(error: io::Error, address: SocketAddr, whose: &str) -> anyhow::Error {
    if error.kind() == io::ErrorKind::AddrInUse {
        anyhow!("port {} of {} is already in use; it is wanted for {whose}", address.port(), address.ip())
    } else {
        anyhow::Error::new(error).context(format!("cannot listen on {address} for {whose}"))
    }
}
