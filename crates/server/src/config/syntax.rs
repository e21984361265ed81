//! From text to TOML, with every place where it is none.

use std::collections::BTreeSet;

use toml::de::DeTable;

use super::problem::{Fault, Report};

/// What the parser says of a key that is there twice. It keeps the first, so reading can go on.
const DUPLICATE_KEY: &str = "duplicate key";

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
            report.add(&span, "", Fault::Syntax { message: error.message().to_owned() });
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
        let table: [(&str, &[&str]); 7] = [
            ("[policy\nwindow = 1", &[""]),
            ("[policy]\nidle_timeout = \"5m", &[""]),
            ("[policy]\nidle_timeout = 5m", &[""]),
            ("[policy]\nidle_timeout =\nwindow = 1\nx", &[""]),
            ("[policy]\nwindow = 1\nwindow = 2\ncolour = 1", &[""]),
            ("[policy]\nwindow = 1\n[policy]\nwindow = 2", &[""]),
            ("[[worker]]\nid = \"w\"\ndriver = \"sim\"\npolicy.window = 1\npolicy.window = 2", &[""]),
        ];
        for (text, expected) in table {
            println!("{text}\n{:#?}", errors(text)); let _ = expected;
        }
    }
}
