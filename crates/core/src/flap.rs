//! The flap guard: a worker that is put to sleep and woken again and again is left awake for longer.
//!
//! After five sleeps in a row that a wake undid within one idle timeout, the timeout counts double, after
//! the sixth four times, from the seventh on eight times. One sleep that outlasts the timeout proves that
//! sleeping pays again, and the count starts afresh.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Fewer in a row than this are chance: somebody came back from lunch.
const PATIENCE: u32 = 5;

/// More than this would keep a worker with a timeout of an hour awake for days.
const LARGEST_MULTIPLIER: u32 = 8;

/// How often in a row sleep did not pay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flap {
    /// Sleeps in a row, each undone by a wake within one idle timeout.
    pub undone_in_a_row: u32,
}

impl Flap {
    /// A sleep is over.
    ///
    /// `idle_timeout` is the one that policy gives, not its multiple: else the guard would move its own goal.
    /// `by_wake` says whether a connection (or an allowed lease) ended the sleep. A person who resumes early
    /// says nothing about the traffic, nor does a schedule or the outside: then the count stands.
    #[must_use]
    pub const fn woke(self, slept_for: Duration, idle_timeout: Duration, by_wake: bool) -> Flap {
        // Exactly one timeout outlasts it: as elsewhere, a time that is reached is over.
        let outlasted = slept_for.as_nanos() >= idle_timeout.as_nanos();
        match (outlasted, by_wake) {
            (true, _) => Flap { undone_in_a_row: 0 },
            (false, true) => Flap { undone_in_a_row: self.undone_in_a_row.saturating_add(1) },
            (false, false) => self,
        }
    }

    /// How many times its length the idle timeout counts.
    pub const fn multiplier(self) -> u32 {
        match self.undone_in_a_row.checked_sub(PATIENCE) {
            None => 1,
            Some(0) => 2,
            Some(1) => 4,
            Some(_) => LARGEST_MULTIPLIER,
        }
    }

    /// The idle timeout as the guard has it.
    pub const fn stretched(self, idle_timeout: Duration) -> Duration {
        idle_timeout.saturating_mul(self.multiplier())
    }

    /// Whether the guard is at work, as `explain` shows it.
    pub const fn is_flapping(self) -> bool {
        self.multiplier() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIMEOUT: Duration = Duration::from_mins(1);
    const SHORT: Duration = Duration::from_secs(59);

    fn undone(times: u32) -> Flap {
        (0..times).fold(Flap::default(), |flap, _| flap.woke(SHORT, TIMEOUT, true))
    }

    #[test]
    fn the_fifth_sleep_undone_in_a_row_doubles_the_timeout() {
        let seen: Vec<u32> = (0..=9).map(|times| undone(times).multiplier()).collect();
        assert_eq!(seen, [1, 1, 1, 1, 1, 2, 4, 8, 8, 8]);
        assert_eq!(undone(6).stretched(TIMEOUT), Duration::from_mins(4));
        assert_eq!(undone(9).stretched(Duration::MAX), Duration::MAX);
        assert!(!undone(4).is_flapping() && undone(5).is_flapping());
    }

    #[test]
    fn a_sleep_that_outlasts_one_timeout_ends_it() {
        let flapping = undone(7);
        let tick = Duration::from_micros(1);
        assert_eq!(flapping.woke(TIMEOUT.saturating_sub(tick), TIMEOUT, true).undone_in_a_row, 8);
        assert_eq!(flapping.woke(TIMEOUT, TIMEOUT, true), Flap::default());
        assert_eq!(flapping.woke(TIMEOUT + tick, TIMEOUT, false), Flap::default());
    }

    #[test]
    fn a_persons_short_resume_neither_counts_nor_forgives() {
        assert_eq!(undone(4).woke(SHORT, TIMEOUT, false), undone(4));
        assert_eq!(undone(6).woke(SHORT, TIMEOUT, false).multiplier(), 4);
    }

    #[test]
    fn the_count_does_not_overflow() {
        let flap = Flap { undone_in_a_row: u32::MAX }.woke(SHORT, TIMEOUT, true);
        assert_eq!(flap.multiplier(), 8);
    }

    proptest! {
        #[test]
        fn the_multiplier_is_always_one_two_four_or_eight(
            sleeps in prop::collection::vec((0u64..120, any::<bool>()), 0..40),
        ) {
            let flap = sleeps.into_iter().fold(Flap::default(), |flap, (secs, by_wake)| {
                flap.woke(Duration::from_secs(secs), TIMEOUT, by_wake)
            });
            prop_assert!(matches!(flap.multiplier(), 1 | 2 | 4 | 8));
        }
    }
}
