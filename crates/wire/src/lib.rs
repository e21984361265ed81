//! The contract: what the API says and how.
//!
//! Messages are plain data with the field names of the API. They only ever grow: a reader ignores fields that it
//! does not know, so an old client understands a new server. For the same reason words of a closed set (a status,
//! a reason) are texts here: a reader shows a word that it has never heard of instead of failing.
//!
//! Nothing here decides anything. What a message is made of comes from `drowse_core`.

#![forbid(unsafe_code)]

#[cfg(feature = "client")]
pub mod client;
pub mod control;
pub mod events;
pub mod guest;
pub mod place;
pub mod problem;
#[cfg(feature = "openapi")]
pub mod schema;
pub mod v1;
