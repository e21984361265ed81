//! The text of a file, and where in it something stands.

use std::fmt;
use std::ops::Range;

/// A position that an editor can jump to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file as the person named it.
    pub file: String,
    /// From 1 on.
    pub line: usize,
    /// From 1 on, in characters.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A file's text with an index of its lines.
#[derive(Debug)]
pub(super) struct Source<'a> {
    file: &'a str,
    text: &'a str,
    /// The byte at which each line begins.
    line_starts: Vec<usize>,
}

/// So many characters of a line are shown before and after what is wrong: a line can be a whole file.
const EXCERPT_BEFORE: usize = 60;
const EXCERPT_AFTER: usize = 40;

impl<'a> Source<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { file, text, line_starts: std::iter::once(0).chain(breaks).collect() }
    }

    pub(super) const fn text(&self) -> &'a str {
        self.text
    }

    /// The line of a byte, from 1 on.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= offset)
    }

    pub(super) fn place(&self, offset: usize) -> Place {
        let offset = self.boundary(offset);
        let line = self.line(offset);
        let start = self.line_starts[line - 1];
        Place { file: self.file.to_owned(), line, column: self.text[start..offset].chars().count() + 1 }
    }

    /// The line with a mark below what is wrong. Nothing where the line may hold a secret.
    pub(super) fn excerpt(&self, span: &Range<usize>) -> Option<String> {
        let offset = self.boundary(span.start);
        let line = self.line(offset);
        let start = self.line_starts[line - 1];
        // A little more than is shown: a line can be a whole file.
        let rest = first_chars(&self.text[offset..], 2 * EXCERPT_AFTER);
        let after = &rest[..rest.find(['\n', '\r']).unwrap_or(rest.len())];
        let before = &self.text[start..offset];
        if holds_secret(before, after) {
            return None;
        }
        let marked = self.boundary(span.end.max(offset)) - offset;
        let marked = after[..after.len().min(marked)].chars().count();

        let (before, is_cut) = last_chars(before, EXCERPT_BEFORE);
        let shown_after: String = after.chars().take(EXCERPT_AFTER).map(printable).collect();
        let lead = if is_cut { "…" } else { "" };
        let tail = if after.chars().nth(EXCERPT_AFTER).is_some() { "…" } else { "" };
        let before: String = before.chars().map(printable).collect();
        let width = lead.chars().count() + before.chars().count();
        let marks = "^".repeat(marked.clamp(1, EXCERPT_AFTER));
        let number = line.to_string();
        Some(format!(
            "  {number} | {lead}{before}{shown_after}{tail}\n  {:blank$} | {:width$}{marks}\n",
            "",
            "",
            blank = number.len()
        ))
    }

    /// The nearest place at or before `offset` where the text may be cut.
    fn boundary(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

/// The first characters of a text.
pub(super) fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(at, _)| &text[..at])
}

/// The last characters of a text, and whether there were more.
fn last_chars(text: &str, count: usize) -> (&str, bool) {
    match text.char_indices().rev().nth(count - 1) {
        Some((at, _)) => (&text[at..], at > 0),
        None => (text, false),
    }
}

/// One column for each character, and nothing that a terminal would obey.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '·',
        c => c,
    }
}

/// Names of keys whose value is nobody's business.
pub(super) const SECRETS: [&str; 4] = ["password", "secret", "token", "passwd"];

/// Whether a line gives a secret in clear, rightly spelt or not. Errors end up in logs and tickets.
fn holds_secret(before: &str, after: &str) -> bool {
    let is_given = |part: &str| {
        SECRETS.iter().any(|word| {
            part.match_indices(word).any(|(at, _)| {
                part[at + word.len()..].trim_start_matches(['"', '\'', ' ', '\t']).starts_with('=')
            })
        })
    };
    let (before, _) = last_chars(before, 4 * EXCERPT_BEFORE);
    let whole = format!("{before}{after}").to_lowercase();
    is_given(&whole) || (whole.contains("://") && whole.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let source = Source::new("f", "ä = 1\n\nb = 2");
        for (offset, line, column) in [(0, 1, 1), (2, 1, 2), (6, 1, 6), (7, 2, 1), (8, 3, 1), (99, 3, 6)] {
            let place = source.place(offset);
            assert_eq!((place.line, place.column), (line, column), "byte {offset}");
        }
        assert_eq!(source.place(1).column, 1, "in the middle of a character");
    }

    #[test]
    fn an_excerpt_marks_what_is_wrong() {
        let source = Source::new("f", "x = 1\n\tmax_runtime = 48\r\n");
        let start = source.text().find("48").unwrap();
        assert_eq!(
            source.excerpt(&(start..start + 2)).unwrap(),
            "  2 |  max_runtime = 48\n    |                ^^\n"
        );
        assert_eq!(source.excerpt(&(9_999..9_999)).unwrap(), "  3 | \n    | ^\n");
    }

    #[test]
    fn a_long_line_is_cut_and_a_terminal_is_told_nothing() {
        let text = format!("{}\u{1b}[31mX{}", "a".repeat(100), "b".repeat(100));
        let source = Source::new("f", &text);
        let excerpt = source.excerpt(&(105..106)).unwrap();
        let lines: Vec<&str> = excerpt.lines().collect();
        assert!(lines[0].starts_with("  1 | …aaa") && lines[0].ends_with("bbb…"), "{excerpt}");
        assert!(!excerpt.contains('\u{1b}'));
        assert_eq!(lines[0].chars().position(|c| c == 'X'), lines[1].chars().position(|c| c == '^'));
    }

    #[test]
    fn a_line_with_a_secret_is_not_shown() {
        for line in [
            "password = 'hunter2'",
            "cml = { user = 1, \"password\" = 'hunter2' }",
            "PASSWORD=hunter2",
            "database = 'postgres://me:hunter2@host/db'",
        ] {
            assert_eq!(Source::new("f", line).excerpt(&(0..3)), None, "{line}");
        }
        assert!(Source::new("f", "password_file = 3").excerpt(&(0..3)).is_some());
    }
}
