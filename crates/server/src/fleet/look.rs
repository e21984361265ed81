//! What can be seen: workers, verdicts and why.

use std::sync::Arc;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::evidence::Evidence;
use drowse_core::hold::Hold;
use drowse_core::id::WorkerId;
use drowse_core::reason::PauseReason;
use drowse_core::signal::{Need, Sample, Signal};
use drowse_core::status::StatusKind;
use drowse_core::verdict::{Action, Explanation, Verdict};
use drowse_core::worker::Worker;
use drowse_store::{Checked, Listing, WorkerRecord};

use super::{ControlError, Fleet};
use crate::picture::Picture;
use crate::policies::Resolved;
use crate::spec::WorkerSpec;

/// A worker as it is shown.
#[derive(Clone, Debug)]
pub struct WorkerCard {
    /// As it is stored.
    pub record: WorkerRecord,
    /// The worker, under the policy of this moment.
    pub worker: Worker,
    /// How it is configured.
    pub spec: WorkerSpec,
    /// Its policy, with who set what.
    pub policy: Arc<Resolved>,
    /// The verdict, on what the last check read.
    pub verdict: Verdict,
    /// What holds it.
    pub holds: Vec<Hold>,
    /// What the checks have concluded.
    pub checked: Checked,
    /// Connections through the front door.
    pub connections: u64,
}

/// Whether a worker is idle, as seed 001 asks it.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of seed 001")]
pub struct IdleStatus {
    pub worker: WorkerId,
    pub is_idle: bool,
    pub idle_for: Duration,
    /// `None`: never.
    pub idle_timeout: Option<Duration>,
    pub last_activity_at: Option<Timestamp>,
    pub in_snooze_period: bool,
    pub snooze_until: Option<Timestamp>,
    pub auto_pause_enabled: bool,
    pub eligible_for_pause: bool,
    /// `None`: it is not looked at any more.
    pub next_idle_check_at: Option<Timestamp>,
    pub target_pause_at: Option<Timestamp>,
    /// When it was last checked; `None`: never.
    pub checked_at: Option<Timestamp>,
}

impl IdleStatus {
    fn of(verdict: &Verdict, evidence: &Evidence, record: &WorkerRecord) -> Self {
        Self {
            worker: record.id().clone(),
            is_idle: verdict.is_idle,
            idle_for: verdict.idle_for,
            idle_timeout: verdict.idle_timeout,
            last_activity_at: evidence.last_activity_at(),
            in_snooze_period: verdict.snooze_until.is_some(),
            snooze_until: verdict.snooze_until,
            auto_pause_enabled: verdict.auto_pause_enabled,
            eligible_for_pause: verdict.eligible,
            next_idle_check_at: record.next_check_at,
            target_pause_at: verdict.target_pause_at,
            checked_at: evidence.last_check_at,
        }
    }
}

impl WorkerCard {
    pub(crate) fn of(picture: Picture, now: Timestamp) -> Result<Self, ControlError> {
        let spec = serde_json::from_value(picture.record.spec.clone())
            .map_err(|error| ControlError::invalid("spec", error.to_string()))?;
        let verdict = picture.judge(None, now);
        Ok(Self {
            connections: picture.open_connections(now),
            spec,
            verdict,
            worker: picture.worker,
            record: picture.record,
            policy: picture.resolved,
            holds: picture.holds,
            checked: picture.checked,
        })
    }

    pub fn idle_status(&self) -> IdleStatus {
        IdleStatus::of(&self.verdict, &self.checked.evidence, &self.record)
    }
}

/// The latest reading of each signal that matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Readings {
    /// Signal, how much it matters, and its sample if it was ever read in this run.
    pub signals: Vec<(Signal, Need, Option<Sample>)>,
    pub last_activity_at: Option<Timestamp>,
    pub last_activity_by: Option<Signal>,
    pub last_check_at: Option<Timestamp>,
}

/// What a check on demand came to.
#[derive(Clone, Debug)]
pub struct Detection {
    /// The worker's idle status by this check.
    pub status: IdleStatus,
    /// The verdict of this check.
    pub verdict: Verdict,
    /// It was put on its way to sleep, for this reason.
    pub paused_for: Option<PauseReason>,
    /// It was not, and this is why: the codes of all reasons.
    pub reasons: Vec<&'static str>,
    /// What it is doing after the check.
    pub status_after: StatusKind,
}

