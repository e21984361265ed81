//! Workers that somebody listed by the name or the label of a container: when that is removed they are over, and when it
//! is made anew they are there again, as another incarnation.

use drowse_core::id::WorkerId;
use drowse_core::policy::{Key, Level, PolicyLayer, Source, Value};
use drowse_core::signal::UnknownCause;
use drowse_core::status::StatusKind;
use drowse_core::worker::Power;
use drowse_drivers::Error;

use super::DISCOVERY;
use super::labels::{BY_LABEL, OURS};
use crate::doubts::{Doubt, Doubted, What};
use crate::fleet::{ControlError, Fleet, PolicyChange};
use crate::spec::{NewWorker, WorkerSpec};

impl Fleet {
    /// Looks whether those who are over have been made anew. False: that could not be told.
    pub(super) async fn look_for_the_listed(
        &self,
        books: &[(WorkerId, WorkerSpec)],
    ) -> Result<bool, ControlError> {
        let mut is_settled = true;
        for (id, spec) in books.iter().filter(|(_, spec)| spec.found_by.is_none()) {
            let worker = match self.glance(id).await {
                Ok(worker) => worker,
                Err(ControlError::NotFound(_)) => continue,
                Err(other) => return Err(other),
            };
            match worker.status.kind() {
                StatusKind::Terminated => {}
                // Perhaps its label means one container by now. What is written on it counts before it can be idle.
                StatusKind::Provisioning | StatusKind::Unknown => {
                    self.0.look_at(id).await;
                    self.heed_labels(id, spec).await?;
                    is_settled &= worker.status.kind() != StatusKind::Provisioning;
                    continue;
                }
                StatusKind::Running
                | StatusKind::Pausing
                | StatusKind::Paused
                | StatusKind::Waking
                | StatusKind::Stopping
                | StatusKind::Stopped
                | StatusKind::Draining
                | StatusKind::Terminating
                | StatusKind::Failed => {
                    self.heed_labels(id, spec).await?;
                    continue;
                }
            }
            match self.0.hands.look(id, spec).await {
                Ok(seen) if seen.power == Power::Gone => {
                    let drowse_drivers::Spec::Docker(docker) = spec.driver.for_driver() else { continue };
                    let why = format!("there is no {}", docker.container);
                    let mut doubted = Doubted::default();
                    doubted.insert(What::Itself, Doubt::new(UnknownCause::ProbeFailed, &why));
                    self.0.doubt(id, &doubted).await;
                }
                Ok(_) => {
                    let new = NewWorker {
                        id: id.clone(),
                        selectors: worker.selectors,
                        spec: spec.clone(),
                        in_service: worker.in_service,
                    };
                    self.remove(id, DISCOVERY).await?;
                    self.register(new, DISCOVERY).await?;
                    is_settled = false;
                }
                // An engine that does not answer for one does not answer for the others.
                Err(Error::Unreachable { .. } | Error::TimedOut { .. }) => return Ok(false),
                Err(error) => {
                    let mut doubted = Doubted::default();
                    doubted.insert(What::Itself, Doubt::from(&error));
                    self.0.doubt(id, &doubted).await;
                }
            }
        }
        Ok(is_settled)
    }

    /// What is written on a container that somebody listed: that it is protected counts, unless the file or a person says
    /// otherwise. The rest is for the file to say.
    async fn heed_labels(&self, id: &WorkerId, spec: &WorkerSpec) -> Result<(), ControlError> {
        let Ok(driver) = self.0.hands.of(id, spec).await else { return Ok(()) };
        let Ok(labels) = driver.labels(id) else { return Ok(()) };
        let ours = |label: &&String| label.starts_with(OURS) && !matches!(label.as_str(), ENABLE | PROTECTED);
        let mut problems = Vec::new();
        let unused: Vec<&str> = labels.keys().filter(ours).map(String::as_str).collect();
        if !unused.is_empty() {
            problems.push(format!("{}: not used, because worker {id} is listed by name", unused.join(", ")));
        }
        let is_protected = match labels.get(PROTECTED).map(String::as_str) {
            Some("true") => true,
            Some("false") | None => false,
            Some(other) => {
                problems
                    .push(format!("{PROTECTED}: expected true or false, found {other:?}: it counts as true"));
                true
            }
        };
        let own = |layer: &&PolicyLayer| {
            layer.level == Level::Worker
                && layer.name.as_deref() == Some(id.as_str())
                && matches!(layer.source, Source::File)
        };
        let layers = self.policies().await?.layers;
        let is_in_file =
            layers.iter().filter(own).any(|layer| layer.values.iter().any(|(key, _)| *key == Key::Protected));
        let protected = PolicyChange {
            level: Level::Worker,
            name: Some(id.to_string()),
            key: Key::Protected,
            value: Some(Value::Flag(true)),
            by: BY_LABEL.to_owned(),
        };
        let policy = if is_protected && !is_in_file { vec![protected] } else { Vec::new() };
        match self.follow_labels(id, policy).await {
            Ok(()) => {}
            // Concerns this one, and keeps nobody else waiting.
            Err(
                error @ (ControlError::Invalid { .. }
                | ControlError::Conflict { .. }
                | ControlError::Conflicting { .. }
                | ControlError::Pinned { .. }),
            ) => problems.push(error.to_string()),
            Err(other) => return Err(other),
        }
        let name = id.to_string();
        self.tell_problems(&spec.driver.for_driver(), &name, problems, Some(id)).await
    }
}

const ENABLE: &str = "drowse.enable";
const PROTECTED: &str = "drowse.protected";
