//! The people and programs of the small world.

use super::{
    Asked, Coming, Duration, Event, Exemption, Happening, HoldKind, IdlePolicy, LeaseTerms, Mark, Power,
    Shows, Signal, Subject, ToString, WakeCause, World,
};

impl World<'_> {
    pub(super) fn happen(&mut self, mark: &Mark) {
        match mark {
            Mark::Signal(signal, shows) => {
                let index = *signal as usize;
                if self.shows[index] == Some(Shows::Active) {
                    self.used_at[index] = Some(self.now);
                }
                self.shows[index] = Some(*shows);
                if *shows == Shows::Active {
                    self.used_at[index] = Some(self.now);
                }
                self.push(*signal);
            }
            Mark::Pulse(signal) => {
                self.used_at[*signal as usize] = Some(self.now);
                self.shows[*signal as usize].get_or_insert(Shows::Quiet);
                self.push(*signal);
            }
            Mark::Lease { holder, ttl } => self.take_lease(holder, *ttl),
            Mark::Release { holder } => {
                if self.leases.release(&self.credential, Some(holder), self.now).is_some() {
                    self.hold_ended_at = Some(self.now);
                }
            }
            Mark::Connect => self.connect(),
            // Whoever was refused at the door was never in.
            Mark::Disconnect if self.connections == 0 => {}
            Mark::Disconnect => {
                self.connections -= 1;
                self.hold_ended_at = Some(self.now);
                self.evidence.note_activity(self.now, Signal::Connections, self.now);
            }
            Mark::Pause { by, force } => {
                let request = self.request(by, *force);
                self.apply(&Event::PauseRequested(request), Some("pause"));
            }
            Mark::Stop { by, force } => {
                let request = self.request(by, *force);
                self.apply(&Event::StopRequested(request), Some("stop"));
            }
            Mark::Resume { by } => {
                self.apply(&Event::ResumeRequested { by: by.clone() }, Some("resume"));
            }
            Mark::KeepAwake { by, ttl } => {
                let cause = WakeCause::KeepAwake { by: by.clone() };
                if self.apply(&Event::WakeRequested { cause }, Some("keep-awake")) {
                    self.hold(HoldKind::KeepAwake, by, self.now + *ttl);
                }
            }
            Mark::Terminate { by, force } => {
                let request = self.request(by, *force);
                self.apply(&Event::TerminateRequested(request), Some("terminate"));
            }
            Mark::Drain { by } => {
                let request = self.request(by, false);
                self.apply(&Event::DrainRequested(request), Some("drain"));
            }
            Mark::Undrain { by } => {
                self.apply(&Event::DrainCancelled { by: by.clone() }, Some("undrain"));
            }
            Mark::External(power) => {
                if *power == Power::Running && matches!(self.truth, Power::Stopped | Power::Gone) {
                    self.boots += 1;
                    self.evidence = self.evidence.next_run();
                }
                self.turn(*power);
                self.coming.push((self.now, Coming::Look));
            }
            Mark::Exit { code } => {
                self.turn(Power::Stopped);
                self.apply(&Event::Exited { boot: self.boot(), code: *code }, None);
            }
            Mark::Brake(is_engaged) => {
                self.is_braked = *is_engaged;
                self.next_check_at = self.now;
            }
            Mark::Exempt { from, until } => self.exemptions.push(Exemption {
                subject: Subject::Worker(self.trace.subject.selectors.worker.clone()),
                from: from.clone(),
                reason: "trace".to_string(),
                approved_by: "trace".to_string(),
                expires_on: until.from(self.now),
            }),
            Mark::Away { length } => self.away_until = self.now + *length,
            Mark::Driver(mood) => self.mood = *mood,
            Mark::Hook { vetoes } => self.hook_vetoes = *vetoes,
        }
    }

    /// What is told to us rather than read by us arrives at once.
    pub(super) fn push(&mut self, signal: Signal) {
        if signal.is_pulled() || self.now < self.away_until || self.truth != Power::Running {
            return;
        }
        self.record(signal);
        let undoes = self.policy.idle_policy == IdlePolicy::Default || signal != Signal::Activity;
        if self.used_at[signal as usize] == Some(self.now) && undoes {
            self.apply(&Event::ActivityArrived { by: signal }, None);
        }
    }

    pub(super) fn connect(&mut self) {
        // Counted before the worker is asked for, so that no check in between sees nobody.
        self.connections += 1;
        self.connected_since = if self.connections == 1 { self.now } else { self.connected_since };
        let cause = WakeCause::Connection;
        if self.apply(&Event::WakeRequested { cause }, Some("connection")) {
            self.evidence.note_activity(self.now, Signal::Connections, self.now);
        } else {
            self.connections -= 1;
        }
    }

    pub(super) fn take_lease(&mut self, holder: &str, ttl: Duration) {
        let cause = WakeCause::Lease { holder: holder.to_string() };
        if !self.apply(&Event::WakeRequested { cause }, Some("lease")) {
            return;
        }
        let terms = LeaseTerms {
            ttl_max: self.policy.lease_ttl_max,
            ceiling: self.policy.lease_ceiling,
            idle_timeout: self.policy.idle_timeout,
        };
        let asked = Asked { credential: &self.credential, holder: Some(holder), ttl, reason: "" };
        if let Err(refusal) = self.leases.take(&asked, &terms, self.now) {
            self.say(Happening::LeaseRefused { code: refusal.code() });
        }
    }
}
