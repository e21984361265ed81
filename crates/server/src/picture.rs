//! Everything that a verdict about one worker looks at, read at one instant.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::evidence::Read;
use drowse_core::hold::{Hold, HoldKind, KeepAlive};
use drowse_core::id::WorkerId;
use drowse_core::policy::exemption::Exempt;
use drowse_core::reason::IdlePolicy;
use drowse_core::signal::{Need, Reading, Signal, UnknownCause};
use drowse_core::verdict::{Explanation, Snapshot, Verdict, WarningKind, explain, judge};
use drowse_core::worker::Worker;
use drowse_store::{Arrival, Checked, ConnectionCount, RouterSession, StoreError, View, WorkerRecord};
use drowse_wire::v1;

use crate::doubts::{Doubt, Doubted, What};
use crate::ingest::ROUTER;
use crate::meters::Totals;
use crate::policies::{Book, Policies, Resolved};

/// For how long after a router fell silent its connections may still be there.
const ROUTER_LOST_FOR: Duration = Duration::from_mins(1);

/// A worker and what is known about it.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    pub(crate) record: WorkerRecord,
    pub(crate) worker: Worker,
    pub(crate) book: Arc<Book>,
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) checked: Checked,
    pub(crate) holds: Vec<Hold>,
    pub(crate) hold_ended_at: Option<Timestamp>,
    pub(crate) exempt: Exempt,
    pub(crate) is_braked: bool,
    pub(crate) can_scale_down: bool,
    /// The driver showed it in this check, as it is believed to be.
    pub(crate) is_seen: bool,
    /// When it began to be read.
    pub(crate) began_at: Timestamp,
    /// When it was checked before this check.
    pub(crate) checked_before: Option<Timestamp>,
    /// What its counters showed in this check, to be kept if the check is.
    pub(crate) totals: Totals,
    /// What was found of its keep-alive file.
    pub(crate) keep_alive: KeepAlive,
    /// What was known of it.
    pub(crate) kept_alive_before: Option<Hold>,
    arrivals: Vec<Arrival>,
    /// What could not be read in this check, and why.
    pub(crate) doubted: Doubted,
    connections: Vec<ConnectionCount>,
    sessions: Vec<RouterSession>,
}

