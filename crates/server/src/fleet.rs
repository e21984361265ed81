//! The facade: everything that the API, the page, the gate and the command line can ask of Drowse.
//!
//! Types of the domain go in and come out; how they look on the wire is for others. Each call is one
//! transaction or one consistent read. A request is accepted, already true, or refused with a typed reason; an
//! answer never says that something was done which was not. "Accepted" means that it is decided and written
//! down; that it has happened shows in the worker's status.

mod act;
mod brake;
mod control;
mod error;
mod gate;
mod guests;
mod hold;
mod leave;
mod look;
mod outage;
mod policy;
mod register;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_store::{EventFilter, EventId, Resume, StoredEvent};
use tokio::sync::watch;

pub use act::{Done, Order};
pub use error::ControlError;
pub use gate::{Terms, WakeRefused};
pub use guests::{Carried, GUEST_FOR};
pub(crate) use hold::journal_ended;
pub use hold::{LeaseAsked, LeaseGranted};
pub use leave::Left;
pub use look::{Detection, IdleStatus, Readings, WorkerCard};
pub use policy::{Granting, PolicyApplied, PolicyChange, PolicyView};
pub use register::{Patch, Registration};

use crate::clock::Clock;
use crate::http::SharedPorts;
use crate::metrics;
use crate::shared::{Parts, Shared};

/// A fleet and everything that can be asked of it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Fleet(pub(crate) Arc<Shared>);

/// Whether Drowse can do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// It has come up and taken over what it found.
    pub is_up: bool,
    /// The store answers.
    pub has_store: bool,
    /// Evidence that arrives can be written.
    pub takes_evidence: bool,
}

impl Readiness {
    /// All of it.
    pub const fn is_ready(&self) -> bool {
        self.is_up && self.has_store && self.takes_evidence
    }
}

impl Fleet {
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Shared::new(parts)))
    }

    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Whether Drowse can do its work.
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "a method is not general over its lifetime"
    )]
    pub async fn ready(&self) -> Readiness {
        let has_store = self.0.db.read(|view| view.policy_epoch()).await.is_ok();
        let is_up = self.0.is_ready.load(Ordering::Acquire);
        Readiness { is_up, has_store, takes_evidence: self.0.takes_evidence() }
    }

    /// What has been counted since the start.
    pub fn metrics(&self) -> metrics::Snapshot {
        self.0.metrics.snapshot()
    }

    /// Tells when the journal has grown. Subscribe before you read, or what is written in between is missed.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.notices.journal()
    }

    /// Tells when the store can no longer be written to, and why, and when it can again.
    pub fn watch_store(&self) -> watch::Receiver<Option<String>> {
        self.0.notices.store()
    }

    /// Events after a number, oldest first.
    pub async fn events(
        &self,
        after: i64,
        limit: usize,
        filter: EventFilterOwned,
    ) -> Result<Vec<StoredEvent>, ControlError> {
        self.0.db.read(move |view| Ok(view.events_after(after, limit, &filter.borrow())?)).await
    }

    /// Events before a number, newest first; from `i64::MAX` on for the latest.
    pub async fn events_before(
        &self,
        before: i64,
        limit: usize,
        filter: EventFilterOwned,
    ) -> Result<Vec<StoredEvent>, ControlError> {
        self.0.db.read(move |view| Ok(view.events_before(before, limit, &filter.borrow())?)).await
    }

    /// Says for how long events, activity history and what became of tokens are kept.
    pub fn keep_history_for(&self, keep: Duration) {
        *crate::shared::lock(&self.0.keep_for) = keep;
    }

    /// Says whose doors do not open, and why: nobody can come to them, and nobody would be seen to.
    pub fn doors_are_shut(&self, shut: BTreeMap<WorkerId, String>) {
        *crate::shared::lock(&self.0.shut_doors) = shut;
    }

    /// Says which ports workers share, so that a page can say where a worker is found.
    pub fn share_ports(&self, ports: SharedPorts) {
        *crate::shared::lock(&self.0.ports) = ports;
    }

    pub(crate) fn shared_ports(&self) -> SharedPorts {
        *crate::shared::lock(&self.0.ports)
    }

    /// The journal of one worker up to an instant, newest first.
    pub async fn events_until(
        &self,
        id: &WorkerId,
        at: Timestamp,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, ControlError> {
        let id = id.clone();
        self.0.db.read(move |view| Ok(view.events_until(&id, at, limit)?)).await
    }

    /// Where a reader of the journal goes on that has seen `last`.
    pub async fn resume_after(&self, last: EventId) -> Result<Resume, ControlError> {
        self.0.db.read(move |view| Ok(view.resume_after(last)?)).await
    }

    /// The id of the newest event.
    pub async fn newest_event(&self) -> Result<EventId, ControlError> {
        self.0.db.read(|view| Ok(EventId { epoch: view.epoch()?, seq: view.newest_event()? })).await
    }

    /// What happened to a worker in a period: activity, unknown, holds and power.
    pub async fn spans(
        &self,
        id: &WorkerId,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<drowse_store::Span>, ControlError> {
        let id = id.clone();
        self.0.db.read(move |view| Ok(view.spans(&id, from, until)?)).await
    }
}

/// Which events to read.
#[derive(Clone, Debug, Default)]
pub struct EventFilterOwned {
    /// Only those of this worker.
    pub worker: Option<WorkerId>,
    /// Only those of this type.
    pub kind: Option<String>,
}

impl EventFilterOwned {
    fn borrow(&self) -> EventFilter<'_> {
        EventFilter { worker: self.worker.as_ref(), kind: self.kind.as_deref() }
    }
}
