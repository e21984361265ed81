//! The driver of the small world: it does what it is asked to do, in the time the trace gives it.

use super::{
    BootId, Coming, DriverMood, Duration, Effect, Event, HoldKind, Observation, Power, Signal, StatusKind,
    ToString, World,
};

impl World<'_> {
    pub(super) fn effect(&mut self, effect: Effect) {
        let subject = &self.trace.subject;
        let (delay, coming) = match effect {
            Effect::RunBeforePause { intent, .. } => (Duration::ZERO, Coming::HookAnswers(intent)),
            Effect::Freeze { intent } => (subject.freezes_in, Coming::Done(intent, Power::Paused)),
            Effect::Stop { intent, .. } => (subject.stops_in, Coming::Done(intent, Power::Stopped)),
            Effect::Terminate { intent } => (subject.stops_in, Coming::Done(intent, Power::Gone)),
            Effect::Thaw { intent } => (subject.wakes_in, Coming::Ready(intent)),
            Effect::Start { intent, not_before } => {
                (not_before.since(self.now) + subject.wakes_in, Coming::Ready(intent))
            }
            Effect::Look { not_before } => {
                // A second look is a later look, if only by a tick.
                (not_before.since(self.now).max(Duration::from_micros(1)), Coming::Look)
            }
            Effect::Snooze { until } => {
                self.hold(HoldKind::Snooze, "drowse", until);
                return;
            }
            Effect::EndHolds => {
                self.leases.clear(self.now);
                self.holds.retain(|hold| matches!(hold.kind, HoldKind::Snooze | HoldKind::KeepAwake));
                self.connections = 0;
                return;
            }
            Effect::EndLeasedTime => {
                self.leases.slept();
                return;
            }
            Effect::RunAfterResume | Effect::AnnounceSleep { .. } => return,
        };
        let acts = !matches!(coming, Coming::Look | Coming::HookAnswers(_));
        match (self.mood, &coming) {
            (DriverMood::Silent, _) if acts => {}
            (DriverMood::Refuses, Coming::Done(intent, _) | Coming::Ready(intent)) => {
                self.coming.push((self.now, Coming::Refused(*intent)));
            }
            (_, _) => self.coming.push((self.now + delay, coming)),
        }
    }

    pub(super) fn come(&mut self, coming: Coming) {
        match coming {
            Coming::Done(intent, power) => {
                self.turn(power);
                self.apply(&Event::DriverDone { intent, exit_code: None, asked_at: None }, None);
            }
            Coming::Ready(intent) => {
                if matches!(self.truth, Power::Stopped | Power::Gone) {
                    self.boots += 1;
                    self.evidence = self.evidence.next_run();
                    self.read_at = [None; Signal::COUNT];
                }
                self.turn(Power::Running);
                let boot = Some(self.boot());
                self.apply(&Event::DriverReady { intent, boot, started_at: Some(self.now) }, None);
            }
            Coming::Refused(intent) => {
                self.apply(&Event::DriverRefused { intent, message: "refused".to_string() }, None);
            }
            Coming::HookAnswers(intent) if self.hook_vetoes => {
                self.apply(&Event::HookVetoed { intent, message: "busy".to_string() }, None);
            }
            Coming::HookAnswers(intent) => {
                self.apply(&Event::HookPassed { intent }, None);
            }
            Coming::Look if self.mood == DriverMood::Silent => {
                self.apply(&Event::DriverSilent { generation: self.worker.generation }, None);
            }
            Coming::Look => self.observe(),
            Coming::Deadline(generation) => {
                if self.worker.status.kind() == StatusKind::Draining {
                    let is_held = !self.live_holds().is_empty();
                    self.apply(&Event::DrainTimedOut { generation, is_held }, None);
                } else {
                    self.apply(&Event::DeadlinePassed { generation }, None);
                }
            }
        }
    }

    pub(super) fn turn(&mut self, power: Power) {
        self.truth = power;
        self.truth_since = self.now;
    }

    pub(super) fn boot(&self) -> BootId {
        BootId::new(alloc::format!("boot-{}", self.boots))
    }

    pub(super) fn observe(&mut self) {
        let seen = Observation {
            power: self.truth,
            began_at: self.now,
            generation: self.worker.generation,
            boot: Some(self.boot()),
            dated_at: Some(self.truth_since),
        };
        self.apply(&Event::Observed(seen), None);
    }
}
