//! A second, simpler machine: kinds of statuses, whether somebody waits, and what may wake. It knows
//! nothing of counters, journals, effects and snoozes.

#![expect(clippy::wildcard_enum_match_arm, reason = "what the model does not know changes nothing")]
#![expect(clippy::match_same_arms, reason = "rows that say the same are still rows")]

use core::time::Duration;

use drowse_core::Timestamp;
use drowse_core::reason::{PauseReason, SleepMode};
use drowse_core::status::StatusKind::{
    self, Draining, Failed, Paused, Pausing, Running, Stopped, Stopping, Terminated, Terminating, Unknown,
    Waking,
};
use drowse_core::worker::{Power, Worker};

use super::machine_acts::{Act, Asks, Run};
use super::machine_bench::secs;

/// Where a wake begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Frozen,
    Undone,
    Stopped,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "yes and no is all that a simple model knows")]
pub(crate) struct Model {
    pub(crate) kind: StatusKind,
    pub(super) since: Timestamp,
    pub(super) deadline: Timestamp,
    /// Why it sleeps, and whether somebody insisted.
    pub(super) sleep: Option<(PauseReason, bool)>,
    pub(crate) waits: bool,
    pub(super) in_hook: bool,
    pub(super) was_paused: bool,
    pub(super) from: From,
    pub(super) not_before: Timestamp,
    pub(super) refusals: u8,
    pub(super) is_crash_loop: bool,
    pub(super) seen: Option<(Power, Timestamp)>,
    pub(super) has_moved: bool,
    /// The run as the driver names it, when it began, and whether it is over.
    pub(super) boot: Option<String>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) quick_exits: Vec<Timestamp>,
    pub(super) failures: u32,
    pub(super) given_up: Option<(Box<Model>, Option<Timestamp>)>,
    pub(super) in_service: bool,
}

impl Model {
    pub(crate) fn of(worker: &Worker) -> Model {
        Model {
            kind: worker.status.kind(),
            since: worker.status.since(),
            deadline: worker.status.deadline().unwrap_or(Timestamp::MAX),
            sleep: None,
            waits: false,
            in_hook: false,
            was_paused: false,
            from: From::Stopped,
            not_before: worker.status.since(),
            refusals: 0,
            is_crash_loop: false,
            seen: None,
            has_moved: false,
            boot: None,
            started_at: None,
            quick_exits: Vec::new(),
            failures: 0,
            given_up: None,
            in_service: true,
        }
    }

    /// What becomes of it. `worker` is asked only for what never changes: its driver and its terms.
    pub(crate) fn apply(&mut self, act: &Act, worker: &Worker, now: Timestamp) {
        match act {
            Act::Wait(_) => {}
            Act::InService(yes) => self.in_service = *yes,
            Act::Idle { fenced: false } if self.kind == Running => {
                self.fall(worker.terms.sleep, (PauseReason::IdleTimeout, false), worker, now);
            }
            Act::ScheduleSleep { fenced: false, force } if self.kind == Running => {
                self.fall(worker.terms.sleep, (PauseReason::Schedule, *force), worker, now);
            }
            Act::MaxRuntime { fenced: false } if matches!(self.kind, Running | Paused) => {
                self.fall(SleepMode::Stop, (PauseReason::MaxRuntime, true), worker, now);
            }
            Act::Pause { force, held } if self.kind == Running && (*force || !held) => {
                self.fall(worker.terms.sleep, (PauseReason::Manual, *force), worker, now);
            }
            Act::Stop { force, held } if matches!(self.kind, Running | Paused) && (*force || !held) => {
                self.fall(SleepMode::Stop, (PauseReason::Manual, *force), worker, now);
            }
            Act::StopAfter { late: false } if self.kind == Paused => {
                let is_due = worker.terms.stop_after.is_some_and(|after| now >= self.since + after);
                let Some(sleep @ (PauseReason::IdleTimeout | PauseReason::Schedule, _)) = self.sleep else {
                    return;
                };
                if is_due {
                    self.fall(SleepMode::Stop, sleep, worker, now);
                }
            }
            Act::Ask(asks) => self.asked(*asks, worker, now),
            Act::HookPassed { late: false } if self.in_hook => self.in_hook = false,
            Act::HookVetoed { late: false } if self.in_hook => {
                if self.sleep.is_some_and(|(_, forced)| forced) {
                    self.in_hook = false;
                } else {
                    self.wake(From::Undone, worker, now);
                }
            }
            Act::Done { late: false, .. }
                if !self.in_hook && matches!(self.kind, Pausing | Stopping | Terminating) =>
            {
                self.clone().end_as_meant(self, worker, now);
            }
            Act::Ready { late: false, run } if self.kind == Waking => {
                self.note_run(*run, now);
                self.rest(Running, now, worker);
            }
            Act::Refused { late: false } if self.has_intent() && !self.in_hook => self.refused(worker, now),
            Act::Silent { late: false } if self.kind != Draining && now >= self.deadline => {
                self.give_up();
                self.go(Unknown, now);
            }
            Act::Look { power, run, late: false, age } => self.look(*power, *run, now - *age, worker, now),
            Act::Exited { run, code } => self.exited(*run, *code, worker, now),
            Act::ScaleDown { fenced: false } if self.kind == Running => self.drain(worker, now),
            Act::Drain if matches!(self.kind, Running | Stopped) => self.drain(worker, now),
            Act::DrainCancelled if self.kind == Draining => self.undrain(now, worker),
            Act::DrainTimedOut { late: false } if self.kind == Draining && now >= self.deadline => {
                self.undrain(now, worker);
            }
            Act::Drained { late: false } if self.kind == Draining => self.terminate(now),
            Act::Terminate { force, held }
                if matches!(self.kind, Running | Paused | Stopped | Unknown | Failed | Draining)
                    && (*force || !held) =>
            {
                self.terminate(now);
            }
            Act::Recovered(power) => self.recovered(*power, worker, now),
            // Refused, too late, or true already; a deadline by itself only asks the driver.
            _ => {}
        }
    }

