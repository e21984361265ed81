//! The state machine of a worker: the only code that changes a status.
//!
//! [`step`] takes a worker and an event and answers with the changed worker, what must be done, and what
//! is written down; or it refuses with a typed reason and nothing has changed. It is a plain function:
//! the shell calls it inside the transaction that locks the worker's row.
//!
//! The table of lawful transitions stands in `tests/rules/machine.rs`, copied from the specification, and
//! random histories are held against it.

mod asleep;
mod driver;
mod end;
mod exit;
mod fence;
mod last_look;
mod observe;
mod truth;
mod wake;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

pub use fence::{Basis, Fence, Found, Judged};
pub use last_look::LastLook;

use crate::clock::Timestamp;
use crate::effect::Effect;
use crate::event::Event;
use crate::id::{Generation, IntentId};
use crate::journal::Entry;
use crate::refusal::Refusal;
use crate::status::{Status, StatusKind, WakeCause};
use crate::worker::{Abandoned, Worker};

/// Who acts when nobody is named.
pub(crate) const DROWSE: &str = "drowse";

/// Whether a request changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is being done, or has been.
    Accepted,
    /// It was so before.
    AlreadyTrue,
}

/// The outcome of an event that was not refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The worker afterwards.
    pub worker: Worker,
    /// Whether that is a change.
    pub answer: Answer,
    /// What must be done, in this order.
    pub effects: Vec<Effect>,
    /// What is written down, in this order.
    pub entries: Vec<Entry>,
}

/// Applies one event to a worker.
pub fn step(worker: &Worker, event: &Event, now: Timestamp) -> Result<Step, Refusal> {
    let draft = Draft::new(worker, now);
    match event {
        Event::Observed(seen) => observe::observed(draft, seen),
        Event::IdleConfirmed { fence } => asleep::idle_confirmed(draft, fence),
        Event::ScaleDownConfirmed { fence } => end::scale_down_confirmed(draft, fence),
        Event::MaxRuntimeReached { fence } => asleep::max_runtime_reached(draft, fence),
        Event::ScheduleSaidSleep { force, fence } => asleep::schedule_said_sleep(draft, *force, fence),
        Event::PauseRequested(request) => asleep::pause_requested(draft, request),
        Event::StopRequested(request) => asleep::stop_requested(draft, request),
        Event::StopAfterElapsed { generation } => asleep::stop_after_elapsed(draft, *generation),
        Event::ResumeRequested { by } => wake::resume_requested(draft, by),
        Event::ScheduleSaidWake => wake::requested(draft, &WakeCause::Schedule),
        Event::WakeRequested { cause } => wake::asked(draft, cause),
        Event::ActivityArrived { by } => Ok(wake::activity_arrived(draft, *by)),
        Event::HookPassed { intent } => driver::hook_passed(draft, *intent),
        Event::HookVetoed { intent, message } => driver::hook_vetoed(draft, *intent, message),
        Event::LookedAgain { intent, look } => last_look::looked_again(draft, *intent, look),
        Event::DriverDone { intent, exit_code, asked_at } => {
            driver::done(draft, *intent, *exit_code, *asked_at)
        }
        Event::DriverReady { intent, boot, started_at } => {
            driver::ready(draft, *intent, boot.as_ref(), *started_at)
        }
        Event::DriverRefused { intent, message } => driver::refused(draft, *intent, message),
        Event::MakeRefused { generation, message } => driver::make_refused(draft, *generation, message),
        Event::DeadlinePassed { generation } => driver::deadline_passed(draft, *generation),
        Event::DriverSilent { generation } => driver::silent(draft, *generation),
        Event::Exited { boot, code } => exit::exited(draft, boot, *code),
        Event::TerminateAfterElapsed { generation } => end::terminate_after_elapsed(draft, *generation),
        Event::DrainRequested(request) => end::drain_requested(draft, request),
        Event::DrainCancelled { by } => end::drain_cancelled(draft, by),
        Event::Drained { generation } => end::drained(draft, *generation),
        Event::DrainTimedOut { generation, is_held } => end::drain_timed_out(draft, *generation, *is_held),
        Event::TerminateRequested(request) => end::terminate_requested(draft, request),
        Event::Recovered { power } => Ok(truth::recovered(draft, *power)),
    }
}

/// A change in the making.
struct Draft {
    worker: Worker,
    now: Timestamp,
    /// The run that was frozen is over, so that its frozen time is nobody's.
    is_run_over: bool,
    /// When the driver was first asked for what it has now done.
    asked_at: Option<Timestamp>,
    effects: Vec<Effect>,
    entries: Vec<Entry>,
}

