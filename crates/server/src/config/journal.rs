//! `[journal]`: how long history is kept.

use std::time::Duration;

use super::problem::Report;
use super::read;
use super::section::{Field, Node, Preset, Section};

/// `[journal]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Journal {
    /// How long events and activity history are kept.
    pub keep: Duration,
}

impl Default for Journal {
    fn default() -> Self {
        // A year and a month: this month can be compared with the same one last year.
        Self { keep: Duration::from_hours(400 * 24) }
    }
}

pub(super) const FIELDS: &[Field] = &[Field {
    name: "keep",
    expected: "a duration of at least 1s such as \"400d\"",
    preset: Preset::Is("\"400d\""),
    sample: "\"400d\"",
    describe: "How long events and activity history are kept.",
}];

pub(super) fn read(report: &mut Report<'_>, node: &Node<'_>) -> Journal {
    let mut journal = Journal::default();
    let Some(section) = Section::of(report, node, "[journal]", &[FIELDS]) else { return journal };
    if let Some(keep) = section.read(report, "keep", read::interval) {
        journal.keep = keep;
    }
    section.finish(report);
    journal
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, parse};
    use super::*;

    #[test]
    fn a_journal_is_read() {
        assert_eq!(parse("").journal.keep, Duration::from_hours(9_600));
        assert_eq!(parse("[journal]\nkeep = \"1w\"").journal.keep, Duration::from_hours(7 * 24));
        assert_eq!(
            errors("journal.keep = 400"),
            ["f:1:16: keep: a bare number has no unit: write \"400s\", \"400m\" or \"400h\""]
        );
        assert_eq!(errors("journal = []"), ["f:1:11: expected a table [journal], found a list"]);
    }
}
