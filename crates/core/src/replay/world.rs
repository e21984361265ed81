//! A small world around one worker: its driver, its users and its clock.

mod eyes;
mod hands;
mod users;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::mark::{DriverMood, Mark, Shows};
use super::moment::{Happening, Moment};
use super::{Timeline, Trace};
use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::event::{Event, Observation, Request};
use crate::evidence::{Evidence, Read};
use crate::hold::{Hold, HoldKind};
use crate::id::{BootId, Generation, IntentId, WorkerId};
use crate::journal::Entry;
use crate::lease::{Asked, Credential, LeaseBook, LeaseTerms};
use crate::machine::{Fence, step};
use crate::policy::Policy;
use crate::policy::exemption::{Exempt, Exemption, Subject};
use crate::reason::{IdlePolicy, PauseReason};
use crate::savings::{self, PowerSpan};
use crate::signal::{Need, PerSignal, Signal, UnknownCause};
use crate::status::{Status, StatusKind, WakeCause};
use crate::verdict::{Action, Snapshot, Verdict, Warned, judge};
use crate::worker::{Power, Worker};

/// Something that is still to come.
#[derive(Clone, Copy, Debug)]
enum Coming {
    /// The driver has done what it was asked to do, and the worker is now this.
    Done(IntentId, Power),
    /// The worker answers.
    Ready(IntentId),
    Refused(IntentId),
    HookAnswers(IntentId),
    Look,
    Deadline(Generation),
}

pub(super) struct World<'a> {
    trace: &'a Trace,
    policy: &'a Policy,
    now: Timestamp,
    worker: Worker,
    evidence: Evidence,
    leases: LeaseBook,
    credential: Credential,
    holds: Vec<Hold>,
    connections: u32,
    connected_since: Timestamp,
    hold_ended_at: Option<Timestamp>,
    exemptions: Vec<Exemption>,
    shows: PerSignal<Option<Shows>>,
    used_at: PerSignal<Option<Timestamp>>,
    read_at: PerSignal<Option<Timestamp>>,
    is_braked: bool,
    away_until: Timestamp,
    mood: DriverMood,
    hook_vetoes: bool,
    /// What the driver would really show.
    truth: Power,
    truth_since: Timestamp,
    idle_warned: Option<Warned>,
    runtime_warned: Option<Warned>,
    schedule_warned: Option<Warned>,
    stop_warned: Option<Warned>,
    deletion_warned: Option<Warned>,
    /// The idle episode that `would_pause` was last said about.
    would_sleep_since: Option<Timestamp>,
    coming: Vec<(Timestamp, Coming)>,
    next_check_at: Timestamp,
    /// Openings of wake windows up to here have been acted on.
    schedule_seen: Timestamp,
    boots: u32,
    moments: Vec<Moment>,
    spans: Vec<PowerSpan>,
    span_since: Timestamp,
}

impl<'a> World<'a> {
    pub(super) fn new(trace: &'a Trace, policy: &'a Policy) -> Self {
        let now = trace.start;
        let id = WorkerId::new(&trace.subject.selectors.worker)
            .or_else(|_| WorkerId::new("replayed"))
            .expect("\"replayed\" is a worker id");
        let mut worker = Worker::registered(id, trace.subject.driver, policy, now);
        worker.selectors = trace.subject.selectors.clone();
        worker.is_routed = trace.subject.is_routed;
        Self {
            trace,
            policy,
            now,
            worker,
            evidence: Evidence::default(),
            leases: LeaseBook::default(),
            credential: Credential::new("trace"),
            holds: Vec::new(),
            connections: 0,
            connected_since: now,
            hold_ended_at: None,
            exemptions: Vec::new(),
            shows: [None; Signal::COUNT],
            used_at: [None; Signal::COUNT],
            read_at: [None; Signal::COUNT],
            is_braked: false,
            away_until: now,
            mood: DriverMood::Answers,
            hook_vetoes: false,
            truth: Power::Running,
            truth_since: now,
            idle_warned: None,
            runtime_warned: None,
            schedule_warned: None,
            stop_warned: None,
            deletion_warned: None,
            would_sleep_since: None,
            coming: Vec::new(),
            next_check_at: now,
            schedule_seen: now,
            boots: 1,
            moments: Vec::new(),
            spans: Vec::new(),
            span_since: now,
        }
    }

