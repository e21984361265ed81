//! Those who wait at a closed gate: bounded, in the order of their coming, and fair to those who are few.
//!
//! Whoever comes when it is full takes the place of the newest one of the source that has most places, if that
//! source has more than their own would have. So one machine that opens connections without end keeps nobody
//! else out, and as long as there is room nobody is treated differently.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use drowse_core::Timestamp;

/// Where somebody comes from, as far as fairness goes: an address, or an IPv6 network, because whoever has one
/// address there has them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source(u128);

impl Source {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self(u128::from(v4.to_bits())),
            IpAddr::V6(v6) => Self(v6.to_bits() & (u128::MAX << 64)),
        }
    }
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket(u64);

/// What became of somebody who wanted a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed<W> {
    /// They have one.
    At(Ticket),
    /// They have one, and this one lost theirs.
    InPlaceOf(Ticket, W),
    /// There is none.
    Full(W),
}

#[derive(Debug)]
pub(crate) struct Queue<W> {
    places: usize,
    waiting: BTreeMap<Ticket, Waiting<W>>,
    sources: HashMap<Source, usize>,
    next: u64,
}

#[derive(Debug)]
struct Waiting<W> {
    source: Source,
    deadline: Timestamp,
    who: W,
}

impl<W> Queue<W> {
    pub(crate) fn new(places: usize) -> Self {
        Self { places, waiting: BTreeMap::new(), sources: HashMap::new(), next: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Gives somebody a place, who waits until `deadline` at most.
    pub(crate) fn push(&mut self, source: Source, deadline: Timestamp, who: W) -> Placed<W> {
        let evicted = if self.waiting.len() < self.places {
            None
        } else {
            match self.takes_too_much(source) {
                Some(ticket) => self.take(ticket),
                None => return Placed::Full(who),
            }
        };
        let ticket = Ticket(self.next);
        self.next += 1;
        *self.sources.entry(source).or_default() += 1;
        self.waiting.insert(ticket, Waiting { source, deadline, who });
        match evicted {
            Some(evicted) => Placed::InPlaceOf(ticket, evicted),
            None => Placed::At(ticket),
        }
    }

    /// The newest of the source that has most, if that is more than `source` would have.
    fn takes_too_much(&self, source: Source) -> Option<Ticket> {
        let (most, has) = self.sources.iter().max_by_key(|(_, has)| **has)?;
        if *has <= self.sources.get(&source).copied().unwrap_or_default() + 1 {
            return None;
        }
        self.waiting.iter().rev().find(|(_, waiting)| waiting.source == *most).map(|(ticket, _)| *ticket)
    }

    /// How many came before somebody who waits.
    pub(crate) fn ahead_of(&self, ticket: Ticket) -> Option<usize> {
        self.waiting.contains_key(&ticket).then(|| self.waiting.range(..ticket).count())
    }

    /// Somebody who waits.
    pub(crate) fn get(&self, ticket: Ticket) -> Option<&W> {
        self.waiting.get(&ticket).map(|waiting| &waiting.who)
    }

    /// Somebody does not wait any longer. `None`: they were not waiting.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<W> {
        let waiting = self.waiting.remove(&ticket)?;
        self.forget(waiting.source);
        Some(waiting.who)
    }

    fn forget(&mut self, source: Source) {
        if let Some(has) = self.sources.get_mut(&source) {
            *has -= 1;
            if *has == 0 {
                self.sources.remove(&source);
            }
        }
    }

    /// Those whom `picks` picks, in the order of their coming.
    pub(crate) fn take_if(&mut self, mut picks: impl FnMut(&W) -> bool) -> Vec<W> {
        let picked: Vec<Ticket> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| picks(&waiting.who))
            .map(|(ticket, _)| *ticket)
            .collect();
        picked.into_iter().filter_map(|ticket| self.take(ticket)).collect()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &W> {
        self.waiting.values().map(|waiting| &waiting.who)
    }

    /// When the first one has waited long enough.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.waiting.values().map(|waiting| waiting.deadline).min()
    }

