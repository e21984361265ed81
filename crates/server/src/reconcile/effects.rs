//! What was decided is done: the driver is asked, and what it answers goes back to the rules.
//!
//! An effect is carried out only if its intent is still open, and its answer counts only for that intent. What
//! is not answered is not guessed: the worker is looked at again, and at its deadline what the driver shows is
//! adopted.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::effect::Effect;
use drowse_core::event::Event;
use drowse_core::id::{BootId, IntentId, WorkerId};
use drowse_core::machine::Answer;
use drowse_core::signal::{DriverKind, Signal};
use drowse_core::status::{Status, WakeFrom};
use drowse_core::step;
use drowse_core::worker::{Power, Worker};
use drowse_drivers::{Acted, Driver, Error, Hook, Measure, Seen, Stop, Terminate, Wanted};
use drowse_store::{Lane, StoreError, View, WorkerRecord};
use serde::Deserialize as _;
use serde_json::json;
use tokio::sync::Notify;

use super::last_look::is_another;
use crate::change::Change;
use crate::fleet::ControlError;
use crate::meters::Totals;
use crate::plain::plain;
use crate::policies::Resolved;
use crate::shared::Shared;
use crate::spec::WorkerSpec;

/// How soon a call that was not answered is made again.
pub(super) const RETRY: Duration = Duration::from_secs(2);
/// A call ends this long before its transition does, so that its answer can still be written.
pub(super) const MARGIN: Duration = Duration::from_secs(1);
/// How long a `before_pause` hook may take.
const HOOK_WITHIN: Duration = Duration::from_secs(10);

/// Whom an effect concerns.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) worker: Worker,
    pub(crate) spec: WorkerSpec,
    pub(crate) resolved: Arc<Resolved>,
}

impl Subject {
    /// `None`: nobody knows how it was configured.
    pub(crate) fn of(record: &WorkerRecord, resolved: Arc<Resolved>) -> Option<Self> {
        let spec = WorkerSpec::deserialize(&record.spec).ok()?;
        Some(Self { worker: record.worker(&resolved.policy), spec, resolved })
    }
}

/// One effect on its way.
pub(super) struct Job<'a> {
    pub(super) id: &'a WorkerId,
    pub(super) subject: Subject,
    pub(super) driver: Arc<dyn Driver>,
    is_newer: &'a Notify,
}

impl Job<'_> {
    pub(super) fn deadline(&self, now: Timestamp) -> Timestamp {
        self.subject.worker.status.deadline().unwrap_or(now + RETRY)
    }

    pub(super) fn within(&self, now: Timestamp) -> Duration {
        self.deadline(now).since(now).saturating_sub(MARGIN).max(MARGIN)
    }
}

impl Shared {
    /// `fresh`: the worker as the transaction left it that decided this, if nothing has come between.
    pub(super) async fn carry_out(
        self: &Arc<Self>,
        id: &WorkerId,
        effect: Effect,
        fresh: Option<Subject>,
        is_newer: &Notify,
    ) {
        let subject = match fresh {
            // Somebody waits. That it shall run may be old news by now, but what came after it is in line
            // behind it; that it shall not run is looked at again.
            Some(fresh) if matches!(effect, Effect::Thaw { .. } | Effect::Start { .. }) => Ok(Some(fresh)),
            Some(_) | None => self.subject(id).await,
        };
        // A worker that was removed, or that cannot be read: nothing is done, and the deadline finds it.
        let Ok(Some(subject)) = subject else { return };
        if let Some(intent) = intent_of(effect)
            && subject.worker.status.intent() != Some(intent)
        {
            return;
        }
        let driver = match self.hands.of(id, &subject.spec).await {
            Ok(driver) => driver,
            Err(error) => return self.unanswered(id, &error).await,
        };
        let job = Job { id, subject, driver, is_newer };
        match effect {
            Effect::RunBeforePause { intent, .. } => self.before_pause(&job, intent).await,
            Effect::RunAfterResume => self.after_resume(&job).await,
            Effect::AnnounceSleep { stops_at } => self.announce_sleep(&job.subject, stops_at),
            Effect::Freeze { intent } => self.freeze(&job, intent).await,
            Effect::Thaw { intent } => self.wake_up(&job, intent, "thaw").await,
            Effect::Start { intent, not_before } => {
                tokio::select! {
                    biased;
                    () = self.clock.sleep_until(not_before) => self.wake_up(&job, intent, "start").await,
                    () = is_newer.notified() => {}
                }
            }
            Effect::Stop { intent, mode, grace, thaw_first } => {
                let Ok(run) = self.run_to_end(&job, intent).await else { return };
                let within = job.within(self.clock.now());
                let stop = Stop { intent, mode, grace, thaw_first, run: run.clone() };
                let answer = self.hands.call("stop", job.driver.stop(id, stop, within)).await;
                self.done(&job, intent, answer, run.as_ref(), &[Power::Stopped, Power::Gone]).await;
            }
            Effect::Terminate { intent } => {
                let Ok(run) = self.run_to_end(&job, intent).await else { return };
                let grace = job.subject.worker.terms.grace;
                let within = job.within(self.clock.now());
                let terminate = Terminate { intent, grace, run: run.clone() };
                let answer = self.hands.call("terminate", job.driver.terminate(id, terminate, within)).await;
                let answer = match answer {
                    Err(Error::Gone) => self.hands.look(id, &job.subject.spec).await.map(Acted::AlreadyTrue),
                    other => other,
                };
                self.done(&job, intent, answer, run.as_ref(), &[Power::Gone]).await;
            }
            // Done in the transaction that decided them.
            Effect::Look { .. } | Effect::Snooze { .. } | Effect::EndHolds | Effect::EndLeasedTime => {}
        }
    }

