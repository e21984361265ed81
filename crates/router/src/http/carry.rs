//! Carries bodies: piece by piece, in both directions, at the speed of whoever takes them.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming};

use super::body::{Filler, Piece};
use super::visit::{Disturbed, Stopped, Visit};

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Way {
    from: Option<Incoming>,
    into: Option<Filler>,
    /// Read, and not yet taken.
    held: Option<Piece>,
}

/// How far it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    /// A piece was read.
    Read,
    /// A piece of this size was taken.
    Took(u64),
    /// It has come to its end, has broken off, or nobody wants the rest.
    Over,
}

impl Way {
    pub(super) fn new(from: Incoming, into: Filler) -> Self {
        Self { from: Some(from), into: Some(into), held: None }
    }

    /// With this before the rest.
    pub(super) fn after(mut self, begun: Bytes) -> Self {
        self.held = (!begun.is_empty()).then(|| Piece::Frame(Frame::data(begun)));
        self
    }

    fn is_over(&self) -> bool {
        self.into.is_none()
    }

    /// Something was said that has not been taken yet.
    fn is_behind(&self) -> bool {
        self.held.is_some() || self.into.as_ref().is_some_and(|into| into.capacity() == 0)
    }

    /// Goes one step. Nothing is lost if it is dropped on the way.
    async fn step(&mut self) -> Went {
        let Some(into) = &self.into else { return std::future::pending().await };
        if self.held.is_some() {
            let Ok(place) = into.reserve().await else { return self.end() };
            let mut size = 0;
            match self.held.take() {
                Some(Piece::Frame(piece)) => {
                    size = piece.data_ref().map_or(0, Bytes::len) as u64;
                    place.send(Piece::Frame(piece));
                }
                Some(Piece::End) => {
                    place.send(Piece::End);
                    return self.end();
                }
                None => {}
            }
            return Went::Took(size);
        }
        let Some(from) = &mut self.from else { return self.end() };
        let next = tokio::select! {
            next = from.frame() => next,
            () = into.closed() => return self.end(),
        };
        match next {
            Some(Ok(piece)) => self.held = Some(Piece::Frame(piece)),
            None => self.held = Some(Piece::End),
            // Whoever takes it sees that it is not whole.
            Some(Err(_)) => return self.end(),
        }
        Went::Read
    }

    fn end(&mut self) -> Went {
        *self = Self::default();
        Went::Over
    }
}

/// Carries what the client says to the worker until `done`.
pub(super) async fn up_until<T>(
    visit: &mut Visit,
    up: &mut Way,
    done: impl Future<Output = T>,
) -> Result<T, Stopped> {
    let mut done = std::pin::pin!(done);
    loop {
        let went = tokio::select! {
            biased;
            done = &mut done => {
                visit.be_present().await?;
                return Ok(done);
            }
            // Whoever has asked and waits for the answer is not silent: it is the worker's turn.
            disturbed = visit.disturbed(!up.is_over()) => {
                heed(visit, disturbed, up)?;
                continue;
            }
            went = up.step() => went,
        };
        took(visit, went, true).await?;
    }
}

/// Carries both to the end of the answer. What the client still says after that concerns nobody.
pub(super) async fn both(visit: &mut Visit, up: &mut Way, down: &mut Way) -> Result<(), Stopped> {
    while !down.is_over() {
        let (went, is_up) = tokio::select! {
            biased;
            disturbed = visit.disturbed(true) => {
                heed(visit, disturbed, up)?;
                continue;
            }
            went = down.step() => (went, false),
            went = up.step() => (went, true),
        };
        took(visit, went, is_up).await?;
    }
    Ok(())
}

fn heed(visit: &mut Visit, disturbed: Disturbed, up: &Way) -> Result<(), Stopped> {
    match disturbed {
        Disturbed::Cut => Err(Stopped::Cut),
        // A client whose words have not been taken is not the silent one, nor is anybody who may not speak: they would
        // be put to sleep over a request that is on its way. A client that does not take an answer is.
        Disturbed::Silence if up.is_behind() || visit.is_held_back() => {
            visit.stirs();
            Ok(())
        }
        Disturbed::Silence => {
            visit.fall_silent();
            Ok(())
        }
    }
}

async fn took(visit: &mut Visit, went: Went, is_up: bool) -> Result<(), Stopped> {
    match went {
        // Before it goes on: past the validity of the hold not a byte moves.
        Went::Read => visit.be_present().await?,
        Went::Took(size) if is_up => visit.moved(size, 0),
        Went::Took(size) => visit.moved(0, size),
        Went::Over => {}
    }
    Ok(())
}
