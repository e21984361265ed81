//! How a worker is called.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use drowse_wire::control::Run;
use rustix::fd::AsFd;
use rustix::net::sockopt;
use tokio::net::{TcpSocket, TcpStream};

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

    /// Calls.
    pub(crate) async fn connect(&self) -> io::Result<TcpStream> {
        let socket = if self.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        self.keep_near(&socket)?;
        socket.connect(self.address).await
    }

    /// A driver's address is one of this machine's own links. If that link is gone (somebody has removed the bridge), the
    /// kernel sends what is for it wherever it sends what it does not know, and a stranger may pick up: so nobody passes
    /// it on.
    pub(crate) fn keep_near(&self, socket: &impl AsFd) -> io::Result<()> {
        match (&self.run, self.address) {
            (None, _) => {}
            (Some(_), SocketAddr::V4(_)) => sockopt::set_ip_ttl(socket, 1)?,
            (Some(_), SocketAddr::V6(_)) => sockopt::set_ipv6_unicast_hops(socket, Some(1))?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Stands;

    impl Run for Stands {
        fn stands(&self) -> bool {
            true
        }
    }

    #[tokio::test]
    async fn what_is_for_a_run_goes_no_further_than_the_next_machine() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let near = Dial { address, run: Some(Arc::new(Stands)) }.connect().await.unwrap();
        assert_eq!(sockopt::ip_ttl(&near).unwrap(), 1);
        let written_down = Dial { address, run: None }.connect().await.unwrap();
        assert_ne!(sockopt::ip_ttl(&written_down).unwrap(), 1);
    }
}
