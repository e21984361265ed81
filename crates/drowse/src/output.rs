//! The only place that writes to the terminal: stdout is data, stderr is talk.

pub(crate) mod time;

use std::fmt::Write as _;
use std::io::{self, Write};

use drowse_core::plain;
use serde::Serialize;

/// Writes data to stdout, for people. What a worker or its owner wrote is in it, and must not steer the terminal.
pub(crate) fn data(text: &str) -> io::Result<()> {
    write(&plain::lines(text))
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // Whoever reads has seen enough, as `head` does.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes talk to stderr. When even that fails there is nobody left to tell.
pub(crate) fn talk(text: &str) {
    let _ = io::stderr().lock().write_all(plain::lines(text).as_bytes());
}

/// Lines of the log, as what writes them sees it.
#[derive(Debug)]
pub(crate) struct Log;

impl Write for Log {
    // A line comes whole, so no character is cut.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(logged(bytes).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

/// An entry is one line, whatever is in it.
fn logged(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    plain::line(text.trim_end_matches('\n')) + "\n"
}

/// One line of a person's own words or a worker's, as a part of a larger text.
pub(crate) fn line(text: &str) -> String {
    plain::line(text)
}

/// Writes JSON for programs to stdout.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(write(&escaped(&serde_json::to_string_pretty(value)?))?)
}

/// Writes JSON for programs to stdout, one value a line.
pub(crate) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(write(&escaped(&serde_json::to_string(value)?))?)
}

/// The same value, with everything escaped that a terminal would obey: outside of texts JSON has none of it.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if plain::is_plain(c) || c == '\n' {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text.push('\n');
    text
}

/// A table with a heading; nothing but the heading if there are no rows.
pub(crate) fn table<const N: usize>(
    heading: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let heading = heading.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> =
        std::iter::once(heading).chain(rows.into_iter().map(|row| row.to_vec())).collect();
    columns(0, &rows)
}

/// A cell for what may be absent.
pub(crate) fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

/// Rows as columns: each column but the last as wide as its widest cell, with two spaces between.
///
/// A cell stays in its line: what is in it may be a worker's own words.
pub(crate) fn columns(indent: usize, rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| plain::line(cell)).collect()).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let mut line = " ".repeat(indent);
        for (width, cell) in widths.iter().zip(row) {
            line.push_str(cell);
            line.push_str(&" ".repeat(width - cell.chars().count() + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_need_to_be() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        assert_eq!(columns(2, &[row(&["a", "bb", "c"]), row(&["äää", "b"])]), "  a    bb  c\n  äää  b\n");
        assert_eq!(columns(0, &[]), "");
    }

    #[test]
    fn a_cell_cannot_leave_its_line() {
        let row = vec!["web".to_owned(), "\u{1b}[2Jone\ntwo\u{9b}\u{202e}".to_owned()];
        assert_eq!(columns(0, &[row]), "web  \u{fffd}[2Jone two\u{fffd}\u{fffd}\n");
    }

    #[test]
    fn an_entry_of_the_log_is_one_line() {
        assert_eq!(logged(b"WARN a\nWARN forged\x1b[2J\n"), "WARN a WARN forged\u{fffd}[2J\n");
    }

    #[test]
    fn json_keeps_its_values_and_shows_no_control_character() {
        let value = serde_json::json!({ "name": "a\u{1b}\u{9b}\u{202e}\u{e0041}\u{7f}é\n" });
        for text in [serde_json::to_string(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap()] {
            let text = escaped(&text);
            assert!(text.chars().all(|c| plain::is_plain(c) || c == '\n'), "{text:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        }
    }
}
