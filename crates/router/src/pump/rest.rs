//! A moment's rest while there is much to do.
//!
//! A pump that is quicker than those on either side of it finds one or two sockets at each look, and pays for each look;
//! and so do they, who wake it time and again. Where the last look found several, a rest of some microseconds has more
//! gather: a request and the end behind it are one event then and not two. See
//! `docs/decisions/0023-a-moments-rest.md` for what that is worth. A single visitor never waits for it.

use std::num::NonZeroU64;

use rustix::event::Timespec;
use rustix::thread::{ClockId, clock_nanosleep_relative, set_current_timer_slack};

/// So many at one look are a crowd that is worth a rest. Fewer come to somebody who is alone, and where more come there is
/// always more to do: a thread that is never done would only lose by it.
const CROWD: std::ops::Range<usize> = 4..48;

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

    /// Rests, if the last look has found a crowd.
    pub(super) fn after(&self, found: usize) {
        if self.is_short && CROWD.contains(&found) {
            // Ended early, it was shorter.
            let _ = clock_nanosleep_relative(ClockId::Monotonic, &LASTS);
        }
    }
}
