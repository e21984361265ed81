//! The connection of a client or a worker: read and written by one, and watched by another for its end.
//!
//! Whoever has said its last may still wait for an answer, so the end of what it says is none. That it is gone
//! altogether shows as an error of the socket: a reset, or keepalive that nobody answers.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::flushes::Flushes;

/// How much is read at once. A body has four pieces on its way, however slow those are who take it, and one more where it
/// is said.
const PIECE: usize = 16 << 10;

/// A connection. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Socket(Arc<TcpStream>, Flushes);

impl Socket {
    pub(super) fn new(stream: TcpStream, flushes: &Flushes) -> Self {
        Self(Arc::new(stream), flushes.clone())
    }

    /// Waits until nobody is there any more.
    pub(super) async fn is_gone(&self) {
        loop {
            match self.0.ready(Interest::ERROR).await {
                Ok(ready) if !ready.is_error() => {}
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// The connection itself, if nobody else has it any more.
    pub(super) fn into_inner(self) -> Option<TcpStream> {
        Arc::try_unwrap(self.0).ok()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            let at_most = into.remaining().min(PIECE);
            match self.0.try_read(into.initialize_unfilled_to(at_most)) {
                Ok(read) => {
                    into.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(context, || self.0.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, || self.0.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // It is asked for when nothing is left that could be written.
        self.1.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Write);
        // Whoever is gone needs not be told.
        Poll::Ready(match ended {
            Ok(()) | Err(rustix::io::Errno::NOTCONN) => Ok(()),
            Err(error) => Err(error.into()),
        })
    }
}

impl Socket {
    fn write(
        &self,
        context: &mut Context<'_>,
        write: impl Fn() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match write() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}
