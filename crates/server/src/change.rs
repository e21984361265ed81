//! One change of one worker, inside the transaction that has locked its row.
//!
//! Whatever happens to a worker goes through [`Change::apply`]: the rules say what becomes of it, and what they
//! say is stored together, state, journal, holds, evidence and history. What is left to be done outside comes
//! out of it as effects, to be done after the commit and never before.

use std::sync::Arc;

use drowse_core::Timestamp;
use drowse_core::effect::Effect;
use drowse_core::event::{Event, Request};
use drowse_core::evidence::Evidence;
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::id::WorkerId;
use drowse_core::journal::Entry;
use drowse_core::machine::Answer;
use drowse_core::reason::PauseReason;
use drowse_core::status::{Status, StatusKind, WakeCause};
use drowse_core::step;
use drowse_core::verdict::{Snapshot, judge};
use drowse_core::worker::Worker;
use drowse_store::{Checked, Locked, NewEvent, SpanLane, StoreError, Tx};
use drowse_wire::control::Edge;
use serde_json::Value;

use crate::fleet::ControlError;
use crate::policies::{Book, Resolved};
use crate::reconcile::Subject;
use crate::shared::Shared;
use crate::untold::{Open, Pending};

/// A second look is a later look: a driver's clock has a grain.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(1);

/// A worker under its lock, on its way to another state.
pub(crate) struct Change<'t> {
    pub(crate) tx: &'t Tx<'t>,
    pub(crate) locked: Locked<'t>,
    pub(crate) book: Arc<Book>,
    pub(crate) resolved: Arc<Resolved>,
    pub(crate) now: Timestamp,
    shared: &'t Shared,
    before: StatusKind,
    slept_at: Option<Timestamp>,
    entries: Vec<Entry>,
    effects: Vec<Effect>,
    has_journalled: bool,
    was_saved: bool,
    /// When it is looked at next; `None`: maybe at once.
    pub(crate) next_check_at: Option<Timestamp>,
    open: Open,
    ahead: Option<Pending>,
}

/// What came of it, after the commit.
#[derive(Debug)]
pub(crate) struct Changed {
    pub(crate) worker: Worker,
    pub(crate) effects: Vec<Effect>,
    /// For the effects, if there are any.
    subject: Option<Subject>,
    entries: Vec<Entry>,
    slept_at: Option<Timestamp>,
    has_journalled: bool,
    was_saved: bool,
    next_check_at: Option<Timestamp>,
    pub(crate) at: Timestamp,
    /// Until what is believed of the worker is what was committed.
    open: Open,
    /// What a door had done ahead of the books, and is in them now.
    ahead: Option<Pending>,
}

impl<'t> Change<'t> {
    pub(crate) fn open(tx: &'t Tx<'t>, shared: &'t Shared, id: &WorkerId) -> Result<Self, ControlError> {
        let locked = tx.lock_worker(id)?.ok_or_else(|| ControlError::NotFound(id.clone()))?;
        // After the lock: whoever waited for it finds the time at which it got it.
        let now = shared.clock.now();
        let book = shared.policies.book(tx)?;
        let worker = locked.record().without_terms();
        let resolved = book.of(&worker.selectors);
        let before = worker.status.kind();
        let slept_at = worker.last_pause.as_ref().map(|last| last.at);
        let (open, ahead) = shared.untold.open(id);
        let mut change = Self {
            tx,
            locked,
            book,
            resolved,
            now,
            shared,
            before,
            slept_at,
            entries: Vec::new(),
            effects: Vec::new(),
            has_journalled: false,
            was_saved: false,
            next_check_at: None,
            open,
            ahead,
        };
        if let Some(ahead) = ahead {
            change.write_down(ahead)?;
        }
        Ok(change)
    }

