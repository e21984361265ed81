//! Connections to workers.

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::body::Words;
use super::flushes::Flushes;
use super::socket::Socket;
use crate::door::Dial;
use crate::pump::keepalive;
use crate::router::Router;

/// How long a worker may take to pick up. One that is awake and has answered before does so within microseconds.
const DIAL_FOR: Duration = Duration::from_secs(5);

/// How long the head of an answer may be. More than a client may say: what is in it, a worker of the house has put there.
const HEAD_AT_MOST: usize = 64 << 10;

/// A connection to a worker.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) to: SocketAddr,
    sender: SendRequest<Words>,
    /// What is written to it.
    pub(super) flushes: Flushes,
    /// It has carried a request before.
    pub(super) is_used: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The worker hung up. Whether it has heard the request is not known, unless it is said that it has not.
    HungUp {
        was_sent: bool,
        /// It closed over something that it had not read, or was not there any more to read it.
        was_reset: bool,
    },
    /// It said something that is no HTTP.
    Garbage(hyper::Error),
}

impl Line {
    /// Calls a worker. `None` also if it is not known that it was the worker who picked up.
    pub(super) async fn dial(router: &Router, dial: &Dial) -> Option<Self> {
        let to = dial.address;
        let stream = tokio::time::timeout(DIAL_FOR, TcpStream::connect(to)).await.ok()?.ok()?;
        if !dial.stands() {
            return None;
        }
        let _ = stream.set_nodelay(true);
        keepalive(&stream);
        let flushes = Flushes::default();
        let socket = Socket::new(stream, &flushes);
        let (sender, connection) =
            http1::Builder::new().max_buf_size(HEAD_AT_MOST).handshake(TokioIo::new(socket)).await.ok()?;
        // It ends with the sender, and with whatever it became by an upgrade.
        router.spawn(async move {
            let _ = connection.with_upgrades().await;
        });
        Some(Self { to, sender, flushes, is_used: false })
    }

    /// Whether a request for there can go by it.
    pub(super) fn leads_to(&self, to: SocketAddr) -> bool {
        self.to == to && self.sender.is_ready() && !self.sender.is_closed()
    }

    /// Asks, and waits for the head of the answer.
    pub(super) async fn ask(&mut self, request: Request<Words>) -> Result<Response<Incoming>, Unanswered> {
        self.is_used = true;
        match self.sender.try_send_request(request).await {
            Ok(response) => Ok(response),
            Err(mut failed) => {
                let was_sent = failed.take_message().is_none();
                let error = failed.into_error();
                if error.is_parse() {
                    Err(Unanswered::Garbage(error))
                } else {
                    Err(Unanswered::HungUp { was_sent, was_reset: is_reset(&error) })
                }
            }
        }
    }
}

/// Whether the kernel said so, and not the worker with an end.
fn is_reset(error: &hyper::Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    io.is_some_and(|io| matches!(io.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
}
