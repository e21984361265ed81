//! Warnings, told to whoever sits in front of the worker, and taken back when they are off.
//!
//! The journal has them first. That one could not be delivered is journalled too, and changes nothing else: notice runs
//! from the warning, and nobody is put to sleep sooner or later for a full disk.

use std::sync::Arc;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::signal::DriverKind;
use drowse_core::status::StatusKind;
use drowse_core::verdict::{Verdict, Warning};
use drowse_core::worker::Worker;
use drowse_drivers::Error;
use drowse_store::{Lane, NewEvent};
use serde::Deserialize as _;
use serde_json::json;

use super::Subject;
use super::standing::{About, Correction, Scene, Standing};
use crate::fleet::ControlError;
use crate::hands::LOOK_WITHIN;
use crate::picture::Picture;
use crate::shared::Shared;
use crate::spec::WorkerSpec;

impl Shared {
    /// Tells warnings that have been journalled, and takes back what is off; goes on by itself.
    ///
    /// `worker`: as the check left it that has found them.
    pub(super) fn tell_warnings(
        self: &Arc<Self>,
        picture: &Picture,
        verdict: &Verdict,
        worker: &Worker,
        warnings: Vec<Warning>,
    ) {
        // Nobody sits in front of what is stopped.
        if worker.driver != DriverKind::Docker || picture.worker.status.kind() == StatusKind::Stopped {
            return;
        }
        let Ok(spec) = WorkerSpec::deserialize(&picture.record.spec) else { return };
        let (policy, now) = (&picture.resolved.policy, self.clock.now());
        if !warnings.is_empty() {
            return self.say(&spec, worker, Standing::warnings(&picture.worker, policy, warnings, now));
        }
        let scene = Scene {
            worker,
            policy,
            verdict,
            checked: &picture.checked,
            is_seen: picture.is_seen,
            deletes: policy.scale_down && picture.can_scale_down,
        };
        match scene.correct(self.board.standing(&worker.id).as_ref(), now) {
            Correction::Keep => {}
            Correction::Note(standing) => self.board.note(&worker.id, standing),
            Correction::Say(standing) => self.say(&spec, worker, standing),
        }
    }

    /// Tells that it is frozen, once that is written down; goes on by itself, because whoever wakes it does not wait
    /// for its terminals. Nothing runs in it, and its files can be reached all the same.
    pub(super) fn announce_sleep(self: &Arc<Self>, subject: &Subject, stops_at: Option<Timestamp>) {
        // If it is awake again, that would be old news.
        if subject.spec.driver.kind() == DriverKind::Docker
            && let Some(asleep) = Standing::asleep(&subject.worker, stops_at, self.clock.now())
        {
            self.say(&subject.spec, &subject.worker, asleep);
        }
    }

    /// Tells that it goes on, in the place of what was announced; goes on by itself. That it cannot be told is no news.
    pub(super) fn announce_awake(self: &Arc<Self>, subject: &Subject) {
        if subject.spec.driver.kind() == DriverKind::Docker {
            self.say(&subject.spec, &subject.worker, Standing::awake(&subject.worker, self.clock.now()));
        }
    }

    /// After what was said before it.
    fn say(self: &Arc<Self>, spec: &WorkerSpec, worker: &Worker, standing: Standing) {
        if !self.board.post(&worker.id, standing, spec.clone()) {
            return;
        }
        let (shared, id) = (Arc::clone(self), worker.id.clone());
        self.tasks.spawn(async move {
            while let Some((standing, spec)) = shared.board.next(&id) {
                shared.deliver(&id, &spec, &standing).await;
            }
        });
    }

    async fn deliver(&self, id: &WorkerId, spec: &WorkerSpec, standing: &Standing) {
        let driver = self.hands.of(id, spec).await;
        if standing.about == About::Nothing {
            let taken = async { self.hands.call("take-back", driver?.take_back(id, LOOK_WITHIN)).await };
            if taken.await.is_err() {
                self.board.failed(id, standing);
            }
            return;
        }
        let told = async { self.hands.call("tell", driver?.tell(id, &standing.text, LOOK_WITHIN)).await };
        let told = told.await;
        if standing.about == About::Awake {
            return;
        }
        let (kind, doc) = match told {
            Ok(told) => match told.file {
                Ok(()) => ("worker.warning_delivered", json!({ "terminals": told.terminals })),
                Err(error) => {
                    ("worker.warning_undelivered", json!({ "terminals": told.terminals, "error": error }))
                }
            },
            Err(Error::Unsupported { .. }) => return,
            Err(error) => {
                ("worker.warning_undelivered", json!({ "terminals": 0, "error": error.to_string() }))
            }
        };
        self.write_down(id, kind, doc).await;
    }

    /// Journals something that changes nothing.
    pub(super) async fn write_down(&self, id: &WorkerId, kind: &'static str, doc: serde_json::Value) {
        let (worker, clock) = (id.clone(), self.clock.clone());
        let written = self.db.tx("told", Lane::Ordinary, move |tx| {
            tx.append(NewEvent { at: clock.now(), worker: Some(worker), kind: kind.to_owned(), doc });
            Ok::<_, ControlError>(())
        });
        if written.await.is_ok() {
            self.notices.journal_advanced();
        }
    }
}
