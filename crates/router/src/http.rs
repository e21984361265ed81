//! A port that leads by HTTP host. Every request is read: a proxy in front of this one mixes hosts on one
//! connection, and a connection that is kept open for the next request is no reason to keep a worker awake.
//!
//! ```text
//!   request ──▶ whose? ──▶ who asks? ──▶ gate ──▶ worker ──▶ both bodies, to the end
//!                 │           │           │
//!               404     dormant (robot)   └── not yet: held, or a waiting page; no: 503 and why
//! ```
//!
//! - `head`: whom a request is for, and what of it is for the next hop only
//! - `exchange`: one request from the gate to its answer; `carry`: the bodies; `visit`: that it counts
//! - `line`: connections to workers; `join`: what is left of one after an upgrade goes to a pump
//! - `answer`, `page`, `progress`: what Drowse itself says

mod answer;
mod body;
mod carry;
mod exchange;
mod flushes;
mod head;
mod join;
mod line;
mod page;
mod progress;
mod socket;
mod visit;

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::{RecvFlags, recv};
use tokio::net::TcpStream;

use crate::close::{farewell, hang_up_on_upload};
use crate::listener::Leads;
use crate::names::Names;
use crate::port::Port;
use crate::router::{Closing, Router, lock};
use body::Words;
use flushes::Flushes;
use join::Joining;
use line::Line;
pub use page::{BadPage, Page};
use socket::Socket;

/// How long a client may take to say what it wants, the pause before its next request included.
const SAYS_WITHIN: Duration = Duration::from_mins(1);

/// How much it may say before that is clear, cookies and all: as much as nginx takes, and twice what haproxy and Node do.
/// Whoever says it slowly keeps as much memory for a minute.
const HEAD_AT_MOST: usize = 32 << 10;

/// There is no room for another.
pub(crate) const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ndrowse-state: full\r\nconnection: close\r\n\
    content-type: text/plain\r\ncontent-length: 39\r\n\r\ndrowse: there are too many connections\n";

/// How long somebody who came in before the port closed, and has not asked for anything yet, may take to do so.
const ASKS_WITHIN: Duration = Duration::from_secs(1);

/// How it was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// All was answered, or the client is gone.
    Ended,
    /// In the middle of an answer.
    BrokeOff,
    /// The port is closed, and nobody waits any more.
    Cut,
}

/// A client on one connection.
#[derive(Debug)]
struct Caller {
    router: Router,
    /// By which port it came. Where that leads is asked for each request: a configuration may have changed.
    port: Arc<Port>,
    from: IpAddr,
    has_asked: AtomicBool,
    /// The end of the connection is the only sign of the end of an answer, as old clients have it.
    ends_by_close: AtomicBool,
    /// What is written to it.
    flushes: Flushes,
    /// A connection to a worker that the last request has left.
    line: Mutex<Option<Line>>,
    /// It speaks something else with a worker from now on.
    joining: Mutex<Option<Joining>>,
}

/// Answers a client for as long as it asks.
pub(crate) async fn serve(router: &Router, client: TcpStream, from: IpAddr, port: &Arc<Port>) {
    let mut closing = port.closing.subscribe();
    let caller = Arc::new(Caller {
        router: router.clone(),
        port: Arc::clone(port),
        from,
        has_asked: AtomicBool::new(false),
        ends_by_close: AtomicBool::new(false),
        flushes: Flushes::default(),
        line: Mutex::default(),
        joining: Mutex::default(),
    });
    let service = service_fn(|request: Request<Incoming>| {
        let caller = Arc::clone(&caller);
        caller.has_asked.store(true, Ordering::Relaxed);
        let is_old = request.version() < Version::HTTP_11;
        async move {
            let answer = exchange::answer(&caller, request).await;
            let has_length = answer.body().size_hint().exact().is_some();
            caller.ends_by_close.store(is_old && !has_length, Ordering::Relaxed);
            Ok::<Response<Words>, Infallible>(answer)
        }
    });
    let mut http = http1::Builder::new();
    // Whoever has said its last may still want the answer.
    http.half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(SAYS_WITHIN)
        .max_buf_size(HEAD_AT_MOST);
    let client = Socket::new(client, &caller.flushes);
    let over = {
        let mut served = pin!(http.serve_connection(TokioIo::new(client.clone()), service).with_upgrades());
        let closes = async {
            let _ = closing.wait_for(|closing| *closing != Closing::Open).await;
            if !caller.has_asked.load(Ordering::Relaxed) {
                tokio::time::sleep(ASKS_WITHIN).await;
            }
        };
        let answered = async {
            tokio::select! {
                biased;
                served = served.as_mut() => return served,
                () = client.is_gone() => return Ok(()),
                () = closes => {}
            }
            // What is under way is answered, and that was the last.
            served.as_mut().graceful_shutdown();
            tokio::select! {
                served = served => served,
                () = client.is_gone() => Ok(()),
            }
        };
        tokio::select! {
            biased;
            // Nothing else of what is ours fails.
            answered = answered => if answered.is_err_and(|error| error.is_user()) { Over::BrokeOff } else { Over::Ended },
            () = port.until_cut() => Over::Cut,
        }
    };
    match over {
        Over::Ended => {}
        Over::BrokeOff => return break_off(client, &caller).await,
        Over::Cut => {
            if let Some(stream) = client.into_inner() {
                caller.cut(&stream);
            }
            return;
        }
    }
    let joining = lock(&caller.joining).take();
    if let Some(joining) = joining {
        drop(client);
        return joining.complete(router, port.id).await;
    }
    let Some(stream) = client.into_inner() else { return };
    let is_closing = *port.closing.borrow() != Closing::Open;
    // A port that closes does not wait for those who have said nothing.
    if !is_closing || has_unread(&stream) {
        hang_up_on_upload(stream).await;
    }
}

/// Whether something has come that nobody has read.
fn has_unread(stream: &TcpStream) -> bool {
    matches!(recv(stream, &mut [0_u8; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((1.., _)))
}

/// Ends a connection in the middle of an answer, so that what was said of it is heard and is not taken for all of it.
async fn break_off(client: Socket, caller: &Caller) {
    let Some(stream) = client.into_inner() else { return };
    if caller.ends_by_close.load(Ordering::Relaxed) {
        caller.cut(&stream);
    } else {
        farewell(stream, b"").await;
    }
}

impl Caller {
    /// Has the end of the connection not be taken for the end of an answer.
    fn cut(&self, stream: &TcpStream) {
        if self.ends_by_close.load(Ordering::Relaxed) {
            // It is reset.
            let _ = rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }

    /// Where hosts lead just now.
    fn names(&self) -> Arc<Names> {
        match self.port.leads() {
            Leads::Http(names) => names,
            // The port is another one's by now.
            Leads::Port(_) | Leads::Tls(_) => Arc::default(),
        }
    }
}
