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
mod head;
mod join;
mod line;
mod page;
mod progress;
mod visit;

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::watch;

use crate::names::Names;
use crate::router::{Closing, Comer, Router, lock};
use body::Words;
use join::Joining;
use line::Line;
pub use page::{BadPage, Page};

/// How long a client may take to say what it wants, the pause before its next request included.
const SAYS_WITHIN: Duration = Duration::from_mins(1);

/// How much it may say before that is clear.
const HEAD_AT_MOST: usize = 64 << 10;

/// A client on one connection.
#[derive(Debug)]
struct Caller {
    router: Router,
    names: Arc<Names>,
    from: IpAddr,
    /// A connection to a worker that the last request has left.
    line: Mutex<Option<Line>>,
    /// It speaks something else with a worker from now on.
    joining: Mutex<Option<Joining>>,
}

/// Answers a client for as long as it asks.
pub(crate) async fn serve(
    router: &Router,
    names: &Arc<Names>,
    comer: Comer,
    mut closing: watch::Receiver<Closing>,
) {
    let Comer { client, from, port } = comer;
    let caller = Arc::new(Caller {
        router: router.clone(),
        names: Arc::clone(names),
        from,
        line: Mutex::default(),
        joining: Mutex::default(),
    });
    let service = service_fn(|request: Request<Incoming>| {
        let caller = Arc::clone(&caller);
        async move { Ok::<Response<Words>, Infallible>(exchange::answer(&caller, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(SAYS_WITHIN).max_buf_size(HEAD_AT_MOST);
    {
        let mut served = pin!(http.serve_connection(TokioIo::new(client), service).with_upgrades());
        let is_over = tokio::select! {
            biased;
            _ = served.as_mut() => true,
            _ = closing.wait_for(|closing| *closing != Closing::Open) => false,
        };
        if !is_over {
            // What is under way is answered, and that was the last.
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
    let joining = lock(&caller.joining).take();
    if let Some(joining) = joining {
        joining.complete(router, port).await;
    }
}
