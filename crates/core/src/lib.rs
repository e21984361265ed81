//! The rules of Drowse.
//!
//! Everything that *decides* lives here, and takes the time as an argument. Nothing here touches the
//! world: the crate is `no_std`, so that a file, a socket, a thread, a clock or a random hash seed cannot
//! even be named, and a test over `cargo metadata` keeps its dependencies that way.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod address;
pub mod brake;
pub mod clock;
pub mod counter;
pub mod effect;
pub mod event;
pub mod evidence;
pub mod flap;
pub mod grace;
pub mod hold;
pub mod host;
pub mod id;
pub mod journal;
pub mod lease;
pub mod liveness;
pub mod machine;
pub mod plain;
pub mod policy;
pub mod reason;
pub mod refusal;
pub mod replay;
pub mod savings;
pub mod schedule;
pub mod signal;
pub mod status;
pub mod telemetry;
pub mod units;
pub mod verdict;
pub mod worker;

pub use clock::Timestamp;
pub use liveness::assess;
pub use machine::step;
pub use policy::resolve;
pub use replay::replay;
pub use verdict::judge;
