//! The one place that starts tasks: shutdown waits for all of them or ends them, and a panic in one is seen.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::task::TaskTracker;

use crate::shared::lock;

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
    running: Arc<Mutex<Running>>,
}

/// How each of them is ended.
#[derive(Debug, Default)]
struct Running {
    last: u64,
    /// `None`: it is just being started.
    handles: HashMap<u64, Option<AbortHandle>>,
    is_over: bool,
}

impl Tasks {
    pub fn new(blocking: Blocking) -> Self {
        Self { tracker: TaskTracker::new(), blocking, polls: Arc::default(), running: Arc::default() }
    }

    /// Starts a task.
    pub fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let number = {
            let mut running = lock(&self.running);
            running.last += 1;
            let number = running.last;
            running.handles.insert(number, None);
            number
        };
        let ends = Ends { number, running: Arc::clone(&self.running) };
        let counted = Counted { work: Box::pin(work), polls: Arc::clone(&self.polls), _ends: ends };
        // Not under the lock: a runtime that goes down drops it right here.
        let handle = self.tracker.spawn(counted);
        let mut running = lock(&self.running);
        if running.is_over {
            handle.abort();
        } else if let Some(known) = running.handles.get_mut(&number) {
            *known = Some(handle.abort_handle());
        }
        drop(running);
        handle
    }

    /// Ends all of them where they are, as the end of the process would, and waits until they are gone. Who would be
    /// started later is not. What blocks a thread is waited for, and can still be run.
    pub async fn end(&self) {
        let handles = {
            let mut running = lock(&self.running);
            running.is_over = true;
            std::mem::take(&mut running.handles)
        };
        for handle in handles.values().flatten() {
            handle.abort();
        }
        self.finish().await;
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
    _ends: Ends,
}

/// Takes a task off the list when it is over.
struct Ends {
    number: u64,
    running: Arc<Mutex<Running>>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        lock(&self.running).handles.remove(&self.number);
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.work.as_mut().poll(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_are_ended_where_they_are_and_nobody_begins_after_that() {
        let tasks = Tasks::new(Blocking::Threads);
        let (say, said) = tokio::sync::oneshot::channel::<()>();
        let never = tasks.spawn(async move {
            std::future::pending::<()>().await;
            drop(say);
        });
        assert_eq!(tasks.spawn(async { 7 }).await.unwrap(), 7);
        tasks.end().await;
        assert!(said.await.is_err(), "what it had is dropped");
        assert!(never.await.unwrap_err().is_cancelled());
        assert!(tasks.spawn(std::future::pending::<()>()).await.unwrap_err().is_cancelled());
        assert_eq!(tasks.block(|| 7).await, 7);
        assert!(lock(&tasks.running).handles.is_empty());
    }
}
