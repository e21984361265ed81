//! How many are in a hurry at once.
//!
//! What one look finds does not tell: a few sockets at a time are many who speak in turn, or all there are. The former
//! gather while the pump rests; the latter have nothing to say before they are answered, and lose what it takes.

use std::time::Duration;

use drowse_core::Timestamp;

/// So many who spoke in one round are a crowd. See `docs/decisions/0028-a-rest-takes-a-crowd.md` for how both were found.
const CROWD: u32 = 24;

/// And so many must be here: where connections come and go, a few clients make many in one round.
const AT_ONCE: usize = 12;

/// How long a round is. A crowd has said something several times in it.
const ROUND: Duration = Duration::from_millis(2);

/// Who came longer ago than that says nothing about who is here.
const STALE: Duration = Duration::from_millis(8);

/// A round, of which nobody counts twice. The first of all is nobody's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Round(u32);

/// Counts who speaks.
#[derive(Debug)]
pub(super) struct Crowd {
    round: Round,
    began_at: Timestamp,
    in_this: u32,
    in_last: u32,
}

impl Crowd {
    pub(super) const fn new(now: Timestamp) -> Self {
        Self { round: Round(1), began_at: now, in_this: 0, in_last: 0 }
    }

    /// To be told the time now and then.
    pub(super) fn at(&mut self, now: Timestamp) {
        let lasted = now.since(self.began_at);
        if lasted >= ROUND {
            self.in_last = if lasted < STALE { self.in_this } else { 0 };
            self.in_this = 0;
            self.round = Round(self.round.0.wrapping_add(1));
            self.began_at = now;
        }
    }

    /// Somebody speaks, who did so before in that round.
    pub(super) fn heard(&mut self, before: &mut Round) {
        if *before != self.round {
            *before = self.round;
            self.in_this += 1;
        }
    }

    /// Whether it is one, of the connections that are here.
    pub(super) const fn is_one(&self, here: usize) -> bool {
        self.in_last >= CROWD && here >= AT_ONCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 100;

    /// A crowd, after a round in which so many spoke thrice.
    fn after_a_round(of: usize, lasted: Duration) -> Crowd {
        let start = Timestamp::from_secs(1_000);
        let mut crowd = Crowd::new(start);
        let mut heard = vec![Round::default(); of];
        for _ in 0..3 {
            for before in &mut heard {
                crowd.heard(before);
            }
        }
        crowd.at(start + lasted);
        crowd
    }

    #[test]
    fn a_few_who_speak_again_and_again_are_no_crowd() {
        assert!(!after_a_round(23, ROUND).is_one(MANY));
        assert!(after_a_round(24, ROUND).is_one(MANY));
    }

    #[test]
    fn many_one_after_another_are_no_crowd_unless_as_many_are_here() {
        assert!(!after_a_round(MANY, ROUND).is_one(11));
        assert!(after_a_round(MANY, ROUND).is_one(12));
    }

    #[test]
    fn a_crowd_is_known_after_a_round_and_forgotten_after_a_pause() {
        assert!(!after_a_round(MANY, ROUND / 2).is_one(MANY), "the round is not over");
        assert!(!after_a_round(MANY, STALE).is_one(MANY), "they came long ago");
        let mut crowd = after_a_round(MANY, ROUND);
        crowd.at(Timestamp::from_secs(1_000) + ROUND * 2);
        assert!(!crowd.is_one(MANY), "nobody spoke since");
    }
}
