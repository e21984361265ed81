//! That all which was written to a connection has gone out, for whoever writes by way of `hyper`, which does not tell.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::router::lock;

/// How often all that was written to a connection has gone out. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Flushes(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    count: u64,
    /// Whoever waits for the next. There is one who writes.
    waits: Option<Waker>,
}

impl Flushes {
    pub(super) fn count(&self) -> u64 {
        lock(&self.0).count
    }

    /// Nothing is left to be written.
    pub(super) fn flushed(&self) {
        let waits = {
            let mut counted = lock(&self.0);
            counted.count += 1;
            counted.waits.take()
        };
        if let Some(waker) = waits {
            waker.wake();
        }
    }

    /// Waits for more than so many.
    pub(super) fn poll_after(&self, count: u64, context: &Context<'_>) -> Poll<()> {
        let mut counted = lock(&self.0);
        if counted.count > count {
            return Poll::Ready(());
        }
        counted.waits = Some(context.waker().clone());
        Poll::Pending
    }
}
