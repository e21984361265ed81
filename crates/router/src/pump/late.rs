//! Doors whose books are written a moment later: whoever has just got a head start is served first.
//!
//! On a small machine the worker that wakes up, the pump and the control plane are after the same processors. What
//! the door has done is noted already, and nobody can decide anything about the worker without writing it down first,
//! so the keeper loses nothing by coming after the answer, or after a millisecond.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;

use super::conn::Side;
use super::{Key, Pump};
use crate::door::Door;

/// How long the books wait at most.
const LATE_BY: Duration = Duration::from_millis(1);

/// For how long an answer is looked for without falling asleep over it: about as long as a thawed worker needs, and
/// a pump that has fallen asleep needs as long again to be woken.
const LOOKS_FOR: Duration = Duration::from_micros(300);

/// And how often: the clock may stand still while it is put right.
const LOOKS: u32 = 500;

/// A door whose keeper is to come.
#[derive(Debug)]
pub(super) struct Late {
    key: Key,
    door: Arc<Door>,
    since: Timestamp,
    /// How many rounds it has been late for.
    rounds: u32,
    is_answered: bool,
}

/// How long to wait for something to happen, as far as these are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    Long,
    Until(Timestamp),
    None,
}

impl Pump {
    /// Somebody got a head start.
    pub(super) fn be_late(&mut self, key: Key, door: Arc<Door>) {
        self.late.push(Late { key, door, since: self.now, rounds: 0, is_answered: false });
    }

    /// A worker stirred.
    pub(super) fn note_answer(&mut self, slot: u32, side: Side) {
        if side == Side::Worker {
            for late in self.late.iter_mut().filter(|late| late.key.slot == slot) {
                late.is_answered = true;
            }
        }
    }

    /// Has the keepers come of those who have been served or have waited long enough.
    pub(super) fn catch_up(&mut self) {
        if self.late.iter().any(|late| late.is_answered) {
            // Whoever was answered is in line behind this thread as a rule, and the keeper's would go ahead of them.
            std::thread::yield_now();
        }
        let (now, conns) = (self.now, &mut self.conns);
        self.late.retain_mut(|late| {
            late.rounds += 1;
            let is_due = now.since(late.since) >= LATE_BY || late.rounds > LOOKS + 1;
            let waits = !late.is_answered && !is_due && conns.of(late.key).is_some();
            if !waits {
                late.door.poke();
            }
            waits
        });
    }

    /// There is no later.
    pub(super) fn catch_up_at_last(&mut self) {
        self.late.drain(..).for_each(|late| late.door.poke());
    }

    /// With more than one there is enough to do for others, and looking would only be in their way.
    pub(super) fn patience(&self) -> Patience {
        match self.late.as_slice() {
            [] => Patience::Long,
            [late] if self.now.since(late.since) < LOOKS_FOR && late.rounds < LOOKS => Patience::None,
            [first, ..] => Patience::Until(first.since + LATE_BY),
        }
    }
}
