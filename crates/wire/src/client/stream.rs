//! The journal as it is written.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;

use super::{Client, ClientError, with_query};
use crate::events::{Frame, LAST_EVENT_ID, LOST, Parser, STREAM_TYPE};
use crate::v1::{Event, EventQuery};

/// One message of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Streamed {
    /// Something was done or seen.
    Event(Event),
    /// The journal cannot go on where we were cut off: look at the whole picture again.
    Lost,
}

/// Events as they come. It ends when the server closes it; go on with [`Client::stream`] after
/// [`EventStream::last_event_id`].
pub struct EventStream {
    url: String,
    reader: Box<dyn Read>,
    parser: Parser,
    ready: VecDeque<Frame>,
    last_event_id: Option<String>,
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("last_event_id", &self.last_event_id).finish_non_exhaustive()
    }
}

impl Client {
    /// Follows the journal. `last` is the id of the last event that was seen; without it, from now on. Only
    /// `worker` and `type` of the query count.
    pub fn stream(&self, query: &EventQuery, last: Option<&str>) -> Result<EventStream, ClientError> {
        let query = EventQuery { after: None, before: None, limit: None, ..query.clone() };
        let mut request =
            self.request("GET", &with_query("events/stream", &query)).header("accept", STREAM_TYPE);
        if let Some(last) = last {
            request = request.header(LAST_EVENT_ID, last);
        }
        let request = request.body(()).map_err(|error| self.unsendable(&error))?;
        let mut response = self.check(self.streams.run(request))?;
        if response.body().mime_type() != Some(STREAM_TYPE) {
            let text = self.text(&mut response)?;
            return Err(self.garbage(response.status().as_u16(), &text));
        }
        Ok(EventStream {
            url: self.url().to_owned(),
            reader: Box::new(response.into_body().into_reader()),
            parser: Parser::default(),
            ready: VecDeque::new(),
            last_event_id: last.map(str::to_owned),
        })
    }
}

impl EventStream {
    /// The id of the last event that was given out.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    fn read(&mut self, frame: Frame) -> Result<Streamed, ClientError> {
        let garbage = |frame: &Frame| ClientError::Garbage {
            url: self.url.clone(),
            status: 200,
            start: frame.data.chars().take(120).collect(),
        };
        let message = if frame.event.as_deref() == Some(LOST) {
            Streamed::Lost
        } else {
            Streamed::Event(serde_json::from_str(&frame.data).map_err(|_| garbage(&frame))?)
        };
        if frame.id.is_some() {
            self.last_event_id = frame.id;
        }
        Ok(message)
    }
}

impl Iterator for EventStream {
    type Item = Result<Streamed, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut buffer = [0; 8192];
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(self.read(frame));
            }
            let broken = |source| ClientError::Broken { url: self.url.clone(), source };
            match self.reader.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => match self.parser.push(&buffer[..count]) {
                    Ok(frames) => self.ready.extend(frames),
                    Err(_) => return Some(Err(broken(std::io::ErrorKind::InvalidData.into()))),
                },
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Some(Err(broken(error))),
            }
        }
    }
}
