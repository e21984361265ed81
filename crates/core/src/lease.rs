//! Leases: "stay awake while I work", for a time, from a program.
//!
//! What must stay true, whatever a program does:
//! - Every lease ends: at its expiry, by its holder, or with the run of the worker.
//! - One credential cannot keep a worker for longer than the ceiling, by however many names. The count runs
//!   on through short gaps, or a lease of one second every hour would restart the idle clock for ever. It
//!   starts again only after the worker slept or had no lease at all for a good while.
//! - A timer that was set for an expiry cannot end a lease that was renewed since: it carries a generation.
//! - A lease is not activity. Nothing here knows `last_activity_at`.

mod terms;

#[cfg(test)]
mod tests;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::Generation;
pub use terms::{Asked, Credential, LeaseRefusal, LeaseTerms};

/// The holder of whoever gives no name.
pub const DEFAULT_HOLDER: &str = "default";

/// More programs than this in one worker are a leak of names.
pub const MOST_HOLDERS: usize = 64;

/// More credentials than this with a running count are an attempt to dodge it.
pub const MOST_CREDENTIALS: usize = 256;

/// One lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Whose it is.
    pub credential: Credential,
    /// What it is called; two credentials may use the same name without meeting.
    pub holder: String,
    /// What it is for, for people.
    pub reason: String,
    /// When it was first taken.
    pub taken_at: Timestamp,
    /// When it was last taken or renewed.
    pub granted_at: Timestamp,
    /// When it ends if it is not renewed; at that instant it is over.
    pub until: Timestamp,
    /// Which grant this is: a timer of an older one ends nothing.
    pub generation: Generation,
}

impl Lease {
    /// How long the latest grant was, after the ceiling cut it.
    pub const fn ttl(&self) -> Duration {
        self.until.since(self.granted_at)
    }
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// Nobody renewed it.
    Expiry,
    /// Its holder let it go.
    Holder,
    /// The run of the worker ended.
    Stop,
}

/// A lease that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What it was.
    pub lease: Lease,
    /// When it ended: its expiry, not when somebody noticed.
    pub at: Timestamp,
    /// How.
    pub by: EndedBy,
}

/// The continuous leased time of one credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Whose.
    pub credential: Credential,
    /// When it began.
    pub since: Timestamp,
    /// When the event about the ceiling is due; none once it was raised.
    pub warn_at: Option<Timestamp>,
}

/// A lease was taken or renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// When it ends; sooner than asked for where the ceiling is nearer.
    pub until: Timestamp,
    /// What a timer for that expiry must carry.
    pub generation: Generation,
    /// Whether the event "90 % of the ceiling" is to be raised now; it is, once per stretch.
    pub warn_ceiling: bool,
    /// Leases whose expiry had passed unnoticed.
    pub ended: Vec<Ended>,
}

/// The flat fields of seed 002: the lease that ends last stands for all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseSummary {
    /// Whether any lease is alive.
    pub lease_held: bool,
    /// The reason of the one that ends last.
    pub lease_reason: Option<String>,
    /// When that one ends.
    pub lease_expires_at: Option<Timestamp>,
}

/// The leases of one worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseBook {
    leases: Vec<Lease>,
    stretches: Vec<Stretch>,
    generation: Generation,
    last_ended_at: Option<Timestamp>,
}

