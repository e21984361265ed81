//! One direction of a connection: what comes out of one socket goes into the other, to the end.
//!
//! Small transfers are read into a buffer that all connections of a pump share and written at once; only what the
//! other side does not take is kept, or left in its socket where much is kept already. Where the buffer is filled
//! again and again it is bulk, and bulk goes through a pipe without being looked at. Of what carries very much the
//! source is not even watched: see `bulk` and `gather`.
//!
//! The sockets tell of changes once (edge-triggered), so whatever is not known to be exhausted has to be tried.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::pipe::{SpliceFlags, splice};

use super::bulk::Bulk;
use super::pipes::{BATCH, Pipe, Pipes};
use super::sent::Sent;
use super::stopped::{Failed, Ran, Stopped};

/// How much is read at once.
pub(super) const BUFFER: usize = 64 << 10;

/// When so much is held by one pump for those who are slow, what a sink does not take is left where it is: with ten
/// thousand slow readers memory stays bounded, and whoever takes everything is served as ever, for a call more.
const HELD_AT_MOST: usize = 16 << 20;

/// How often somebody is served before others have their turn.
const TURNS: u32 = 16;

/// What the connections of a pump share.
#[derive(Debug)]
pub(super) struct Kit {
    buffer: Box<[u8]>,
    pipes: Pipes,
    /// Read and not yet written, in buffers of their own.
    held: usize,
}

impl Kit {
    pub(super) fn new(pipes: usize) -> Self {
        Self { buffer: vec![0; BUFFER].into(), pipes: Pipes::new(pipes), held: 0 }
    }
}

/// What was read and not yet written.
#[derive(Debug, Default)]
enum Held {
    #[default]
    Nothing,
    Bytes {
        bytes: Vec<u8>,
        from: usize,
    },
    InPipe {
        pipe: Pipe,
        len: usize,
    },
    /// It was only looked at, and is still in the source.
    InSource,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    /// The source has said its last.
    Heard,
    /// And the sink has been told.
    PassedOn,
    /// The sink takes nothing any more, whatever the source may have to say.
    GivenUp,
}

/// What is known of whoever speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    #[default]
    Speaks,
    /// It says nothing after what there is.
    Closing,
    /// Nor does it hear anything.
    Gone,
    /// It broke off: what it said is not all that it had to say.
    Broken,
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Way {
    held: Held,
    end: End,
    /// The source may have something.
    pub(super) is_readable: bool,
    pub(super) source: Source,
    /// The sink takes no more until it says so.
    pub(super) is_full: bool,
    /// Urgent data came, or may have: a read may then stop short of what there is, and a pipe is not filled past it.
    pub(super) is_urgent: bool,
    bulk: Bulk,
}

/// What a run is told about the rest of the connection.
#[derive(Debug, Default)]
pub(super) struct Terms<'a> {
    /// Gets a copy of what the sink takes.
    pub(super) sent: Option<&'a mut Sent>,
    /// The other direction has come to its end, and so has all with this one: nobody needs to be told of the end but by
    /// closing.
    pub(super) is_last: bool,
    /// The end is not passed on yet.
    pub(super) holds_end: bool,
}

impl Way {
    /// One whose source may have spoken before it was watched, which is not told of.
    pub(super) fn of_a_stranger() -> Self {
        Self { is_readable: true, ..Self::default() }
    }

    /// One whose source has already said something.
    pub(super) fn of_somebody_who_said(bytes: Vec<u8>, kit: &mut Kit) -> Self {
        let mut way = Self::of_a_stranger();
        way.replay(bytes, kit);
        way
    }

