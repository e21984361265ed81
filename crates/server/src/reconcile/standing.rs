//! What stands in the warning files of containers. It is true: what is off, or later than was said, is taken back or
//! said anew, once and not at every check.
//!
//! What a former life of ours left there is not known. If the verdict says that it was announced and still holds, it
//! is left as it is; else it is taken away.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use drowse_core::Timestamp;
use drowse_core::id::{BootId, WorkerId};
use drowse_core::policy::Policy;
use drowse_core::status::Status;
use drowse_core::verdict::{Verdict, Warning, WarningKind};
use drowse_core::worker::Worker;
use drowse_store::Checked;

use super::words;
use crate::shared::lock;
use crate::spec::WorkerSpec;

/// What was said last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Standing {
    /// In which run: what was said in a former one is nobody's.
    boot: Option<BootId>,
    pub(super) about: About,
    /// When.
    said_at: Timestamp,
    /// As it was said; empty: nothing stands there.
    pub(super) text: String,
}

/// What it is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum About {
    /// Nothing stands there.
    Nothing,
    /// What will happen.
    Warnings(Vec<Warning>),
    /// That it is frozen.
    Asleep,
    /// That it goes on.
    Awake,
}

impl Standing {
    pub(super) fn nothing(worker: &Worker, now: Timestamp) -> Self {
        Self::new(worker, About::Nothing, now, String::new())
    }

    pub(super) fn warnings(worker: &Worker, policy: &Policy, warnings: Vec<Warning>, now: Timestamp) -> Self {
        let text = words::warnings(worker, policy, &warnings, now);
        Self::new(worker, About::Warnings(warnings), now, text)
    }

    /// `None`: it is not asleep.
    pub(super) fn asleep(worker: &Worker, stops_at: Option<Timestamp>, now: Timestamp) -> Option<Self> {
        let Status::Paused { since, sleep } = &worker.status else { return None };
        let text = words::asleep(worker, sleep, *since, stops_at);
        Some(Self::new(worker, About::Asleep, now, text))
    }

    pub(super) fn awake(worker: &Worker, now: Timestamp) -> Self {
        Self::new(worker, About::Awake, now, words::awake(worker, now))
    }

    fn new(worker: &Worker, about: About, said_at: Timestamp, text: String) -> Self {
        Self { boot: worker.boot.clone(), about, said_at, text }
    }

    /// To say this after that would tell nobody anything.
    fn repeats(&self, before: &Self) -> bool {
        let is_same =
            self.text == before.text || (self.about == About::Awake && before.about == About::Awake);
        is_same && self.boot == before.boot
    }
}

/// What is to be done about what stands there.
#[derive(Debug, PartialEq)]
pub(super) enum Correction {
    /// It is true.
    Keep,
    /// This stands there already.
    Note(Standing),
    /// It is not true, and this is.
    Say(Standing),
}

/// What a check has found that it may be held against.
pub(super) struct Scene<'a> {
    /// As the check left it.
    pub(super) worker: &'a Worker,
    pub(super) policy: &'a Policy,
    pub(super) verdict: &'a Verdict,
    pub(super) checked: &'a Checked,
    /// It was seen in this check.
    pub(super) is_seen: bool,
    /// It would be deleted rather than put to sleep.
    pub(super) deletes: bool,
}

