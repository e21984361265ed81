//! What each process used of each device, kept for everybody.
//!
//! The library tells each sample once, and several containers share a device and look at different times. What one look
//! brings is kept here, so that nobody's look takes another's use away.
//!
//! Of a process on a device only its peaks are kept, each higher than all that came after it: that is enough to say what
//! its busiest moment since any time was. Figures are whole per cents, so there are at most a hundred of them.

use std::collections::BTreeMap;
use std::time::Duration;

use drowse_core::Timestamp;

/// For how long a process is remembered that used nothing any more. Nobody looks less often.
const REMEMBER_FOR: Duration = Duration::from_hours(48);

/// What was used, by device and by who used it.
#[derive(Debug)]
pub(super) struct History<K>(BTreeMap<(usize, K), Peaks>);

/// In the order of time, and so in falling order.
#[derive(Debug, Default)]
struct Peaks(Vec<(Timestamp, u32)>);

impl<K> Default for History<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Copy> History<K> {
    /// Keeps that somebody used so much of a device at that time. What is told twice is kept once.
    pub(super) fn note(&mut self, device: usize, who: K, at: Timestamp, percent: u32) {
        if percent > 0 {
            self.0.entry((device, who)).or_default().note(at, percent);
        }
    }

    /// What those for whom `is_one` used after `since`: of each and each device the busiest moment, and these summed.
    pub(super) fn used(&self, since: Option<Timestamp>, mut is_one: impl FnMut(K) -> bool) -> u32 {
        let theirs = self.0.iter().filter(|((_, who), _)| is_one(*who));
        // The first one after that time is higher than all that follow.
        let highest =
            |peaks: &Peaks| peaks.0.iter().find(|(at, _)| since.is_none_or(|since| *at > since)).copied();
        theirs.filter_map(|(_, peaks)| highest(peaks)).map(|(_, percent)| percent).sum()
    }

    /// Forgets who used nothing for so long that nobody will ask.
    pub(super) fn forget_old(&mut self, now: Timestamp) {
        let is_young = |peaks: &Peaks| peaks.0.last().is_some_and(|(at, _)| *at + REMEMBER_FOR > now);
        self.0.retain(|_, peaks| is_young(peaks));
    }

    /// Whether anything is kept of somebody.
    pub(super) fn knows(&self, who: K) -> bool {
        self.0.keys().any(|(_, known)| *known == who)
    }
}

impl Peaks {
    fn note(&mut self, at: Timestamp, percent: u32) {
        // Samples come a little out of order, and some of them twice.
        let place = self.0.partition_point(|(known, _)| *known <= at);
        if self.0[place..].iter().any(|(_, later)| *later >= percent) {
            return;
        }
        self.0.insert(place, (at, percent));
        let mut index = 0;
        self.0.retain(|(_, known)| {
            let is_higher = index >= place || *known > percent;
            index += 1;
            is_higher
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn everybody_is_told_of_their_own_time_whoever_looked_before() {
        let mut history = History::default();
        for (secs, percent) in [(10, 5), (20, 90), (30, 3), (40, 7), (50, 7)] {
            history.note(0, "a", at(secs), percent);
            history.note(0, "a", at(secs), percent);
        }
        let used = |since: Option<i64>| history.used(since.map(at), |_| true);
        for (since, expected) in
            [(None, 90), (Some(9), 90), (Some(19), 90), (Some(20), 7), (Some(49), 7), (Some(50), 0)]
        {
            assert_eq!(used(since), expected, "since {since:?}");
        }
    }

    #[test]
    fn devices_and_processes_add_up_and_others_do_not_count() {
        let mut history = History::default();
        for (device, who, percent) in [(0, "a", 40), (1, "a", 30), (0, "b", 9)] {
            history.note(device, who, at(10), percent);
        }
        assert_eq!(history.used(None, |who| who == "a"), 70);
        assert_eq!(history.used(None, |who| who == "b"), 9);
        assert_eq!(history.used(None, |who| who == "c"), 0);
    }

    #[test]
    fn a_sample_that_comes_late_counts_where_it_belongs() {
        let mut history = History::default();
        for (secs, percent) in [(10, 50), (30, 20), (20, 30), (15, 10), (40, 1)] {
            history.note(0, (), at(secs), percent);
        }
        let used = |since: i64| history.used(Some(at(since)), |()| true);
        assert_eq!([used(9), used(10), used(20), used(30), used(40)], [50, 30, 20, 1, 0]);
    }

    #[test]
    fn what_is_kept_does_not_grow_with_time() {
        let mut history = History::default();
        for secs in 0..100_000 {
            history.note(0, (), at(secs), u32::try_from(secs % 101).unwrap());
        }
        assert!(history.0.values().all(|peaks| peaks.0.len() <= 101));
        history.forget_old(at(100_000));
        assert!(history.knows(()));
        history.forget_old(at(100_000) + REMEMBER_FOR);
        assert!(!history.knows(()));
    }
}