impl LeaseBook {
    /// Takes a lease or renews it; a renewal resets the expiry. A refusal changes nothing at all.
    pub fn take(
        &mut self,
        asked: &Asked<'_>,
        terms: &LeaseTerms,
        now: Timestamp,
    ) -> Result<Granted, LeaseRefusal> {
        let holder = asked.check(terms)?;
        let credential = asked.credential;
        // Whoever has no running count begins one.
        let starts_again = self.count_starts_again(terms, now);
        let stretch = self.stretches.iter().find(|stretch| stretch.credential == *credential);
        let stretch = stretch.filter(|_| !starts_again);
        let since = stretch.map_or(now, |stretch| stretch.since);
        let ceiling_at = since.after(terms.ceiling);
        if now >= ceiling_at {
            return Err(LeaseRefusal::Ceiling { since, ceiling: terms.ceiling });
        }
        let own = self.alive(now).find(|lease| lease.credential == *credential && lease.holder == holder);
        let is_crowded = own.is_none() && self.alive(now).count() >= MOST_HOLDERS;
        let is_dodging = stretch.is_none() && !starts_again && self.stretches.len() >= MOST_CREDENTIALS;
        if is_crowded || is_dodging {
            return Err(LeaseRefusal::TooManyHolders);
        }
        // What was granted stays granted where a new policy or an outage of ours put it past the ceiling.
        let latest = own.map_or(ceiling_at, |own| own.until.max(ceiling_at));
        let until = now.after(asked.ttl).min(latest);
        let taken_at = own.map_or(now, |own| own.taken_at);
        let was_warned = stretch.is_some_and(|stretch| stretch.warn_at.is_none());

        let ended = self.expire(now);
        if starts_again {
            self.stretches.clear();
        }
        let warn_at = since.after(terms.ceiling / 10 * 9);
        let warn_ceiling = !was_warned && now >= warn_at;
        self.stretches.retain(|stretch| stretch.credential != *credential);
        self.stretches.push(Stretch {
            credential: credential.clone(),
            since,
            warn_at: (!was_warned && !warn_ceiling).then_some(warn_at),
        });
        self.generation = self.generation.next();
        self.leases.retain(|lease| lease.credential != *credential || lease.holder != holder);
        self.leases.push(Lease {
            credential: credential.clone(),
            holder: holder.to_string(),
            reason: asked.reason.to_string(),
            taken_at,
            granted_at: now,
            until,
            generation: self.generation,
        });
        Ok(Granted { until, generation: self.generation, warn_ceiling, ended })
    }

    /// Lets a lease go. Names belong to their credential, so nobody can end what another took; letting go of
    /// what one does not hold does nothing and is no error, because a release may be repeated.
    pub fn release(
        &mut self,
        credential: &Credential,
        holder: Option<&str>,
        now: Timestamp,
    ) -> Option<Ended> {
        let holder = terms::name(holder);
        let index = self.position(credential, holder)?;
        let by = if self.leases[index].until <= now { EndedBy::Expiry } else { EndedBy::Holder };
        Some(self.end(index, now, by))
    }

