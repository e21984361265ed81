//! Why signals of workers cannot be read, in the words of whoever tried.
//!
//! The rules know a cause and decide by that; this is for people: it is journalled when it begins, changes and ends, and
//! shown by `explain`. In memory only, because it is found again by the next check.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use drowse_core::id::WorkerId;
use drowse_core::signal::{Signal, UnknownCause};
use drowse_drivers::Error;
use drowse_store::{Lane, NewEvent};
use serde_json::json;

use crate::fleet::ControlError;
use crate::shared::{Shared, lock};

/// What others say can be of any length.
const LONGEST: usize = 500;

/// Why something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub(crate) cause: UnknownCause,
    /// In words.
    pub(crate) why: String,
}

impl Doubt {
    pub(crate) fn new(cause: UnknownCause, why: &str) -> Self {
        // It goes to terminals and into one line of a journal.
        let plain = why.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c });
        Self { cause, why: plain.collect() }
    }
}

impl From<&Error> for Doubt {
    fn from(error: &Error) -> Self {
        let cause = match error {
            Error::Unreachable { .. } | Error::TimedOut { .. } => UnknownCause::DriverSilent,
            Error::Refused { .. } => UnknownCause::DriverRefused,
            Error::Gone | Error::Unsupported { .. } => UnknownCause::ProbeFailed,
        };
        Self::new(cause, &error.to_string())
    }
}

/// What one check could not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubted(BTreeMap<Signal, Doubt>);

impl Doubted {
    pub(crate) fn insert(&mut self, signal: Signal, doubt: Doubt) {
        self.0.insert(signal, doubt);
    }

    pub(crate) fn cause(&self, signal: Signal) -> Option<UnknownCause> {
        self.0.get(&signal).map(|doubt| doubt.cause)
    }

    /// One line for each reason.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut by_reason: Vec<(Vec<&str>, &Doubt)> = Vec::new();
        for (signal, doubt) in &self.0 {
            match by_reason.iter_mut().find(|(_, known)| *known == doubt) {
                Some((signals, _)) => signals.push(signal.code()),
                None => by_reason.push((vec![signal.code()], doubt)),
            }
        }
        let line = |(signals, doubt): (Vec<&str>, &Doubt)| {
            let help = doubt.cause.help().map(|help| format!("; what helps: {help}")).unwrap_or_default();
            format!("{} cannot be read: {}{help}", signals.join(", "), doubt.why)
        };
        by_reason.into_iter().map(line).collect()
    }

    /// What has to differ for it to be news: numbers in a sentence may change each time.
    fn causes(&self) -> Vec<(Signal, UnknownCause)> {
        self.0.iter().map(|(signal, doubt)| (*signal, doubt.cause)).collect()
    }
}

/// What cannot be read of whom.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Mutex<HashMap<WorkerId, Doubted>>);

impl Doubts {
    /// Notes what a check could not read; whether that is news.
    fn note(&self, worker: &WorkerId, doubted: &Doubted) -> bool {
        let mut all = lock(&self.0);
        let before = if doubted.0.is_empty() {
            all.remove(worker)
        } else {
            all.insert(worker.clone(), doubted.clone())
        };
        before.unwrap_or_default().causes() != doubted.causes()
    }

    pub(crate) fn lines(&self, worker: &WorkerId) -> Vec<String> {
        lock(&self.0).get(worker).map(Doubted::lines).unwrap_or_default()
    }

    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.0).remove(worker);
    }
}

impl Shared {
    /// Remembers what a check could not read, and journals it if it is news.
    pub(crate) async fn doubt(self: &Arc<Self>, worker: &WorkerId, doubted: &Doubted) {
        if !self.doubts.note(worker, doubted) {
            return;
        }
        let (kind, doc) = if doubted.0.is_empty() {
            ("worker.readable", json!({}))
        } else {
            let signals: BTreeMap<&str, &str> =
                doubted.0.iter().map(|(signal, doubt)| (signal.code(), doubt.cause.code())).collect();
            ("worker.unreadable", json!({ "signals": signals, "message": doubted.lines().join("\n") }))
        };
        let (id, clock) = (worker.clone(), self.clock.clone());
        let written = self.db.tx("doubt", Lane::Ordinary, move |tx| {
            tx.append(NewEvent { at: clock.now(), worker: Some(id), kind: kind.to_owned(), doc });
            Ok::<_, ControlError>(())
        });
        // Failed: `explain` shows it all the same.
        if written.await.is_ok() {
            self.notices.journal_advanced();
        }
    }
}
