//! The end of a check: the verdict, and the transaction that acts on it.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::event::Event;
use drowse_core::evidence::Read;
use drowse_core::lease::LeaseBook;
use drowse_core::machine::{Fence, Found, Judged};
use drowse_core::reason::PauseReason;
use drowse_core::schedule;
use drowse_core::signal::{Signal, UnknownCause};
use drowse_core::status::StatusKind;
use drowse_core::verdict::{Action, Snapshot, Spared, Use, Verdict, Warned, Warning, WarningKind, judge};
use drowse_store::{Claimed, Finished, Held, Lane, SpanLane};
use serde_json::json;

use super::check::LOOK_FOR;
use super::keep_alive;
use crate::change::Change;
use crate::fleet::{ControlError, Detection, journal_ended};
use crate::picture::Picture;
use crate::shared::{Shared, lock};

/// How soon a decision that was overtaken is made anew.
const AGAIN: Duration = Duration::from_secs(1);

/// An event that carries the verdict behind an action, as `explain` tells it.
pub(crate) const JUDGED: &str = "worker.judged";

/// What is to be written down beside the verdict.
#[derive(Debug, Default)]
struct Notes {
    warnings: Vec<Warning>,
    would_sleep: Option<PauseReason>,
    unknown_alert: bool,
    spared: Spared,
    /// The verdict in words, for the journal: made before the transaction, in which others wait.
    told: Option<serde_json::Value>,
}

impl Shared {
    /// Judges what was read, and acts on it.
    pub(super) async fn decide(
        self: &Arc<Self>,
        claimed: &Claimed,
        mut picture: Picture,
        lane: Lane,
    ) -> Result<Option<Detection>, ControlError> {
        // What sleeps cannot be read, and what was read before it fell asleep stands.
        let is_running = picture.worker.status.kind() == StatusKind::Running;
        let began_at = is_running.then_some(picture.began_at);
        if picture.resolved.policy.scale_down {
            picture.can_scale_down = self.can_scale_down(&picture).await?;
        }
        let now = self.clock.now();
        let mut verdict = picture.judge(began_at, now);
        if verdict.action == Action::AskAgent {
            // Nobody speaks for the agent yet, so it does not answer: that is unknown, and never quiet.
            picture.record(Signal::Activity, Read::unknown(UnknownCause::NoAnswer, now), now);
            verdict = picture.judge(began_at, now);
        }
        let mut notes = note(&mut picture, &verdict, now);
        let interval = picture.interval();
        let stored = &picture.checked.counters;
        let counters = self.meters.of(&claimed.worker, stored).unwrap_or_else(|| stored.clone());
        let counters = counters.after(picture.totals.boot.as_ref(), picture.totals.iter(), interval);
        if is_running {
            picture.checked.counters = counters;
        }
        if notes.would_sleep.is_some() || verdict.action != Action::None {
            notes.told = Some(told(&picture, &verdict));
        }
        if matches!(verdict.action, Action::Sleep { .. } | Action::ScaleDown) {
            // The barrier: what had arrived when this was judged is written before it is acted on. Should it
            // fail, the checklist finds that out.
            let _ = self.flush_past(verdict.at).await;
        }
        // People are told of a warning once it is written, and what is to be done is due.
        let lane =
            if verdict.action == Action::None && notes.warnings.is_empty() { lane } else { Lane::Ordinary };
        let warnings = notes.warnings.clone();
        let (shared, picture, verdict) = (Arc::clone(self), Arc::new(picture), Box::new(verdict));
        let (stamp, judged, wanted) = (claimed.clone(), Arc::clone(&picture), verdict.clone());
        let (finished, worker) = self
            .change_here("check", lane, &claimed.worker, move |change| {
                shared.write_check(change, &stamp, &judged, &wanted, notes)
            })
            .await?;
        // A first sample is a beginning, and nobody who went silent: else every start would engage the brake.
        let is_unknown =
            verdict.used == Use::Unknown && verdict.status == StatusKind::Running && !picture.is_beginning();
        let unknown_since = picture.checked.evidence.unknown.map(|unknown| unknown.since);
        self.gone.note(&claimed.worker, unknown_since.filter(|_| is_unknown));
        match finished {
            Finished::Written => {
                self.tell_warnings(&picture, &verdict, &worker, warnings);
                self.meters.keep(&claimed.worker, &picture.checked.counters);
                if verdict.action == Action::ScaleDown {
                    let region = picture.worker.selectors.region.clone();
                    lock(&self.scaled_down).insert(region, now);
                }
                Ok(Some(Detection::new(&picture, &verdict, &worker)))
            }
            Finished::Overtaken | Finished::Lost => {
                self.metrics.count(|counted| counted.overtaken += 1);
                Ok(None)
            }
        }
    }