    /// The worker as it is now. While the store is away, that is waited for.
    async fn subject(self: &Arc<Self>, id: &WorkerId) -> Result<Option<Subject>, StoreError> {
        loop {
            match self.subject_now(id).await {
                Err(error) if error.is_outage() => {
                    self.clock.sleep_until(self.clock.now() + MARGIN).await;
                }
                other => return other,
            }
        }
    }

    /// The worker as it is now, if the store can tell.
    pub(crate) async fn subject_now(self: &Arc<Self>, id: &WorkerId) -> Result<Option<Subject>, StoreError> {
        let (shared, id) = (Arc::clone(self), id.clone());
        let load = move |view: &View<'_>| {
            let Some(record) = view.worker(&id)?.filter(|record| record.removed_at.is_none()) else {
                return Ok(None);
            };
            let book = shared.policies.book(view)?;
            let resolved = book.of(&record.without_terms().selectors);
            Ok::<_, StoreError>(Subject::of(&record, resolved))
        };
        self.db.glance(load).await
    }

    async fn before_pause(self: &Arc<Self>, job: &Job<'_>, intent: IntentId) {
        let command = job.subject.resolved.policy.before_pause.clone().unwrap_or_default();
        let hook = Hook { name: "before_pause", command: &command };
        let before = self.used(job).await;
        let event = tokio::select! {
            biased;
            ended = self.hands.call("hook", job.driver.run_hook(job.id, hook, HOOK_WITHIN)) => match ended {
                Ok(end) if end.code == 0 => Event::HookPassed { intent },
                Ok(end) => {
                    Event::HookVetoed { intent, message: no(end.code, &end.output) }
                }
                Err(error) => Event::HookVetoed { intent, message: plain(&error.to_string()) },
            },
            // The pause was taken back while the hook ran: whoever waits does not wait for it.
            () = job.is_newer.notified() => return,
        };
        self.discard(job, before).await;
        self.answer(job.id, event).await;
    }

    async fn after_resume(&self, job: &Job<'_>) {
        let command = job.subject.resolved.policy.after_resume.clone().unwrap_or_default();
        if command.is_empty() {
            return;
        }
        let hook = Hook { name: "after_resume", command: &command };
        let before = self.used(job).await;
        let failed = tokio::select! {
            biased;
            ended = self.hands.call("hook", job.driver.run_hook(job.id, hook, HOOK_WITHIN)) => match ended {
                Ok(end) if end.code == 0 => None,
                Ok(end) => Some(no(end.code, &end.output)),
                Err(error) => Some(plain(&error.to_string())),
            },
            () = job.is_newer.notified() => None,
        };
        self.discard(job, before).await;
        if let Some(error) = failed {
            // It runs all the same: somebody should know that it may not be as it should.
            let doc = json!({ "hook": hook.name, "error": error });
            self.write_down(job.id, "worker.hook_failed", doc).await;
        }
    }

    /// What a worker has used so far, where hooks count as its own use.
    async fn used(&self, job: &Job<'_>) -> Option<Totals> {
        if job.subject.spec.driver.kind() != DriverKind::Docker {
            return None;
        }
        let signals = [Signal::Cpu, Signal::Network];
        let measures = job.driver.read(job.id, Wanted::of(&signals, &[]), MARGIN).await.ok()?;
        let mut totals = Totals { boot: measures.boot.clone(), ..Totals::default() };
        for signal in signals {
            if let Some(Measure::Total(total)) = measures.get(signal) {
                totals.of[signal as usize] = Some(total);
            }
        }
        Some(totals)
    }

    /// What was used since then was the hook's doing.
    async fn discard(&self, job: &Job<'_>, before: Option<Totals>) {
        if let Some(before) = before
            && let Some(after) = self.used(job).await
        {
            self.meters.discard(job.id, &before, &after);
        }
    }

    /// Thaws or starts it, and waits until it answers.
    async fn wake_up(self: &Arc<Self>, job: &Job<'_>, intent: IntentId, how: &'static str) {
        self.unanswered.forget(job.id);
        let within = job.within(self.clock.now());
        let call =
            if how == "thaw" { job.driver.thaw(job.id, within) } else { job.driver.start(job.id, within) };
        let answer = self.hands.call(how, call).await;
        // It was done, and was over before anybody could look.
        if let Ok(Acted::Done(Seen {
            power: Power::Stopped, exit_code: Some(code), boot: Some(boot), ..
        })) = answer
        {
            return self.answer(job.id, Event::Exited { boot, code }).await;
        }
        let Some(seen) = self.settled(job, intent, answer, &[Power::Running]).await else { return };
        // What was frozen had been listening, and the kernel answers for it either way: only a start is tried.
        let ended = if how == "thaw" { None } else { self.answers(job).await };
        let event = match ended {
            None => Event::DriverReady { intent, boot: seen.boot, started_at: seen.boot_started_at },
            Some(Seen { exit_code: Some(code), boot: Some(boot), .. }) => Event::Exited { boot, code },
            Some(_) => Event::DriverRefused { intent, message: "it ended before it answered".to_owned() },
        };
        // Those at the door do not wait for this to be written down: that it is wanted has been, and so has the
        // hold that keeps it awake.
        if let Event::DriverReady { .. } = &event
            && let Ok(done) = step(&job.subject.worker, &event, self.clock.now())
        {
            self.awake.insert(intent, done.worker);
            self.notices.ring(job.id);
        }
        let is_awake = matches!(event, Event::DriverReady { .. });
        self.answer(job.id, event).await;
        self.awake.remove(job.id);
        // Of a sleep that was taken back on its way nobody was told. What they were told of it, the next check takes
        // back.
        if is_awake && matches!(job.subject.worker.status, Status::Waking { from: WakeFrom::Frozen, .. }) {
            self.announce_awake(&job.subject);
        }
    }

    /// A stop or a deletion.
    async fn done(
        self: &Arc<Self>,
        job: &Job<'_>,
        intent: IntentId,
        answer: Result<Acted, Error>,
        run: Option<&BootId>,
        wanted: &[Power],
    ) {
        if let Ok(Acted::AlreadyTrue(seen) | Acted::Done(seen)) = &answer
            && !wanted.contains(&seen.power)
            && is_another(run, seen)
        {
            return self.leave_alone(job, intent, seen).await;
        }
        if let Some(seen) = self.settled(job, intent, answer, wanted).await {
            let asked_at = self.asked.at(job.id, intent);
            self.answer(job.id, Event::DriverDone { intent, exit_code: seen.exit_code, asked_at }).await;
        }
    }

    /// What an action came to, once it is settled. `None`: it is not, and that has been dealt with.
    pub(super) async fn settled(
        self: &Arc<Self>,
        job: &Job<'_>,
        intent: IntentId,
        answer: Result<Acted, Error>,
        wanted: &[Power],
    ) -> Option<Seen> {
        let error = match answer {
            Ok(Acted::AlreadyTrue(seen) | Acted::Done(seen)) if wanted.contains(&seen.power) => {
                return Some(seen);
            }
            Ok(Acted::AlreadyTrue(seen) | Acted::Done(seen)) => {
                Error::refused(format!("it is {:?} afterwards", seen.power))
            }
            Ok(Acted::Started { look_after }) => match self.watch(job, look_after, wanted).await {
                Some(seen) => return Some(seen),
                None => Error::TimedOut { within: look_after },
            },
            Err(error) => error,
        };
        match error {
            Error::Refused { .. } | Error::Gone | Error::Unsupported { .. } => {
                self.metrics.count(|counted| counted.driver_errors += 1);
                // The rules say how often it is tried again; the pause between two tries is ours.
                tokio::select! {
                    biased;
                    () = self.clock.sleep_until(self.clock.now() + MARGIN) => {}
                    () = job.is_newer.notified() => {}
                }
                let event = Event::DriverRefused { intent, message: plain(&error.to_string()) };
                self.answer(job.id, event).await;
            }
            Error::Unreachable { .. } | Error::Denied { .. } | Error::TimedOut { .. } => {
                self.unanswered(job.id, &error).await;
            }
        }
        None
    }

    /// Looks until an action that goes on by itself has got there.
    async fn watch(&self, job: &Job<'_>, look_after: Duration, wanted: &[Power]) -> Option<Seen> {
        let mut look_at = self.clock.now() + look_after;
        loop {
            let now = self.clock.now();
            if look_at > job.deadline(now) - MARGIN {
                return None;
            }
            self.clock.sleep_until(look_at).await;
            if let Ok(seen) = self.hands.look(job.id, &job.subject.spec).await
                && wanted.contains(&seen.power)
            {
                return Some(seen);
            }
            look_at = self.clock.now() + RETRY;
        }
    }

    /// Nobody knows whether it was done: the worker is looked at soon, and asked again.
    pub(super) async fn unanswered(&self, id: &WorkerId, error: &Error) {
        tracing::warn!(worker = %id, %error, "the driver does not answer");
        self.metrics.count(|counted| counted.driver_errors += 1);
        self.ask_again(id).await;
    }

    /// Has a transition looked at soon, which asks the driver again.
    pub(crate) async fn ask_again(&self, id: &WorkerId) {
        loop {
            let (worker, at) = (id.clone(), self.clock.now() + RETRY);
            match self.db.tx("nudge", Lane::Ordinary, move |tx| tx.nudge(&worker, at)).await {
                Err(error) if error.is_outage() => {
                    self.clock.sleep_until(self.clock.now() + MARGIN).await;
                }
                Ok(()) | Err(_) => break,
            }
        }
        self.queue.nudge();
    }

    /// Tells the rules what the driver answered. Too late is no error: somebody else knew sooner. While the store
    /// is away it is kept, and told when that is back; nothing newer can have been decided before.
    async fn answer(self: &Arc<Self>, id: &WorkerId, event: Event) {
        let _ = self.answer_with(id, move |change| change.apply(&event)).await;
    }

    /// The same, and what else is to be written with it.
    pub(super) async fn answer_with(
        self: &Arc<Self>,
        id: &WorkerId,
        work: impl Fn(&mut Change<'_>) -> Result<Answer, ControlError> + Clone + Send + 'static,
    ) -> Result<Answer, ControlError> {
        loop {
            let work = work.clone();
            match self.change("answer", Lane::Wake, id, work).await {
                Err(ControlError::Unavailable(error)) if error.is_outage() || error.is_worth_retrying() => {
                    self.clock.sleep_until(self.clock.now() + MARGIN).await;
                }
                Ok((answer, _)) => return Ok(answer),
                Err(error) => return Err(error),
            }
        }
    }
}

