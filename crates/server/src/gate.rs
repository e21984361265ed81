//! The plain TCP door of a worker: it owns the port, so the port stays open while the worker sleeps.
//!
//! ```text
//!   accept ──▶ count ──▶ wake once ──▶ dial until it answers ──▶ copy both ways ──▶ count down
//!                │           │                  │
//!                └───────────┴── refused ───────┴── too late ──▶ close
//! ```
//!
//! What must stay true: a connection is counted before the worker is asked for, so that no pause fits in
//! between; not a byte is read from the client before the worker answers, so that none can be lost; a close in
//! one direction closes only that direction.

mod noted;
mod tally;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use drowse_core::id::WorkerId;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::fleet::Fleet;
use crate::tasks::Tasks;
use noted::Noted;
use tally::Tally;

/// Connections of one door at once. Further ones wait in the kernel, unanswered, until one ends.
const AT_ONCE: usize = 1_000;

/// How long somebody is kept waiting for a worker that does not come up.
const WAITS_FOR: Duration = Duration::from_secs(30);

/// The first pause between two attempts to reach a worker that has just come up, and the longest: most answer
/// within a millisecond of a thaw, and a start may take seconds.
const DIAL_AGAIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

/// After `accept` failed for want of file descriptors or memory.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Whose door it is and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Door {
    /// Whose.
    pub worker: WorkerId,
    /// Where it stands.
    pub listen: SocketAddr,
    /// Where the worker answers.
    pub target: SocketAddr,
}

/// How far closing a door has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closing {
    /// It is open.
    Open,
    /// Nobody is let in; who is in goes on.
    NobodyIn,
    /// Connections are cut.
    Cut,
}

/// Lets people in until `closing` says otherwise.
pub async fn serve(
    listener: TcpListener,
    door: Door,
    fleet: Fleet,
    tasks: Tasks,
    mut closing: watch::Receiver<Closing>,
) {
    let gate = Arc::new(Gate { tally: Tally::new(fleet.clone(), door.worker.clone()), door, fleet });
    let room = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let mut closed = closing.clone();
        let accepted = tokio::select! {
            biased;
            // The sender is gone: so is everything else.
            _ = closing.wait_for(|closing| *closing > Closing::Open) => return,
            accepted = accept(&listener, &room) => accepted,
        };
        let Ok((stream, permit)) = accepted else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let gate = Arc::clone(&gate);
        tasks.spawn(async move {
            gate.connection(stream, async move {
                let _ = closed.wait_for(|closing| *closing == Closing::Cut).await;
            })
            .await;
            drop(permit);
        });
    }
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, permit))
}

struct Gate {
    door: Door,
    fleet: Fleet,
    tally: Tally,
}

impl Gate {
    async fn connection(&self, client: TcpStream, cut: impl Future<Output = ()>) {
        // Refused where `wake_from` forbids it: closed at once, and it counted as nothing.
        if self.tally.enter().await.is_err() {
            return;
        }
        tokio::select! {
            () = cut => {}
            // However it ends, both sides have been told by the closing of their sockets.
            _ = self.pass(client) => {}
        }
        self.tally.leave().await;
    }

    async fn pass(&self, client: TcpStream) -> io::Result<()> {
        let reached = tokio::time::timeout(WAITS_FOR, async {
            self.fleet.wake(&self.door.worker).await.map_err(io::Error::other)?;
            Ok::<_, io::Error>(self.dial().await)
        });
        let mut worker = reached.await.map_err(io::Error::other)??;
        // Small answers are not held back for more: the worker and the client decide that for themselves.
        let _ = client.set_nodelay(true);
        let _ = worker.set_nodelay(true);
        let mut client = Noted::new(client, || {
            self.fleet.saw_bytes(&self.door.worker);
        });
        tokio::io::copy_bidirectional(&mut client, &mut worker).await?;
        Ok(())
    }

    /// Until it answers; whoever waits has a deadline.
    async fn dial(&self) -> TcpStream {
        let (mut again, longest) = DIAL_AGAIN;
        loop {
            if let Ok(stream) = TcpStream::connect(self.door.target).await {
                return stream;
            }
            tokio::time::sleep(again).await;
            again = (again * 2).min(longest);
        }
    }
}
