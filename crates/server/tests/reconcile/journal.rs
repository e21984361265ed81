//! The journal and the worker tell the same story: no entry is lost, none is doubled.
//!
//! Knows nothing of how the story came about, so that a simulation and real processes are held to the same law.

use drowse_core::Timestamp;
use drowse_core::journal::Entry;
use drowse_core::reason::{PauseReason, ResumeReason};
use drowse_core::status::StatusKind;
use drowse_core::worker::{Counters, Worker};
use drowse_store::StoredEvent;

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
            | Entry::VetoAlert { .. }
            | Entry::External { .. }
            | Entry::Exited { .. }
            | Entry::Draining { .. }
            | Entry::DrainEnded { .. }
            | Entry::TerminateIntended { .. }
            | Entry::TerminateUndone { .. }
            | Entry::Terminated
            | Entry::Found { .. }
            | Entry::DriverRefused { .. }
            | Entry::Failed { .. }
            | Entry::Unknown { .. } => {}
        }
    }
    counters
}

/// How many transitions an entry stands for, at least and at most. A truth that was found may be one by itself, or
/// the first word about one whose entry follows.
const fn transitions(entry: &Entry) -> (u64, u64) {
    match entry {
        Entry::SleepIntended { .. }
        | Entry::Paused { .. }
        | Entry::Stopped { .. }
        | Entry::WakeIntended { .. }
        | Entry::Resumed { .. }
        | Entry::Started
        | Entry::Draining { .. }
        | Entry::DrainEnded { .. }
        | Entry::TerminateIntended { .. }
        | Entry::Terminated
        | Entry::Failed { .. }
        | Entry::Unknown { .. } => (1, 1),
        Entry::Found { .. } | Entry::TerminateUndone { .. } => (0, 1),
        Entry::GraceExceeded
        | Entry::Undone { .. }
        | Entry::HookVetoed { .. }
        | Entry::VetoAlert { .. }
        | Entry::External { .. }
        | Entry::Exited { .. }
        | Entry::DriverRefused { .. } => (0, 0),
    }
}

/// No entry is lost or doubled: the journal and the worker tell the same story.
///
/// A worker counts its transitions, and an intent bears the number of the one that it opened. So whoever counts
/// the entries knows the number of the next intent, and one that is missing or there twice shows.
pub(crate) fn journal_agrees(worker: &Worker, journal: &[StoredEvent]) {
    let entries = entries(journal);
    let story = || format!("{}: {:?}: {entries:#?}", worker.id, worker.status);
    assert_eq!(counted(&entries), worker.counters, "{}", story());
    let (mut least, mut most, mut is_frozen, mut last_intent) = (0, 0, false, None);
    for (at, entry) in &entries {
        let (at_least, at_most) = transitions(entry);
        (least, most) = (least + at_least, most + at_most);
        if let Entry::SleepIntended { intent, .. }
        | Entry::WakeIntended { intent, .. }
        | Entry::TerminateIntended { intent, .. } = entry
        {
            let is_next = (least..=most).contains(&intent.0);
            assert!(is_next, "intent {intent} at {at} is not {least} to {most}: {}", story());
            (least, most) = (intent.0, intent.0);
            last_intent = Some(intent.0);
        }
        let has_paused = matches!(entry, Entry::Paused { .. });
        assert!(!(has_paused && is_frozen), "paused twice, at {at}: {}", story());
        is_frozen = has_paused || (is_frozen && at_least == 0 && !matches!(entry, Entry::Found { .. }));
    }
    let generation = worker.generation.0;
    assert!((least..=most).contains(&generation), "{generation} is not {least} to {most}: {}", story());
    if let Some(open) = worker.status.intent() {
        assert_eq!(Some(open.0), last_intent, "the open intent is not in the journal: {}", story());
    }
    let seqs: Vec<i64> = journal.iter().map(|stored| stored.seq).collect();
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "the journal is out of order");
}