    /// Those who have waited long enough.
    pub(crate) fn expire(&mut self, now: Timestamp) -> Vec<W> {
        let late: Vec<Ticket> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.deadline <= now)
            .map(|(ticket, _)| *ticket)
            .collect();
        late.into_iter().filter_map(|ticket| self.take(ticket)).collect()
    }

    /// All of them, in the order of their coming.
    pub(crate) fn drain(&mut self) -> Vec<W> {
        self.sources.clear();
        std::mem::take(&mut self.waiting).into_values().map(|waiting| waiting.who).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap as Counts;

    use proptest::prelude::*;

    use super::*;

    fn from(n: u8) -> Source {
        Source::of(IpAddr::from([10, 0, 0, n]))
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn they_leave_in_the_order_of_their_coming() {
        let mut queue = Queue::new(10);
        for n in 0..5 {
            assert!(matches!(queue.push(from(n), at(9), n), Placed::At(_)));
        }
        assert_eq!(queue.drain(), [0, 1, 2, 3, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_source_that_takes_everything_makes_room_for_others_with_its_newest() {
        let mut queue = Queue::new(4);
        for n in 0..4 {
            queue.push(from(1), at(9), n);
        }
        assert_eq!(queue.push(from(1), at(9), 4), Placed::Full(4));
        assert!(matches!(queue.push(from(2), at(9), 5), Placed::InPlaceOf(_, 3)));
        assert!(matches!(queue.push(from(3), at(9), 6), Placed::InPlaceOf(_, 2)));
        // Two, one, one: whoever comes from a fourth place has no more right to a place than the second has.
        assert!(matches!(queue.push(from(4), at(9), 7), Placed::InPlaceOf(_, 1)));
        assert_eq!(queue.push(from(5), at(9), 8), Placed::Full(8));
        assert_eq!(queue.drain(), [0, 5, 6, 7]);
    }

    #[test]
    fn whoever_has_waited_long_enough_goes_and_the_others_stay() {
        let mut queue = Queue::new(4);
        queue.push(from(1), at(10), "first");
        queue.push(from(1), at(20), "second");
        assert_eq!(queue.next_deadline(), Some(at(10)));
        assert!(queue.expire(at(9)).is_empty());
        assert_eq!(queue.expire(at(10)), ["first"], "at the deadline it is over");
        assert_eq!(queue.next_deadline(), Some(at(20)));
    }

    #[test]
    fn an_ipv6_network_is_one_source() {
        let [one, two, other]: [IpAddr; 3] =
            ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1"].map(|text| text.parse().unwrap());
        assert_eq!(Source::of(one), Source::of(two));
        assert_ne!(Source::of(one), Source::of(other));
        assert_eq!(Source::of("::ffff:10.0.0.1".parse().unwrap()), from(1));
    }

    proptest! {
        /// Whatever comes and goes: never more than there are places, nobody is lost or doubled, the order is
        /// that of coming, and nobody was turned away from a place that a greedier source has.
        #[test]
        fn it_is_bounded_ordered_and_fair(places in 1_usize..6, steps in prop::collection::vec((0_u8..5, 0_u8..4), 0..80)) {
            let mut queue = Queue::new(places);
            let mut inside: Vec<(Ticket, u8, usize)> = Vec::new();
            for (number, (source, what)) in steps.into_iter().enumerate() {
                if what == 0 && !inside.is_empty() {
                    let (ticket, _, who) = inside.remove(number % inside.len());
                    prop_assert_eq!(queue.take(ticket), Some(who));
                    prop_assert_eq!(queue.take(ticket), None);
                    continue;
                }
                let mut counts: Counts<u8, usize> = Counts::new();
                for (_, source, _) in &inside {
                    *counts.entry(*source).or_default() += 1;
                }
                match queue.push(from(source), at(1), number) {
                    Placed::At(ticket) => inside.push((ticket, source, number)),
                    Placed::InPlaceOf(ticket, evicted) => {
                        let place = inside.iter().position(|(_, _, who)| *who == evicted).unwrap();
                        let (_, loser, _) = inside.remove(place);
                        prop_assert!(counts[&loser] > counts.get(&source).copied().unwrap_or_default() + 1);
                        inside.push((ticket, source, number));
                    }
                    Placed::Full(who) => {
                        prop_assert_eq!(who, number);
                        prop_assert_eq!(inside.len(), places);
                        let own = counts.get(&source).copied().unwrap_or_default() + 1;
                        prop_assert!(counts.values().all(|has| *has <= own));
                    }
                }
                prop_assert!(queue.len() <= places);
                prop_assert_eq!(queue.len(), inside.len());
            }
            let order: Vec<usize> = inside.iter().map(|(_, _, who)| *who).collect();
            prop_assert_eq!(queue.drain(), order);
        }
    }
}
