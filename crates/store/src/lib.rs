//! The memory of Drowse: synchronous transactions on SQLite or PostgreSQL.
//!
//! What must stay true, on both engines and under any interleaving:
//! - **Whatever takes, renews or ends a hold or changes a status has locked the worker's row first**, and has
//!   read only then. The types say so: [`Locked`] is the only way to such a change, and
//!   [`Tx::lock_worker`] the only way to a [`Locked`].
//!
//!   ```compile_fail,E0599
//!   # use drowse_core::hold::Hold;
//!   # use drowse_store::{Store, StoreError};
//!   fn without_a_lock(store: &Store, hold: &Hold) -> Result<(), StoreError> {
//!       store.tx(|t| t.take_hold(hold)) // there is no such thing
//!   }
//!   ```
//!   ```
//!   # use drowse_core::{hold::Hold, id::WorkerId};
//!   # use drowse_store::{Store, StoreError};
//!   fn with_a_lock(store: &Store, id: &WorkerId, hold: &Hold) -> Result<(), StoreError> {
//!       store.tx(|t| match t.lock_worker(id)? {
//!           Some(mut worker) => worker.take_hold(hold),
//!           None => Err(StoreError::NoWorker(id.clone())),
//!       })
//!   }
//!   ```
//! - **A transaction is a synchronous closure.** No await and no call of a driver fits inside.
//! - Locks are taken in one order: workers by id, then the fleet (policy, exemptions, brake), the journal
//!   last. A transaction that tries another order fails at once, on the engine that has no such locks too.
//! - A claim is a stamp and not an open lock; a result is written only if its stamp still stands.
//! - Evidence that arrives has a table of its own, so that a batch never waits for a transition.
//! - Ids of the journal become visible in the order of their commits.
//!
//! Nothing here reads a clock: `now` is an argument. Nothing here decides: rules are in `drowse-core`, and SQL
//! only pre-filters by what is indexed.

#![forbid(unsafe_code)]

mod alone;
mod brake;
mod claims;
mod error;
mod events;
mod evidence;
mod holds;
mod liveness;
mod meta;
mod migrate;
mod policies;
mod pool;
mod postgres;
mod replicas;
mod row;
mod sessions;
mod spans;
mod sql;
mod sqlite;
mod store;
mod tokens;
mod tx;
mod workers;

pub use alone::Alone;
pub use claims::{Claimed, Finished};
pub use error::{Cause, StoreError};
pub use events::{EventFilter, EventId, NewEvent, Resume, StoredEvent};
pub use evidence::{Arrival, Checked, Flushed, Touched};
pub use liveness::Heard;
pub use meta::Epoch;
pub use policies::{PolicyValue, StoredExemption};
pub use pool::Lane;
pub use replicas::Replica;
pub use row::WorkerRecord;
pub use sessions::{ConnectionCount, RouterSession};
pub use spans::{Span, SpanLane};
pub use store::{Options, Store};
pub use tokens::{LoginLink, Token};
pub use tx::{Tx, View};
pub use workers::{Listing, Locked, Registered, Removal};
