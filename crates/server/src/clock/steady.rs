//! The machine's monotonic clock, led by another one: the machine's own, or the database's.
//!
//! Small differences are followed, forward at once and back by standing still, so that time never goes back. A
//! large one is a jump: somebody set the other clock, or this machine slept. It is told first and followed only
//! when whoever asked says so, because from that moment on every age is wrong. A jump forward is followed; one
//! back is not, and from then on the other clock is known to be behind by so much.

use std::time::{Duration, Instant};

use drowse_core::Timestamp;

/// A difference below this is an adjustment.
const JUMP: Duration = Duration::from_secs(2);

/// A question that took longer than this has no answer: nobody knows when in between it was given.
const SLOWEST: Duration = Duration::from_secs(1);

pub(super) struct Steady {
    started: Instant,
    /// What time it was when it started.
    base: Timestamp,
    /// The latest time that was told to anybody.
    told: Timestamp,
    /// By how much the other clock is known to be behind, in microseconds.
    known_behind: i64,
    /// A jump that was found and not yet followed: by how much the other clock is behind.
    jumped: Option<i64>,
}

/// What the other clock said: at some instant between the two, it was `time`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) asked: Instant,
    pub(super) answered: Instant,
    pub(super) time: Timestamp,
}

/// Why ages cannot be trusted just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The other clock differs from ours by this much more than it did.
    Jumped(Duration),
    /// It took so long to answer that its answer says nothing.
    Slow(Duration),
}

impl Steady {
    pub(super) const fn new(first: Sample) -> Self {
        // Not ahead of the other one: it had this time at the latest when it answered.
        let Sample { answered, time, .. } = first;
        Self { started: answered, base: time, told: time, known_behind: 0, jumped: None }
    }

    fn at(&self, instant: Instant) -> Timestamp {
        self.base + instant.saturating_duration_since(self.started)
    }

    pub(super) fn now(&mut self, instant: Instant) -> Timestamp {
        self.told = self.told.max(self.at(instant));
        self.told
    }

    /// Compares itself with the other clock. A doubt about a jump stays until it is followed.
    pub(super) fn look(&mut self, sample: Sample) -> Option<Doubt> {
        let took = sample.answered.saturating_duration_since(sample.asked);
        if took > SLOWEST {
            return Some(Doubt::Slow(took));
        }
        let behind = self.behind(sample, took);
        let more = behind.saturating_sub(self.known_behind);
        let by = Duration::from_micros(more.unsigned_abs());
        if by < JUMP {
            self.jumped = None;
            self.shift(more.saturating_neg());
            return None;
        }
        self.jumped = Some(behind);
        Some(Doubt::Jumped(by))
    }

    /// By how much the other clock is behind ours, at least; negative: ahead. When it was answered it was `time`
    /// or up to `took` later there: between these two no difference is known.
    fn behind(&self, sample: Sample, took: Duration) -> i64 {
        let ours = self.at(sample.answered).as_micros();
        let (earliest, latest) = (sample.time.as_micros(), (sample.time + took).as_micros());
        if ours < earliest { ours - earliest } else { (ours - latest).max(0) }
    }

    /// Goes along with the jump that was told, if it is one forward.
    pub(super) fn follow(&mut self) {
        let Some(behind) = self.jumped.take() else { return };
        if behind < 0 {
            self.shift(behind.saturating_neg());
        }
        self.known_behind = behind.max(0);
    }