    pub(crate) fn has_intent(&self) -> bool {
        matches!(self.kind, Pausing | Waking | Stopping | Terminating)
    }

    pub(super) fn go(&mut self, kind: StatusKind, now: Timestamp) {
        self.kind = kind;
        self.since = now;
        self.deadline = Timestamp::MAX;
        self.has_moved = true;
        self.seen = None;
        self.waits = false;
        self.in_hook = false;
        self.refusals = 0;
    }

    pub(super) fn rest(&mut self, kind: StatusKind, now: Timestamp, worker: &Worker) {
        self.go(kind, now);
        if kind == Running {
            self.sleep = None;
        }
        if kind == Stopped {
            self.started_at = None;
        }
        if let Some((_, until @ None)) = &mut self.given_up {
            *until = Some(now + worker.can.waking_within);
        }
    }

    fn fall(&mut self, mode: SleepMode, sleep: (PauseReason, bool), worker: &Worker, now: Timestamp) {
        self.was_paused = self.kind == Paused;
        self.given_up = None;
        self.go(if mode == SleepMode::Freeze { Pausing } else { Stopping }, now);
        self.in_hook = worker.terms.has_before_pause && !self.was_paused;
        self.sleep = Some(sleep);
        self.deadline = now + allowed(self.kind, worker);
    }

    pub(super) fn wake(&mut self, from: From, worker: &Worker, now: Timestamp) {
        self.given_up = None;
        self.go(Waking, now);
        self.from = from;
        self.not_before = now;
        self.deadline = now + allowed(Waking, worker);
    }

    fn drain(&mut self, worker: &Worker, now: Timestamp) {
        if self.kind == Running {
            self.sleep = None;
        }
        self.go(Draining, now);
        self.deadline = now + worker.terms.drain_timeout;
    }

    fn undrain(&mut self, now: Timestamp, worker: &Worker) {
        let kind = if self.sleep.is_some() { Stopped } else { Running };
        self.rest(kind, now, worker);
    }

    fn terminate(&mut self, now: Timestamp) {
        if matches!(self.kind, Unknown | Failed | Running) {
            self.sleep = None;
        }
        self.given_up = None;
        self.go(Terminating, now);
        self.deadline = now + secs(600);
    }

    pub(super) fn is_undoable(&self) -> bool {
        self.sleep.is_some_and(|(reason, forced)| {
            !forced && matches!(reason, PauseReason::IdleTimeout | PauseReason::Schedule)
        })
    }

    fn may_wake(&self, worker: &Worker) -> bool {
        self.in_service && self.sleep.is_some_and(|(reason, _)| worker.terms.wake_from.contains(reason))
    }

    fn asked(&mut self, asks: Asks, worker: &Worker, now: Timestamp) {
        let is_forced = self.sleep.is_some_and(|(_, forced)| forced);
        let is_allowed = match asks {
            Asks::Connection | Asks::Lease | Asks::Schedule => self.may_wake(worker),
            Asks::KeepAwake | Asks::Resume => true,
            Asks::Activity => self.is_undoable(),
            Asks::Nonsense => false,
        };
        if asks == Asks::Resume && matches!(self.kind, Unknown | Failed | Stopped) {
            self.quick_exits.clear();
            self.failures = 0;
        }
        if asks == Asks::Resume && matches!(self.kind, Unknown | Failed) {
            let counted = self.given_up.take().and_then(|(was, _)| match was.kind {
                Waking if was.from != From::Undone => was.sleep,
                Terminating => was.sleep,
                Stopping if was.was_paused => was.sleep,
                _ => None,
            });
            self.sleep = counted;
            self.wake(From::Stopped, worker, now);
        }
        if !is_allowed {
            return;
        }
        let starts = matches!(asks, Asks::Connection | Asks::Resume | Asks::Schedule);
        match self.kind {
            Pausing if self.in_hook => self.wake(From::Undone, worker, now),
            Pausing => self.waits = true,
            Paused => self.wake(From::Frozen, worker, now),
            Stopping if self.in_hook && (asks == Asks::Resume || !is_forced) => {
                self.wake(From::Undone, worker, now);
            }
            Stopping if starts => self.waits = true,
            Stopped if starts => self.wake(From::Stopped, worker, now),
            _ => {}
        }
    }

