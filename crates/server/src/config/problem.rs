//! What can be wrong with a configuration, and how it is said.
//!
//! ```text
//! drowse.toml:12:15: max_runtime: a bare number has no unit: write "48s", "48m" or "48h"
//!   12 | max_runtime = 48
//!      |               ^^
//! ```
//!
//! All problems of a file are collected and shown in the order in which they stand there, so that a file
//! is mended in one go.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use drowse_core::id::NotAWorkerId;
use drowse_core::policy::exemption::RecordError;
use drowse_core::policy::{Conflict, EnvError, ValueError};
use drowse_core::schedule::ScheduleError;

use super::source::{Place, Source, first_chars};

/// What is wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// It is not TOML.
    #[error("{message}")]
    Syntax { message: String },
    /// The same key twice in one table.
    #[error("this key was given before")]
    DuplicateKey,
    /// A key that nobody reads.
    #[error("unknown key{}", did_you_mean(.suggestion.as_deref()))]
    UnknownKey { suggestion: Option<String> },
    /// A key that belongs to another driver.
    #[error("only for the {belongs_to} driver, and this worker's driver is {driver}")]
    OtherDriver { belongs_to: &'static str, driver: &'static str },
    /// A key that must be there.
    #[error("{key} is missing: expected {expected}")]
    Missing { key: &'static str, expected: String },
    /// Something else than what belongs there.
    #[error("expected {expected}, found {found}{}", did_you_mean(.suggestion.as_deref()))]
    Unexpected { expected: String, found: String, suggestion: Option<String> },
    /// A value of a policy key that is of the wrong kind or lacks its unit.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A part of a schedule.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A worker's id.
    #[error(transparent)]
    WorkerId(#[from] NotAWorkerId),
    /// An exemption that cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// An environment variable.
    #[error(transparent)]
    Environment(#[from] EnvError),
    /// Two values that are each right and do not go together.
    #[error("{conflict}{}", for_whom(.workers))]
    Conflict { conflict: Box<Conflict>, workers: Vec<String> },
    /// What may be used once only.
    #[error("{what} is already used by {by}")]
    Taken { what: String, by: String },
    /// Keys that cannot stand beside each other, or not alone.
    #[error("{rule}")]
    Combination { rule: String },
    /// A secret in clear.
    #[error(
        "secrets do not stand in this file: put it into a file of its own that only Drowse can read, and write {instead}"
    )]
    Secret { instead: &'static str },
    /// More than anybody would read.
    #[error("{count} more problems are not shown")]
    More { count: usize },
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |word| format!("; did you mean {word:?}?"))
}

fn for_whom(workers: &[String]) -> String {
    match workers {
        [] => String::new(),
        [one] => format!(", for worker {one}"),
        [first, rest @ ..] => format!(", for worker {first} and {} more", rest.len()),
    }
}

impl Fault {
    pub(super) fn expected(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Fault::Unexpected { expected: expected.into(), found: found.into(), suggestion: None }
    }

    pub(super) fn rule(rule: impl Into<String>) -> Self {
        Fault::Combination { rule: rule.into() }
    }

    /// What may have been meant.
    pub fn suggestion(&self) -> Option<&str> {
        if let Fault::UnknownKey { suggestion }
        | Fault::Unexpected { suggestion, .. }
        | Fault::Schedule(ScheduleError::UnknownZone { suggestion, .. }) = self
        {
            return suggestion.as_deref();
        }
        None
    }
}

/// A second place that has to do with a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// Where.
    pub place: Place,
    /// What is there.
    pub message: String,
    excerpt: Option<String>,
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Where; `None` for an environment variable.
    pub place: Option<Place>,
    /// The key, within its table.
    pub key: Option<String>,
    /// What is wrong.
    pub fault: Fault,
    /// The exemption that it concerns, from 1 on. It costs nobody else anything.
    pub exemption: Option<usize>,
    /// Nobody fares worse for it, so that a server may start with it: whom an exemption names is spared although it is
    /// wrong.
    pub costs_nobody: bool,
    /// Other places that have to do with it.
    pub notes: Vec<Note>,
    excerpt: Option<String>,
}

/// A message that repeats a whole book is no message.
const LONGEST_MESSAGE: usize = 1_000;

