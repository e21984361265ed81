//! From text to TOML, with every place where it is none.

use std::collections::BTreeSet;

use toml::de::DeTable;

use super::problem::{Fault, Report};

/// What the parser says of a key that is there twice. It keeps the first, so reading can go on.
const DUPLICATE_KEY: &str = "duplicate key";

const UNQUOTED: &str = "expected a value: texts, durations and sizes stand in quotes, such as \"5m\"";

/// The file's tables; `None` if what they say cannot be known.
pub(super) fn parse<'a>(report: &mut Report<'a>) -> Option<DeTable<'a>> {
    let text = report.source().text();
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut is_sure = true;
    let mut lines = BTreeSet::new();
    for error in &errors {
        let span = error.span().unwrap_or(text.len()..text.len());
        let is_duplicate = error.message() == DUPLICATE_KEY;
        is_sure &= is_duplicate;
        // One slip often trips the parser several times before the line is over.
        if !lines.insert(report.source().line(span.start)) {
            continue;
        }
        if is_duplicate {
            let key = text.get(span.clone()).unwrap_or_default().to_owned();
            report.add(&span, key, Fault::DuplicateKey);
        } else {
            // The commonest slip of all, which the parser describes in its own terms.
            let is_bare_word = error.message().starts_with("string values must be quoted");
            let message = if is_bare_word { UNQUOTED } else { error.message() };
            report.add(&span, "", Fault::Syntax { message: message.to_owned() });
        }
    }
    // After a real slip the rest is guesswork, and complaints about guesses mislead.
    is_sure.then(|| root.into_inner())
}

#[cfg(test)]
mod tests {
    use super::super::tests::errors;

    #[test]
    fn what_is_no_toml_is_named_with_its_place() {
        let quoted = "expected a value: texts, durations and sizes stand in quotes, such as \"5m\"";
        let table = [
            ("[policy\nwindow = 1", vec!["f:1:8: unclosed table, expected `]`".to_owned()]),
            ("[policy]\nidle_timeout = \"5m", vec!["f:2:19: invalid basic string, expected `\"`".to_owned()]),
            ("[policy]\nidle_timeout = 5m", vec![format!("f:2:16: {quoted}")]),
            (
                "[policy]\nidle_timeout =\nwindow = 1\nx",
                vec![format!("f:2:15: {quoted}"), "f:4:2: key with no value, expected `=`".to_owned()],
            ),
        ];
        for (text, expected) in table {
            assert_eq!(errors(text), expected, "{text}");
        }
    }

    #[test]
    fn a_key_that_is_there_twice_does_not_hide_other_mistakes() {
        let table: [(&str, &[&str]); 3] = [
            (
                "[policy]\nwindow = 1\nwindow = 2\ncolour = 1",
                &["f:3:1: window: this key was given before", "f:4:1: colour: unknown key"],
            ),
            (
                "[policy]\nwindow = 1\n[policy]\nwindow = 2",
                &["f:3:2: policy: this key was given before", "f:4:1: window: this key was given before"],
            ),
            (
                "[[worker]]\nid = \"w\"\ndriver = \"sim\"\npolicy.window = 1\npolicy.window = 2",
                &["f:5:8: window: this key was given before"],
            ),
        ];
        for (text, expected) in table {
            assert_eq!(errors(text), expected, "{text}");
        }
    }
}
