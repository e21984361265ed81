//! Bodies on their way through.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use super::flushes::Flushes;

/// How much of a body may wait to be written. Whoever says it would take more, as much as a head may have.
const UNSAID_AT_MOST: usize = 32 << 10;

/// What is sent to a client or a worker: words of ours, or a body from the other side.
pub(super) type Words = Either<Full<Bytes>, Tube>;

/// The other side has gone before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other side has gone")]
pub(super) struct Broken;

/// What goes through a tube.
#[derive(Debug)]
pub(super) enum Piece {
    Frame(Frame<Bytes>),
    /// That was all. A tube that is let go without it breaks off: nobody takes half a body for a whole one.
    End,
}

/// A body that arrives piece by piece. It may be dropped at any time, which whoever fills it sees.
#[derive(Debug)]
pub(super) struct Tube {
    pieces: mpsc::Receiver<Piece>,
    hint: SizeHint,
    /// Of the connection on which it is said.
    flushes: Flushes,
    /// How much was given there since so many flushes.
    unsaid: (usize, u64),
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Flows,
    /// It has broken off, when so many flushes were behind it. Whoever says it forgets at once what has not gone out
    /// when it hears of that, so it is told after the next.
    Broke(u64),
    Over,
}

/// The end at which it is filled.
pub(super) type Filler = mpsc::Sender<Piece>;

impl Tube {
    /// One through which so much comes, as far as it is known, and is said there.
    pub(super) fn new(hint: SizeHint, flushes: &Flushes) -> (Filler, Self) {
        let (filler, pieces) = mpsc::channel(1);
        let unsaid = (0, flushes.count());
        (filler, Self { pieces, hint, flushes: flushes.clone(), unsaid, state: State::Flows })
    }
}

impl Tube {
    /// Waits until more may be given there.
    fn poll_said(&mut self, context: &Context<'_>) -> Poll<()> {
        let (unsaid, since) = self.unsaid;
        if unsaid >= UNSAID_AT_MOST {
            ready!(self.flushes.poll_after(since, context));
        }
        let count = self.flushes.count();
        if count > since {
            self.unsaid = (0, count);
        }
        Poll::Ready(())
    }
}

impl Body for Tube {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            match self.state {
                State::Over => return Poll::Ready(None),
                State::Broke(before) => {
                    ready!(self.flushes.poll_after(before, context));
                    self.state = State::Over;
                    return Poll::Ready(Some(Err(Broken)));
                }
                State::Flows => {
                    ready!(self.poll_said(context));
                    match ready!(self.pieces.poll_recv(context)) {
                        Some(Piece::Frame(frame)) => {
                            self.unsaid.0 += frame.data_ref().map_or(0, Bytes::len);
                            return Poll::Ready(Some(Ok(frame)));
                        }
                        Some(Piece::End) => self.state = State::Over,
                        None => self.state = State::Broke(self.flushes.count()),
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Over
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

/// Words of ours.
pub(super) fn whole(text: impl Into<Bytes>) -> Words {
    Either::Left(Full::new(text.into()))
}