    /// Writes the result of a check, under the worker's lock.
    fn write_check(
        &self,
        change: &mut Change<'_>,
        claimed: &Claimed,
        picture: &Picture,
        verdict: &Verdict,
        mut notes: Notes,
    ) -> Result<Finished, ControlError> {
        let epoch = picture.book.epoch();
        let record = change.locked.record();
        let is_stale = change.worker().generation != picture.worker.generation;
        if is_stale || record.claim_gen != claimed.claim_gen {
            let generation = picture.worker.generation;
            return Ok(change.tx.finish_check(claimed, generation, None, epoch, None, change.now)?);
        }
        let judged = Judged {
            generation: picture.worker.generation,
            boot: picture.worker.boot.clone(),
            policy_epoch: epoch,
            claim: claimed.claim_gen,
            activity_at: picture.activity_at().max(picture.hold_ended_at),
        };
        let mut in_words = notes.told.take();
        let mut journal_verdict = |change: &mut Change<'_>| {
            change.journal(JUDGED, in_words.take().unwrap_or_else(|| told(picture, verdict)));
        };
        if notes.would_sleep.is_some() {
            journal_verdict(change);
        }
        self.write_notes(change, &notes);
        write_history(change, picture, verdict)?;
        keep_alive::write(change, picture.kept_alive_before.as_ref(), &picture.keep_alive)?;
        let mut held = change.locked.held()?;
        // After a stall of ours leases get their time again before any of them ends.
        if !self.is_stalled(change.now) {
            expire_leases(change, &mut held.leases)?;
        }
        if picture.worker.gpu_was_read && !change.worker().gpu_was_read {
            let worker = drowse_core::worker::Worker { gpu_was_read: true, ..change.worker() };
            change.locked.save(&worker, None)?;
        }
        let next = match self.event(change, &held, judged, picture, verdict)? {
            // What the driver was asked and did not do in time may still come.
            None if picture.worker.abandoned.is_some() => verdict.next_check_at.min(change.now + LOOK_FOR),
            None => verdict.next_check_at,
            Some(event) => match change.apply(&event) {
                Ok(_) => {
                    journal_verdict(change);
                    change.worker().status.deadline().unwrap_or(change.now)
                }
                // Overtaken between the verdict and the lock.
                Err(ControlError::Refused(_)) => verdict.next_check_at.min(change.now + AGAIN),
                Err(other) => return Err(other),
            },
        };
        let generation = change.worker().generation;
        let checked = Some(&picture.checked);
        let finished = change.tx.finish_check(claimed, generation, checked, epoch, Some(next), change.now)?;
        if finished == Finished::Written {
            change.next_check_at = Some(change.locked.record().due_by(next));
        }
        Ok(finished)
    }

    /// The event that a verdict asks for, with what was judged and what is found under the lock.
    fn event(
        &self,
        change: &Change<'_>,
        held: &Held,
        judged: Judged,
        picture: &Picture,
        verdict: &Verdict,
    ) -> Result<Option<Event>, ControlError> {
        let generation = picture.worker.generation;
        let reason = match verdict.action {
            Action::Sleep { reason } => reason,
            Action::ScaleDown => PauseReason::ScaleDown,
            // Somebody has held or spared it since it was judged.
            Action::StopAfter | Action::TerminateAfter if is_spared(change, held, picture, verdict) => {
                return Ok(asleep_event(change, picture));
            }
            Action::StopAfter => return Ok(Some(Event::StopAfterElapsed { generation })),
            Action::TerminateAfter => return Ok(Some(Event::TerminateAfterElapsed { generation })),
            Action::None | Action::AskAgent | Action::WouldSleep { .. } => {
                return Ok(asleep_event(change, picture));
            }
        };
        let found = self.found(change, held, picture, verdict)?;
        let fence = Fence { judged, found };
        Ok(Some(match reason {
            PauseReason::MaxRuntime => Event::MaxRuntimeReached { fence },
            PauseReason::Schedule => Event::ScheduleSaidSleep { force: verdict.is_forced, fence },
            PauseReason::ScaleDown => Event::ScaleDownConfirmed { fence },
            PauseReason::IdleTimeout | PauseReason::Manual | PauseReason::External => {
                Event::IdleConfirmed { fence }
            }
        }))
    }

    /// The commit checklist: what is so now, under the lock.
    fn found(
        &self,
        change: &Change<'_>,
        held: &Held,
        picture: &Picture,
        verdict: &Verdict,
    ) -> Result<Found, ControlError> {
        let id = change.locked.id();
        let mut found = change.locked.found_beside(held, verdict.at, change.now)?;
        found.is_braked |= self.is_stalled(change.now);
        // A hold that was taken and ended since the look is use like any other.
        let hold_ended_at = held.ended_at(change.now);
        found.activity_at = found.activity_at.max(self.unwritten_activity(id)).max(hold_ended_at);
        found.is_spared = is_spared(change, held, picture, verdict);
        Ok(found)
    }

    fn write_notes(&self, change: &mut Change<'_>, notes: &Notes) {
        for warning in &notes.warnings {
            change.journal("worker.warned", json!(warning));
        }
        if let Some(reason) = notes.would_sleep {
            change.journal("worker.would_pause", json!({ "reason": reason }));
        }
        if notes.unknown_alert {
            let why = self.doubts.lines(change.locked.id());
            change.journal("worker.unknown_alert", json!({ "why": why }));
        }
        if let Some(since) = notes.spared.idle_since {
            change.journal("worker.exempt", json!({ "from": "idle_timeout", "idle_since": since }));
        }
        if let Some(over_at) = notes.spared.runtime_over_at {
            change.journal("worker.exempt", json!({ "from": "max_runtime", "over_at": over_at }));
        }
        self.metrics.count(|counted| {
            counted.warnings += notes.warnings.len() as u64;
            counted.would_pause += u64::from(notes.would_sleep.is_some());
            counted.unknown_alerts += u64::from(notes.unknown_alert);
        });
    }

    /// Whether the region has more workers than it needs and its cooldown is over.
    async fn can_scale_down(&self, picture: &Picture) -> Result<bool, ControlError> {
        let region = picture.worker.selectors.region.clone();
        let policy = &picture.resolved.policy;
        // After a start of ours the cooldown counts from there: what was done before is not remembered.
        let last = lock(&self.scaled_down).get(&region).copied().unwrap_or(self.started_at);
        let listing = drowse_store::Listing { limit: usize::from(u16::MAX), ..Default::default() };
        let records = self.db.read(move |view| view.workers(&listing)).await?;
        let counted = records.iter().filter(|record| {
            let is_leaving = matches!(
                record.status().kind(),
                StatusKind::Draining | StatusKind::Terminating | StatusKind::Terminated
            );
            !is_leaving && record.without_terms().selectors.region == region
        });
        let workers = u32::try_from(counted.count()).unwrap_or(u32::MAX);
        Ok(policy.can_scale_down(workers, Some(last), self.clock.now()))
    }
}

