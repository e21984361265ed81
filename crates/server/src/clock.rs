//! The clock, injected: everything in the server that wants to know the time asks this.
//!
//! The system's clock is the one place in the server that reads the machine's. It runs on the monotonic clock
//! and therefore never goes back: whoever sets the machine's clock back finds Drowse ahead of it until the next
//! start, and whoever sets it forward finds Drowse following at the next look. Either is a jump, and a jump
//! engages the brake.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use drowse_core::Timestamp;
use tokio::sync::oneshot;

/// A jump of the machine's clock below this is an adjustment, and none of our business.
const JUMP: Duration = Duration::from_secs(2);

/// What time it is. Cheap to clone; all clones are the same clock.
#[derive(Clone)]
pub struct Clock(Kind);

#[derive(Clone)]
enum Kind {
    System(Arc<Mutex<System>>),
    Manual(Arc<Manual>),
}

/// The machine's clock, without its way back.
struct System {
    started: Instant,
    base: Timestamp,
    /// By how much the machine's clock is known to be behind ours, in microseconds.
    known_behind: i64,
}

/// A clock that stands still until it is set.
struct Manual(Mutex<Still>);

struct Still {
    now: Timestamp,
    /// Who waits until when. They are woken in the order of their times, and of their coming: a test that is run
    /// again takes the same way.
    waits: BTreeMap<(Timestamp, u64), oneshot::Sender<()>>,
    next_wait: u64,
}

impl Manual {
    fn lock(&self) -> MutexGuard<'_, Still> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, now: Timestamp) {
        let mut still = self.lock();
        still.now = still.now.max(now);
        while let Some(first) = still.waits.first_entry()
            && first.key().0 <= now
        {
            // Whoever has stopped waiting is not there to be told.
            let _ = first.remove().send(());
        }
    }

    async fn wait_until(&self, at: Timestamp) {
        let (told, wait) = {
            let mut still = self.lock();
            if still.now >= at {
                return;
            }
            let (tell, told) = oneshot::channel();
            let key = (at, still.next_wait);
            still.next_wait += 1;
            still.waits.insert(key, tell);
            (told, Wait { manual: self, key })
        };
        // The other end is kept in the list until the time has come.
        let _ = told.await;
        drop(wait);
    }
}

/// An entry in the list of those who wait, for as long as they do.
struct Wait<'a> {
    manual: &'a Manual,
    key: (Timestamp, u64),
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.manual.lock().waits.remove(&self.key);
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the injected clock that all others ask")]
impl System {
    fn new() -> Self {
        Self { started: Instant::now(), base: wall(), known_behind: 0 }
    }

    fn now(&self) -> Timestamp {
        self.base + Instant::now().duration_since(self.started)
    }

    fn jumped(&mut self) -> Option<Duration> {
        let ours = self.now().as_micros();
        let behind = ours.saturating_sub(wall().as_micros());
        let by = Duration::from_micros(behind.saturating_sub(self.known_behind).unsigned_abs());
        if by < JUMP {
            return None;
        }
        if behind < 0 {
            self.base = self.base + Duration::from_micros(behind.unsigned_abs());
        }
        self.known_behind = behind.max(0);
        Some(by)
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the injected clock that all others ask")]
fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::EPOCH + since
}

impl Clock {
    /// The machine's.
    pub fn system() -> Self {
        Self(Kind::System(Arc::new(Mutex::new(System::new()))))
    }

    /// One for tests.
    pub fn manual(now: Timestamp) -> Self {
        let still = Still { now, waits: BTreeMap::new(), next_wait: 0 };
        Self(Kind::Manual(Arc::new(Manual(Mutex::new(still)))))
    }

    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::System(system) => system.lock().unwrap_or_else(PoisonError::into_inner).now(),
            Kind::Manual(manual) => manual.lock().now,
        }
    }

    /// By how much the machine's clock has jumped since this was last asked, if it has. A jump forward is
    /// followed, one back is not.
    pub fn jumped(&self) -> Option<Duration> {
        match &self.0 {
            Kind::System(system) => system.lock().unwrap_or_else(PoisonError::into_inner).jumped(),
            Kind::Manual(_) => None,
        }
    }

    /// Waits until `at`.
    pub async fn sleep_until(&self, at: Timestamp) {
        match &self.0 {
            Kind::System(_) => {
                // In a loop: a timer may be a moment early, and the clock may be set meanwhile.
                while self.now() < at {
                    tokio::time::sleep(at.since(self.now())).await;
                }
            }
            Kind::Manual(manual) => manual.wait_until(at).await,
        }
    }

    /// The clock as the drivers want it.
    pub fn reader(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let clock = self.clone();
        Arc::new(move || clock.now())
    }

    /// Sets a manual clock. Time does not go back.
    pub fn set(&self, now: Timestamp) {
        if let Kind::Manual(manual) = &self.0 {
            manual.set(now);
        }
    }

    /// The earliest instant for which somebody waits at a manual clock.
    pub fn next_wait(&self) -> Option<Timestamp> {
        match &self.0 {
            Kind::System(_) => None,
            Kind::Manual(manual) => manual.lock().waits.keys().next().map(|(at, _)| *at),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_clock_does_not_go_back() {
        let clock = Clock::system();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert_eq!(clock.jumped(), None);
    }

    #[test]
    fn a_jump_is_told_once_and_followed_forward_only() {
        let mut system = System::new();
        system.base = system.base - Duration::from_mins(1);
        assert!(system.jumped().is_some_and(|by| by >= Duration::from_secs(59)));
        assert_eq!(system.jumped(), None);
        assert!(system.now() >= wall() - Duration::from_secs(1), "a jump forward is followed");

        let ahead = system.now();
        system.base = system.base + Duration::from_mins(1);
        assert!(system.jumped().is_some());
        assert_eq!(system.jumped(), None);
        assert!(system.now() >= ahead + Duration::from_secs(59), "time went back");
    }

    #[tokio::test]
    async fn a_manual_clock_wakes_those_whose_time_has_come() {
        let clock = Clock::manual(Timestamp::from_secs(10));
        let at = Timestamp::from_secs(20);
        let mut waiting = std::pin::pin!(clock.sleep_until(at));
        assert!(futures_poll(waiting.as_mut()).await.is_none());
        assert_eq!(clock.next_wait(), Some(at));
        clock.set(Timestamp::from_secs(5));
        assert_eq!(clock.now(), Timestamp::from_secs(10), "time went back");
        clock.set(at);
        waiting.await;
        assert_eq!(clock.next_wait(), None);
    }

    async fn futures_poll<F: Future>(future: F) -> Option<F::Output> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = std::future::ready(()) => None,
        }
    }
}
