//! The doors of all workers: which stand open, and what changes when the configuration does.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use anyhow::anyhow;
use drowse_server::Fleet;
use drowse_server::gate::{self, Closing, Door};
use drowse_server::tasks::Tasks;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Doors that stand open.
#[derive(Debug, Default)]
pub(super) struct Doors {
    open: BTreeMap<SocketAddr, Opened>,
}

#[derive(Debug)]
struct Opened {
    door: Door,
    closing: watch::Sender<Closing>,
    served: JoinHandle<()>,
}

/// Ports that are ours and lead nowhere yet.
#[derive(Debug)]
pub(super) struct Bound(Vec<(Door, TcpListener)>);

impl Doors {
    /// Takes the ports that are not ours yet: all of them, or none.
    pub(super) async fn bind(&self, wanted: &[Door]) -> anyhow::Result<Bound> {
        let mut bound = Vec::new();
        for door in wanted.iter().filter(|door| !self.open.contains_key(&door.listen)) {
            bound.push((door.clone(), bind(door).await?));
        }
        Ok(Bound(bound))
    }

    /// Opens what is wanted and closes what no longer is. Connections through a door that closes go on.
    pub(super) async fn apply(
        &mut self,
        bound: Bound,
        wanted: &[Door],
        fleet: &Fleet,
        tasks: &Tasks,
    ) -> anyhow::Result<()> {
        let mut bound = bound.0;
        let old: Vec<SocketAddr> = self
            .open
            .values()
            .filter(|opened| !wanted.contains(&opened.door))
            .map(|it| it.door.listen)
            .collect();
        for listen in old {
            if let Some(opened) = self.open.remove(&listen) {
                opened.closing.send_replace(Closing::NobodyIn);
                // The port is free when it is over.
                let _ = opened.served.await;
            }
            if let Some(door) = wanted.iter().find(|door| door.listen == listen) {
                bound.push((door.clone(), bind(door).await?));
            }
        }
        for (door, listener) in bound {
            let closing = watch::Sender::new(Closing::Open);
            let serve =
                gate::serve(listener, door.clone(), fleet.clone(), tasks.clone(), closing.subscribe());
            let served = tasks.spawn(serve);
            self.open.insert(door.listen, Opened { door, closing, served });
        }
        Ok(())
    }

    /// Closes all of them, as far as that.
    pub(super) fn close(&self, how_far: Closing) {
        for opened in self.open.values() {
            opened.closing.send_replace(how_far);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }
}

async fn bind(door: &Door) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind(door.listen).await;
    bound.map_err(|error| in_use(error, door.listen, &format!("worker {}", door.worker)))
}

/// One line that says whose port it was to be.
pub(super) fn in_use(error: io::Error, address: SocketAddr, whose: &str) -> anyhow::Error {
    if error.kind() == io::ErrorKind::AddrInUse {
        anyhow!("port {} of {} is already in use; it is wanted for {whose}", address.port(), address.ip())
    } else {
        anyhow::Error::new(error).context(format!("cannot listen on {address} for {whose}"))
    }
}