impl Draft {
    fn new(worker: &Worker, now: Timestamp) -> Self {
        let (effects, entries) = (Vec::new(), Vec::new());
        Self { worker: worker.clone(), now, is_run_over: false, asked_at: None, effects, entries }
    }

    /// The id of the intent that the next transition opens.
    fn next_intent(&self) -> IntentId {
        IntentId(self.worker.generation.next().0)
    }

    /// Moves to another status. Every transition goes through here.
    fn go(&mut self, status: Status) {
        if let (Status::Paused { since, .. }, false) = (&self.worker.status, self.is_run_over) {
            self.worker.frozen_for += self.now.since(*since);
        }
        self.worker.generation = self.worker.generation.next();
        self.worker.suspicion = None;
        self.worker.status = status;
        self.limit_lateness();
    }

    /// Once the worker has come to rest, what the driver does late is told from what somebody else does
    /// only by time. A call that was given up ends no later than a wake may take.
    fn limit_lateness(&mut self) {
        let until = self.now + self.worker.can.waking_within;
        if let (Some(abandoned), StatusKind::Running | StatusKind::Paused | StatusKind::Stopped) =
            (&mut self.worker.abandoned, self.worker.status.kind())
        {
            abandoned.until.get_or_insert(until);
        }
    }

    fn note(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Remembers a transition that does not end as it was meant to.
    fn abandon(&mut self, was: Status) {
        self.worker.abandoned = Some(Box::new(Abandoned { was, until: None }));
        self.limit_lateness();
    }

    /// The transition whose effect may still come, if there is one.
    fn abandoned(&self) -> Option<&Status> {
        let abandoned = self.worker.abandoned.as_deref()?;
        abandoned.until.is_none_or(|until| self.now < until).then_some(&abandoned.was)
    }

    fn accept(self) -> Step {
        Step { worker: self.worker, answer: Answer::Accepted, effects: self.effects, entries: self.entries }
    }

    /// Nothing to do: it is so already.
    fn already(self) -> Step {
        Step { worker: self.worker, answer: Answer::AlreadyTrue, effects: Vec::new(), entries: Vec::new() }
    }

    fn wrong_status(&self, wanted: &'static str) -> Refusal {
        Refusal::WrongStatus { status: self.worker.status.kind(), wanted }
    }

    fn in_transition(&self) -> Refusal {
        Refusal::InTransition { status: self.worker.status.kind() }
    }

    fn check_generation(&self, generation: Generation, what: &'static str) -> Result<(), Refusal> {
        if generation == self.worker.generation {
            Ok(())
        } else {
            Err(Refusal::Late { what, than: "generation" })
        }
    }

    fn check_intent(&self, intent: IntentId, what: &'static str) -> Result<(), Refusal> {
        if self.worker.status.intent() == Some(intent) {
            Ok(())
        } else {
            Err(Refusal::Late { what, than: "intent" })
        }
    }
}

/// How long a `before_pause` hook may take; no answer by then is a veto.
const HOOK_WITHIN: Duration = Duration::from_secs(10);

/// What must be done for the intent that is open: used for a retry and after a restart.
pub fn reissue(worker: &Worker) -> Vec<Effect> {
    use crate::status::{Stage, WakeFrom};
    let effect = match &worker.status {
        Status::Pausing { intent, stage: Stage::Hook, sleep, .. }
        | Status::Stopping { intent, stage: Stage::Hook, sleep, .. } => Some(Effect::RunBeforePause {
            intent: *intent,
            heed_veto: asleep::heeds_veto(sleep),
            deadline: worker.status.since() + HOOK_WITHIN,
        }),
        Status::Pausing { intent, stage: Stage::Acting, .. } => Some(Effect::Freeze { intent: *intent }),
        Status::Stopping { intent, stage: Stage::Acting, mode, was_paused, .. } => Some(Effect::Stop {
            intent: *intent,
            mode: *mode,
            grace: worker.terms.grace,
            thaw_first: *was_paused,
        }),
        Status::Waking { intent, from: WakeFrom::Frozen | WakeFrom::Undone, .. } => {
            Some(Effect::Thaw { intent: *intent })
        }
        Status::Waking { intent, from: WakeFrom::Stopped, not_before, .. } => {
            Some(Effect::Start { intent: *intent, not_before: *not_before })
        }
        Status::Terminating { intent, .. } => Some(Effect::Terminate { intent: *intent }),
        Status::Provisioning { since, .. } | Status::Unknown { since, .. } => {
            Some(Effect::Look { not_before: *since })
        }
        Status::Running { .. }
        | Status::Paused { .. }
        | Status::Stopped { .. }
        | Status::Draining { .. }
        | Status::Terminated { .. }
        | Status::Failed { .. } => None,
    };
    effect.into_iter().collect()
}
