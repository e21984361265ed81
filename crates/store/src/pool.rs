//! Connections that several threads take turns with.
//!
//! Wakes have a lane of their own: somebody waits at the door for them, while a check or a flush can come a
//! moment later. Not for ever, though: what doors may pass on rests on a session that is renewed here, too. Within a lane
//! it is first come, first served; a plain mutex would let a busy thread take its lock again and again while others
//! starve.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Who goes first when several wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// A wake: somebody waits at the door.
    Wake,
    /// Everything else.
    Ordinary,
    /// The same, for whom nobody waits: where there is one writer, it comes with others.
    Unhurried,
    /// The record of what has been done already: where there is one writer, what is due goes ahead of it, but not for
    /// ever.
    Late,
}

/// How many wakes go ahead of everything else before one of that has its turn: some milliseconds of work.
pub(crate) const WAKES_AHEAD: u32 = 16;

pub(crate) struct Pool<C> {
    state: Mutex<State<C>>,
}

/// Connections are idle only while nobody waits.
struct State<C> {
    idle: Vec<C>,
    waiting: [VecDeque<Arc<Seat<C>>>; 2],
    /// How many wakes have gone ahead of others who waited.
    wakes_ahead: u32,
}

/// Where somebody waits. Each has a bell of its own: of a hundred who wait, only the next is woken.
struct Seat<C> {
    given: Mutex<Option<C>>,
    bell: Condvar,
}

impl<C> Pool<C> {
    pub(crate) fn new(connections: Vec<C>) -> Self {
        Self { state: Mutex::new(State { idle: connections, waiting: Default::default(), wakes_ahead: 0 }) }
    }

    /// Waits for a connection. There is no time limit here: whoever has one is bound by the limits of the
    /// database itself.
    pub(crate) fn take(&self, lane: Lane) -> Taken<'_, C> {
        let seat = {
            let mut state = self.state();
            if let Some(connection) = state.idle.pop() {
                return Taken { pool: self, connection: Some(connection) };
            }
            let seat = Arc::new(Seat { given: Mutex::new(None), bell: Condvar::new() });
            // Whoever is not written by the one writer comes in turn.
            let lane = if lane == Lane::Wake { Lane::Wake } else { Lane::Ordinary };
            state.waiting[lane as usize].push_back(Arc::clone(&seat));
            seat
        };
        let mut given = seat.given.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(connection) = given.take() {
                return Taken { pool: self, connection: Some(connection) };
            }
            given = seat.bell.wait(given).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A connection, if one is free.
    pub(crate) fn try_take(&self) -> Option<Taken<'_, C>> {
        let connection = self.state().idle.pop()?;
        Some(Taken { pool: self, connection: Some(connection) })
    }

    /// A connection more, which comes back here.
    pub(crate) fn lend(&self, connection: C) -> Taken<'_, C> {
        Taken { pool: self, connection: Some(connection) }
    }

    /// How many wait for a connection.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.iter().map(VecDeque::len).sum()
    }

    fn give_back(&self, connection: C) {
        let mut state = self.state();
        let Some(seat) = state.next() else {
            state.idle.push(connection);
            return;
        };
        drop(state);
        *seat.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        seat.bell.notify_one();
    }

    // A panic while the lock is held cannot leave the lists half changed.
    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> State<C> {
    fn next(&mut self) -> Option<Arc<Seat<C>>> {
        let [wakes, others] = &mut self.waiting;
        if self.wakes_ahead < WAKES_AHEAD
            && let Some(seat) = wakes.pop_front()
        {
            self.wakes_ahead += u32::from(!others.is_empty());
            return Some(seat);
        }
        self.wakes_ahead = 0;
        others.pop_front().or_else(|| wakes.pop_front())
    }
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// A connection that goes back when it is dropped, also when a panic drops it.
pub(crate) struct Taken<'p, C> {
    pool: &'p Pool<C>,
    connection: Option<C>,
}

const TAKEN: &str = "it is given back only when dropped";

impl<C> Deref for Taken<'_, C> {
    type Target = C;
    fn deref(&self) -> &C {
        self.connection.as_ref().expect(TAKEN)
    }
}

impl<C> DerefMut for Taken<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.connection.as_mut().expect(TAKEN)
    }
}

impl<C> Drop for Taken<'_, C> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.give_back(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn wakes_go_first_and_otherwise_it_is_first_come_first_served() {
        let pool = Arc::new(Pool::new(vec![()]));
        let held = pool.take(Lane::Ordinary);
        let (say, said) = mpsc::channel();
        let mut threads = Vec::new();
        for (index, lane) in [Lane::Ordinary, Lane::Ordinary, Lane::Wake, Lane::Wake].into_iter().enumerate()
        {
            let (pool_, say) = (Arc::clone(&pool), say.clone());
            threads.push(thread::spawn(move || {
                let _taken = pool_.take(lane);
                say.send(index).unwrap();
            }));
            // They queue up one after the other.
            while pool.waiting() <= index {
                thread::yield_now();
            }
        }
        drop(held);
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(said.try_iter().collect::<Vec<_>>(), [2, 3, 0, 1]);
    }

    #[test]
    fn wakes_without_end_do_not_keep_others_waiting() {
        let seat = |n| Arc::new(Seat { given: Mutex::new(Some(n)), bell: Condvar::new() });
        let wakes = (0..40).map(seat).collect();
        let others = [100, 101].into_iter().map(seat).collect();
        let mut state = State { idle: Vec::new(), waiting: [wakes, others], wakes_ahead: 0 };
        let order: Vec<i32> = std::iter::from_fn(|| state.next()?.given.lock().unwrap().take()).collect();
        let turn = |who| order.iter().position(|next| *next == who);
        assert_eq!((turn(100), turn(101), order.len()), (Some(16), Some(33), 42));
    }

    #[test]
    fn who_does_not_want_to_wait_gets_only_what_is_free() {
        let pool = Pool::new(vec![7]);
        let held = pool.try_take().unwrap();
        assert!(pool.try_take().is_none());
        drop(held);
        assert_eq!(pool.try_take().as_deref(), Some(&7));
    }

    #[test]
    fn a_panic_gives_the_connection_back() {
        let pool = Arc::new(Pool::new(vec![7]));
        let other = Arc::clone(&pool);
        let outcome = thread::spawn(move || {
            let _taken = other.take(Lane::Ordinary);
            panic!("in the middle of a transaction");
        })
        .join();
        assert!(outcome.is_err());
        assert_eq!(*pool.take(Lane::Ordinary), 7);
    }
}