    fn shift(&mut self, micros: i64) {
        let by = Duration::from_micros(micros.unsigned_abs());
        self.base = if micros < 0 { self.base - by } else { self.base + by };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Our clock, and another one that can be set. Time passes when it is told to.
    struct Pair {
        steady: Steady,
        instant: Instant,
        other: Timestamp,
    }

    const SEC: Duration = Duration::from_secs(1);
    const MS: Duration = Duration::from_millis(1);

    impl Pair {
        #[expect(clippy::disallowed_methods, reason = "any instant to count from")]
        fn new() -> Self {
            let (instant, other) = (Instant::now(), Timestamp::from_secs(1_000_000));
            let steady = Steady::new(Sample { asked: instant, answered: instant, time: other });
            Self { steady, instant, other }
        }

        fn pass(&mut self, time: Duration) {
            self.instant += time;
            self.other = self.other + time;
        }

        fn now(&mut self) -> Timestamp {
            self.steady.now(self.instant)
        }

        /// Asks the other clock; the way there and the way back take this long.
        fn look(&mut self, there: Duration, back: Duration) -> Option<Doubt> {
            let asked = self.instant;
            self.pass(there);
            let time = self.other;
            self.pass(back);
            self.steady.look(Sample { asked, answered: self.instant, time })
        }
    }

    #[test]
    fn it_goes_as_fast_as_the_machine_and_not_ahead_of_the_other() {
        let mut pair = Pair::new();
        for _ in 0..10 {
            assert_eq!(pair.look(3 * MS, 40 * MS), None);
            assert!(pair.now() <= pair.other, "it is ahead");
            assert!(pair.now() + 40 * MS >= pair.other, "it is further behind than the answer was");
            let before = pair.now();
            pair.pass(SEC);
            assert_eq!(pair.now(), before + SEC);
        }
    }

    #[test]
    fn a_small_difference_is_followed_and_time_never_goes_back() {
        let mut pair = Pair::new();
        pair.other = pair.other + 500 * MS;
        assert_eq!(pair.look(MS, MS), None);
        assert!(pair.now() + 2 * MS >= pair.other);

        let ahead = pair.now();
        pair.other = pair.other - SEC;
        assert_eq!(pair.look(MS, MS), None);
        assert_eq!(pair.now(), ahead, "it stands still until the other has caught up");
        pair.pass(900 * MS);
        assert_eq!(pair.now(), ahead);
        pair.pass(200 * MS);
        assert!(pair.now() > ahead && pair.now() <= pair.other + 2 * MS);
    }

    #[test]
    fn a_clock_that_goes_a_little_faster_or_slower_never_looks_like_a_jump() {
        for drift in [-1_i64, 1] {
            let mut pair = Pair::new();
            for _ in 0..10_000 {
                pair.pass(SEC);
                let off = Duration::from_micros(100);
                pair.other = if drift < 0 { pair.other - off } else { pair.other + off };
                assert_eq!(pair.look(MS, MS), None);
            }
            let apart = pair.now().since(pair.other).max(pair.other.since(pair.now()));
            assert!(apart <= 5 * MS, "{apart:?} apart");
        }
    }

    #[test]
    fn a_jump_forward_is_told_until_it_is_followed() {
        let mut pair = Pair::new();
        pair.other = pair.other + 3_600 * SEC;
        let before = pair.now();
        assert!(matches!(pair.look(MS, MS), Some(Doubt::Jumped(by)) if by >= 3_599 * SEC));
        assert!(pair.now() < before + SEC, "followed before anybody had put the brake on");
        assert!(matches!(pair.look(MS, MS), Some(Doubt::Jumped(_))));
        pair.steady.follow();
        assert!(pair.now() + SEC >= pair.other);
        assert_eq!(pair.look(MS, MS), None);
    }

    #[test]
    fn a_jump_back_is_told_and_not_followed() {
        let mut pair = Pair::new();
        let before = pair.now();
        pair.other = pair.other - 3_600 * SEC;
        assert!(matches!(pair.look(MS, MS), Some(Doubt::Jumped(_))));
        pair.steady.follow();
        assert_eq!(pair.look(MS, MS), None, "it is known");
        pair.pass(SEC);
        assert!(pair.now() >= before + SEC, "it must not stand still for an hour");
        pair.other = pair.other + 3_600 * SEC;
        assert!(matches!(pair.look(MS, MS), Some(Doubt::Jumped(_))), "set right again is a jump too");
        pair.steady.follow();
        assert!(pair.now() + SEC >= pair.other && pair.now() <= pair.other + SEC);
    }

    #[test]
    fn a_slow_answer_says_nothing() {
        let mut pair = Pair::new();
        pair.other = pair.other + 3_600 * SEC;
        let before = pair.now();
        assert_eq!(pair.look(2 * SEC, MS), Some(Doubt::Slow(2 * SEC + MS)));
        pair.steady.follow();
        assert!(pair.now() < before + 3 * SEC, "it followed an answer that says nothing");
        assert_eq!(pair.look(SEC, Duration::ZERO).map(|doubt| matches!(doubt, Doubt::Jumped(_))), Some(true));
    }
}
