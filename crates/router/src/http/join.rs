//! What is left of HTTP after an upgrade: two sockets, which a pump joins like any others.

use hyper::upgrade::{OnUpgrade, Parts, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::socket::Socket;
use super::visit::Visit;
use crate::router::Router;

/// A client and a worker that have agreed to speak something else.
#[derive(Debug)]
pub(super) struct Joining {
    pub(super) client: OnUpgrade,
    pub(super) worker: OnUpgrade,
    pub(super) visit: Visit,
}

impl Joining {
    /// Joins them, and waits until all is over.
    pub(super) async fn complete(self, router: &Router, port: u64) {
        let (Ok(client), Ok(worker)) = (self.client.await, self.worker.await) else { return };
        let (Some((client, said)), Some((worker, heard))) = (parts(client), parts(worker)) else { return };
        let (route, from, may_wake) = (self.visit.route.clone(), self.visit.from, self.visit.may_wake);
        let Some(pass) = self.visit.into_pass() else { return };
        let joined = crate::router::Joined { client, said, worker, heard, from, port, pass, may_wake };
        router.join(joined, &route).await;
    }
}

/// The socket, and what was read from it and is no HTTP any more.
fn parts(upgraded: Upgraded) -> Option<(TcpStream, Vec<u8>)> {
    let Parts { io, read_buf, .. } = upgraded.downcast::<TokioIo<Socket>>().ok()?;
    Some((io.into_inner().into_inner()?, read_buf.to_vec()))
}