impl Detection {
    pub(crate) fn new(picture: &Picture, verdict: &Verdict, after: &Worker) -> Self {
        let is_asleep = after.generation != picture.worker.generation;
        let paused_for = match verdict.action {
            Action::Sleep { reason } if is_asleep => Some(reason),
            Action::ScaleDown if is_asleep => Some(PauseReason::ScaleDown),
            Action::Sleep { .. }
            | Action::ScaleDown
            | Action::None
            | Action::AskAgent
            | Action::WouldSleep { .. }
            | Action::StopAfter
            | Action::TerminateAfter => None,
        };
        let mut status = IdleStatus::of(verdict, &picture.checked.evidence, &picture.record);
        status.next_idle_check_at = Some(verdict.next_check_at);
        status.checked_at = Some(verdict.at);
        Self {
            status,
            verdict: *verdict,
            paused_for,
            reasons: verdict.reasons().map(drowse_core::verdict::Reason::code).collect(),
            status_after: after.status.kind(),
        }
    }
}

impl Fleet {
    /// Workers on the books, by id, a page at a time.
    pub async fn list(&self, listing: Listing) -> Result<Vec<WorkerCard>, ControlError> {
        let shared = Arc::clone(&self.0);
        self.0
            .db
            .read(move |view| {
                let now = shared.clock.now();
                view.workers(&listing)?
                    .into_iter()
                    .map(|record| WorkerCard::of(Picture::of(view, &shared.policies, record, now)?, now))
                    .collect()
            })
            .await
    }

    /// One worker.
    pub async fn get(&self, id: &WorkerId) -> Result<WorkerCard, ControlError> {
        let (picture, now) = self.picture(id).await?;
        WorkerCard::of(picture, now)
    }

    /// Whether it is idle, on what the last check read.
    pub async fn idle_status(&self, id: &WorkerId) -> Result<IdleStatus, ControlError> {
        let (picture, now) = self.picture(id).await?;
        Ok(IdleStatus::of(&picture.judge(None, now), &picture.checked.evidence, &picture.record))
    }

    /// Why it is awake or not, in full.
    pub async fn explain(&self, id: &WorkerId) -> Result<Explanation, ControlError> {
        let (picture, now) = self.picture(id).await?;
        Ok(picture.explain(&picture.judge(None, now)))
    }

    /// Why signals of it cannot be read, and that its port does not answer, in words.
    pub fn doubts(&self, id: &WorkerId, status: StatusKind) -> Vec<String> {
        let mut lines = self.0.doubts.lines(id);
        lines.extend(self.0.unanswered.line(id, status, self.0.clock.now()));
        lines
    }

    /// What its signals last said.
    pub async fn readings(&self, id: &WorkerId) -> Result<Readings, ControlError> {
        let (picture, _) = self.picture(id).await?;
        let evidence = &picture.checked.evidence;
        let signals = Signal::ALL
            .into_iter()
            .map(|signal| (signal, picture.need(signal), evidence.sample(signal).copied()))
            .filter(|(_, need, sample)| *need != Need::Off || sample.is_some())
            .collect();
        Ok(Readings {
            signals,
            last_activity_at: evidence.last_activity_at(),
            last_activity_by: evidence.last_activity_by(),
            last_check_at: evidence.last_check_at,
        })
    }

    /// What holds it.
    pub async fn holds(&self, id: &WorkerId) -> Result<Vec<Hold>, ControlError> {
        let (picture, _) = self.picture(id).await?;
        Ok(picture.holds)
    }

    /// How many workers there are of each status.
    pub async fn count_by_status(&self) -> Result<Vec<(StatusKind, u64)>, ControlError> {
        self.0.db.read(|view| Ok(view.count_by_status()?)).await
    }

    /// Checks it now, acts on what it finds, and tells.
    pub async fn detect_idle(&self, id: &WorkerId) -> Result<Detection, ControlError> {
        Box::pin(self.0.check_now(id)).await
    }

    pub(crate) async fn picture(&self, id: &WorkerId) -> Result<(Picture, Timestamp), ControlError> {
        let (shared, id) = (Arc::clone(&self.0), id.clone());
        self.0
            .db
            .glance(move |view| {
                let now = shared.clock.now();
                let picture = Picture::load(view, &shared.policies, &id, now)?;
                picture.map(|picture| (picture, now)).ok_or(ControlError::NotFound(id))
            })
            .await
    }
}
