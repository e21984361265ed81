//! How dependable a worker or a machine has been: kept from transition to transition, shown at any time.
//!
//! Only silence counts against a worker. That it was stopped, or said goodbye, is no fault.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{OfflineReason, Standing, State};
use crate::Timestamp;

/// When staleness becomes worth an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReliabilityTerms {
    /// So many stale transitions within `alert_within` raise an alert; zero never does.
    pub alert_count: u8,
    /// The stretch that is looked at, its start included.
    #[serde(with = "crate::units::duration")]
    pub alert_within: Duration,
    /// A return within this time of falling silent is a flap, its end included.
    #[serde(with = "crate::units::duration")]
    pub flap_within: Duration,
}

impl Default for ReliabilityTerms {
    /// Once is an accident, twice is a coincidence. Ten minutes tell a bad line from a repair.
    fn default() -> Self {
        Self { alert_count: 3, alert_within: Duration::from_hours(1), flap_within: Duration::from_mins(10) }
    }
}

/// What is counted. Counters only grow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reliability {
    /// How often it fell silent for longer than the threshold.
    pub stale_count: u64,
    /// How often it came back soon after falling silent.
    pub flaps: u64,
    /// For how long it was online in all, up to `counted_to`.
    pub online_for: Duration,
    /// For how long it was missed in all, up to `counted_to`.
    pub silent_for: Duration,
    /// Where the two totals end; none before the first change.
    pub counted_to: Option<Timestamp>,
    /// The newest stale transitions, oldest first; never more than an alert needs.
    pub recent_stale: Vec<Timestamp>,
    /// When the last alert was raised.
    pub alerted_at: Option<Timestamp>,
}

/// A worker that is stale too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaleAlert {
    /// The transition that made it so.
    pub at: Timestamp,
    /// How many there were.
    pub count: u8,
    /// Within how long.
    #[serde(with = "crate::units::duration")]
    pub within: Duration,
}

impl Reliability {
    /// Counts a change of what is recorded, from `was` to `is`.
    #[must_use]
    pub fn changed(
        &self,
        was: Option<Standing>,
        is: Standing,
        terms: &ReliabilityTerms,
        now: Timestamp,
    ) -> (Reliability, Option<StaleAlert>) {
        let mut next = self.clone();
        let is_transition = was.map(Standing::state) != Some(is.state());
        // A transition ends the stretch when it became true; a mere change of reason has no time of its own.
        let until = if is_transition { is.since() } else { now };
        if let Some(was) = was {
            next.count_stretch(was, until);
        }
        next.counted_to = Some(next.counted_to.map_or(until, |to| to.max(until)));
        if !is_transition {
            return (next, None);
        }
        match (was, is) {
            (Some(Standing::Offline { since, reason }), Standing::Online { since: back_at })
                if is_silence(reason) && back_at.since(since) <= terms.flap_within =>
            {
                next.flaps += 1;
                (next, None)
            }
            (_, Standing::Offline { since, reason }) if is_silence(reason) => {
                next.stale_count += 1;
                let alert = next.fell_silent(since, terms);
                (next, alert)
            }
            (_, Standing::Online { .. } | Standing::Offline { .. }) => (next, None),
        }
    }

    /// The totals with the stretch that is still going on.
    #[must_use]
    pub fn as_of(&self, standing: Standing, now: Timestamp) -> Reliability {
        let mut shown = self.clone();
        shown.count_stretch(standing, now);
        shown.counted_to = Some(shown.counted_to.map_or(now, |to| to.max(now)));
        shown
    }

    /// The share of the time in which it should have been heard and was, in per cent; none if there was none.
    pub fn percent(&self) -> Option<f64> {
        let expected = self.online_for.saturating_add(self.silent_for).as_secs_f64();
        (expected > 0.0).then(|| self.online_for.as_secs_f64() / expected * 100.0)
    }

    fn count_stretch(&mut self, standing: Standing, until: Timestamp) {
        let from = self.counted_to.map_or(standing.since(), |to| to.max(standing.since()));
        let length = until.since(from);
        match (standing.state(), standing.offline_reason()) {
            (State::Online, _) => self.online_for = self.online_for.saturating_add(length),
            (State::Offline, Some(reason)) if is_silence(reason) => {
                self.silent_for = self.silent_for.saturating_add(length);
            }
            (State::Offline, _) => {}
        }
    }