    /// The end was heard and passed on, or nobody listens any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.end, End::PassedOn | End::GivenUp)
    }

    /// All that the source had to say was read and passed on.
    pub(super) fn is_complete(&self) -> bool {
        self.end == End::PassedOn
    }

    /// The source has said its last.
    pub(super) fn has_heard_end(&self) -> bool {
        self.end != End::Open
    }

    /// Something was read that the sink has not taken yet.
    pub(super) fn holds(&self) -> bool {
        !matches!(self.held, Held::Nothing)
    }

    /// And it takes again.
    pub(super) fn could_move(&self) -> bool {
        !self.is_full && self.holds()
    }

    /// Whether the source is to be looked at from time to time, and not watched.
    pub(super) fn gathers(&self) -> bool {
        self.bulk.gathers() && !self.has_heard_end()
    }

    /// Whether that is worth it now: what the sink does not take needs no company.
    pub(super) fn waits_for_a_look(&self) -> bool {
        self.gathers() && !self.is_full
    }

    /// If it gathers, it is the source's turn to be looked at.
    pub(super) fn look(&mut self) {
        if self.waits_for_a_look() {
            self.bulk.looks();
            self.is_readable = true;
        }
    }

    /// The source is watched from here on.
    pub(super) fn watch_source(&mut self) {
        self.bulk.watches();
    }

    /// The source broke off, as was seen elsewhere: a read will not tell.
    pub(super) fn breaks_off(&mut self) {
        (self.source, self.is_readable) = (Source::Broken, true);
    }

    /// A read found an end.
    fn hears_end(&mut self) -> Result<(), Failed> {
        if self.source == Source::Broken {
            return Err(Failed::Source);
        }
        self.end = End::Heard;
        Ok(())
    }

    fn is_exhausted(&mut self) {
        self.is_readable = false;
        self.bulk.found_end_of_batch();
    }

    /// Moves what can be moved.
    pub(super) fn run(&mut self, source: &OwnedFd, sink: &OwnedFd, kit: &mut Kit, terms: Terms<'_>) -> Ran {
        let mut ran = Ran::default();
        ran.stopped = self.turns(source, sink, kit, terms, &mut ran.moved).unwrap_or_else(Stopped::from);
        ran
    }

    fn turns(
        &mut self,
        source: &OwnedFd,
        sink: &OwnedFd,
        kit: &mut Kit,
        mut terms: Terms<'_>,
        moved: &mut u64,
    ) -> Result<Stopped, Failed> {
        for _ in 0..TURNS {
            if self.is_full || self.is_over() {
                return Ok(Stopped::Waits);
            }
            *moved += self.write_held(sink, kit, terms.sent.as_deref_mut())?;
            if self.is_full {
                return Ok(Stopped::Waits);
            }
            if self.end == End::Heard {
                if !terms.holds_end {
                    if !terms.is_last {
                        // Whoever is gone needs not be told.
                        let _ = shutdown(sink, Shutdown::Write);
                    }
                    self.end = End::PassedOn;
                }
                return Ok(Stopped::Waits);
            }
            if !self.is_readable {
                return Ok(Stopped::Waits);
            }
            let is_bulk = self.bulk.is_bulk() && !self.is_urgent && terms.sent.is_none();
            if let Some(pipe) = is_bulk.then(|| kit.pipes.take()).flatten() {
                self.read_into_pipe(source, pipe, kit)?;
            } else {
                *moved += self.read_and_write(source, sink, kit, &mut terms)?;
            }
        }
        Ok(Stopped::HasMore)
    }

    /// Writes what is held: all of it, or until the sink is full.
    fn write_held(&mut self, sink: &OwnedFd, kit: &mut Kit, sent: Option<&mut Sent>) -> Result<u64, Failed> {
        match &mut self.held {
            Held::Nothing => Ok(0),
            Held::InSource => {
                (self.held, self.is_readable) = (Held::Nothing, true);
                Ok(0)
            }
            Held::Bytes { bytes, from } => {
                let took = match send(sink, &bytes[*from..], SendFlags::NOSIGNAL) {
                    Ok(took) => took,
                    Err(Errno::AGAIN) => 0,
                    Err(error) => return Err(Failed::Sink(error)),
                };
                if let Some(sent) = sent {
                    sent.add(&bytes[*from..*from + took]);
                }
                *from += took;
                if *from < bytes.len() {
                    self.is_full = true;
                } else {
                    kit.held -= bytes.len();
                    self.held = Held::Nothing;
                }
                Ok(took as u64)
            }
            Held::InPipe { pipe, len } => {
                let before = *len;
                while *len > 0 {
                    match splice(&pipe.out, None, sink, None, *len, SpliceFlags::NONBLOCK) {
                        Ok(took) => *len -= took,
                        Err(Errno::AGAIN) => {
                            self.is_full = true;
                            return Ok((before - *len) as u64);
                        }
                        Err(error) => return Err(Failed::Sink(error)),
                    }
                }
                if let Held::InPipe { pipe, .. } = std::mem::take(&mut self.held) {
                    kit.pipes.give_back(pipe);
                }
                Ok(before as u64)
            }
        }
    }

    fn read_into_pipe(&mut self, source: &OwnedFd, pipe: Pipe, kit: &mut Kit) -> Result<(), Failed> {
        match splice(source, None, &pipe.into, None, BATCH, SpliceFlags::NONBLOCK) {
            // The end; or urgent data in front of the last words, which only reading gets past: that will tell.
            Ok(0) => self.is_urgent = true,
            Ok(len) => {
                let gathered = self.bulk.gathers();
                self.bulk.found_batch(len, len < BUFFER / 4);
                // What came meanwhile is for the next look: whoever stays finds little again and again. And where this was
                // the last look, the kernel tells when it watches again, of urgent data too.
                if gathered && (!self.bulk.gathers() || len < BATCH / 4) {
                    self.is_readable = false;
                }
                self.held = Held::InPipe { pipe, len };
                return Ok(());
            }
            Err(Errno::AGAIN) => self.is_exhausted(),
            Err(_) => {
                kit.pipes.give_back(pipe);
                self.source = Source::Broken;
                return Err(Failed::Source);
            }
        }
        kit.pipes.give_back(pipe);
        Ok(())
    }

    fn read_and_write(
        &mut self,
        source: &OwnedFd,
        sink: &OwnedFd,
        kit: &mut Kit,
        terms: &mut Terms<'_>,
    ) -> Result<u64, Failed> {
        // What is only looked at needs no place if the sink does not take it.
        let is_look = kit.held > HELD_AT_MOST;
        let flags = if is_look { RecvFlags::PEEK } else { RecvFlags::empty() };
        let buffer = &mut kit.buffer[..];
        let read = match recv(source, &mut *buffer, flags) {
            Ok((0, _)) => return self.hears_end().map(|()| 0),
            Ok((read, _)) => read,
            Err(Errno::AGAIN) => {
                self.is_exhausted();
                return Ok(0);
            }
            Err(_) => {
                self.source = Source::Broken;
                return Err(Failed::Source);
            }
        };
        if read == BUFFER {
            self.bulk.filled_buffer();
        } else if !self.is_urgent {
            // Nobody told of urgent data where the source was only looked at, so less than asked for says nothing there.
            let was_watched = !self.bulk.gathers();
            self.bulk.found_little();
            // Less than asked for: there is no more. If the end had been announced before this read, then what
            // was read is all there will ever be, and the end need not be read by itself. Whoever is gone may have broken
            // off, and that shows when it is read.
            self.is_readable = !was_watched || self.source >= Source::Gone;
            if was_watched && self.source == Source::Closing {
                self.end = End::Heard;
            }
        }
        let bytes = &buffer[..read];
        // The end follows at once, and goes in the same packet: one less for everybody on the way.
        let is_last = self.end == End::Heard && !terms.holds_end;
        let flags = if is_last { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
        let (took, failed) = match send(sink, bytes, flags) {
            Ok(took) => (took, None),
            Err(Errno::AGAIN) => (0, None),
            // It was not taken, so it may be for whoever is called next.
            Err(error) => (0, Some(error)),
        };
        if let Some(sent) = terms.sent.as_deref_mut() {
            sent.add(&bytes[..took]);
        }
        if took < read {
            self.is_full = failed.is_none();
            if is_look {
                // Nor has its end been heard.
                (self.held, self.end, self.is_readable) = (Held::InSource, End::Open, true);
            } else {
                let bytes = bytes[took..].to_vec();
                kit.held += bytes.len();
                self.held = Held::Bytes { bytes, from: 0 };
            }
        }
        if is_look && !takes_away(source, &mut kit.buffer[..took]) {
            return Err(Failed::Source);
        }
        failed.map_or(Ok(took as u64), |error| Err(Failed::Sink(error)))
    }

    /// Whatever was sent has to be sent again, to another sink.
    pub(super) fn replay(&mut self, mut sent: Vec<u8>, kit: &mut Kit) {
        if let Held::Bytes { bytes, from } = &self.held {
            kit.held -= bytes.len();
            sent.extend_from_slice(&bytes[*from..]);
        }
        self.is_full = false;
        if self.end == End::PassedOn {
            self.end = End::Heard;
        }
        if !sent.is_empty() {
            kit.held += sent.len();
            self.held = Held::Bytes { bytes: sent, from: 0 };
        }
    }

    /// Where pipes are scarce, one that waits for a sink is emptied for others: somebody who has paused a download may do
    /// that for hours. Only as long as there is memory for it. False: not all could be taken out, and what is missing
    /// cannot be made good.
    pub(super) fn spare_pipe(&mut self, kit: &mut Kit) -> bool {
        let Held::InPipe { pipe, len } = &self.held else { return true };
        if !self.is_full || !kit.pipes.are_scarce() || kit.held > HELD_AT_MOST {
            return true;
        }
        let mut bytes = vec![0; *len];
        let mut read = 0;
        while read < bytes.len() {
            match rustix::io::read(&pipe.out, &mut bytes[read..]) {
                Ok(some @ 1..) => read += some,
                Ok(0) | Err(_) => return false,
            }
        }
        kit.held += bytes.len();
        if let Held::InPipe { pipe, .. } = std::mem::replace(&mut self.held, Held::Bytes { bytes, from: 0 }) {
            kit.pipes.give_back(pipe);
        }
        true
    }

    /// Nothing is moved any more.
    pub(super) fn drop_held(&mut self, kit: &mut Kit) {
        match std::mem::take(&mut self.held) {
            Held::Nothing | Held::InSource => {}
            Held::Bytes { bytes, .. } => kit.held -= bytes.len(),
            Held::InPipe { .. } => kit.pipes.lost(),
        }
    }

    /// The source has said its last. What is held goes first, with a run.
    pub(super) fn pass_end_on(&mut self, sink: &OwnedFd) {
        if !self.is_over() && !self.holds() {
            let _ = shutdown(sink, Shutdown::Write);
            self.end = End::PassedOn;
        }
    }

    /// The sink takes nothing any more: what is left is thrown away, and nothing is read.
    pub(super) fn give_up(&mut self, kit: &mut Kit) {
        self.drop_held(kit);
        self.end = End::GivenUp;
    }

    /// Begins anew from another source.
    pub(super) fn begin_anew(&mut self, kit: &mut Kit) {
        self.drop_held(kit);
        *self = Self { is_full: self.is_full, ..Self::default() };
    }
}

/// Takes away what was looked at and is in the buffer, without copying it once more. False: the source is gone.
fn takes_away(source: &OwnedFd, mut looked_at: &mut [u8]) -> bool {
    while !looked_at.is_empty() {
        match recv(source, &mut *looked_at, RecvFlags::TRUNC) {
            Ok((_, took @ 1..)) => looked_at = &mut looked_at[took..],
            Ok((_, 0)) | Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