/// Judged again with the holds and exemptions of this moment: whoever was spared since then is.
fn is_spared(change: &Change<'_>, held: &Held, picture: &Picture, verdict: &Verdict) -> bool {
    let holds = held.holds(change.now);
    let exempt = change.book.exempt(&picture.worker.selectors, change.now);
    let again = Snapshot { holds: &holds, exempt, ..picture.snapshot(verdict.check_began_at) };
    judge(&again, &picture.resolved.policy, change.now).action != verdict.action
}

/// What wakes a sleeping worker without anybody asking: evidence that came late, a window that opened.
fn asleep_event(change: &Change<'_>, picture: &Picture) -> Option<Event> {
    let sleep = picture.worker.status.sleep()?;
    let used_since = picture.activity_at().is_some_and(|at| at > sleep.at);
    if picture.worker.status.kind() == StatusKind::Paused && used_since && sleep.is_undone_by_activity() {
        // A flush had committed it, and we died before we could act on it.
        let by = picture.checked.evidence.last_activity_by().unwrap_or(Signal::Connections);
        return Some(Event::ActivityArrived { by });
    }
    let schedule = picture.resolved.policy.schedule.as_ref()?;
    let seen = picture.checked_before.unwrap_or(picture.worker.created_at);
    let wakes = |window: &schedule::Window| window.effect == schedule::Effect::KeepAwake { wake: true };
    let has_opened = schedule.openings(seen, change.now).any(|(_, window)| wakes(window));
    (has_opened && schedule.at(change.now).wake).then_some(Event::ScheduleSaidWake)
}

