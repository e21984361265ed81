//! Chance from a seed.
//!
//! Each draw depends on the seed, the worker, what is drawn and how often that was drawn before, and on nothing
//! else: one more worker, or calls in another order, leave everybody else's fate as it was. So a failing seed
//! stays failing while a scenario is being cut down.

use std::time::Duration;

use super::spec::{Op, Span};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance {
    seed: u64,
}

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The `nth` draw for an operation of a worker.
    pub(crate) fn draw(self, worker: &str, op: Op, nth: u64) -> u64 {
        let name = worker.bytes().fold(self.seed, |sum, byte| splitmix64(sum ^ u64::from(byte)));
        splitmix64(splitmix64(name ^ op as u64) ^ nth)
    }
}

/// A time within the span. Whole microseconds, as all of our time.
pub(crate) fn within(span: Span, drawn: u64) -> Duration {
    let room = span.at_most.saturating_sub(span.at_least).as_micros();
    let room = u64::try_from(room).unwrap_or(u64::MAX - 1);
    span.at_least + Duration::from_micros(drawn % (room + 1))
}

/// Steele, Lea and Flood's generator: one step is a good hash.
fn splitmix64(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        // The first values from seed 1234567, as published with the reference implementation.
        let mut state = 1_234_567_u64;
        let mut next = || {
            let value = splitmix64(state);
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            value
        };
        assert_eq!(
            [next(), next(), next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn a_draw_depends_on_its_own_past_alone() {
        let chance = Chance::new(7);
        assert_eq!(chance.draw("a", Op::Freeze, 3), chance.draw("a", Op::Freeze, 3));
        let others =
            [chance.draw("b", Op::Freeze, 3), chance.draw("a", Op::Thaw, 3), chance.draw("a", Op::Freeze, 4)];
        assert!(!others.contains(&chance.draw("a", Op::Freeze, 3)));
        assert_ne!(Chance::new(8).draw("a", Op::Freeze, 3), chance.draw("a", Op::Freeze, 3));
    }

    #[test]
    fn a_span_includes_both_ends() {
        let span = Span::between(Duration::from_micros(5), Duration::from_micros(7));
        let drawn: std::collections::BTreeSet<_> = (0..9).map(|n| within(span, n).as_micros()).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(within(Span::exactly(Duration::from_secs(1)), u64::MAX), Duration::from_secs(1));
    }
}
