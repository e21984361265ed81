//! Ports that stay open while workers sleep, and where they lead.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use drowse_core::id::WorkerId;
use rustix::net::{listen, sockopt};

use crate::names::Names;
use crate::pump::keepalive;
use crate::route::Route;

/// How many may knock before they are let in. The kernel allows fewer if it is told to.
const KNOCK_AT_ONCE: i32 = 4_096;

/// A port that is ours.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: TcpListener,
    address: SocketAddr,
}

/// Where a port leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leads {
    /// All of it to one worker, whatever the bytes are.
    Port(Route),
    /// By the name that a TLS client asks for.
    Tls(Arc<Names>),
    /// By the host of each HTTP request.
    Http(Arc<Names>),
}

impl Leads {
    /// The workers that it may lead to.
    pub fn workers(&self) -> Vec<&WorkerId> {
        match self {
            Self::Port(route) => vec![&route.worker],
            Self::Tls(names) | Self::Http(names) => names.routes().map(|route| &route.worker).collect(),
        }
    }
}

impl Listener {
    /// Takes a port.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::of(TcpListener::bind(address)?)
    }

    /// Takes on a port that somebody else has opened.
    pub fn of(socket: TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // Again, because the standard library's queue is short.
        listen(&socket, KNOCK_AT_ONCE)?;
        // Every connection has these from here, without a call for each.
        sockopt::set_tcp_nodelay(&socket, true)?;
        keepalive(&socket);
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
