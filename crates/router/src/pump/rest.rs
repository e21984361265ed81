//! A moment's rest where a few come at a time.
//!
//! A pump that is quicker than those on either side of it finds one or two sockets at each look, and pays for each look;
//! and so do they, who wake it time and again. Where the last look found several, a rest of some microseconds has more
//! gather: a request and the end behind it are one event then and not two. Where it found many they gather by
//! themselves. See `docs/decisions/0025-rest-where-few-come.md` for what that is worth. Few visitors never wait for it: see
//! `super::crowd`.

use std::num::NonZeroU64;
use std::ops::Range;

use rustix::event::Timespec;
use rustix::thread::{ClockId, clock_nanosleep_relative, set_current_timer_slack};

/// So many sockets at one look are worth a rest. Fewer come to somebody who is alone.
const FEW: Range<usize> = 3..5;

/// So many are, where connections come and go: each of those speaks several times, and in a hurry.
const FEW_WITH_NEWCOMERS: Range<usize> = 4..12;

/// How long it takes. A request through a busy proxy takes a thousand.
const LASTS: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000 };

/// How late a timer of this thread may be, in nanoseconds. Usually that is more than the rest itself.
const SLACK: u64 = 1_000;

/// How a thread rests.
#[derive(Debug)]
pub(super) struct Rest {
    is_short: bool,
}

impl Rest {
    /// To be called by the thread itself.
    pub(super) fn begin() -> Self {
        // If the kernel does not grant it, a rest would be three times as long as it should be.
        Self { is_short: set_current_timer_slack(NonZeroU64::new(SLACK)).is_ok() }
    }

    /// Rests, if that is worth it after a look that found so many.
    pub(super) fn after(&self, found: usize, with_newcomers: bool) {
        if self.is_short && is_worth_it(found, with_newcomers) {
            // Ended early, it was shorter.
            let _ = clock_nanosleep_relative(ClockId::Monotonic, &LASTS);
        }
    }
}

fn is_worth_it(found: usize, with_newcomers: bool) -> bool {
    let few = if with_newcomers { FEW_WITH_NEWCOMERS } else { FEW };
    few.contains(&found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_rests_who_serves_one_visitor_or_has_much_to_do() {
        for with_newcomers in [false, true] {
            // A visitor has two sockets.
            assert!(!(0..=2).any(|found| is_worth_it(found, with_newcomers)));
            assert!(!(12..=super::super::EVENTS).any(|found| is_worth_it(found, with_newcomers)));
            assert!(is_worth_it(4, with_newcomers));
        }
        assert!(is_worth_it(8, true) && !is_worth_it(8, false));
    }
}
