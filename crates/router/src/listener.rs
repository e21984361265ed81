//! Ports that stay open while workers sleep, and where they lead.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::names::Names;
use crate::route::Route;

/// A port that is ours.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: std::net::TcpListener,
    address: SocketAddr,
}

/// Where a port leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leads {
    /// All of it to one worker, whatever the bytes are.
    Port(Route),
    /// By the name that a TLS client asks for.
    Tls(Arc<Names>),
}

impl Listener {
    /// Takes a port.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = std::net::TcpListener::bind(address)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
