//! What must be so after a death, whatever had been going on.

use drowse_core::journal::Entry;
use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::{Power, Worker};
use drowse_store::StoredEvent;

use super::journal::{entries, journal_agrees};
use super::stand::{Stand, name};
use super::truth;
use super::wait::until;

/// Whoever connects is answered, everything comes to rest, and what is said is true.
#[track_caller]
pub(crate) fn all_is_well(stand: &Stand, number: u16, what: &str) {
    if let Err(error) = stand.ask(number) {
        panic!("{what}: whoever connects is not answered: {error}: {}", stand.story(number));
    }
    at_rest(stand, number, what);
}

/// It comes to rest, what is said is true, and the journal tells how it came to be.
#[track_caller]
pub(crate) fn at_rest(stand: &Stand, number: u16, what: &str) {
    let (worker, journal) = until(&format!("{what}: {} is at rest", name(number)), || {
        let status = stand.status(number).map_err(|error| format!("{error:?}"))?;
        if !["running", "paused", "stopped"].contains(&status.as_str()) {
            return Err(status);
        }
        let (before, _) = stand.books(number).map_err(|error| format!("{error:?}"))?;
        let believed = power(&before.status).ok_or_else(|| format!("{:?}", before.status))?;
        let seen = truth::power(stand.target(number));
        let (after, journal) = stand.books(number).map_err(|error| format!("{error:?}"))?;
        // It moved while we looked: again.
        if after.generation != before.generation {
            return Err(format!("{:?}", after.status));
        }
        assert_eq!(seen, believed, "{what}: {}", stand.story(number));
        Ok((after, journal))
    });
    journal_is_right(&worker, &journal, what);
}

/// No entry is lost or doubled, and nothing that was ours is laid at anybody else's door.
#[track_caller]
pub(crate) fn journal_is_right(worker: &Worker, journal: &[StoredEvent], what: &str) {
    journal_agrees(worker, journal);
    let entries = entries(journal);
    let is_strange = |entry: &Entry| {
        matches!(entry, Entry::External { .. } | Entry::Failed { .. } | Entry::Unknown { .. })
    };
    let strange: Vec<&Entry> = entries.iter().map(|(_, entry)| entry).filter(|it| is_strange(it)).collect();
    assert!(strange.is_empty(), "{what}: nobody meddled, and yet {strange:?} in {entries:#?}");
    let last = entries.iter().rev().find_map(|(_, entry)| rest(entry));
    let is_lost = last != Some(worker.status.kind()) && worker.status.intent().is_none();
    assert!(!is_lost, "{what}: {:?} is not where {entries:#?} ends", worker.status);
}

/// What a worker is doing after an entry, where that is a rest.
const fn rest(entry: &Entry) -> Option<StatusKind> {
    match entry {
        Entry::Paused { .. } => Some(StatusKind::Paused),
        Entry::Stopped { .. } => Some(StatusKind::Stopped),
        Entry::Resumed { .. } | Entry::Started => Some(StatusKind::Running),
        Entry::Found { found, .. } => Some(*found),
        Entry::SleepIntended { .. }
        | Entry::GraceExceeded
        | Entry::WakeIntended { .. }
        | Entry::Undone { .. }
        | Entry::HookVetoed { .. }
        | Entry::VetoAlert { .. }
        | Entry::External { .. }
        | Entry::Exited { .. }
        | Entry::Draining { .. }
        | Entry::DrainEnded { .. }
        | Entry::TerminateIntended { .. }
        | Entry::TerminateUndone { .. }
        | Entry::Terminated
        | Entry::DriverRefused { .. }
        | Entry::Failed { .. }
        | Entry::Unknown { .. } => None,
    }
}

/// What the kernel must say about a worker at rest; `None`: it is on its way.
fn power(status: &Status) -> Option<Power> {
    match status {
        Status::Running { .. } => Some(Power::Running),
        Status::Paused { .. } => Some(Power::Paused),
        Status::Stopped { .. } => Some(Power::Stopped),
        Status::Provisioning { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => None,
    }
}
