//! The one place that starts tasks: shutdown waits for all of them, and a panic in one is seen.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Where work that blocks a thread is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// On threads of its own, as a server does.
    Threads,
    /// Right here: a simulation has one thread and wants one order of events.
    Inline,
}

/// Tasks that are under way. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tasks {
    tracker: TaskTracker,
    blocking: Blocking,
    polls: Arc<AtomicU64>,
}

impl Tasks {
    pub fn new(blocking: Blocking) -> Self {
        Self { tracker: TaskTracker::new(), blocking, polls: Arc::default() }
    }

    /// Starts a task.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn(Counted { work: Box::pin(work), polls: Arc::clone(&self.polls) })
    }

    /// Does something that goes on when nobody waits for it any more.
    pub(crate) async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        if self.blocking == Blocking::Inline {
            return work.await;
        }
        match self.spawn(work).await {
            Ok(value) => value,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is going down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Where work that blocks is done.
    pub(crate) const fn blocking(&self) -> Blocking {
        self.blocking
    }

    /// Runs what blocks its thread.
    pub async fn block<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match self.blocking {
            Blocking::Inline => work(),
            Blocking::Threads => match self.tracker.spawn_blocking(work).await {
                Ok(value) => value,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime is going down, and this task with it.
                    Err(_) => std::future::pending().await,
                },
            },
        }
    }

    /// How often any task got a turn. A round in which it does not grow is one in which nobody had anything
    /// to do, which is how a simulation knows that an instant is over.
    pub fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    /// How many are under way.
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }

    /// Waits for all of them to end.
    pub async fn finish(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

struct Counted<F> {
    work: Pin<Box<F>>,
    polls: Arc<AtomicU64>,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.work.as_mut().poll(context)
    }
}
