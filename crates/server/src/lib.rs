//! The server of Drowse: the loop that looks, judges and acts, and the facade that everything else uses.
//!
//! - [`config`]: what the file says
//! - [`Fleet`]: what the API, the page, the gate and the command line can ask for
//! - [`Reconciler`]: the loop; deadlines, not scans
//! - [`clock`], [`tasks`], [`crash`]: what is injected, so that a test can stop time and let the program die
//!
//! What must stay true: a status changes only in `change`, in a transaction that has locked the worker's row;
//! drivers are asked only after the commit that says so, but for the one word that gives a visitor a head start, which is
//! noted first.

#![forbid(unsafe_code)]

mod auth;
mod change;
pub mod clock;
pub mod config;
pub mod crash;
mod db;
mod discover;
mod doubts;
pub mod fleet;
mod hands;
pub mod http;
mod ingest;
mod meters;
pub mod metrics;
mod nested;
mod notices;
mod picture;
mod plain;
pub mod policies;
mod reconcile;
mod said;
mod shared;
pub mod spec;
pub mod tasks;
mod untold;

pub use auth::{Chance, Roles};
pub use change::power;
pub use clock::Clock;
pub use discover::LookFor;
pub use fleet::{ControlError, Fleet};
pub use hands::Drivers;
pub use reconcile::Reconciler;
pub use said::sentence;
pub use shared::{CHECKS_AT_ONCE, Parts};