impl Picture {
    /// `None`: there is no such worker, or it was removed.
    pub(crate) fn load(
        view: &View<'_>,
        policies: &Policies,
        id: &WorkerId,
        now: Timestamp,
    ) -> Result<Option<Self>, StoreError> {
        match view.worker(id)?.filter(|record| record.removed_at.is_none()) {
            Some(record) => Self::of(view, policies, record, now).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn of(
        view: &View<'_>,
        policies: &Policies,
        record: WorkerRecord,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let id = record.id().clone();
        let (epoch, brake) = view.fleet()?;
        let book = policies.book_of(view, epoch)?;
        let selectors = &record.without_terms().selectors;
        let resolved = book.of(selectors);
        let exempt = book.exempt(selectors, now);
        let worker = record.worker(&resolved.policy);
        let is_routed = worker.is_routed;
        let held = view.held(&record)?;
        let mut picture = Self {
            worker,
            book,
            resolved,
            exempt,
            began_at: now,
            checked_before: None,
            checked: view.checked(&id)?,
            holds: held.holds(now),
            hold_ended_at: held.ended_at(now),
            is_braked: brake.is_engaged(),
            can_scale_down: false,
            is_seen: false,
            totals: Totals::default(),
            keep_alive: KeepAlive::NotLooked,
            doubted: Doubted::default(),
            kept_alive_before: None,
            arrivals: view.arrivals(&id)?,
            connections: if is_routed { held.connections() } else { Vec::new() },
            sessions: if is_routed { view.router_sessions()? } else { Vec::new() },
            record,
        };
        // Between checks nobody counts the fleet: who was told of a deletion is to be deleted.
        picture.can_scale_down = picture
            .checked
            .idle_warned
            .is_some_and(|warned| warned.kind == WarningKind::ScaleDown && !warned.is_fyi);
        picture.checked_before = picture.checked.evidence.last_check_at;
        picture.take_arrivals(now);
        Ok(picture)
    }

    /// It was looked for its keep-alive file, and this was found: it counts from now on.
    pub(crate) fn is_kept_alive(&mut self, found: KeepAlive) {
        self.kept_alive_before = self.holds.iter().find(|hold| hold.kind == HoldKind::KeepAliveFile).cloned();
        found.amend(&mut self.holds);
        self.keep_alive = found;
    }

    /// How often the worker is looked at.
    pub(crate) fn interval(&self) -> Duration {
        let policy = &self.resolved.policy;
        policy.interval(&policy.needs(self.worker.nature()))
    }

    pub(crate) fn need(&self, signal: Signal) -> Need {
        self.resolved.policy.needs(self.worker.nature())[signal as usize]
    }

    /// Records a read of a signal.
    pub(crate) fn record(&mut self, signal: Signal, read: Read, now: Timestamp) {
        // Under `leases_only` what the agent tells is shown and kept, and not counted.
        let counts = signal != Signal::Activity || self.resolved.policy.idle_policy == IdlePolicy::Default;
        let interval = self.interval();
        self.checked.evidence.record(signal, read, counts, interval, now);
    }

    /// What has arrived since the last check is activity now, whoever asks.
    fn take_arrivals(&mut self, now: Timestamp) {
        for arrival in &self.arrivals {
            let signal = if arrival.source == ROUTER { Signal::Connections } else { Signal::Activity };
            if let Some(at) = arrival.activity_at {
                self.checked.evidence.note_activity(at, signal, now);
            }
        }
    }

    /// Reads what the front door tells about this worker. Zero connections is quiet only while there is a door, and
    /// that is not shut, for this reason.
    pub(crate) fn read_connections(&mut self, shut: Option<String>, now: Timestamp) {
        if self.need(Signal::Connections) == Need::Off || !self.worker.is_routed {
            return;
        }
        if let Some(why) = shut {
            let cause = UnknownCause::DoorShut;
            self.doubted.insert(What::Signal(Signal::Connections), Doubt::new(cause, &why));
            return self.record(Signal::Connections, Read::unknown(cause, now), now);
        }
        let is_open =
            |row: &ConnectionCount| row.count > 0 && row.alive_until.is_some_and(|until| until > now);
        // A router that fell silent while it held connections may hold them still.
        let is_lost = |row: &ConnectionCount| {
            row.count > 0
                && row.alive_until.is_some_and(|until| until <= now && now < until + ROUTER_LOST_FOR)
        };
        let has_door = self.sessions.iter().any(|session| session.alive_until > now);
        let last_byte = self.arrivals.iter().filter(|arrival| arrival.source == ROUTER);
        let last_byte = last_byte.filter_map(|arrival| arrival.activity_at).max();
        let seen_before = self.checked.evidence.sample(Signal::Connections).map(|sample| sample.read_at);
        let read = if self.connections.iter().any(is_open) {
            Read::active(now, now).telling_gap()
        } else if !has_door || self.connections.iter().any(is_lost) {
            Read::unknown(UnknownCause::RouterLost, now)
        } else {
            match last_byte.filter(|at| seen_before.is_none_or(|before| *at > before)) {
                Some(at) => Read::active(at, now).telling_gap(),
                None => Read::quiet(now).telling_gap(),
            }
        };
        self.record(Signal::Connections, read, now);
    }

    pub(crate) fn snapshot(&self, check_began_at: Option<Timestamp>) -> Snapshot<'_> {
        Snapshot {
            worker: &self.worker,
            evidence: &self.checked.evidence,
            holds: &self.holds,
            hold_ended_at: self.hold_ended_at,
            exempt: self.exempt,
            is_braked: self.is_braked,
            check_began_at,
            is_seen: self.is_seen,
            idle_warned: self.checked.idle_warned,
            runtime_warned: self.checked.runtime_warned,
            schedule_warned: self.checked.schedule_warned,
            stop_warned: self.checked.stop_warned,
            deletion_warned: self.checked.deletion_warned,
            can_scale_down: self.can_scale_down,
        }
    }

    /// The verdict of a check that began at `began_at`, or, between checks, on what the last one read.
    pub(crate) fn judge(&self, began_at: Option<Timestamp>, now: Timestamp) -> Verdict {
        judge(&self.snapshot(began_at), &self.resolved.policy, now)
    }

    /// The verdict in words.
    pub(crate) fn explain(&self, verdict: &Verdict) -> Explanation {
        let Resolved { policy, provenance, settings } = &*self.resolved;
        explain(&self.snapshot(verdict.check_began_at), policy, settings, provenance, verdict)
    }

    /// The verdict as others are told it, with those settings that `is_told`.
    pub(crate) fn told(&self, verdict: &Verdict, is_told: impl Fn(&v1::Setting) -> bool) -> v1::Explanation {
        let Resolved { policy, provenance, settings } = &*self.resolved;
        let settings = v1::settings(policy, settings, provenance).into_iter().filter(is_told).collect();
        let mut told = v1::Explanation::of(&self.worker.id, &self.explain(verdict), settings);
        told.memory_bytes = self.checked.memory_bytes;
        told
    }

    /// Whether all that is unknown about it is what has only begun to be read.
    pub(crate) fn is_beginning(&self) -> bool {
        let needs = self.resolved.policy.needs(self.worker.nature());
        let required = Signal::ALL.into_iter().filter(|signal| needs[*signal as usize] == Need::Required);
        required.map(|signal| self.checked.evidence.sample(signal)).all(|sample| match sample {
            Some(sample) => match sample.reading {
                Reading::Unknown { cause } => cause == UnknownCause::FirstSample,
                Reading::Active { .. } | Reading::Quiet => true,
            },
            None => false,
        })
    }

    /// The newest counted activity that this picture knows of.
    pub(crate) fn activity_at(&self) -> Option<Timestamp> {
        // As it arrived: a reading is cut at the present, and what the store compares with is not.
        let arrived = self.arrivals.iter().filter_map(|arrival| arrival.activity_at).max();
        arrived.max(self.checked.evidence.last_activity_at())
    }

    /// How many connections the routers last told of.
    pub(crate) fn open_connections(&self, now: Timestamp) -> u64 {
        let open = self.connections.iter().filter(|row| row.alive_until.is_some_and(|until| until > now));
        open.map(|row| row.count).sum()
    }
}
