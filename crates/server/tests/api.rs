//! The API as others see it: a real server on a port of its own, SQLite in a temporary folder, and the simulated
//! driver. Every answer is held against the `OpenAPI` document.

#![expect(clippy::unwrap_used, reason = "all of this is tests, its helpers too")]

#[path = "api/document.rs"]
mod document;
#[path = "api/events.rs"]
mod events;
#[path = "api/fleet.rs"]
mod fleet;
#[path = "api/policy.rs"]
mod policy;
#[path = "api/power.rs"]
mod power;
#[path = "api/rig.rs"]
mod rig;
#[path = "api/roles.rs"]
mod roles;
#[path = "api/schema.rs"]
mod schema;
#[path = "api/sign_in.rs"]
mod sign_in;
#[path = "api/tokens.rs"]
mod tokens;
#[path = "api/wrong.rs"]
mod wrong;