/// Takes into the evidence what the verdict says about the check itself.
fn note(picture: &mut Picture, verdict: &Verdict, now: Timestamp) -> Notes {
    let mut notes = Notes::default();
    let checked = &mut picture.checked;
    if verdict.status != StatusKind::Running {
        // What sleeps is looked at, not checked.
        checked.evidence.last_check_at = Some(now);
        // Somebody keeps it: when that is over, people are told anew.
        if verdict.deletes_at.is_none() {
            checked.deletion_warned = None;
        }
        for (warning, sent) in [
            (verdict.stop_warning, &mut checked.stop_warned),
            (verdict.deletion_warning, &mut checked.deletion_warned),
        ] {
            if let Some(warning) = warning {
                *sent = Some(warning.sent(*sent, now));
                notes.warnings.push(warning);
            }
        }
        return notes;
    }
    verdict.note(&mut checked.evidence);
    notes.unknown_alert = verdict.unknown_alert;
    notes.spared = verdict.spared.news(checked.spared);
    checked.spared = verdict.spared.told(checked.spared);
    for (warning, sent) in [
        (verdict.idle_warning, &mut checked.idle_warned),
        (verdict.runtime_warning, &mut checked.runtime_warned),
        (verdict.schedule_warning, &mut checked.schedule_warned),
    ] {
        if let Some(warning) = warning {
            *sent = Some(warning.sent(*sent, now));
            notes.warnings.push(warning);
        }
    }
    if let Action::WouldSleep { reason } = verdict.action {
        // Once an episode, not at every check: the episode is known by what started the idle clock.
        let key = Warned {
            kind: WarningKind::Idle,
            deadline: verdict.baseline.at,
            first_at: now,
            percent: 100.0,
            is_fyi: true,
        };
        if checked.idle_warned.is_none_or(|told| told.deadline != key.deadline) {
            checked.idle_warned = Some(key);
            notes.would_sleep = Some(reason);
        }
    }
    notes
}

/// Keeps why it was put to sleep beside that it was, for whoever asks later.
fn told(picture: &Picture, verdict: &Verdict) -> serde_json::Value {
    // What nobody set is the same for all and found in the reference.
    json!(picture.told(verdict, |setting| setting.source != "built-in"))
}

/// History for the timeline: use, and time that nobody could see.
fn write_history(change: &mut Change<'_>, picture: &Picture, verdict: &Verdict) -> Result<(), ControlError> {
    let evidence = &picture.checked.evidence;
    let unknown =
        (verdict.used == Use::Unknown && verdict.status == StatusKind::Running).then_some("unknown");
    change.locked.switch_span(SpanLane::Unknown, unknown, change.now)?;
    let since = picture.checked_before.unwrap_or(picture.worker.created_at);
    if let (Some(at), Some(by)) = (evidence.last_activity_at(), evidence.last_activity_by())
        && at > since
    {
        // A counter tells that there was use since it was last read, not when.
        let from = if by.is_pulled() { since } else { at };
        change.tx.record_span(change.locked.id(), SpanLane::Activity, from, at, by.code())?;
    }
    Ok(())
}

fn expire_leases(change: &mut Change<'_>, leases: &mut LeaseBook) -> Result<(), ControlError> {
    let ended = leases.expire(change.now);
    let warned = leases.ceiling_warnings(change.now);
    if ended.is_empty() && warned.is_empty() {
        return Ok(());
    }
    change.locked.save_leases(leases)?;
    journal_ended(change, &ended);
    for credential in warned {
        change.journal("worker.lease_ceiling_near", json!({ "credential": credential }));
    }
    Ok(())
}