/// What a hook said no with. Its words are the worker's.
fn no(code: i32, output: &str) -> String {
    match plain(output.trim()).as_str() {
        "" => format!("exit code {code}"),
        words => format!("exit code {code}: {words}"),
    }
}

fn intent_of(effect: Effect) -> Option<IntentId> {
    match effect {
        Effect::RunBeforePause { intent, .. }
        | Effect::Freeze { intent }
        | Effect::Thaw { intent }
        | Effect::Stop { intent, .. }
        | Effect::Start { intent, .. }
        | Effect::Terminate { intent } => Some(intent),
        Effect::RunAfterResume
        | Effect::AnnounceSleep { .. }
        | Effect::Look { .. }
        | Effect::Snooze { .. }
        | Effect::EndHolds
        | Effect::EndLeasedTime => None,
    }
}

#[cfg(test)]
mod tests {
    use super::no;

    #[test]
    fn a_hook_s_words_are_short_and_move_no_cursor() {
        assert_eq!(no(1, "a backup runs\n"), "exit code 1: a backup runs");
        assert_eq!(no(1, " \n"), "exit code 1");
        assert_eq!(
            no(2, "\u{1b}]0;mine\u{7}\u{9b}2J\nok"),
            "exit code 2: \u{fffd}]0;mine\u{fffd}\u{fffd}2J ok"
        );
        assert!(no(1, &"x".repeat(100_000)).len() < 600);
    }
}