impl Scene<'_> {
    /// Holds what stands there against what is so.
    pub(super) fn correct(&self, standing: Option<&Standing>, now: Timestamp) -> Correction {
        let standing = standing.filter(|standing| standing.boot == self.worker.boot);
        match &self.worker.status {
            Status::Running { .. } => self.correct_running(standing, now),
            // Held back, or not seen: when it would be stopped moves with each look.
            Status::Paused { .. } if self.is_seen && !self.verdict.is_braked => {
                self.correct_paused(standing, now)
            }
            // What is on its way is told when it has got there; and nobody reads in what is not there.
            Status::Paused { .. }
            | Status::Provisioning { .. }
            | Status::Pausing { .. }
            | Status::Waking { .. }
            | Status::Stopping { .. }
            | Status::Stopped { .. }
            | Status::Draining { .. }
            | Status::Terminating { .. }
            | Status::Terminated { .. }
            | Status::Failed { .. }
            | Status::Unknown { .. } => Correction::Keep,
        }
    }

    fn correct_running(&self, standing: Option<&Standing>, now: Timestamp) -> Correction {
        let nothing = || Standing::nothing(self.worker, now);
        match standing.map(|standing| (standing, &standing.about)) {
            None | Some((_, About::Nothing)) => {
                // A former life of ours has said it, or another replica.
                let said = self.still(&self.said());
                if !said.is_empty() {
                    let warnings = Standing::warnings(self.worker, self.policy, said, now);
                    // What we have taken away ourselves is not there any more, whoever said it.
                    return if standing.is_none() {
                        Correction::Note(warnings)
                    } else {
                        Correction::Say(warnings)
                    };
                }
                if standing.is_none() { Correction::Say(nothing()) } else { Correction::Keep }
            }
            Some((_, About::Asleep)) => Correction::Say(Standing::awake(self.worker, now)),
            Some((_, About::Awake)) => Correction::Keep,
            Some((standing, About::Warnings(warnings))) => {
                let still = self.still(warnings);
                if words::warnings(self.worker, self.policy, &still, standing.said_at) == standing.text {
                    return Correction::Keep;
                }
                Correction::Say(if still.is_empty() {
                    nothing()
                } else {
                    Standing::warnings(self.worker, self.policy, still, now)
                })
            }
        }
    }

    fn correct_paused(&self, standing: Option<&Standing>, now: Timestamp) -> Correction {
        let Some(asleep) = Standing::asleep(self.worker, self.verdict.stops_at, now) else {
            return Correction::Keep;
        };
        match standing.map(|standing| (standing, &standing.about)) {
            None => {
                let said_for = self.checked.stop_warned.map(|warned| warned.deadline);
                let said_for = said_for.or(self.worker.stop_announced_for);
                match Standing::asleep(self.worker, said_for, now) {
                    Some(said) if said.text == asleep.text => Correction::Note(said),
                    Some(_) | None => Correction::Say(asleep),
                }
            }
            Some((standing, About::Warnings(warnings))) => {
                let still = self.still(warnings);
                let is_so = words::warnings(self.worker, self.policy, &still, standing.said_at);
                if is_so == standing.text { Correction::Keep } else { Correction::Say(asleep) }
            }
            Some((standing, About::Asleep)) if standing.text == asleep.text => Correction::Keep,
            Some((_, About::Asleep | About::Awake | About::Nothing)) => Correction::Say(asleep),
        }
    }

    /// What is still so of these.
    fn still(&self, warnings: &[Warning]) -> Vec<Warning> {
        let still = |warning: &Warning| {
            let happens_at = self.verdict.announced.of(warning.kind)?;
            // Its time is over and it has not happened: something held it back.
            if !warning.is_fyi && happens_at <= self.verdict.at {
                return None;
            }
            let is_spared = warning.kind == WarningKind::ScaleDown && !self.deletes;
            let kind = if is_spared { WarningKind::Idle } else { warning.kind };
            Some(Warning { kind, happens_at, ..*warning })
        };
        warnings.iter().filter_map(still).collect()
    }

    /// What was said to one that runs, as it is written down.
    fn said(&self) -> Vec<Warning> {
        let checked = self.checked;
        let sent = [checked.idle_warned, checked.runtime_warned, checked.schedule_warned];
        let said = sent.into_iter().flatten().map(|warned| Warning {
            kind: warned.kind,
            deadline: warned.deadline,
            happens_at: warned.deadline,
            percent: warned.percent,
            is_fyi: warned.is_fyi,
        });
        said.collect()
    }
}

/// What stands where, and what is on its way there: in order, so that nothing old is said last.
#[derive(Debug, Default)]
pub(crate) struct Board(Mutex<HashMap<WorkerId, Slate>>);

#[derive(Debug, Default)]
struct Slate {
    /// `None`: nobody knows.
    standing: Option<Standing>,
    waiting: VecDeque<(Standing, WorkerSpec)>,
    is_busy: bool,
}

impl Board {
    /// What was said last.
    pub(super) fn standing(&self, worker: &WorkerId) -> Option<Standing> {
        lock(&self.0).get(worker)?.standing.clone()
    }

    /// This stands there, as was found.
    pub(super) fn note(&self, worker: &WorkerId, standing: Standing) {
        lock(&self.0).entry(worker.clone()).or_default().standing = Some(standing);
    }

    /// This is to stand there. True if somebody must be sent to see to it.
    pub(super) fn post(&self, worker: &WorkerId, standing: Standing, spec: WorkerSpec) -> bool {
        let mut slates = lock(&self.0);
        let slate = slates.entry(worker.clone()).or_default();
        if slate.standing.as_ref().is_some_and(|before| standing.repeats(before)) {
            return false;
        }
        slate.standing = Some(standing.clone());
        slate.waiting.push_back((standing, spec));
        !std::mem::replace(&mut slate.is_busy, true)
    }

    /// What is to be said next; `None`: all has been.
    pub(super) fn next(&self, worker: &WorkerId) -> Option<(Standing, WorkerSpec)> {
        let mut slates = lock(&self.0);
        let slate = slates.get_mut(worker)?;
        let next = slate.waiting.pop_front();
        slate.is_busy = next.is_some();
        next
    }

    /// It could not be taken away: it is tried again at the next check.
    pub(super) fn failed(&self, worker: &WorkerId, standing: &Standing) {
        if let Some(slate) = lock(&self.0).get_mut(worker)
            && slate.standing.as_ref() == Some(standing)
        {
            slate.standing = None;
        }
    }

    /// It is off the books.
    pub(crate) fn forget(&self, worker: &WorkerId) {
        lock(&self.0).remove(worker);
    }
}

#[cfg(test)]
mod tests;
