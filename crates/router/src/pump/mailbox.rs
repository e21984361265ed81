//! How a pump is told something by others: a list, and a bell that wakes it.

use std::net::IpAddr;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use tokio::sync::{mpsc, oneshot};

use super::conn::Key;
use super::post::Post;
use crate::door::{Admitted, Door, Pass};
use crate::port::{Lane, Port};
use crate::turned::Turned;

/// What a pump is told.
#[derive(Debug)]
pub(crate) enum Letter {
    /// Somebody at a gate may pass.
    Passed(Key, Admitted),
    /// Somebody at a gate is turned away.
    Turned(Key, Turned),
    /// Somebody comes who was listened to elsewhere.
    Adopt(Box<Adopted>),
    /// Those of a door go on.
    Go(Arc<Door>),
    /// Those of a door end whose round is over.
    Cut(Arc<Door>),
    /// Another port.
    Listen(Arc<Port>, Arc<OwnedFd>),
    /// Nobody comes in by a port any more. Whoever waits for that is told when the sender is dropped.
    Close(u64, mpsc::Sender<()>),
    /// Those who came in by a port end.
    CutPort(u64),
    /// There is no time left: all end as they are. Whoever waits for that is told when the sender is dropped.
    BreakOff(mpsc::Sender<()>),
    /// It is over.
    End,
}

/// Somebody who was listened to before they were led.
#[derive(Debug)]
pub(crate) struct Adopted {
    pub(crate) client: OwnedFd,
    /// What they have said already.
    pub(crate) said: Vec<u8>,
    pub(crate) from: IpAddr,
    pub(crate) lane: Arc<Lane>,
    /// By which port they came.
    pub(crate) port: u64,
    /// Gets the client back if it is turned away, and is dropped when all is over.
    pub(crate) back: oneshot::Sender<(OwnedFd, Turned)>,
    /// The worker, if they have found it already.
    pub(crate) with: Option<With>,
}

/// A worker that somebody speaks with already.
#[derive(Debug)]
pub(crate) struct With {
    pub(crate) worker: OwnedFd,
    /// What it has said already.
    pub(crate) heard: Vec<u8>,
    /// That the client counts.
    pub(crate) pass: Pass,
    /// Whether it may wake the worker when it has been silent.
    pub(crate) may_wake: bool,
}

/// The mailbox of one pump.
#[derive(Debug)]
pub(crate) struct Mailbox {
    post: Post<Letter>,
    pub(super) bell: OwnedFd,
}

impl Mailbox {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { post: Post::new(), bell: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)? })
    }

    pub(crate) fn post(&self, letter: Letter) {
        if self.post.leave(letter) {
            // It can fail only when it rings already.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    pub(super) fn take(&self) -> Vec<Letter> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut count);
        self.post.take()
    }
}
