//! Words of others, before they go into a line of the journal, a log or a terminal.

/// What others say can be of any length.
const LONGEST: usize = 500;

/// Without anything that moves a cursor or begins a line, and no longer than anybody reads.
pub(crate) fn plain(text: &str) -> String {
    let short = text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end]);
    let mut plain = drowse_core::plain::line(short);
    if short.len() < text.len() {
        plain.push('…');
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_others_say_fits_into_a_line() {
        assert_eq!(plain("a label: \"b\""), "a label: \"b\"");
        assert_eq!(plain("one\ntwo\u{1b}[2J\u{9b}"), "one two\u{fffd}[2J\u{fffd}");
        assert_eq!(plain(&"é".repeat(500)), "é".repeat(500));
        assert_eq!(plain(&"é".repeat(501)), format!("{}…", "é".repeat(500)));
    }
}
