//! Bodies on their way through.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// What is sent to a client or a worker: words of ours, or a body from the other side.
pub(super) type Words = Either<Full<Bytes>, Tube>;

/// The other side has gone before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the other side has gone")]
pub(super) struct Broken;

/// A body that arrives piece by piece. It may be dropped at any time, which whoever fills it sees.
#[derive(Debug)]
pub(super) struct Tube {
    pieces: mpsc::Receiver<Result<Frame<Bytes>, Broken>>,
    hint: SizeHint,
    is_over: bool,
}

/// The end at which it is filled.
pub(super) type Filler = mpsc::Sender<Result<Frame<Bytes>, Broken>>;

impl Tube {
    /// One through which so much comes, as far as it is known.
    pub(super) fn new(hint: SizeHint) -> (Filler, Self) {
        let (filler, pieces) = mpsc::channel(1);
        (filler, Self { pieces, hint, is_over: false })
    }
}

impl Body for Tube {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let piece = std::task::ready!(self.pieces.poll_recv(context));
        self.is_over = !matches!(piece, Some(Ok(_)));
        Poll::Ready(piece)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

/// Words of ours.
pub(super) fn whole(text: impl Into<Bytes>) -> Words {
    Either::Left(Full::new(text.into()))
}
