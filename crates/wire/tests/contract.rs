//! The contract, held against golden files and a server that is a few lines of std.

#[path = "contract/client.rs"]
#[cfg(feature = "client")]
mod client;
#[path = "contract/fleet.rs"]
mod fleet;
#[path = "contract/golden.rs"]
mod golden;
#[path = "contract/registry.rs"]
mod registry;
#[path = "contract/server.rs"]
#[cfg(feature = "client")]
mod server;
