//! What must be so at any instant, whatever has happened.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::journal::Entry;
use drowse_core::reason::{PauseReason, ResumeReason};
use drowse_core::status::{Status, StatusKind};
use drowse_core::worker::{Counters, Power, Worker};
use drowse_store::StoredEvent;

use super::bench::Bench;

/// A transition is looked at when it should be over; the look may have to wait for a claim that a dead program
/// left, and for a driver that does not answer.
const OVERDUE: Duration = Duration::from_secs(45);

/// The entries that the rules wrote about a worker.
pub(crate) fn entries(journal: &[StoredEvent]) -> Vec<(Timestamp, Entry)> {
    journal
        .iter()
        .filter_map(|stored| {
            let entry = serde_json::from_value::<Entry>(stored.event.doc.clone()).ok()?;
            (entry.event_type() == stored.event.kind).then_some((stored.event.at, entry))
        })
        .collect()
}

/// What the journal says about how often what has happened.
///
/// A stop of a frozen worker counts nothing, because its sleep has been counted; unless it was somebody else's.
fn counted(entries: &[(Timestamp, Entry)]) -> Counters {
    let mut counters = Counters::default();
    let mut is_asleep = false;
    let pause = |counters: &mut Counters, reason: PauseReason| match reason {
        PauseReason::IdleTimeout | PauseReason::Schedule => counters.auto_pause += 1,
        PauseReason::Manual => counters.manual_pause += 1,
        PauseReason::External => counters.external_pause += 1,
        PauseReason::MaxRuntime => counters.max_runtime += 1,
        PauseReason::ScaleDown => counters.scale_down += 1,
    };
    for (_, entry) in entries {
        match entry {
            Entry::Paused { reason, .. } => {
                pause(&mut counters, *reason);
                is_asleep = true;
            }
            Entry::Stopped { reason, .. } => {
                if !is_asleep || *reason == PauseReason::External {
                    pause(&mut counters, *reason);
                }
                is_asleep = true;
            }
            Entry::Resumed { reason, .. } => {
                match reason {
                    ResumeReason::Wake | ResumeReason::Schedule => counters.auto_resume += 1,
                    ResumeReason::Manual => counters.manual_resume += 1,
                    ResumeReason::External => counters.external_resume += 1,
                    ResumeReason::Undo | ResumeReason::Restart => {}
                }
                is_asleep = false;
            }
            // It was found running, though nobody woke it.
            Entry::Found { found: StatusKind::Running, .. } | Entry::Started => is_asleep = false,
            Entry::SleepIntended { .. }
            | Entry::GraceExceeded
            | Entry::WakeIntended { .. }
            | Entry::Undone { .. }
            | Entry::HookVetoed { .. }
            | Entry::External { .. }
            | Entry::Exited { .. }
            | Entry::Draining { .. }
            | Entry::DrainEnded { .. }
            | Entry::TerminateIntended { .. }
            | Entry::Terminated
            | Entry::Found { .. }
            | Entry::DriverRefused { .. }
            | Entry::Failed { .. }
            | Entry::Unknown { .. } => {}
        }
    }
    counters
}

/// No entry is lost or doubled: the journal and the worker tell the same story.
pub(crate) fn journal_agrees(worker: &Worker, journal: &[StoredEvent]) {
    let entries = entries(journal);
    assert_eq!(counted(&entries), worker.counters, "{}: {entries:#?}", worker.id);
    let mut last_intent = 0;
    for (at, entry) in &entries {
        if let Entry::SleepIntended { intent, .. }
        | Entry::WakeIntended { intent, .. }
        | Entry::TerminateIntended { intent, .. } = entry
        {
            assert!(intent.0 > last_intent, "{}: intent {intent} is written twice, at {at}", worker.id);
            last_intent = intent.0;
        }
    }
    if let Some(open) = worker.status.intent() {
        assert_eq!(open.0, last_intent, "{}: the intent that is open is not in the journal", worker.id);
    }
    let seqs: Vec<i64> = journal.iter().map(|stored| stored.seq).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "the journal is out of order");
}

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
