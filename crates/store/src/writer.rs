//! The thread that writes (SQLite): transactions that are posted to it are run one after the other, and as many
//! as have come are committed in one go.
//!
//! Each of them still is a transaction by itself: it sees what those before it did, it is kept or taken back on
//! its own, and nobody is told that it is done before it is. What they share is the commit, which costs as much
//! as several statements, and the pages that all of them change.
//!
//! ```text
//!   BEGIN IMMEDIATE ─▶ (SAVEPOINT ─▶ work ─▶ RELEASE, or ROLLBACK TO) … ─▶ COMMIT ─▶ tell everybody
//! ```
//!
//! Somebody who waits at a door does not wait for a group to fill: a wake goes next, and the group ends with it.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::StoreError;
use crate::pool::{Lane, Pool};
use crate::sql::{Connection, Mode};
use crate::store::Inside;
use crate::tx::Tx;

/// How many transactions share a commit at most: some milliseconds of work.
const AT_ONCE: usize = 32;

/// How many may go ahead of what is late before one of that has its turn.
const GO_AHEAD: u32 = 4;

/// What became of a posted transaction; the outer error is its panic.
pub type Outcome<T, E> = thread::Result<Result<T, E>>;

/// A transaction that was posted.
trait Job: Send {
    /// Runs it; whether it is to be kept.
    fn run(&mut self, tx: Tx<'_>) -> bool;
    /// Tells what became of it: whether what was to be kept was committed.
    fn tell(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Posted<W, R, T, E> {
    work: Option<W>,
    reply: R,
    outcome: Option<Outcome<T, E>>,
}

impl<W, R, T, E> Job for Posted<W, R, T, E>
where
    W: FnOnce(&Tx<'_>) -> Result<T, E> + Send,
    R: FnOnce(Outcome<T, E>) + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn run(&mut self, tx: Tx<'_>) -> bool {
        let Some(work) = self.work.take() else { return false };
        // Dropped on the way out, the transaction takes back what it did.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let value = work(&tx)?;
            tx.commit()?;
            Ok(value)
        }));
        let is_kept = matches!(outcome, Ok(Ok(_)));
        self.outcome = Some(outcome);
        is_kept
    }

    fn tell(self: Box<Self>, committed: Result<(), StoreError>) {
        let outcome = match (committed, self.outcome) {
            (Err(error), Some(Ok(Ok(_))) | None) => Ok(Err(error.into())),
            (_, Some(outcome)) => outcome,
            (Ok(()), None) => Ok(Err(StoreError::Failed.into())),
        };
        let reply = self.reply;
        // Whoever is told may fail over it; the others are told all the same.
        let _ = catch_unwind(AssertUnwindSafe(|| reply(outcome)));
    }
}

/// The thread and what was posted to it.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    posted: Mutex<PostedJobs>,
    bell: Condvar,
}

#[derive(Default)]
struct PostedJobs {
    lanes: [VecDeque<Box<dyn Job>>; 3],
    /// How many have gone ahead of what is late since one of that was taken.
    went_ahead: u32,
    is_closed: bool,
}

impl Writer {
    /// `store`: which store it writes for, so that a transaction inside another is refused here too.
    pub(crate) fn start(connections: Arc<Pool<Connection>>) -> Result<Self, StoreError> {
        let queue = Arc::new(Queue::default());
        let waited = Arc::clone(&queue);
        let thread = thread::Builder::new()
            .name("drowse-writer".to_owned())
            .spawn(move || {
                while let Some(lane) = waited.wait() {
                    let mut connection = connections.take(lane);
                    let _inside = Inside::enter(&connections);
                    run_group(&mut connection, &waited);
                }
            })
            .map_err(|error| StoreError::Unavailable(error.into()))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    pub(crate) fn post<T, E>(
        &self,
        lane: Lane,
        work: impl FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        reply: impl FnOnce(Outcome<T, E>) + Send + 'static,
    ) where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let job = Box::new(Posted { work: Some(work), reply, outcome: None });
        self.queue.lock().lanes[lane as usize].push_back(job);
        self.queue.bell.notify_one();
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.lock().lanes.iter().map(VecDeque::len).sum()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.bell.notify_one();
        let thread = self.thread.take();
        // The last one to hold the store may be a transaction that was posted.
        if let Some(thread) = thread.filter(|writer| writer.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

impl Queue {
    /// Waits for something to do; `None`: nothing more will come.
    fn wait(&self) -> Option<Lane> {
        let mut posted = self.lock();
        loop {
            if let Some(lane) = posted.next_lane() {
                return Some(lane);
            }
            if posted.is_closed {
                return None;
            }
            posted = self.bell.wait(posted).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn next(&self) -> Option<(Lane, Box<dyn Job>)> {
        let mut posted = self.lock();
        let lane = posted.next_lane()?;
        posted.went_ahead = match lane {
            Lane::Wake => posted.went_ahead,
            Lane::Ordinary => posted.went_ahead.saturating_add(1),
            Lane::Late => 0,
        };
        Some((lane, posted.lanes[lane as usize].pop_front()?))
    }

    fn drain(&self) -> Vec<Box<dyn Job>> {
        self.lock().lanes.iter_mut().flat_map(std::mem::take).collect()
    }

    fn has_wakes(&self) -> bool {
        !self.lock().lanes[Lane::Wake as usize].is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, PostedJobs> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PostedJobs {
    /// Somebody at the door first; then what is due, and now and then what is late.
    fn next_lane(&self) -> Option<Lane> {
        let order = if self.went_ahead < GO_AHEAD {
            [Lane::Wake, Lane::Ordinary, Lane::Late]
        } else {
            [Lane::Wake, Lane::Late, Lane::Ordinary]
        };
        order.into_iter().find(|lane| !self.lanes[*lane as usize].is_empty())
    }
}

fn run_group(connection: &mut Connection, queue: &Queue) {
    if let Err(error) = connection.begin(Mode::Write) {
        // Nobody behind the first would fare better, and each would wait as long to find that out.
        return fail(queue.drain(), &error);
    }
    let mut kept: Vec<Box<dyn Job>> = Vec::new();
    for _ in 0..AT_ONCE {
        let Some((lane, mut job)) = queue.next() else { break };
        let is_kept = match connection.begin(Mode::Part) {
            Ok(()) => job.run(Tx::part(connection)),
            Err(error) => {
                job.tell(Err(error));
                break;
            }
        };
        if is_kept {
            kept.push(job);
        } else {
            job.tell(Ok(()));
            if !connection.is_in_transaction() {
                // Some errors, such as a full disk, take everything back.
                return fail(
                    kept,
                    &StoreError::Unavailable("another transaction of the group failed".into()),
                );
            }
        }
        if lane == Lane::Wake && !queue.has_wakes() {
            break;
        }
    }
    match connection.commit() {
        Ok(()) => kept.into_iter().for_each(|job| job.tell(Ok(()))),
        Err(error) => {
            connection.rollback();
            fail(kept, &error);
        }
    }
}

fn fail(jobs: Vec<Box<dyn Job>>, error: &StoreError) {
    for job in jobs {
        job.tell(Err(error.again()));
    }
}