    /// Ends the transition `self`, which may have been given up, in `now_in`.
    pub(super) fn end_as_meant(self, now_in: &mut Model, worker: &Worker, now: Timestamp) {
        now_in.given_up = None;
        now_in.sleep = self.sleep;
        match self.kind {
            Pausing if self.waits => now_in.wake(From::Undone, worker, now),
            Pausing => now_in.rest(Paused, now, worker),
            Stopping => {
                now_in.rest(Stopped, now, worker);
                if self.waits {
                    now_in.wake(From::Stopped, worker, now);
                }
            }
            Waking => now_in.rest(Running, now, worker),
            _ => now_in.go(Terminated, now),
        }
    }

    fn refused(&mut self, worker: &Worker, now: Timestamp) {
        self.refusals += 1;
        if self.waits {
            let from = if self.was_paused && self.kind == Stopping { From::Frozen } else { From::Undone };
            self.wake(from, worker, now);
        } else if self.refusals >= 3 {
            self.give_up();
            self.is_crash_loop = false;
            self.go(Failed, now);
        }
    }

    fn give_up(&mut self) {
        let was = Model { given_up: None, ..self.clone() };
        self.given_up = Some((Box::new(was), None));
    }

    fn exited(&mut self, run: Run, code: i32, worker: &Worker, now: Timestamp) {
        let is_this = run == Run::Same && self.boot.is_some();
        let began_at = match self.kind {
            Running if is_this => self.started_at.unwrap_or(now),
            Waking if self.from != From::Stopped && is_this => self.started_at.unwrap_or(now),
            Waking if self.from == From::Stopped && !is_this && now >= self.not_before => {
                let run = if run == Run::Untold { Run::Other } else { run };
                self.boot = run.name(self.boot.as_deref(), now);
                self.not_before
            }
            _ => return,
        };
        let ours = self.given_up.clone().filter(|(was, until)| {
            was.kind == Stopping && !was.in_hook && until.is_none_or(|until| now < until)
        });
        if let Some((was, _)) = ours {
            return was.end_as_meant(self, worker, now);
        }
        if code == 0 || !worker.can.restarts_on_error {
            return self.found_external(Stopped, now, worker);
        }
        // Five exits within ten seconds of a start, in two minutes.
        let lived_for = now.since(began_at);
        if lived_for > secs(120) {
            self.failures = 0;
        }
        self.quick_exits.retain(|at| now.since(*at) <= secs(120));
        if lived_for <= secs(10) {
            self.quick_exits.push(now);
        }
        self.started_at = None;
        if lived_for <= secs(10) && self.quick_exits.len() >= 5 {
            self.given_up = None;
            self.is_crash_loop = true;
            return self.go(Failed, now);
        }
        let wait = secs(1 << self.failures.min(6)).min(secs(60));
        self.failures += 1;
        if self.kind == Running || self.from == From::Undone {
            self.sleep = None;
        }
        self.wake(From::Stopped, worker, now);
        self.not_before = now + wait;
        self.deadline = self.not_before + allowed(Waking, worker);
    }

    fn recovered(&mut self, power: Option<Power>, worker: &Worker, now: Timestamp) {
        let is_sleepy = matches!(self.kind, Pausing | Stopping);
        match power {
            Some(Power::Gone) if self.has_intent() => return self.go(Terminated, now),
            Some(Power::Stopped) if is_sleepy || (self.kind == Waking && self.from == From::Undone) => {
                return self.truth(Power::Stopped, Run::Untold, worker, now);
            }
            Some(Power::Paused) if self.kind == Pausing && !self.waits && !self.is_undoable() => {
                return self.truth(Power::Paused, Run::Untold, worker, now);
            }
            _ => {}
        }
        let cannot_vouch = match self.kind {
            Pausing => self.waits || self.is_undoable(),
            Stopping => !self.was_paused && self.is_undoable(),
            _ => false,
        };
        if cannot_vouch {
            let was = Model { given_up: None, ..self.clone() };
            if self.kind == Stopping && !self.in_hook && power.is_none() {
                return;
            }
            self.wake(From::Undone, worker, now);
            if !was.in_hook {
                self.given_up = Some((Box::new(was), None));
            }
        } else if self.has_intent() {
            if self.kind == Waking && self.from == From::Frozen && power == Some(Power::Stopped) {
                self.from = From::Stopped;
            }
            let from = if self.kind == Waking { now.max(self.not_before) } else { now };
            self.deadline = from + allowed(self.kind, worker);
        }
    }
}

/// The deadlines of the specification.
fn allowed(kind: StatusKind, worker: &Worker) -> Duration {
    let is_ec2 = worker.driver == drowse_core::signal::DriverKind::Ec2;
    match kind {
        Pausing => secs(30),
        Waking if is_ec2 => secs(600),
        Waking => secs(60),
        Stopping if is_ec2 => secs(600),
        Stopping => worker.terms.grace + secs(30),
        _ => secs(600),
    }
}