    /// Ends what has expired by `now`, in the order of the expiries.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Ended> {
        self.end_all(now, |lease| (lease.until <= now).then_some(EndedBy::Expiry))
    }

    /// A timer fired that was set for one grant. It ends nothing if the lease was renewed since, or if the
    /// timer is early.
    pub fn expire_timer(
        &mut self,
        credential: &Credential,
        holder: &str,
        generation: Generation,
        now: Timestamp,
    ) -> Option<Ended> {
        let index = self.position(credential, holder)?;
        let lease = &self.leases[index];
        (lease.generation == generation && lease.until <= now).then(|| self.end(index, now, EndedBy::Expiry))
    }

    /// The run of the worker is over, and with it all its leases.
    pub fn clear(&mut self, now: Timestamp) -> Vec<Ended> {
        let ended =
            self.end_all(now, |lease| Some(if lease.until <= now { EndedBy::Expiry } else { EndedBy::Stop }));
        self.slept();
        ended
    }

    /// The worker slept, so every count starts again with the next grant. A lease that lives through a forced
    /// pause keeps its expiry.
    pub fn slept(&mut self) {
        self.stretches.clear();
    }

    /// Drowse was away from `away_since` on and could not be asked for a renewal. No lease that was alive then
    /// ends before its own TTL has passed once more. This goes before the ceiling: the outage is our fault.
    /// To be called before anything is expired; true if anything changed.
    pub fn resume_after_outage(&mut self, away_since: Timestamp, resumed_at: Timestamp) -> bool {
        let mut has_changed = false;
        for lease in &mut self.leases {
            let until = resumed_at.after(lease.ttl());
            if lease.until > away_since && lease.until < until {
                self.generation = self.generation.next();
                (lease.granted_at, lease.until) = (resumed_at, until);
                lease.generation = self.generation;
                has_changed = true;
            }
        }
        has_changed
    }

    /// Credentials that have come to 90 % of the ceiling while they hold a lease: one event each.
    pub fn ceiling_warnings(&mut self, now: Timestamp) -> Vec<Credential> {
        let is_due = |stretch: &Stretch| {
            stretch.warn_at.is_some_and(|at| now >= at) && self.holds(&stretch.credential, now)
        };
        let due: Vec<_> = self.stretches.iter().filter(|stretch| is_due(stretch)).cloned().collect();
        for stretch in &mut self.stretches {
            if due.contains(stretch) {
                stretch.warn_at = None;
            }
        }
        due.into_iter().map(|stretch| stretch.credential).collect()
    }

    /// When to look again: the next expiry or the next event about a ceiling.
    pub fn deadline(&self) -> Option<Timestamp> {
        let expiries = self.leases.iter().map(|lease| lease.until);
        let warnings = self.stretches.iter().filter_map(|stretch| {
            // Who holds nothing at that time is told with its next grant, if there is one.
            let holds_then = |at: &Timestamp| self.holds(&stretch.credential, *at);
            stretch.warn_at.filter(holds_then)
        });
        expiries.chain(warnings).min()
    }

    /// The leases that keep the worker awake now.
    pub fn alive(&self, now: Timestamp) -> impl Iterator<Item = &Lease> {
        self.leases.iter().filter(move |lease| lease.until > now)
    }

    pub fn summary(&self, now: Timestamp) -> LeaseSummary {
        let last = self.alive(now).max_by_key(|lease| lease.until);
        LeaseSummary {
            lease_held: last.is_some(),
            lease_reason: last.map(|lease| lease.reason.clone()),
            lease_expires_at: last.map(|lease| lease.until),
        }
    }

    /// The end of the last lease that is over: the idle clock counts from there (`hold_ended`).
    pub fn last_ended_at(&self, now: Timestamp) -> Option<Timestamp> {
        let unnoticed = self.leases.iter().map(|lease| lease.until).filter(|until| *until <= now);
        unnoticed.chain(self.last_ended_at).max()
    }

    /// Whether the worker has been without any lease for two idle timeouts and at least ten minutes.
    fn count_starts_again(&self, terms: &LeaseTerms, now: Timestamp) -> bool {
        let free_since = self.last_ended_at(now).filter(|_| self.alive(now).next().is_none());
        free_since.is_some_and(|since| now.since(since) >= terms.lease_free_for())
    }

    fn holds(&self, credential: &Credential, at: Timestamp) -> bool {
        self.alive(at).any(|lease| lease.credential == *credential)
    }

    fn position(&self, credential: &Credential, holder: &str) -> Option<usize> {
        self.leases.iter().position(|lease| lease.credential == *credential && lease.holder == holder)
    }

    fn end(&mut self, index: usize, now: Timestamp, by: EndedBy) -> Ended {
        let lease = self.leases.remove(index);
        let at = lease.until.min(now);
        self.last_ended_at = Some(self.last_ended_at.map_or(at, |last| last.max(at)));
        Ended { lease, at, by }
    }

    fn end_all(&mut self, now: Timestamp, how: impl Fn(&Lease) -> Option<EndedBy>) -> Vec<Ended> {
        let mut ended = Vec::new();
        let mut index = 0;
        while let Some(lease) = self.leases.get(index) {
            match how(lease) {
                Some(by) => ended.push(self.end(index, now, by)),
                None => index += 1,
            }
        }
        ended.sort_by_key(|ended| ended.at);
        ended
    }
}
