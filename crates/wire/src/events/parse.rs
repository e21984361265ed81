//! Reading a stream, however it is cut into pieces.

use super::Frame;

/// More than this in one frame is no event of ours.
const LONGEST_FRAME: usize = 1 << 20;

/// A frame that is longer than anything we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Reads a stream piece by piece.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    /// The line that has not ended yet. Bytes, because a piece may end inside a character.
    line: Vec<u8>,
    /// The last byte was a `\r`; a `\n` that follows belongs to it.
    after_cr: bool,
    /// A byte-order mark may still come.
    has_begun: bool,
    event: Option<String>,
    data: Option<String>,
    /// The frame's own id, if it gave one.
    id: Option<String>,
    last_event_id: Option<String>,
}

impl Parser {
    /// Takes a piece and gives the frames that it completed.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, TooLong> {
        let mut frames = Vec::new();
        for &byte in bytes {
            let is_rest_of_crlf = byte == b'\n' && self.after_cr;
            self.after_cr = byte == b'\r';
            if is_rest_of_crlf {
                continue;
            }
            if byte == b'\n' || byte == b'\r' {
                let line = std::mem::take(&mut self.line);
                frames.extend(self.end_line(&line));
            } else {
                self.line.push(byte);
                if self.line.len() + self.data.as_ref().map_or(0, String::len) > LONGEST_FRAME {
                    return Err(TooLong);
                }
            }
        }
        Ok(frames)
    }

    /// What to send as `Last-Event-ID` to go on after the last frame that was completed.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    fn end_line(&mut self, line: &[u8]) -> Option<Frame> {
        let line = String::from_utf8_lossy(line);
        let mut line = line.as_ref();
        if !self.has_begun {
            self.has_begun = true;
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_frame();
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "event" => self.event = Some(value.to_owned()),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // A comment has an empty name; what is not known is ignored.
            _ => {}
        }
        None
    }

    /// A frame without data is none, but its id counts.
    fn end_frame(&mut self) -> Option<Frame> {
        let (id, event, data) = (self.id.take(), self.event.take(), self.data.take());
        if let Some(id) = &id {
            // An empty id forgets the last one.
            self.last_event_id = Some(id.clone()).filter(|id| !id.is_empty());
        }
        data.map(|data| Frame { id, event: event.filter(|event| !event.is_empty()), data })
    }
}
