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
//! Somebody who waits at a door does not wait for a group to fill: a wake goes next, and the group ends with it. What is in
//! no hurry does: it is taken along with the next that is, or comes with others of its kind a moment later.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::StoreError;
use crate::pool::{Lane, Pool, WAKES_AHEAD};
use crate::sql::{Connection, Mode};
use crate::store::Inside;
use crate::tx::Tx;

/// How many transactions share a commit at most: some milliseconds of work.
const AT_ONCE: usize = 32;

/// How many may go ahead of what is late before one of that has its turn.
const GO_AHEAD: u32 = 4;

/// How long what is in no hurry waits for others: as long as checks that began together are apart in the end.
const GATHERED_FOR: Duration = Duration::from_millis(20);

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

struct Waiting {
    lane: Lane,
    job: Box<dyn Job>,
}

/// Where somebody waits. What is in no hurry has its turn as any other: only the bell is not rung for it.
const fn row(lane: Lane) -> usize {
    match lane {
        Lane::Wake => 0,
        Lane::Ordinary | Lane::Unhurried => 1,
        Lane::Late => 2,
    }
}

#[derive(Default)]
struct PostedJobs {
    /// By [`row`].
    lanes: [VecDeque<Waiting>; 3],
    /// How many of them are in no hurry.
    unhurried: usize,
    /// How many have gone ahead of what is late since one of that was taken.
    went_ahead: u32,
    /// How many wakes have gone ahead of everything else since one of that was taken.
    wakes_ahead: u32,
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
        self.queue.post(Waiting { lane, job });
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
    fn post(&self, waiting: Waiting) {
        let mut posted = self.lock();
        posted.unhurried += usize::from(waiting.lane == Lane::Unhurried);
        posted.lanes[row(waiting.lane)].push_back(waiting);
        // The first that is in no hurry has the thread begin to wait for others.
        if !posted.is_gathering() || posted.unhurried == 1 {
            self.bell.notify_one();
        }
    }

    /// Waits for something to do; `None`: nothing more will come.
    fn wait(&self) -> Option<Lane> {
        let mut posted = self.lock();
        loop {
            if posted.is_gathering() {
                let gathered =
                    self.bell.wait_timeout_while(posted, GATHERED_FOR, |posted| posted.is_gathering());
                posted = gathered.unwrap_or_else(PoisonError::into_inner).0;
            }
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
            Lane::Ordinary | Lane::Unhurried => posted.went_ahead.saturating_add(1),
            Lane::Late => 0,
        };
        posted.wakes_ahead = if lane == Lane::Wake { posted.wakes_ahead.saturating_add(1) } else { 0 };
        let Waiting { lane, job } = posted.lanes[row(lane)].pop_front()?;
        posted.unhurried -= usize::from(lane == Lane::Unhurried);
        Some((lane, job))
    }

    fn drain(&self) -> Vec<Box<dyn Job>> {
        let mut posted = self.lock();
        posted.unhurried = 0;
        posted.lanes.iter_mut().flat_map(std::mem::take).map(|waiting| waiting.job).collect()
    }

    fn has_wakes(&self) -> bool {
        !self.lock().lanes[row(Lane::Wake)].is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, PostedJobs> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PostedJobs {
    /// Whether all that has come is in no hurry, and more of it may share the commit.
    fn is_gathering(&self) -> bool {
        let waiting: usize = self.lanes.iter().map(VecDeque::len).sum();
        (1..AT_ONCE).contains(&self.unhurried) && waiting == self.unhurried && !self.is_closed
    }

    /// Somebody at the door first, but not for ever; then what is due, and now and then what is late.
    fn next_lane(&self) -> Option<Lane> {
        let mut order = if self.went_ahead < GO_AHEAD {
            [Lane::Wake, Lane::Ordinary, Lane::Late]
        } else {
            [Lane::Wake, Lane::Late, Lane::Ordinary]
        };
        if self.wakes_ahead >= WAKES_AHEAD {
            order.rotate_left(1);
        }
        order.into_iter().find(|lane| !self.lanes[row(*lane)].is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl Job for Nothing {
        fn run(&mut self, _: Tx<'_>) -> bool {
            true
        }
        fn tell(self: Box<Self>, _: Result<(), StoreError>) {}
    }

    #[test]
    fn visitors_without_end_do_not_keep_everything_else_waiting() {
        let queue = Queue::default();
        let post = |lane| queue.post(Waiting { lane, job: Box::new(Nothing) });
        for lane in [Lane::Ordinary, Lane::Late, Lane::Ordinary] {
            post(lane);
        }
        let mut others = Vec::new();
        for turn in 1..=60 {
            post(Lane::Wake);
            let (lane, _) = queue.next().unwrap();
            if lane != Lane::Wake {
                others.push((turn, lane));
            }
        }
        assert_eq!(others, [(17, Lane::Ordinary), (34, Lane::Ordinary), (51, Lane::Late)]);
    }

    #[test]
    fn only_what_is_in_no_hurry_waits_for_others_and_not_for_more_than_fit() {
        let queue = Queue::default();
        let post = |lane| queue.post(Waiting { lane, job: Box::new(Nothing) });
        let is_gathering = || queue.lock().is_gathering();
        assert!(!is_gathering(), "there is nothing to wait with");
        post(Lane::Unhurried);
        assert!(is_gathering());
        for lane in [Lane::Ordinary, Lane::Late, Lane::Wake] {
            post(lane);
            assert!(!is_gathering(), "{lane:?} is not kept waiting");
            while queue.next().is_some() {}
            post(Lane::Unhurried);
            assert!(is_gathering(), "those before it were taken along");
        }
        for _ in 1..AT_ONCE {
            assert!(is_gathering());
            post(Lane::Unhurried);
        }
        assert!(!is_gathering(), "more would not fit");
        assert_eq!(queue.drain().len(), AT_ONCE);
        post(Lane::Unhurried);
        queue.lock().is_closed = true;
        assert!(!is_gathering(), "nobody else will come");
    }
}
