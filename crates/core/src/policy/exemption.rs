//! Exemptions: who is spared what, until when, and who said so.
//!
//! An exempt worker is still judged, warned for information only, and audited. One bad record is an error
//! that names that record and never drops the others: nobody loses an exemption through another's typo.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::book::Selectors;
use crate::clock::Timestamp;

/// Whom an exemption is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Every worker of an owner.
    Owner(String),
    /// Every worker of a group.
    Group(String),
    /// One worker.
    Worker(String),
}

impl Subject {
    /// The name of whom.
    pub fn name(&self) -> &str {
        match self {
            Subject::Owner(name) | Subject::Group(name) | Subject::Worker(name) => name,
        }
    }

    fn covers(&self, selectors: &Selectors) -> bool {
        match self {
            Subject::Owner(name) => selectors.owner.as_deref() == Some(name),
            Subject::Group(name) => selectors.group.as_deref() == Some(name),
            Subject::Worker(name) => selectors.worker == *name,
        }
    }
}

/// What one can be exempt from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// Being put to sleep when idle.
    IdleTimeout,
    /// Being stopped after `max_runtime`.
    MaxRuntime,
}

impl From {
    pub const ALL: [From; 2] = [From::IdleTimeout, From::MaxRuntime];

    pub fn from_code(code: &str) -> Option<From> {
        match code {
            "idle_timeout" => Some(From::IdleTimeout),
            "max_runtime" => Some(From::MaxRuntime),
            _ => None,
        }
    }
}

/// When an exemption ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expiry {
    /// At this instant.
    At(Timestamp),
    /// It is permanent, and somebody wrote so.
    Never,
}

/// One exemption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exemption {
    /// Whom it is for.
    pub subject: Subject,
    /// What it spares.
    pub from: Vec<From>,
    /// Why.
    pub reason: String,
    /// Who said so.
    pub approved_by: String,
    /// Until when.
    pub expires_on: Expiry,
}

/// An exemption as it is written down, before it is known to be right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub owner: Option<String>,
    pub group: Option<String>,
    pub worker: Option<String>,
    pub from: Vec<String>,
    pub reason: Option<String>,
    pub approved_by: Option<String>,
    pub expires_on: Option<String>,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// No subject, or more than one.
    #[error("expected exactly one of owner, group or worker")]
    Subject,
    /// Nothing to be exempt from.
    #[error("expected from = [\"idle_timeout\", \"max_runtime\"] or one of the two")]
    FromNothing,
    /// Something one cannot be exempt from.
    #[error("one cannot be exempt from {found:?}: expected \"idle_timeout\" or \"max_runtime\"")]
    FromWhat { found: String },
    /// A text that must be there.
    #[error("{field} is missing: an exemption says why and who approved it")]
    Missing { field: &'static str },
    /// No expiry.
    #[error(
        "expires_on is missing: write an instant such as \"2026-12-01T00:00:00Z\", or \"never\" for a permanent one"
    )]
    NoExpiry,
    /// An expiry that is none.
    #[error("expires_on: expected an instant such as \"2026-12-01T00:00:00Z\" or \"never\", found {found:?}")]
    BadExpiry { found: String },
}

impl Record {
    /// All that is wrong with it.
    pub fn errors(&self) -> Vec<RecordError> {
        let mut errors = Vec::new();
        if [&self.owner, &self.group, &self.worker].into_iter().flatten().count() != 1 {
            errors.push(RecordError::Subject);
        }
        if self.from.is_empty() {
            errors.push(RecordError::FromNothing);
        }
        let unheard_of = self.from.iter().filter(|code| From::from_code(code).is_none());
        errors.extend(unheard_of.map(|code| RecordError::FromWhat { found: code.clone() }));
        for (field, value) in [("reason", &self.reason), ("approved_by", &self.approved_by)] {
            if value.as_ref().is_none_or(|text| text.trim().is_empty()) {
                errors.push(RecordError::Missing { field });
            }
        }
        match self.expires_on.as_deref() {
            None => errors.push(RecordError::NoExpiry),
            Some("never") => {}
            Some(text) if text.parse::<Timestamp>().is_ok() => {}
            Some(text) => errors.push(RecordError::BadExpiry { found: text.to_string() }),
        }
        errors
    }

    /// The exemption, or the first thing that is wrong with it.
    pub fn read(&self) -> Result<Exemption, RecordError> {
        let subject = match (&self.owner, &self.group, &self.worker) {
            (Some(name), None, None) => Subject::Owner(name.clone()),
            (None, Some(name), None) => Subject::Group(name.clone()),
            (None, None, Some(name)) => Subject::Worker(name.clone()),
            _ => return Err(RecordError::Subject),
        };
        if self.from.is_empty() {
            return Err(RecordError::FromNothing);
        }
        let from = self
            .from
            .iter()
            .map(|code| From::from_code(code).ok_or_else(|| RecordError::FromWhat { found: code.clone() }))
            .collect::<Result<Vec<_>, _>>()?;
        let text = |value: &Option<String>, field| {
            value
                .as_ref()
                .filter(|text| !text.trim().is_empty())
                .cloned()
                .ok_or(RecordError::Missing { field })
        };
        Ok(Exemption {
            subject,
            from,
            reason: text(&self.reason, "reason")?,
            approved_by: text(&self.approved_by, "approved_by")?,
            expires_on: match self.expires_on.as_deref() {
                None => return Err(RecordError::NoExpiry),
                Some("never") => Expiry::Never,
                Some(text) => {
                    Expiry::At(text.parse().map_err(|_| RecordError::BadExpiry { found: text.to_string() })?)
                }
            },
        })
    }
}

