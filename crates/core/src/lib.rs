//! The rules of Drowse.
//!
//! Everything that *decides* lives here, and takes the time as an argument. Nothing here touches the
//! world: the crate is `no_std`, so that a file, a socket, a thread, a clock or a random hash seed cannot
//! even be named, and a test over `cargo metadata` keeps its dependencies that way.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod brake;
pub mod clock;
pub mod flap;
pub mod grace;
pub mod id;
pub mod lease;
pub mod liveness;
pub mod units;

pub use clock::Timestamp;