impl Problem {
    /// What is wrong, in words.
    pub fn message(&self) -> String {
        let message = self.fault.to_string();
        let first = first_chars(&message, LONGEST_MESSAGE);
        if first.len() < message.len() { format!("{first}…") } else { message }
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if let Some(exemption) = self.exemption {
            write!(f, "exemption {exemption}: ")?;
        }
        // A conflict names its keys itself.
        if let (Some(key), false) = (&self.key, matches!(self.fault, Fault::Conflict { .. })) {
            write!(f, "{key}: ")?;
        }
        writeln!(f, "{}", self.message())?;
        f.write_str(self.excerpt.as_deref().unwrap_or_default())?;
        for note in &self.notes {
            writeln!(f, "{}: {}", note.place, note.message)?;
            f.write_str(note.excerpt.as_deref().unwrap_or_default())?;
        }
        Ok(())
    }
}

/// More than this nobody reads, and finding places in a file that is one long line takes time.
const MOST: usize = 1_000;

impl Problem {
    /// A members file that was there is not any more.
    pub(super) fn missing_members(folder: &Path, group: &str) -> Self {
        let rule = format!(
            "{}/{group}.members is missing: its members stay in the group; leave an empty file if it has none",
            folder.display()
        );
        Self {
            place: None,
            key: None,
            fault: Fault::rule(rule),
            exemption: None,
            costs_nobody: true,
            notes: Vec::new(),
            excerpt: None,
        }
    }
}

/// Collects the problems of one configuration.
#[derive(Debug)]
pub(super) struct Report<'a> {
    source: Source<'a>,
    problems: Vec<Problem>,
    left_off: usize,
    /// The exemption that is being read, from 1 on.
    exemption: Option<usize>,
}

impl<'a> Report<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        Self { source, problems: Vec::new(), left_off: 0, exemption: None }
    }

    pub(super) const fn source(&self) -> &Source<'a> {
        &self.source
    }

    /// Nobody can tell whom the exemption spares: that is no slip.
    pub(super) fn condemn(&mut self, exemption: usize) {
        for problem in self.problems.iter_mut().filter(|problem| problem.exemption == Some(exemption)) {
            problem.costs_nobody = false;
        }
    }

    /// From now on problems belong to this exemption, or to none.
    pub(super) fn set_exemption(&mut self, exemption: Option<usize>) {
        self.exemption = exemption;
    }

    pub(super) fn add(&mut self, span: &Range<usize>, key: impl Into<String>, fault: Fault) {
        self.add_with(span, key, fault, None);
    }

    /// A problem with a second place, of which `message` says what is there.
    pub(super) fn add_with(
        &mut self,
        span: &Range<usize>,
        key: impl Into<String>,
        fault: Fault,
        other: Option<(&Range<usize>, String)>,
    ) {
        if !self.has_room() {
            return;
        }
        let key = Some(key.into()).filter(|key: &String| !key.is_empty());
        let note = other.map(|(span, message)| Note {
            place: self.source.place(span.start),
            message,
            excerpt: self.source.excerpt(span),
        });
        let excerpt = if matches!(fault, Fault::Secret { .. }) { None } else { self.source.excerpt(span) };
        self.problems.push(Problem {
            place: Some(self.source.place(span.start)),
            key,
            fault,
            exemption: self.exemption,
            costs_nobody: self.exemption.is_some(),
            notes: note.into_iter().collect(),
            excerpt,
        });
    }

    /// A problem in another file.
    pub(super) fn add_in(
        &mut self,
        source: &Source<'_>,
        span: &Range<usize>,
        fault: Fault,
        other: Option<(Place, String)>,
    ) {
        if !self.has_room() {
            return;
        }
        self.problems.push(Problem {
            place: Some(source.place(span.start)),
            key: None,
            fault,
            exemption: None,
            costs_nobody: false,
            notes: other.map(|(place, message)| Note { place, message, excerpt: None }).into_iter().collect(),
            excerpt: source.excerpt(span),
        });
    }

    /// A problem that is in no file.
    pub(super) fn add_outside(&mut self, fault: Fault) {
        self.problems.push(Problem {
            place: None,
            key: None,
            fault,
            exemption: None,
            costs_nobody: false,
            notes: Vec::new(),
            excerpt: None,
        });
    }

    /// Whether another problem would be kept; one that would not is counted.
    pub(super) fn has_room(&mut self) -> bool {
        let has_room = self.problems.len() < MOST;
        self.left_off += usize::from(!has_room);
        has_room
    }

    /// Everything that is wrong, by file and position; what is in no file comes last.
    pub(super) fn finish(mut self) -> Vec<Problem> {
        self.problems.sort_by(|a, b| (a.place.is_none(), &a.place).cmp(&(b.place.is_none(), &b.place)));
        if self.left_off > 0 {
            let fault = Fault::More { count: self.left_off };
            self.add_outside(fault);
        }
        self.problems
    }
}
