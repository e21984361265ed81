//! Heartbeats: which ones count, and when the next one is wanted.
//!
//! A beat counts if it is of the run that was heard of last and newer than what that run said before.
//! Which of two runs is older is decided by the order in which *we* first heard of them: a guest's own
//! clock may say 1970 until its first time sync, and would then lock the worker out for good.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::Seen;
use crate::Timestamp;
use crate::id::BootId;

/// One heartbeat as it arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// The run that sent it.
    pub boot: BootId,
    /// Grows with every beat of one agent; zero says that the agent has just started.
    pub seq: u64,
    /// When it was received, on our clock.
    pub at: Timestamp,
}

/// What became of a heartbeat. All of them are acknowledged; only a fresh one changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accepted {
    /// The newest sign of life.
    Fresh,
    /// The first one of a run that was never heard of; it is the current run now.
    NewBoot,
    /// From a run that is over: it revives nobody.
    OldBoot,
    /// Already received; its acknowledgement was lost.
    Duplicate,
    /// Overtaken by a newer one of the same run.
    OutOfOrder,
}

impl Accepted {
    /// Whether it is a sign of life.
    pub const fn counts(self) -> bool {
        match self {
            Self::Fresh | Self::NewBoot => true,
            Self::OldBoot | Self::Duplicate | Self::OutOfOrder => false,
        }
    }
}

/// The run that is heard now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentBoot {
    /// Its identity.
    pub boot: BootId,
    /// When it was first heard.
    pub first_heard_at: Timestamp,
    /// The sequence number of its newest beat.
    pub seq: u64,
}

/// The runs of a worker as far as its heartbeats tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boots {
    /// The run that is heard now; none before the first beat and after the run ended.
    pub current: Option<CurrentBoot>,
    /// Runs that are over, oldest first.
    pub retired: Vec<BootId>,
}

/// How many ended runs are remembered. A beat of a forgotten one would be taken for news; but a worker that
/// ends its runs so fast is stopped as a crash loop after five, and no beat is under way that long.
const RETIRED_KEPT: usize = 16;

/// No beat is under way for longer than this. One whose number is not higher but that comes later is not
/// late: an agent that started again without a new boot, or one that repeats what nobody acknowledged.
/// Shorter than any sensible threshold, so that neither is ever taken for silence.
const LATEST_STRAGGLER: Duration = Duration::from_mins(1);

impl Boots {
    /// The current run is over (stopped, or replaced by a new one before it spoke). Its beats that are still
    /// under way count no more.
    pub fn retire_current(&mut self) {
        if let Some(ended) = self.current.take() {
            self.retire(ended.boot);
        }
    }

    fn retire(&mut self, boot: BootId) {
        self.retired.retain(|known| *known != boot);
        self.retired.push(boot);
        if self.retired.len() > RETIRED_KEPT {
            self.retired.remove(0);
        }
    }

    fn is_over(&self, boot: &BootId) -> bool {
        self.retired.contains(boot)
    }
}

impl Seen {
    /// Takes a heartbeat in. Whether the worker is online then is for [`assess`](super::assess) to say.
    pub fn accept_heartbeat(&mut self, beat: &Beat) -> Accepted {
        if self.boots.is_over(&beat.boot) {
            return Accepted::OldBoot;
        }
        let has_left = self.said_goodbye_at.is_some() && self.said_goodbye_at >= self.last_heartbeat_at;
        let newest_at = self.last_heartbeat_at;
        let accepted = match &mut self.boots.current {
            Some(current) if current.boot == beat.boot => {
                let is_straggler = newest_at.is_some_and(|at| beat.at.since(at) <= LATEST_STRAGGLER);
                let starts_anew = beat.seq == 0 && (current.seq > 0 || has_left);
                if is_straggler && !starts_anew && beat.seq <= current.seq {
                    let is_same = beat.seq == current.seq;
                    return if is_same { Accepted::Duplicate } else { Accepted::OutOfOrder };
                }
                current.seq = beat.seq;
                Accepted::Fresh
            }
            Some(_) | None => {
                self.boots.retire_current();
                self.boots.current =
                    Some(CurrentBoot { boot: beat.boot.clone(), first_heard_at: beat.at, seq: beat.seq });
                Accepted::NewBoot
            }
        };
        self.last_heartbeat_at = Some(newest_at.map_or(beat.at, |at| at.max(beat.at)));
        accepted
    }

    /// Takes in that an agent shuts down cleanly. False if it speaks for a run that is over: then nothing
    /// changes, because a newer one is already here.
    pub fn accept_goodbye(&mut self, boot: &BootId, at: Timestamp) -> bool {
        let is_ours = match &self.boots.current {
            Some(current) => current.boot == *boot,
            None => !self.boots.is_over(boot),
        };
        if is_ours {
            self.said_goodbye_at = Some(self.said_goodbye_at.map_or(at, |earlier| earlier.max(at)));
        }
        is_ours
    }
}

/// More beats than this per second buy nothing; a larger fleet is asked to beat less often.
const BEATS_PER_SECOND: u64 = 2_000;

/// Below a second a beat tells nothing that its predecessor did not.
const SHORTEST: Duration = Duration::from_secs(1);

/// When the answer to a heartbeat asks for the next one.
///
/// `spread` is any hash of the worker (and of its beat's number, if the caller likes): it shortens the wait by
/// up to a quarter, so that workers that started together do not beat together for ever. Never more than a
/// third of the threshold: two beats may be lost without anybody being called stale.
pub fn next_in(stale_after: Duration, fleet_size: u64, interval: Duration, spread: u64) -> Duration {
    let at_most = stale_after / 3;
    let fleet_needs = Duration::from_millis(fleet_size.saturating_mul(1_000) / BEATS_PER_SECOND);
    let wanted = interval.max(fleet_needs).max(SHORTEST).min(at_most);
    let share = u32::try_from(spread % 1_024).unwrap_or(0);
    wanted.saturating_sub(wanted / 4 / 1_024 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_next_beat_is_wanted_well_before_the_threshold() {
        let (stale, interval) = (Duration::from_secs(90), Duration::from_secs(30));
        assert_eq!(next_in(stale, 1, interval, 0), Duration::from_secs(30));
        // A long interval and a huge fleet stop at a third of the threshold.
        assert_eq!(next_in(stale, 1, Duration::from_mins(5), 0), Duration::from_secs(30));
        assert_eq!(next_in(Duration::from_hours(1), 1_000_000, interval, 0), Duration::from_secs(500));
        assert_eq!(next_in(stale, 1_000_000_000, interval, 0), Duration::from_secs(30));
        assert_eq!(next_in(Duration::MAX, 1, Duration::MAX, 0), Duration::MAX / 3);
        assert!(next_in(Duration::MAX, 1, Duration::MAX, u64::MAX) > interval);
        assert!(next_in(stale, 1, interval, 512) < next_in(stale, 1, interval, 511));
    }

    proptest! {
        #[test]
        fn never_more_than_a_third_and_never_less_than_three_quarters_of_what_is_wanted(
            stale_ms in 3u64..10_000_000,
            fleet in any::<u64>(),
            interval_ms in 0u64..10_000_000,
            spread in any::<u64>(),
        ) {
            let stale = Duration::from_millis(stale_ms);
            let next = next_in(stale, fleet, Duration::from_millis(interval_ms), spread);
            let longest = next_in(stale, fleet, Duration::from_millis(interval_ms), 0);
            prop_assert!(next <= stale / 3 && next >= longest * 3 / 4 && next > Duration::ZERO);
        }
    }
}
