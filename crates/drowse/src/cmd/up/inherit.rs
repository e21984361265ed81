//! Ports that somebody else has opened: systemd, or the Drowse before this one.
//!
//! A port that is handed on is never closed in between: whoever connects meanwhile waits in the system's queue
//! instead of being refused.

use std::io;
use std::net::{SocketAddr, TcpListener};

use anyhow::Context as _;
use rustix::io::{FdFlags, fcntl_setfd};

/// Ports that are ours already.
#[derive(Debug, Default)]
pub(super) struct Inherited(Vec<(SocketAddr, TcpListener)>);

impl Inherited {
    /// What systemd has opened for us.
    pub(super) fn from_systemd() -> anyhow::Result<Self> {
        let mut inherited = Self::default();
        let mut given = listenfd::ListenFd::from_env();
        for index in 0..given.len() {
            let taken = given
                .take_tcp_listener(index)
                .context("systemd has handed over something that is no TCP port")?;
            if let Some(listener) = taken {
                inherited.add(listener).context("a port from systemd cannot be used")?;
            }
        }
        Ok(inherited)
    }

    pub(super) fn add(&mut self, listener: TcpListener) -> io::Result<()> {
        // Workers are started by this process and have no business with it.
        fcntl_setfd(&listener, FdFlags::CLOEXEC)?;
        self.0.push((listener.local_addr()?, listener));
        Ok(())
    }

    /// The port with this address, if there is one.
    pub(super) fn take(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let index = self.0.iter().position(|(theirs, _)| *theirs == address)?;
        Some(self.0.swap_remove(index).1)
    }

    /// Those that nobody wanted.
    pub(super) fn left(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|(address, _)| *address).collect()
    }
}
