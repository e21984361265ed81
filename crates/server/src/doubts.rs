//! Why something about a worker cannot be told, in the words of whoever tried.
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
use crate::plain::plain;
use crate::shared::{Shared, lock};

/// Why something cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub(crate) cause: UnknownCause,
    /// In words.
    pub(crate) why: String,
}

impl Doubt {
    pub(crate) fn new(cause: UnknownCause, why: &str) -> Self {
        Self { cause, why: plain(why) }
    }
}

impl From<&Error> for Doubt {
    fn from(error: &Error) -> Self {
        let cause = match error {
            Error::Unreachable { .. } | Error::TimedOut { .. } => UnknownCause::DriverSilent,
            Error::Refused { .. } => UnknownCause::DriverRefused,
            Error::Denied { .. } => UnknownCause::NotPermitted,
            Error::Gone | Error::Unsupported { .. } => UnknownCause::ProbeFailed,
        };
        Self::new(cause, &error.to_string())
    }
}

/// What cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// What this signal says.
    Signal(Signal),
    /// Where this port of it is found.
    Port(u16),
    /// Who it is.
    Itself,
}

impl What {
    fn code(self) -> String {
        match self {
            Self::Signal(signal) => signal.code().to_owned(),
            Self::Port(port) => format!("port {port}"),
            Self::Itself => "itself".to_owned(),
        }
    }

    const fn signal(self) -> Option<Signal> {
        match self {
            Self::Signal(signal) => Some(signal),
            Self::Port(_) | Self::Itself => None,
        }
    }

    const fn cannot(self) -> &'static str {
        match self {
            Self::Signal(_) => "cannot be read",
            Self::Port(_) => "cannot be found",
            Self::Itself => "cannot be looked at",
        }
    }
}

/// What one check could not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubted(BTreeMap<What, Doubt>);

impl Doubted {
    pub(crate) fn insert(&mut self, what: What, doubt: Doubt) {
        self.0.insert(what, doubt);
    }

    pub(crate) fn cause(&self, signal: Signal) -> Option<UnknownCause> {
        self.0.get(&What::Signal(signal)).map(|doubt| doubt.cause)
    }

    /// One line for each reason.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut by_reason: Vec<(Vec<What>, &'static str, &Doubt)> = Vec::new();
        for (what, doubt) in &self.0 {
            let is_same =
                |(_, cannot, known): &&mut (_, _, &Doubt)| *cannot == what.cannot() && *known == doubt;
            match by_reason.iter_mut().find(is_same) {
                Some((all, ..)) => all.push(*what),
                None => by_reason.push((vec![*what], what.cannot(), doubt)),
            }
        }
        let line = |(all, cannot, doubt): (Vec<What>, &str, &Doubt)| {
            let help = help(&all, doubt).map(|help| format!("; what helps: {help}")).unwrap_or_default();
            let names: Vec<String> = all.iter().map(|what| what.code()).collect();
            format!("{} {cannot}: {}{help}", names.join(", "), doubt.why)
        };
        by_reason.into_iter().map(line).collect()
    }

    /// What has to differ for it to be news: numbers in a sentence may change each time.
    fn causes(&self) -> Vec<(What, UnknownCause)> {
        self.0.iter().map(|(what, doubt)| (*what, doubt.cause)).collect()
    }
}

/// What somebody can do about it.
fn help(all: &[What], doubt: &Doubt) -> Option<String> {
    if let (UnknownCause::DriverRefused, [What::Port(port), ..]) = (doubt.cause, all) {
        return Some(format!("give the worker an address in the file: target = \"127.0.0.1:{port}\""));
    }
    let signals: Vec<Signal> = all.iter().filter_map(|what| what.signal()).collect();
    doubt.cause.help_for(&signals)
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

    /// Whether it is not known who it is at all.
    pub(crate) fn is_about_itself(&self, worker: &WorkerId) -> bool {
        lock(&self.0).get(worker).is_some_and(|doubted| doubted.0.contains_key(&What::Itself))
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
            let causes: BTreeMap<String, &str> =
                doubted.0.iter().map(|(what, doubt)| (what.code(), doubt.cause.code())).collect();
            ("worker.unreadable", json!({ "causes": causes, "message": doubted.lines().join("\n") }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_can_be_followed_to_the_letter() {
        let mut doubted = Doubted::default();
        doubted.insert(
            What::Signal(Signal::Network),
            Doubt::new(UnknownCause::NotItsOwn, "it is the machine's"),
        );
        doubted.insert(What::Port(8888), Doubt::new(UnknownCause::DriverRefused, "it has no address"));
        assert_eq!(
            doubted.lines(),
            [
                "network cannot be read: it is the machine's; what helps: if the other signals suffice, drop this one: \
                 signals.network.use = \"off\"",
                "port 8888 cannot be found: it has no address; what helps: give the worker an address in the file: \
                 target = \"127.0.0.1:8888\"",
            ]
        );
        let denied = Error::Denied { message: "cannot look into it: Permission denied".to_owned() };
        let mut doubted = Doubted::default();
        doubted.insert(What::Signal(Signal::Cpu), Doubt::from(&denied));
        assert_eq!(
            doubted.lines(),
            ["cpu cannot be read: cannot look into it: Permission denied; what helps: run Drowse as root"]
        );
    }
}