    pub(super) fn run(mut self) -> Timeline {
        let end = self.trace.start + self.trace.length;
        let mut marks = self.trace.marks.iter().peekable();
        self.observe();
        loop {
            let mark_at = marks.peek().map(|timed| self.trace.start + timed.after);
            let coming_at = self.coming.iter().map(|(at, _)| *at).min();
            let check_at = self.next_check_at.max(self.away_until);
            let next = [mark_at, coming_at, Some(check_at)].into_iter().flatten().min().unwrap_or(end);
            let is_over = self.worker.status.kind() == StatusKind::Terminated && self.coming.is_empty();
            if next > end || is_over {
                break;
            }
            self.now = self.now.max(next);
            while let Some(coming) = self.take_due() {
                self.come(coming);
            }
            while let Some(timed) = marks.next_if(|timed| self.trace.start + timed.after <= self.now) {
                self.happen(&timed.mark);
            }
            if self.now >= check_at && self.now >= self.away_until {
                self.check();
            }
            self.finish_drain();
        }
        self.now = end;
        self.close_span();
        Timeline { moments: self.moments, spans: self.spans, worker: self.worker }
    }

    /// What drains is deleted as soon as nothing holds it.
    fn finish_drain(&mut self) {
        if self.worker.status.kind() == StatusKind::Draining && self.live_holds().is_empty() {
            self.apply(&Event::Drained { generation: self.worker.generation }, None);
        }
    }

    fn take_due(&mut self) -> Option<Coming> {
        let index = (0..self.coming.len())
            .filter(|index| self.coming[*index].0 <= self.now)
            .min_by_key(|index| self.coming[*index].0)?;
        Some(self.coming.remove(index).1)
    }

    fn say(&mut self, what: Happening) {
        self.moments.push(Moment { at: self.now, what });
    }

    /// Applies an event; a refusal is told if somebody asked.
    fn apply(&mut self, event: &Event, asked: Option<&'static str>) -> bool {
        match step(&self.worker, event, self.now) {
            Ok(done) => {
                let before = self.worker.generation;
                if done.worker.generation != before {
                    self.close_span();
                }
                self.worker = done.worker;
                for entry in done.entries {
                    self.note(entry);
                }
                for effect in done.effects {
                    self.effect(effect);
                }
                if self.worker.generation != before {
                    self.after_change();
                }
                true
            }
            Err(refusal) => {
                if let Some(what) = asked {
                    self.say(Happening::Refused { what, refusal });
                }
                false
            }
        }
    }

    fn note(&mut self, entry: Entry) {
        if matches!(entry, Entry::Resumed { .. } | Entry::Undone { .. }) {
            self.evidence.thawed(self.now);
        }
        self.say(Happening::Entry(entry));
    }

    fn after_change(&mut self) {
        if let Some(deadline) = self.worker.status.deadline() {
            self.coming.push((deadline, Coming::Deadline(self.worker.generation)));
        }
        // A new status is looked at once; a worker that runs is read at once.
        self.next_check_at = self.now;
    }

    fn live_holds(&self) -> Vec<Hold> {
        let mut holds: Vec<Hold> = self.holds.iter().filter(|hold| hold.is_live(self.now)).cloned().collect();
        holds.extend(self.leases.alive(self.now).map(|lease| Hold {
            kind: HoldKind::Lease,
            owner: lease.holder.clone(),
            reason: lease.reason.clone(),
            since: lease.taken_at,
            until: Some(lease.until),
        }));
        if self.connections > 0 {
            holds.push(Hold {
                kind: HoldKind::Connection,
                owner: "router".to_string(),
                reason: String::new(),
                since: self.connected_since,
                until: None,
            });
        }
        holds
    }

    fn request(&self, by: &str, force: bool) -> Request {
        let holds = self.live_holds();
        Request { by: by.to_string(), message: String::new(), force, holds }
    }

    fn hold(&mut self, kind: HoldKind, owner: &str, until: Timestamp) {
        self.holds.retain(|hold| hold.kind != kind || hold.owner != owner);
        self.holds.push(Hold {
            kind,
            owner: owner.to_string(),
            reason: String::new(),
            since: self.now,
            until: Some(until),
        });
    }
}
