//! The front door of Drowse: ports that stay open while the worker sleeps.
//!
//! ```text
//!   accept ──▶ count ──▶ wake once ──▶ prove that it answers ──▶ copy both ways ──▶ count down
//!                │           │                  │
//!                └───────────┴── refused ───────┴── too late ──▶ close
//! ```
//!
//! - [`route`]: where a connection leads and on what terms
//! - [`listener`]: ports that outlive workers and restarts
//! - [`Router`]: all doors; [`Door`]: one worker's, with its gate; [`Pass`]: somebody who was let through
//! - `gate`, `queue`, `room`: the rules, without a clock or a socket
//! - `keeper`: does what a gate asks for; `pump`: the threads that move bytes; `tally`: what is counted
//! - `tls`: whom a TLS client wants; [`http`]: whom an HTTP client wants; `names`: where that leads
//!
//! What must stay true: a connection is counted before the worker is asked for, so that no sleep fits in
//! between; not a byte reaches a worker that has not answered in its present run; a close in one direction closes
//! only that direction; past the validity of what the control plane was told, not a byte moves.

mod close;
pub mod door;
mod gate;
pub mod http;
mod keeper;
pub mod listener;
mod names;
mod port;
mod prove;
mod pump;
mod queue;
mod room;
pub mod route;
mod router;
/// What threads share. By a name of its own, so that a test can put its own in its place.
mod sync {
    pub(crate) use std::sync::{Mutex, PoisonError, atomic};
}
mod tally;
mod tls;
mod turned;

pub use door::{Door, Pass};
pub use listener::{Leads, Listener};
pub use names::Names;
pub use route::Route;
pub use router::{Closing, Limits, Now, Open, Router};
pub use tally::Counts;
pub use turned::Turned;
