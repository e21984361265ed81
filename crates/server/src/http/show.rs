//! From what is known about a worker to what is shown of it.

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::lease::{LeaseBook, LeaseSummary};
use drowse_core::policy::{Key, Level, Source, Value};
use drowse_core::verdict::Verdict;
use drowse_store::{StoreError, View, WorkerRecord};
use drowse_wire::v1;

use crate::fleet::{ControlError, Fleet};
use crate::picture::Picture;
use crate::shared::Shared;
use crate::spec::WorkerSpec;

/// A worker, judged at one instant, on what the last check read.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) picture: Picture,
    pub(super) verdict: Verdict,
    leases: LeaseSummary,
}

impl Shown {
    /// Reads it.
    pub(super) fn of(
        view: &View<'_>,
        shared: &Shared,
        record: WorkerRecord,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let leases = LeaseBook::summary(&view.leases(record.id())?, now);
        let picture = Picture::of(view, &shared.policies, record, now)?;
        let verdict = picture.judge(None, now);
        Ok(Self { picture, verdict, leases })
    }

    /// The worker's own switch: `auto_pause` of its own layer, at run time or else in the file.
    pub(super) fn is_enabled(&self) -> bool {
        let id = self.picture.worker.id.as_str();
        let own = |source: Source| {
            let layers = self.picture.book.layers().layers().iter();
            layers
                .filter(|layer| layer.level == Level::Worker && layer.source == source)
                .filter(|layer| layer.name.as_deref() == Some(id))
                .find_map(|layer| layer.values.get(&Key::AutoPause))
        };
        own(Source::RunTime).or_else(|| own(Source::File)) != Some(&Value::Flag(false))
    }

    pub(super) fn worker(&self) -> v1::Worker {
        // What a newer program stored and this one cannot read is not shown; the rest is.
        let spec: Option<WorkerSpec> = serde_json::from_value(self.picture.record.spec.clone()).ok();
        let listen = spec.as_ref().and_then(|spec| spec.listen).map(|address| address.to_string());
        let target = spec.as_ref().and_then(WorkerSpec::place).map(|place| place.to_string());
        v1::Worker::of(&v1::WorkerView {
            worker: &self.picture.worker,
            evidence: &self.picture.checked.evidence,
            verdict: &self.verdict,
            holds: &self.picture.holds,
            leases: &self.leases,
            liveness: None,
            listen: listen.as_deref(),
            target: target.as_deref(),
            is_idle_detection_enabled: self.is_enabled(),
        })
    }

    pub(super) fn activity(&self) -> v1::WorkerActivity {
        let Picture { worker, checked, .. } = &self.picture;
        v1::WorkerActivity::of(worker, &checked.evidence, &self.verdict, &[], self.is_enabled())
    }

    pub(super) fn idle_status(&self) -> v1::WorkerIdleStatus {
        let Picture { worker, checked, .. } = &self.picture;
        v1::WorkerIdleStatus::of(&worker.id, &checked.evidence, &self.verdict)
    }

    pub(super) fn explanation(&self) -> v1::Explanation {
        self.picture.told(&self.verdict, |_| true)
    }

    pub(super) fn readings(&self) -> v1::Readings {
        let explanation = self.picture.explain(&self.verdict);
        let readings = explanation.signals.iter().map(Into::into).collect();
        v1::Readings {
            worker_id: self.picture.worker.id.to_string(),
            at: self.verdict.at,
            readings,
            memory_bytes: self.picture.checked.memory_bytes,
        }
    }

    pub(super) fn holds(&self) -> v1::HoldList {
        let live = self.picture.holds.iter().filter(|hold| hold.is_live(self.verdict.at));
        v1::HoldList { worker_id: self.picture.worker.id.to_string(), holds: live.map(Into::into).collect() }
    }
}

/// One worker.
pub(super) async fn show(fleet: &Fleet, id: &WorkerId) -> Result<Shown, ControlError> {
    let (shared, id) = (std::sync::Arc::clone(&fleet.0), id.clone());
    let read = move |view: &View<'_>| {
        let record = view.worker(&id)?.filter(|record| record.removed_at.is_none());
        let record = record.ok_or(ControlError::NotFound(id))?;
        Ok(Shown::of(view, &shared, record, shared.clock.now())?)
    };
    fleet.0.db.read(read).await
}
