//! The clock, injected: everything in the server that wants to know the time asks this.
//!
//! There are three. With an embedded database it is the machine's; with PostgreSQL it is the database's, because
//! all that share it must agree; in tests it stands still until it is set. The first two run on the monotonic
//! clock and never go back. A jump of what they follow, or an answer of the database that took too long, is a
//! doubt: every age may be wrong, so the brake is put on before it is followed.

mod manual;
mod steady;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use drowse_core::Timestamp;
use drowse_store::{Store, StoreError, View};
use manual::Manual;
use steady::{Sample, Steady};

pub use steady::Doubt;

/// What time it is. Cheap to clone; all clones are the same clock.
#[derive(Clone)]
pub struct Clock(Kind);

#[derive(Clone)]
enum Kind {
    System(Arc<Mutex<Steady>>),
    Database(Arc<Mutex<Database>>),
    Manual(Arc<Manual>),
}

/// The database's clock, with what it last said.
struct Database {
    steady: Steady,
    sample: Option<Sample>,
}

#[expect(clippy::disallowed_methods, reason = "this is the injected clock that all others ask")]
fn instant() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "this is the injected clock that all others ask")]
fn wall() -> Sample {
    let asked = instant();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Sample { asked, answered: instant(), time: Timestamp::EPOCH + since }
}

/// Asks the database, if it has a clock.
fn ask(view: &View<'_>) -> Result<Option<Sample>, StoreError> {
    let asked = instant();
    let time = view.database_time()?;
    let answered = instant();
    Ok(time.map(|time| Sample { asked, answered, time }))
}

impl Clock {
    /// The machine's.
    pub fn system() -> Self {
        Self(Kind::System(Arc::new(Mutex::new(Steady::new(wall())))))
    }

    /// The one that counts for a store: its own, if it has one, else the machine's. Blocks.
    pub fn of(store: &Store) -> Result<Self, StoreError> {
        let first = store.read(|view| {
            // The first question on a connection is the slowest, and its answer would be the one that counts.
            ask(view)?;
            ask(view)
        })?;
        Ok(first.map_or_else(Self::system, |first| {
            let database = Database { steady: Steady::new(first), sample: None };
            Self(Kind::Database(Arc::new(Mutex::new(database))))
        }))
    }

    /// One for tests.
    pub fn manual(now: Timestamp) -> Self {
        Self(Kind::Manual(Arc::new(Manual::new(now))))
    }

    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Kind::System(steady) => lock(steady).now(instant()),
            Kind::Database(database) => lock(database).steady.now(instant()),
            Kind::Manual(manual) => manual.now(),
        }
    }

    /// Whether this clock must be compared with the store's from time to time.
    pub(crate) const fn is_of_the_store(&self) -> bool {
        matches!(self.0, Kind::Database(_))
    }

    /// Asks the database what time it is, for the next [`Clock::doubt`].
    pub(crate) fn measure(&self, view: &View<'_>) -> Result<(), StoreError> {
        if let Kind::Database(database) = &self.0 {
            let sample = ask(view)?;
            lock(database).sample = sample;
        }
        Ok(())
    }

    /// Compares this clock with what it follows. A jump is told each time until it is followed.
    pub fn doubt(&self) -> Option<Doubt> {
        match &self.0 {
            Kind::System(steady) => lock(steady).look(wall()),
            Kind::Database(database) => {
                let mut database = lock(database);
                let sample = database.sample.take()?;
                database.steady.look(sample)
            }
            Kind::Manual(_) => None,
        }
    }

    /// Goes along with the jump that was told. To be called when nobody acts on ages any more.
    pub fn follow(&self) {
        match &self.0 {
            Kind::System(steady) => lock(steady).follow(),
            Kind::Database(database) => lock(database).steady.follow(),
            Kind::Manual(_) => {}
        }
    }

    /// Waits until `at`.
    pub async fn sleep_until(&self, at: Timestamp) {
        match &self.0 {
            Kind::System(_) | Kind::Database(_) => {
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
            Kind::System(_) | Kind::Database(_) => None,
            Kind::Manual(manual) => manual.next_wait(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn the_systems_clock_does_not_go_back_and_is_the_machines() {
        let clock = Clock::system();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert_eq!(clock.doubt(), None);
        assert!(wall().time.since(clock.now()) < std::time::Duration::from_secs(1));
    }

    #[test]
    fn an_embedded_database_has_no_clock_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let options = drowse_store::Options::new(drowse_store::Epoch(1));
        let store = Store::open("sqlite://drowse.db", folder.path(), &options).unwrap();
        assert!(!Clock::of(&store).unwrap().is_of_the_store());
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
