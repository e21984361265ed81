//! Server-sent events: how a stream is written and read.
//!
//! Pure: bytes in, frames out, so that any way of cutting a stream into chunks gives the same frames. A reader
//! that is cut off sends the id of the last frame as `Last-Event-ID` and loses nothing.

mod parse;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

pub use parse::{Parser, TooLong};

/// The content type of a stream.
pub const STREAM_TYPE: &str = "text/event-stream";

/// The header with which a reader goes on where it was cut off.
pub const LAST_EVENT_ID: &str = "last-event-id";

/// The event that tells a reader that it lost something and must look at the whole picture again.
pub const LOST: &str = "lost";

/// One message of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its place in the stream, if it has one.
    pub id: Option<String>,
    /// Its type; none means `message`.
    pub event: Option<String>,
    /// Its content.
    pub data: String,
}

/// Writes a frame. Line breaks are cut from id and type, which cannot carry them; in the data every line ending
/// becomes `\n`.
pub fn encode(frame: &Frame) -> String {
    let mut text = String::new();
    let mut field = |name: &str, value: &str| {
        writeln!(text, "{name}: {value}").expect("a String takes all that is written to it");
    };
    if let Some(id) = &frame.id {
        field("id", &one_line(id));
    }
    if let Some(event) = &frame.event {
        field("event", &one_line(event));
    }
    for line in frame.data.replace("\r\n", "\n").split(['\n', '\r']) {
        field("data", line);
    }
    text.push('\n');
    text
}

/// A line that says nothing: it keeps proxies from closing a quiet stream, and finds readers that are gone.
pub const fn keepalive() -> &'static str {
    ":\n\n"
}

fn one_line(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\n' | '\r' | '\0')).collect()
}
