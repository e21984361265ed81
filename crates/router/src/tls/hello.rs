//! The first message of a TLS client, as far as it says whom it wants.
//!
//! ```text
//!   record:    22 | version | length | a piece of the message     (any number of them)
//!   message:    1 | length | version | random | session | ciphers | compressions | extensions
//!   extension:  0 | length | list of names                         (`server_name`)
//! ```
//!
//! What must stay true: however the bytes are split into packets and records, the outcome is the same; nothing
//! is ever read past a length that was checked; what is kept is bounded, whatever the client claims.

use drowse_core::host::HostName;

/// A record holds this much at most.
const LONGEST_RECORD: usize = 1 << 14;

/// What a client may send before it has said whom it wants. Browsers send 2 KiB; a message that fills a whole
/// record is larger than any seen.
const LONGEST: usize = LONGEST_RECORD + 2_048;

const RECORD_HEAD: usize = 5;
const MESSAGE_HEAD: usize = 4;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// A client whose first message is on its way.
#[derive(Debug, Default)]
pub(crate) struct Hello {
    /// Everything that came, to be passed on as it is.
    bytes: Vec<u8>,
    /// So much of it is in `message`.
    read: usize,
    /// The message without the records around it.
    message: Vec<u8>,
}

/// What a client said whom it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This host.
    Host(HostName),
    /// Nobody in particular, or a name that cannot be one.
    Nobody,
}

/// This is no first message of a TLS client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotTls;

impl Hello {
    /// Takes in what came. `None`: there is more to come.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Option<Wanted>, NotTls> {
        self.bytes.extend_from_slice(bytes);
        loop {
            if let Some(wanted) = self.whole()? {
                return Ok(Some(wanted));
            }
            let rest = &self.bytes[self.read..];
            let Some(record) = record(rest)? else {
                return if self.bytes.len() > LONGEST { Err(NotTls) } else { Ok(None) };
            };
            self.message.extend_from_slice(record);
            self.read += RECORD_HEAD + record.len();
            if self.read > LONGEST {
                return Err(NotTls);
            }
        }
    }

    /// What the message says, once it is whole.
    fn whole(&self) -> Result<Option<Wanted>, NotTls> {
        match self.message.first() {
            None => return Ok(None),
            Some(&CLIENT_HELLO) => {}
            Some(_) => return Err(NotTls),
        }
        let Some((head, body)) = self.message.split_at_checked(MESSAGE_HEAD) else { return Ok(None) };
        let length = usize::from(head[1]) << 16 | usize::from(head[2]) << 8 | usize::from(head[3]);
        if length > LONGEST {
            return Err(NotTls);
        }
        body.get(..length).map(|body| wanted(body).ok_or(NotTls)).transpose()
    }

    /// Everything that came.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// What the first record holds; `None`: it is not all there.
fn record(bytes: &[u8]) -> Result<Option<&[u8]>, NotTls> {
    // Looked at byte by byte: whoever speaks another protocol may wait for an answer after four of them.
    let is_wrong = matches!(bytes.first(), Some(kind) if *kind != HANDSHAKE)
        || matches!(bytes.get(1), Some(major) if *major != 3);
    if is_wrong {
        return Err(NotTls);
    }
    let Some((head, rest)) = bytes.split_at_checked(RECORD_HEAD) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
    if length == 0 || length > LONGEST_RECORD {
        return Err(NotTls);
    }
    Ok(rest.get(..length))
}

/// `None`: the message is not made as it must be.
fn wanted(body: &[u8]) -> Option<Wanted> {
    let mut rest = Reader(body);
    rest.take(2 + 32)?;
    rest.short()?;
    rest.long()?;
    rest.short()?;
    if rest.0.is_empty() {
        // Before extensions were invented.
        return Some(Wanted::Nobody);
    }
    let mut extensions = Reader(rest.long()?);
    if !rest.0.is_empty() {
        return None;
    }
    let mut wanted = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let inside = extensions.long()?;
        if kind == SERVER_NAME && wanted.replace(host(inside)?).is_some() {
            // Which of two counts is a matter of taste, and tastes differ between us and the worker.
            return None;
        }
    }
    Some(wanted.unwrap_or(Wanted::Nobody))
}

fn host(inside: &[u8]) -> Option<Wanted> {
    let mut rest = Reader(inside);
    let mut list = Reader(rest.long()?);
    if !rest.0.is_empty() || list.0.is_empty() {
        return None;
    }
    let mut wanted = None;
    while !list.0.is_empty() {
        let kind = *list.take(1)?.first()?;
        let name = list.long()?;
        if kind == HOST_NAME && wanted.replace(name).is_some() {
            return None;
        }
    }
    let name = wanted.and_then(|name| std::str::from_utf8(name).ok());
    Some(name.and_then(|name| HostName::new(name).ok()).map_or(Wanted::Nobody, Wanted::Host))
}

/// Bytes with lengths before them.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Up to 255 bytes.
    fn short(&mut self) -> Option<&'a [u8]> {
        let length = *self.take(1)?.first()?;
        self.take(length.into())
    }

    /// Up to 65,535 bytes.
    fn long(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length.into())
    }
}

#[cfg(test)]
mod tests;
