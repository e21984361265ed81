//! Words of others on somebody's terminal.
//!
//! A worker, its owner and the programs in it write labels, reasons and hook output, and a terminal obeys what it
//! is shown. So whatever is shown goes through here, and what remains only looks like something.

use alloc::string::String;

/// Whether a terminal shows it and does nothing else.
///
/// Control characters move the cursor, name windows and begin commands, and those from U+0080 on do so as well.
/// The marks for the direction of writing make a line read as another one, and the separators of lines and
/// paragraphs begin one where nobody sees it.
pub fn is_plain(c: char) -> bool {
    let is_mark = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    !(c.is_control() || is_mark)
}

/// One line: its ends and tabs become spaces, and what is not plain a mark that something was there.
pub fn line(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            c if is_plain(c) => c,
            _ => char::REPLACEMENT_CHARACTER,
        })
        .collect()
}

/// Several lines, which stay lines.
pub fn lines(text: &str) -> String {
    let keep =
        |c: char| if is_plain(c) || matches!(c, '\n' | '\t') { c } else { char::REPLACEMENT_CHARACTER };
    text.chars().map(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_not_shown() {
        for evil in
            ['\u{1b}', '\u{7}', '\u{8}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200f}', '\u{2028}']
        {
            assert_eq!(line(&String::from_iter(['a', evil, 'b'])), "a\u{fffd}b", "{evil:?}");
            assert_eq!(lines(&String::from_iter(['a', evil, 'b'])), "a\u{fffd}b", "{evil:?}");
        }
        assert_eq!(line("one\r\ntwo\tthree"), "one  two three");
        assert_eq!(lines("one\r\ntwo\tthree"), "one\u{fffd}\ntwo\tthree");
        for fine in ["", "Grüße, 日本語, עברית", "a label: \"b\" … 🙂"] {
            assert_eq!(line(fine), fine);
            assert_eq!(lines(fine), fine);
        }
    }
}
