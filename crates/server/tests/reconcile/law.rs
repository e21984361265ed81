//! What must be so at any instant, whatever has happened.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::status::Status;
use drowse_core::worker::{Power, Worker};

use super::bench::Bench;
pub(crate) use super::journal::{entries, journal_agrees};

/// A transition is looked at when it should be over; the look may have to wait for a claim that a dead program
/// left, and for a driver that does not answer.
const OVERDUE: Duration = Duration::from_secs(45);

/// No transition is stuck. `up_since`: when the program that looks after it began.
pub(crate) fn nothing_is_stuck(worker: &Worker, up_since: Timestamp, now: Timestamp) {
    let deadline = worker.status.deadline().filter(|_| worker.status.intent().is_some());
    if let Some(deadline) = deadline {
        let by = deadline.max(up_since) + OVERDUE;
        assert!(now <= by, "{} is stuck: {:?} at {now}", worker.id, worker.status);
    }
}

/// What is believed is what is. Only at rest: on its way a worker may be either.
pub(crate) fn belief_is_truth(bench: &Bench, id: &WorkerId) {
    let worker = bench.worker(id);
    let expected = match &worker.status {
        Status::Running { .. } => Power::Running,
        Status::Paused { .. } => Power::Paused,
        Status::Stopped { .. } | Status::Failed { .. } => Power::Stopped,
        Status::Terminated { .. } => Power::Gone,
        Status::Provisioning { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Unknown { .. } => panic!("{id} has not come to rest: {:?}", worker.status),
    };
    assert_eq!(bench.power(id), expected, "{id}: {:?}", worker.status);
}