impl Record {
    /// Whom a record spares that is wrong in some way: nobody loses an exemption through a typo.
    ///
    /// All that it names, from what it says or from everything, until when it says or until it is put right. Nothing if
    /// it names nobody.
    pub fn salvage(&self) -> Vec<Exemption> {
        let subjects = [
            self.owner.clone().map(Subject::Owner),
            self.group.clone().map(Subject::Group),
            self.worker.clone().map(Subject::Worker),
        ];
        let from: Option<Vec<From>> = self.from.iter().map(|code| From::from_code(code)).collect();
        let from = from.filter(|from| !from.is_empty()).unwrap_or_else(|| From::ALL.to_vec());
        let end = self.expires_on.as_deref().and_then(|text| text.parse().ok());
        let text =
            |value: &Option<String>| value.clone().unwrap_or_else(|| "a record that is wrong".to_string());
        let named = subjects.into_iter().flatten().filter(|subject| !subject.name().trim().is_empty());
        named
            .map(|subject| Exemption {
                subject,
                from: from.clone(),
                reason: text(&self.reason),
                approved_by: text(&self.approved_by),
                expires_on: end.map_or(Expiry::Never, Expiry::At),
            })
            .collect()
    }
}

/// Reads records one by one. The good ones count whatever is wrong with the others, which are named by
/// their position.
pub fn read_all(records: &[Record]) -> (Vec<Exemption>, Vec<(usize, RecordError)>) {
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for (index, record) in records.iter().enumerate() {
        match record.read() {
            Ok(exemption) => good.push(exemption),
            Err(error) => bad.push((index, error)),
        }
    }
    (good, bad)
}

/// What a worker is exempt from at one time, and until when. Of several, the one that ends last counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exempt {
    /// From being put to sleep when idle.
    pub idle_timeout: Option<Expiry>,
    /// From being stopped after `max_runtime`.
    pub max_runtime: Option<Expiry>,
    /// When the latest exemption from `idle_timeout` ended that is over: its end restarts the clock.
    pub idle_ended_at: Option<Timestamp>,
}

impl Exempt {
    pub fn of<'a>(
        exemptions: impl IntoIterator<Item = &'a Exemption>,
        selectors: &Selectors,
        now: Timestamp,
    ) -> Exempt {
        let mut exempt = Exempt::default();
        for exemption in exemptions.into_iter().filter(|exemption| exemption.subject.covers(selectors)) {
            let is_over = matches!(exemption.expires_on, Expiry::At(end) if end <= now);
            for from in &exemption.from {
                match (from, exemption.expires_on) {
                    (From::IdleTimeout, Expiry::At(end)) if is_over => {
                        exempt.idle_ended_at = exempt.idle_ended_at.max(Some(end));
                    }
                    (From::MaxRuntime, _) if is_over => {}
                    (From::IdleTimeout, expiry) => {
                        exempt.idle_timeout = exempt.idle_timeout.max(Some(expiry));
                    }
                    (From::MaxRuntime, expiry) => exempt.max_runtime = exempt.max_runtime.max(Some(expiry)),
                }
            }
        }
        exempt
    }
}

impl Exempt {
    /// The same as it stands at `now`: what has ended since it was put together spares nobody.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Exempt {
        let live = |expiry: &Expiry| *expiry > Expiry::At(now);
        let ended = match self.idle_timeout {
            Some(Expiry::At(end)) if end <= now => Some(end),
            Some(_) | None => None,
        };
        Exempt {
            idle_timeout: self.idle_timeout.filter(live),
            max_runtime: self.max_runtime.filter(live),
            idle_ended_at: self.idle_ended_at.max(ended),
        }
    }
}

/// A week: time to renew an exemption before it lapses.
const EXPIRY_NOTICE: Duration = Duration::from_hours(7 * 24);

impl Exemption {
    /// When the event "expires soon" is due; `None` for permanent ones.
    pub fn expiry_notice_at(&self) -> Option<Timestamp> {
        match self.expires_on {
            Expiry::At(end) => Some(end - EXPIRY_NOTICE),
            Expiry::Never => None,
        }
    }

    /// Whether it counts, and not for long any more.
    pub fn is_expiring(&self, now: Timestamp) -> bool {
        self.expiry_notice_at().is_some_and(|notice_at| notice_at <= now) && Expiry::At(now) < self.expires_on
    }
}
