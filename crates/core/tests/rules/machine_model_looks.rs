//! The second model, part two: looks at the driver, and what is found when a transition is overdue.

#![expect(clippy::wildcard_enum_match_arm, reason = "what the model does not know changes nothing")]
#![expect(clippy::match_same_arms, reason = "rows that say the same are still rows")]

use drowse_core::Timestamp;
use drowse_core::reason::PauseReason;
use drowse_core::status::StatusKind::{
    self, Draining, Failed, Paused, Pausing, Provisioning, Running, Stopped, Stopping, Terminated,
    Terminating, Unknown, Waking,
};
use drowse_core::worker::{Power, Worker};

use super::machine_acts::Run;
use super::machine_model::{From, Model};

impl Model {
    pub(super) fn means(&self, power: Power) -> bool {
        matches!(
            (self.kind, power),
            (Pausing, Power::Paused) | (Stopping, Power::Stopped) | (Waking, Power::Running)
        )
    }

    pub(super) fn note_run(&mut self, run: Run, now: Timestamp) {
        let told = run.name(self.boot.as_deref(), now);
        let is_new = match (&self.boot, &told) {
            (Some(old), Some(new)) => old != new,
            _ => self.from == From::Stopped,
        };
        if is_new || self.started_at.is_none() {
            self.started_at = Some(now);
            self.boot = told;
        } else if told.is_some() {
            self.boot = told;
        }
    }

    pub(super) fn look(
        &mut self,
        power: Power,
        run: Run,
        began_at: Timestamp,
        worker: &Worker,
        now: Timestamp,
    ) {
        if self.has_intent() {
            if now >= self.deadline && began_at >= self.deadline {
                self.truth(power, run, worker, now);
            }
            return;
        }
        let settle_for = worker.can.settle_for;
        if self.has_moved && began_at < self.since + settle_for {
            return;
        }
        let told = run.name(self.boot.as_deref(), now);
        match (self.kind, power) {
            (Terminated, _) => {}
            (Provisioning, Power::Running) => {
                self.started_at = Some(now);
                self.boot = told;
                self.rest(Running, now, worker);
            }
            (Running, Power::Running) => {
                self.seen = None;
                if told.is_some() && self.boot.is_some() && told != self.boot {
                    self.started_at = Some(now);
                    self.rest(Running, now, worker);
                }
                self.boot = told.or(self.boot.take());
            }
            (Paused, Power::Paused) | (Stopped, Power::Stopped) => self.seen = None,
            (Failed, Power::Stopped | Power::Paused) if self.is_crash_loop => self.seen = None,
            (Draining, Power::Running | Power::Paused | Power::Stopped) => self.seen = None,
            (Unknown, _) => self.truth(power, run, worker, now),
            (Failed, _) if !self.is_crash_loop => self.truth(power, run, worker, now),
            _ => match self.seen {
                Some((first, at)) if first == power => {
                    if began_at > at && began_at >= at + settle_for {
                        self.seen_twice(power, run, worker, now);
                    }
                }
                _ => self.seen = Some((power, began_at)),
            },
        }
    }

    pub(super) fn late(&self, power: Power, now: Timestamp) -> Option<Model> {
        let (was, until) = self.given_up.as_ref()?;
        (was.means(power) && until.is_none_or(|until| now < until)).then(|| (**was).clone())
    }

    pub(super) fn fulfil(&mut self, was: Model, run: Run, worker: &Worker, now: Timestamp) {
        if was.kind == Waking {
            self.from = was.from;
            self.note_run(run, now);
        }
        was.end_as_meant(self, worker, now);
    }

    pub(super) fn seen_twice(&mut self, power: Power, run: Run, worker: &Worker, now: Timestamp) {
        if let Some(was) = self.late(power, now) {
            self.fulfil(was, run, worker, now);
            return;
        }
        self.given_up = None;
        let told = run.name(self.boot.as_deref(), now);
        match power {
            Power::Gone => self.go(Terminated, now),
            Power::Paused if self.kind != Stopped => self.found_external(Paused, now, worker),
            Power::Stopped => self.found_external(Stopped, now, worker),
            Power::Running | Power::Paused => {
                let is_same = told.is_none() || self.boot.is_none() || told == self.boot;
                if self.kind == Paused && is_same {
                    self.boot = told.or(self.boot.take());
                } else {
                    self.started_at = Some(now);
                    self.boot = told;
                }
                self.rest(Running, now, worker);
            }
        }
    }

    pub(super) fn found_external(&mut self, kind: StatusKind, now: Timestamp, worker: &Worker) {
        self.rest(kind, now, worker);
        self.sleep = Some((PauseReason::External, false));
    }

    pub(super) fn truth(&mut self, power: Power, run: Run, worker: &Worker, now: Timestamp) {
        let mut was = match (self.kind, &self.given_up) {
            (Unknown | Failed, Some((was, _))) => (**was).clone(),
            _ => Model { given_up: None, ..self.clone() },
        };
        if was.means(power) {
            return self.fulfil(was, run, worker, now);
        }
        if let Some(late) = self.late(power, now).filter(|late| late.kind == Stopping) {
            return self.fulfil(late, run, worker, now);
        }
        let was_asked = matches!(was.kind, Pausing | Stopping | Waking) && !was.in_hook;
        let mut may_be_late = was_asked;
        self.given_up = None;
        let told = run.name(self.boot.as_deref(), now);
        match power {
            Power::Gone => return self.go(Terminated, now),
            Power::Running => {
                let is_other =
                    self.started_at.is_some() && told.is_some() && self.boot.is_some() && told != self.boot;
                if is_other || self.started_at.is_none() {
                    self.started_at = Some(now);
                    self.boot = told;
                } else {
                    self.boot = told.or(self.boot.take());
                }
                let is_woken = was.kind == Stopping && was.was_paused && was.waits;
                may_be_late &= !is_other && !is_woken;
                was.waits |= was.kind == Pausing && was.is_undoable();
                self.rest(Running, now, worker);
            }
            Power::Paused => {
                let is_as_before = match was.kind {
                    Waking => was.from != From::Stopped,
                    Stopping => was.was_paused,
                    kind => kind == Terminating,
                } && was.sleep.is_some();
                self.rest(Paused, now, worker);
                self.sleep = if is_as_before { was.sleep } else { Some((PauseReason::External, false)) };
            }
            Power::Stopped => {
                let is_as_before = match was.kind {
                    Waking => was.from == From::Stopped,
                    kind => kind == Terminating && self.started_at.is_none(),
                } && was.sleep.is_some();
                self.rest(Stopped, now, worker);
                self.sleep = if is_as_before { was.sleep } else { Some((PauseReason::External, false)) };
            }
        }
        if self.kind != Running && was.waits && matches!(was.kind, Pausing | Stopping) {
            let from = if self.kind == Paused { From::Frozen } else { From::Stopped };
            self.wake(from, worker, now);
        } else if may_be_late && was.may_come_late_when(self.kind) {
            self.given_up = Some((Box::new(was), Some(now + worker.can.waking_within)));
        }
    }

    /// Nothing freezes or thaws what is stopped, and nothing starts what is frozen.
    pub(super) fn may_come_late_when(&self, found: StatusKind) -> bool {
        match found {
            Paused => self.kind == Stopping || (self.kind == Waking && self.from != From::Stopped),
            Stopped => self.kind == Waking && self.from == From::Stopped,
            _ => true,
        }
    }
}