    fn fell_silent(&mut self, at: Timestamp, terms: &ReliabilityTerms) -> Option<StaleAlert> {
        let needed = usize::from(terms.alert_count);
        self.recent_stale.push(at);
        self.recent_stale.retain(|earlier| at.since(*earlier) <= terms.alert_within);
        let surplus = self.recent_stale.len().saturating_sub(needed);
        self.recent_stale.drain(..surplus);
        // At most one alert per stretch: the second would say nothing that the first did not.
        let is_known = self.alerted_at.is_some_and(|raised| at.since(raised) <= terms.alert_within);
        if needed == 0 || self.recent_stale.len() < needed || is_known {
            return None;
        }
        self.alerted_at = Some(at);
        Some(StaleAlert { at, count: terms.alert_count, within: terms.alert_within })
    }
}

const fn is_silence(reason: OfflineReason) -> bool {
    match reason {
        OfflineReason::Stale | OfflineReason::NeverSeen => true,
        OfflineReason::Goodbye | OfflineReason::Stopped => false,
    }
}

#[cfg(test)]
mod tests {
    use super::OfflineReason::{Goodbye, Stale, Stopped};
    use super::*;

    const TERMS: ReliabilityTerms = ReliabilityTerms {
        alert_count: 3,
        alert_within: Duration::from_hours(1),
        flap_within: Duration::from_mins(10),
    };

    fn online(secs: i64) -> Standing {
        Standing::Online { since: Timestamp::from_secs(secs) }
    }

    fn offline(secs: i64, reason: OfflineReason) -> Standing {
        Standing::Offline { since: Timestamp::from_secs(secs), reason }
    }

    /// Walks through the standings in order and returns the counters and the times of the alerts.
    fn walk(standings: &[Standing]) -> (Reliability, Vec<i64>) {
        let mut kept = Reliability::default();
        let mut alerts = Vec::new();
        let mut was = None;
        for is in standings {
            let (next, alert) = kept.changed(was, *is, &TERMS, is.since());
            alerts.extend(alert.map(|alert| alert.at.as_micros() / 1_000_000));
            (kept, was) = (next, Some(*is));
        }
        (kept, alerts)
    }

    #[test]
    fn uptime_flaps_and_staleness_are_counted_from_transitions() {
        let (kept, alerts) =
            walk(&[online(0), offline(100, Stale), online(700), offline(1_000, Stale), online(1_601)]);
        assert_eq!((kept.stale_count, kept.flaps), (2, 1), "600 s is a flap, 601 s is not");
        assert_eq!(kept.online_for, Duration::from_secs(400));
        assert_eq!(kept.silent_for, Duration::from_secs(1_201));
        assert!(alerts.is_empty());
        let shown = kept.as_of(online(1_601), Timestamp::from_secs(2_402));
        assert_eq!(shown.online_for, Duration::from_secs(1_201));
        assert_eq!(shown.percent(), Some(50.0));
        assert_eq!(Reliability::default().percent(), None);
    }

    #[test]
    fn a_stop_and_a_goodbye_are_no_fault() {
        let (kept, _) =
            walk(&[online(0), offline(10, Stopped), online(20), offline(30, Goodbye), online(40)]);
        assert_eq!((kept.stale_count, kept.flaps, kept.silent_for), (0, 0, Duration::ZERO));
        assert_eq!(kept.percent(), Some(100.0));
    }

    #[test]
    fn time_after_a_stop_is_not_missed_time() {
        let (kept, _) = walk(&[online(0), offline(100, Stale)]);
        let stopped = offline(100, Stopped);
        let (kept, _) = kept.changed(Some(offline(100, Stale)), stopped, &TERMS, Timestamp::from_secs(150));
        let (kept, _) = kept.changed(Some(stopped), online(900), &TERMS, Timestamp::from_secs(900));
        assert_eq!(kept.silent_for, Duration::from_secs(50));
        assert_eq!(kept.stale_count, 1);
    }

    #[test]
    fn the_third_time_within_an_hour_raises_one_alert() {
        let stale_at = |times: &[i64]| {
            let standings: Vec<_> =
                times.iter().flat_map(|at| [online(at - 1), offline(*at, Stale)]).collect();
            walk(&standings).1
        };
        assert_eq!(stale_at(&[10, 2_000, 3_610]), [3_610], "exactly an hour is within it");
        assert_eq!(stale_at(&[10, 2_000, 3_611]), [0i64; 0], "one second more is not");
        assert_eq!(stale_at(&[10, 20, 30, 40, 50]), [30], "once is enough");
        assert_eq!(
            stale_at(&[10, 20, 30, 3_000, 3_620, 3_630, 3_640]),
            [30, 3_640],
            "and again an hour later"
        );
    }
}
