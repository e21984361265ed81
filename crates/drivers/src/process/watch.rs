//! Notices at once when a process ends, and keeps output within its limit.
//!
//! One thread for the whole driver waits on the pidfds of all runs. A thread and not a task: children must be
//! reaped and output trimmed even while the runtime is busy or gone, and a pidfd needs no runtime.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use tokio::time::Instant;

use super::entry::Entry;
use super::{identity, output};
use crate::driver::Now;
use crate::hint::{Hint, Hints};

/// How often output is looked at.
const TIDY_EVERY: Duration = Duration::from_secs(1);

/// The event that is none of a process but ours: look at the flag.
const NUDGE: u64 = 0;

/// The thread, ended and waited for when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    epoll: OwnedFd,
    nudge: OwnedFd,
    watched: Mutex<Watched>,
    is_over: AtomicBool,
    /// Another looks after the workers: their records and their output are its alone.
    is_resting: AtomicBool,
    hints: Arc<Hints>,
    now: Now,
    log_limit: u64,
}

#[derive(Default)]
struct Watched {
    last_token: u64,
    by_token: BTreeMap<u64, (Arc<OwnedFd>, Option<Arc<Entry>>)>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("watched", &self.lock().by_token.len()).finish_non_exhaustive()
    }
}

impl Watch {
    pub(crate) fn start(hints: Arc<Hints>, now: Now, log_limit: u64) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let nudge = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &nudge, EventData::new_u64(NUDGE), EventFlags::IN)?;
        let watched = Mutex::default();
        let shared = Arc::new(Shared {
            epoll,
            nudge,
            watched,
            is_over: AtomicBool::new(false),
            is_resting: AtomicBool::new(false),
            hints,
            now,
            log_limit,
        });
        let thread = thread::Builder::new().name("drowse-watch".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run()
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Tells when the entry's run ends.
    pub(crate) fn watch(&self, entry: &Arc<Entry>, pidfd: Arc<OwnedFd>) -> io::Result<()> {
        self.shared.add(pidfd, Some(Arc::clone(entry)))
    }

    /// Reaps a child that nobody waits for. If even that fails it stays a zombie, which is harmless.
    pub(crate) fn reap(&self, pidfd: Arc<OwnedFd>) {
        let _ = self.shared.add(pidfd, None);
    }

    /// From now on only reaps children, which nobody else can.
    pub(crate) fn rest(&self) {
        self.shared.is_resting.store(true, Ordering::Release);
    }

    /// No longer tells about this worker.
    pub(crate) fn unwatch(&self, entry: &Arc<Entry>) {
        let mut watched = self.shared.lock();
        watched.by_token.retain(|_, (pidfd, of)| {
            let stays = of.as_ref().is_none_or(|of| !Arc::ptr_eq(of, entry));
            if !stays {
                let _ = epoll::delete(&self.shared.epoll, pidfd.as_fd());
            }
            stays
        });
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.nudge();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nudge(&self) {
        // It can fail only because many nudges are waiting already.
        let _ = rustix::io::write(&self.nudge, &1_u64.to_ne_bytes());
    }

    fn add(&self, pidfd: Arc<OwnedFd>, entry: Option<Arc<Entry>>) -> io::Result<()> {
        let mut watched = self.lock();
        watched.last_token += 1;
        let token = watched.last_token;
        // One-shot: the lock is not held between the event and the removal.
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        epoll::add(&self.epoll, pidfd.as_fd(), EventData::new_u64(token), flags)?;
        watched.by_token.insert(token, (pidfd, entry));
        drop(watched);
        self.nudge();
        Ok(())
    }

    fn run(&self) {
        // If this thread ends before its time, nobody notices ends any more: then look at everybody.
        let _last_words = LastWords(self);
        let mut events = Vec::with_capacity(64);
        let mut tidy_at = Instant::now() + TIDY_EVERY;
        while !self.is_over.load(Ordering::Acquire) {
            let is_busy = !self.lock().by_token.is_empty();
            let wait = is_busy.then(|| timespec(tidy_at.saturating_duration_since(Instant::now())));
            match epoll::wait(&self.epoll, spare_capacity(&mut events), wait.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    NUDGE => drop(rustix::io::read(&self.nudge, &mut [0_u8; 8])),
                    token => self.ended(token),
                }
            }
            if Instant::now() >= tidy_at {
                self.tidy();
                tidy_at = Instant::now() + TIDY_EVERY;
            }
        }
    }

    fn ended(&self, token: u64) {
        let Some((pidfd, entry)) = self.lock().by_token.remove(&token) else { return };
        let _ = epoll::delete(&self.epoll, pidfd.as_fd());
        match entry.filter(|_| !self.is_resting.load(Ordering::Acquire)) {
            Some(entry) => {
                if let Some(hint) = entry.tell_end((self.now)()) {
                    self.hints.push(hint);
                }
            }
            None => drop(identity::reap(&pidfd)),
        }
    }

    fn tidy(&self) {
        if self.is_resting.load(Ordering::Acquire) {
            return;
        }
        let entries: Vec<Arc<Entry>> =
            self.lock().by_token.values().filter_map(|(_, entry)| entry.clone()).collect();
        for entry in entries {
            let Some(log) = entry.lock().run.as_ref().map(|run| run.record.log.clone()) else { continue };
            // A disk too full for the copy is met again in a second.
            let _ = output::trim(&log, self.log_limit);
        }
    }
}

struct LastWords<'a>(&'a Shared);

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        if !self.0.is_over.load(Ordering::Acquire) {
            self.0.hints.push(Hint::Lost);
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    // Rounded up: to wake a moment too early would only mean to wait again.
    let duration = duration + Duration::from_nanos(1);
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
