//! What Drowse reads in the small world, and what it does about it.

use super::{
    Action, DriverMood, Event, Exempt, Fence, Happening, IdlePolicy, Need, PauseReason, Power, PowerSpan,
    Read, Shows, Signal, Snapshot, Status, StatusKind, Timestamp, UnknownCause, Verdict, World, judge,
    savings,
};

impl World<'_> {
    /// Reads a signal as it shows itself now.
    pub(super) fn record(&mut self, signal: Signal) {
        let index = signal as usize;
        let now = self.now;
        let since_read = |at: &Timestamp| self.read_at[index].is_none_or(|read| *at > read);
        let is_connected = signal == Signal::Connections && self.connections > 0;
        let used_at = self.used_at[index].filter(since_read);
        let read = match self.shows[index] {
            Some(Shows::Unknown) if signal == Signal::Connections => {
                Read::unknown(UnknownCause::RouterLost, now)
            }
            Some(Shows::Unknown) if signal == Signal::Activity => Read::unknown(UnknownCause::NoAnswer, now),
            Some(Shows::Unknown) => Read::unknown(UnknownCause::ProbeFailed, now),
            Some(Shows::Active) => Read::active(now, now).telling_gap(),
            _ if is_connected => Read::active(now, now).telling_gap(),
            Some(Shows::Quiet) | None => match used_at {
                Some(at) => Read { tells_gap: tells_of_gaps(signal), ..Read::active(at, now) },
                // A total that has not moved says so about the whole time since it was last read.
                None => Read { tells_gap: signal != Signal::Tcp, ..Read::quiet(now) },
            },
        };
        let counts = signal != Signal::Activity || self.policy.idle_policy == IdlePolicy::Default;
        let interval = self.policy.interval(&self.policy.needs(self.worker.nature()));
        self.evidence.record(signal, read, counts, interval, now);
        if self.shows[index] != Some(Shows::Unknown) {
            self.read_at[index] = Some(now);
        }
    }

    pub(super) fn read_all(&mut self) {
        let needs = self.policy.needs(self.worker.nature());
        for signal in Signal::ALL {
            let is_told = self.shows[signal as usize].is_some() || signal == Signal::Connections;
            if needs[signal as usize] != Need::Off && is_told {
                self.record(signal);
            }
        }
    }

    pub(super) fn check(&mut self) {
        if self.mood == DriverMood::Answers && self.worker.status.deadline().is_none() {
            self.observe();
        }
        if self.truth == Power::Running && self.worker.status.kind() == StatusKind::Running {
            self.read_all();
        }
        self.open_windows();
        let verdict = self.judge();
        verdict.note(&mut self.evidence);
        if verdict.unknown_alert {
            self.say(Happening::UnknownAlert);
        }
        self.warn(&verdict);
        self.next_check_at = verdict.next_check_at;
        self.act(&verdict);
    }

    pub(super) fn judge(&self) -> Verdict {
        let holds = self.live_holds();
        let snapshot = Snapshot {
            worker: &self.worker,
            evidence: &self.evidence,
            holds: &holds,
            hold_ended_at: self.hold_ended_at.max(self.leases.last_ended_at(self.now)),
            exempt: Exempt::of(&self.exemptions, &self.trace.subject.selectors, self.now),
            is_braked: self.is_braked,
            check_began_at: Some(self.now),
            is_seen: true,
            idle_warned: self.idle_warned,
            runtime_warned: self.runtime_warned,
            schedule_warned: self.schedule_warned,
            stop_warned: self.stop_warned,
            deletion_warned: self.deletion_warned,
            can_scale_down: self.policy.can_scale_down(self.trace.subject.fleet, None, self.now),
        };
        judge(&snapshot, self.policy, self.now)
    }

    pub(super) fn warn(&mut self, verdict: &Verdict) {
        let now = self.now;
        if let Some(warning) = verdict.idle_warning {
            self.idle_warned = Some(warning.sent(self.idle_warned, now));
            self.say(Happening::Warned(warning));
        }
        if let Some(warning) = verdict.runtime_warning {
            self.runtime_warned = Some(warning.sent(self.runtime_warned, now));
            self.say(Happening::Warned(warning));
        }
        if let Some(warning) = verdict.schedule_warning {
            self.schedule_warned = Some(warning.sent(self.schedule_warned, now));
            self.say(Happening::Warned(warning));
        }
        if let Some(warning) = verdict.stop_warning {
            self.stop_warned = Some(warning.sent(self.stop_warned, now));
            self.say(Happening::Warned(warning));
        }
        if let Some(warning) = verdict.deletion_warning {
            self.deletion_warned = Some(warning.sent(self.deletion_warned, now));
            self.say(Happening::Warned(warning));
        }
    }

    pub(super) fn act(&mut self, verdict: &Verdict) {
        let fence = Fence::alone(&self.worker);
        let generation = self.worker.generation;
        let event = match verdict.action {
            // The agent of a trace answers in the same breath, so it is never behind.
            Action::None | Action::AskAgent => return,
            Action::WouldSleep { reason } => {
                // Once an episode, not at every check.
                let episode = Some(verdict.baseline.at);
                if self.would_sleep_since != episode {
                    self.would_sleep_since = episode;
                    self.say(Happening::WouldSleep(reason));
                }
                return;
            }
            Action::Sleep { reason } => match reason {
                PauseReason::MaxRuntime => Event::MaxRuntimeReached { fence },
                PauseReason::Schedule => {
                    let window = self.policy.schedule.as_ref().map(|schedule| schedule.at(self.now));
                    let force = window.and_then(|now| now.sleep) == Some(crate::schedule::Sleep::Forced);
                    Event::ScheduleSaidSleep { force, fence }
                }
                PauseReason::IdleTimeout
                | PauseReason::Manual
                | PauseReason::External
                | PauseReason::ScaleDown => Event::IdleConfirmed { fence },
            },
            Action::ScaleDown => Event::ScaleDownConfirmed { fence },
            Action::StopAfter => Event::StopAfterElapsed { generation },
            Action::TerminateAfter => Event::TerminateAfterElapsed { generation },
        };
        self.apply(&event, Some("action"));
    }

    /// Wake windows that opened since the last look.
    pub(super) fn open_windows(&mut self) {
        let Some(schedule) = &self.policy.schedule else { return };
        let wakes = schedule
            .openings(self.schedule_seen, self.now)
            .any(|(_, window)| window.effect == crate::schedule::Effect::KeepAwake { wake: true })
            && schedule.at(self.now).wake;
        self.schedule_seen = self.now;
        if wakes {
            self.apply(&Event::ScheduleSaidWake, None);
        }
    }

    pub(super) fn close_span(&mut self) {
        let (power, sleep) = match &self.worker.status {
            Status::Paused { sleep, .. } => (savings::Power::Frozen, Some(sleep)),
            Status::Stopped { sleep, .. } => (savings::Power::Stopped, Some(sleep)),
            Status::Provisioning { .. }
            | Status::Running { .. }
            | Status::Pausing { .. }
            | Status::Waking { .. }
            | Status::Stopping { .. }
            | Status::Draining { .. }
            | Status::Terminating { .. }
            | Status::Terminated { .. }
            | Status::Failed { .. }
            | Status::Unknown { .. } => (savings::Power::Running, None),
        };
        let caused_by = sleep.map(|sleep| match sleep.reason {
            PauseReason::Manual => savings::Cause::Person,
            PauseReason::External => savings::Cause::External,
            PauseReason::IdleTimeout
            | PauseReason::Schedule
            | PauseReason::MaxRuntime
            | PauseReason::ScaleDown => savings::Cause::Drowse,
        });
        if self.now > self.span_since {
            self.spans.push(PowerSpan { from: self.span_since, until: self.now, power, caused_by });
        }
        self.span_since = self.now;
    }
}

/// Whether a source that shows use also tells about the time since it was last read.
fn tells_of_gaps(signal: Signal) -> bool {
    matches!(signal, Signal::Telemetry | Signal::Activity | Signal::Connections)
}