    /// Writes down what a door did ahead of the books, before anything else is decided on them.
    fn write_down(&mut self, ahead: Pending) -> Result<(), ControlError> {
        match self.apply(&Event::WakeRequested { cause: WakeCause::Connection }) {
            Ok(_) => {
                let Edge { epoch, count, .. } = ahead.edge;
                self.locked.set_connections(&self.shared.replica, epoch, count, self.now)?;
                Ok(())
            }
            // It is the door's to hear of it, when it tells its edge.
            Err(ControlError::Refused(_)) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// The worker as it is now, under the policy of this moment.
    pub(crate) fn worker(&self) -> Worker {
        self.locked.record().worker(&self.resolved.policy)
    }

    /// What a person asks for, with the holds that stand in the way.
    pub(crate) fn request(&self, by: &str, message: &str, force: bool) -> Result<Request, StoreError> {
        let holds = self.locked.holds(self.now)?;
        Ok(Request { by: by.to_owned(), message: message.to_owned(), force, holds })
    }

    /// Applies an event: all of what follows from it is written, or it is refused and nothing is.
    pub(crate) fn apply(&mut self, event: &Event) -> Result<Answer, ControlError> {
        let before = self.worker();
        let done = step(&before, event, self.now)?;
        let after = done.worker;
        if after == before && done.entries.is_empty() && done.effects.is_empty() {
            return Ok(done.answer);
        }
        self.was_saved = true;
        let has_moved = after.generation != before.generation;
        let look_at = done.effects.iter().filter_map(|effect| match effect {
            Effect::Look { not_before } => Some((*not_before).max(self.now + LOOK_AGAIN)),
            Effect::RunBeforePause { .. }
            | Effect::Freeze { .. }
            | Effect::Thaw { .. }
            | Effect::Stop { .. }
            | Effect::Start { .. }
            | Effect::Terminate { .. }
            | Effect::RunAfterResume
            | Effect::AnnounceSleep { .. }
            | Effect::Snooze { .. }
            | Effect::EndHolds
            | Effect::EndLeasedTime => None,
        });
        let moved = has_moved.then(|| self.look_at_new(event, &after)).flatten();
        let look_by = look_at.chain(moved).min();
        if let Some(intent) = after.status.intent() {
            // Before the commit: a check that sees the intent must know that it is ours and not a leftover of
            // a former life, whichever of the two comes first.
            self.shared.known.insert(&after.id, intent);
        }
        self.locked.save(&after, look_by)?;
        self.locked.append(&done.entries, self.now);
        self.keep_evidence(&before, &after, &done.entries)?;
        for effect in done.effects {
            self.settle(effect)?;
        }
        if has_moved {
            self.locked.switch_span(SpanLane::Power, power(&after.status).as_deref(), self.now)?;
        }
        self.entries.extend(done.entries);
        Ok(done.answer)
    }

    /// When a worker that has just moved is looked at: one that is under way when it should be over; one that
    /// rests at once, unless the driver has just said that it sleeps and there is nothing more to see.
    fn look_at_new(&self, event: &Event, after: &Worker) -> Option<Timestamp> {
        if after.status.intent().is_some() {
            return after.status.deadline();
        }
        let is_asleep = matches!(after.status.kind(), StatusKind::Paused | StatusKind::Stopped);
        if !is_asleep || !matches!(event, Event::DriverDone { .. }) {
            return Some(self.now);
        }
        let nothing_known = Evidence::default();
        let snapshot = Snapshot {
            worker: after,
            evidence: &nothing_known,
            holds: &[],
            hold_ended_at: None,
            exempt: self.book.exempt(&after.selectors, self.now),
            is_braked: false,
            check_began_at: None,
            is_seen: false,
            idle_warned: None,
            runtime_warned: None,
            schedule_warned: None,
            stop_warned: None,
            deletion_warned: None,
            can_scale_down: false,
        };
        Some(judge(&snapshot, &self.resolved.policy, self.now).next_check_at)
    }

    /// Evidence belongs to a run: it begins afresh with the next, and the quiet checks before a freeze count no
    /// longer after it.
    fn keep_evidence(
        &mut self,
        before: &Worker,
        after: &Worker,
        entries: &[Entry],
    ) -> Result<(), StoreError> {
        let is_other_run = before.boot != after.boot || before.boot_started_at != after.boot_started_at;
        // One that was found running after a sleep that was given up is back from it too: else it would be tried
        // again in the same breath.
        let is_back = entries.iter().any(|entry| {
            matches!(
                entry,
                Entry::Resumed { .. }
                    | Entry::Undone { .. }
                    | Entry::Found { found: StatusKind::Running, .. }
            )
        });
        if !is_other_run && !is_back {
            return Ok(());
        }
        let mut checked = self.tx.checked(&after.id)?;
        if is_other_run {
            checked =
                Checked { evidence: checked.evidence.next_run(), mark: checked.mark, ..Checked::default() };
        }
        if is_back {
            checked.evidence.thawed(self.now);
        }
        self.locked.save_checked(&checked)
    }

    /// Does what the store can do, in this transaction, and keeps the rest for after it.
    fn settle(&mut self, effect: Effect) -> Result<(), StoreError> {
        match effect {
            Effect::Snooze { until } => self.locked.take_hold(&Hold {
                kind: HoldKind::Snooze,
                owner: "drowse".to_owned(),
                reason: "after a resume".to_owned(),
                since: self.now,
                until: Some(until),
            }),
            Effect::EndHolds => self.locked.end_run(self.now).map(|_| ()),
            Effect::EndLeasedTime => {
                let mut leases = self.locked.leases()?;
                let before = leases.clone();
                leases.slept();
                if leases == before { Ok(()) } else { self.locked.save_leases(&leases) }
            }
            // Done by looking at it no later than that.
            Effect::Look { .. } => Ok(()),
            Effect::RunBeforePause { .. }
            | Effect::Freeze { .. }
            | Effect::Thaw { .. }
            | Effect::Stop { .. }
            | Effect::Start { .. }
            | Effect::Terminate { .. }
            | Effect::RunAfterResume
            | Effect::AnnounceSleep { .. } => {
                self.effects.push(effect);
                Ok(())
            }
        }
    }

    /// Writes something into the journal that is no change of status.
    pub(crate) fn journal(&mut self, kind: &str, doc: Value) {
        self.has_journalled = true;
        let worker = Some(self.locked.id().clone());
        self.tx.append(NewEvent { at: self.now, worker, kind: kind.to_owned(), doc });
    }

    pub(crate) fn finish(mut self) -> Changed {
        // From here on somebody may commit it, and nobody hear of that.
        self.open.is_in_doubt = true;
        let subject = (!self.effects.is_empty())
            .then(|| Subject::of(self.locked.record(), Arc::clone(&self.resolved)))
            .flatten();
        Changed {
            worker: self.worker(),
            subject,
            has_journalled: self.has_journalled || !self.entries.is_empty() || self.has_moved(),
            was_saved: self.was_saved,
            next_check_at: self.next_check_at,
            effects: self.effects,
            entries: self.entries,
            slept_at: self.slept_at,
            at: self.now,
            open: self.open,
            ahead: self.ahead,
        }
    }

    fn has_moved(&self) -> bool {
        self.before != self.locked.record().status().kind()
    }
}

impl Shared {
    /// Changes one worker in a transaction; then, and only if it is committed, tells those who wait and has the
    /// effects done. By itself: what is committed is followed up, also when nobody waits for the answer any more.
    pub(crate) async fn change<T: Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        lane: drowse_store::Lane,
        id: &WorkerId,
        work: impl FnOnce(&mut Change<'_>) -> Result<T, ControlError> + Send + 'static,
    ) -> Result<(T, Worker), ControlError> {
        let (shared, id) = (Arc::clone(self), id.clone());
        let changing = async move { shared.change_here(name, lane, &id, work).await };
        self.tasks.see_through(Box::pin(changing)).await
    }

    /// The same for whoever is not given up half-way: somebody waits at a door, or it is a task of its own.
    pub(crate) async fn change_here<T: Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        lane: drowse_store::Lane,
        id: &WorkerId,
        work: impl FnOnce(&mut Change<'_>) -> Result<T, ControlError> + Send + 'static,
    ) -> Result<(T, Worker), ControlError> {
        let (shared, worker) = (Arc::clone(self), id.clone());
        let outcome = self
            .db
            .tx(name, lane, move |tx| {
                let mut change = Change::open(tx, &shared, &worker)?;
                let value = work(&mut change)?;
                Ok::<_, ControlError>((value, change.finish()))
            })
            .await;
        if let Err(ControlError::Unavailable(StoreError::CommitUnknown(_))) = &outcome {
            // If it is written, something may have been decided that nobody does: a look finds that.
            let (shared, worker) = (Arc::clone(self), id.clone());
            self.tasks.spawn(async move { shared.ask_again(&worker).await });
        }
        let (value, changed) = outcome?;
        Ok((value, self.committed(changed)))
    }

    /// What follows a commit.
    pub(crate) fn committed(self: &Arc<Self>, changed: Changed) -> Worker {
        let mut open = changed.open;
        self.untold.know(&changed.worker, &mut open, changed.at);
        if let Some(ahead) = changed.ahead {
            self.untold.told(&changed.worker.id, ahead);
        }
        drop(open);
        self.metrics.journalled(&changed.entries, changed.slept_at, changed.at);
        if changed.has_journalled || !changed.effects.is_empty() {
            self.notices.worker_changed(&changed.worker.id);
        } else if changed.was_saved {
            // Such as that somebody waits for it now, which is no news for the journal.
            self.notices.ring(&changed.worker.id);
        }
        let mut subject = changed.subject;
        for effect in changed.effects {
            self.perform(&changed.worker.id, effect, subject.take());
        }
        match changed.next_check_at {
            Some(at) => self.queue.nudge_for(at),
            None => self.queue.nudge(),
        }
        changed.worker
    }
}

/// What a span of the power history says; `None` for what is gone.
///
/// `running`, or `frozen` or `stopped` with who caused it, as in `frozen:drowse`.
pub fn power(status: &Status) -> Option<String> {
    let caused = |what: &str, reason: PauseReason| {
        let cause = match reason {
            PauseReason::Manual => "person",
            PauseReason::External => "external",
            PauseReason::IdleTimeout
            | PauseReason::Schedule
            | PauseReason::MaxRuntime
            | PauseReason::ScaleDown => "drowse",
        };
        Some(format!("{what}:{cause}"))
    };
    match status {
        Status::Paused { sleep, .. } => caused("frozen", sleep.reason),
        Status::Stopped { sleep, .. } => caused("stopped", sleep.reason),
        Status::Terminated { .. } => None,
        Status::Provisioning { .. }
        | Status::Running { .. }
        | Status::Pausing { .. }
        | Status::Waking { .. }
        | Status::Stopping { .. }
        | Status::Draining { .. }
        | Status::Terminating { .. }
        | Status::Failed { .. }
        | Status::Unknown { .. } => Some("running".to_owned()),
    }
}
