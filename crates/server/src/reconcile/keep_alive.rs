//! The keep-alive file in a worker, which holds it awake while it is young enough.

use drowse_core::hold::{Hold, HoldKind, KeepAlive};
use drowse_core::id::WorkerId;
use drowse_core::policy::Policy;
use drowse_core::signal::{DriverKind, UnknownCause};
use drowse_drivers::Error;
use serde_json::json;

use super::signals::doubt_all;
use crate::change::Change;
use crate::doubts::Doubt;
use crate::fleet::ControlError;
use crate::hands::LOOK_WITHIN;
use crate::picture::Picture;
use crate::shared::Shared;
use crate::spec::WorkerSpec;

impl Shared {
    /// Looks for it now.
    pub(crate) async fn look_for_keep_alive(
        &self,
        id: &WorkerId,
        spec: &WorkerSpec,
        policy: &Policy,
    ) -> KeepAlive {
        self.find_keep_alive(id, spec, policy).await.unwrap_or(KeepAlive::Unreadable)
    }

    async fn find_keep_alive(
        &self,
        id: &WorkerId,
        spec: &WorkerSpec,
        policy: &Policy,
    ) -> Result<KeepAlive, Error> {
        // Only containers have files of their own.
        if spec.driver.kind() != DriverKind::Docker {
            return Ok(KeepAlive::NotLooked);
        }
        let path = &policy.keep_alive_file;
        if path.is_empty() {
            return Ok(KeepAlive::Absent);
        }
        let looked = async {
            let driver = self.hands.of(id, spec).await?;
            self.hands.call("touched", driver.touched(id, path, LOOK_WITHIN)).await
        };
        match looked.await {
            Ok(touched) => Ok(KeepAlive::of(path, touched, policy.keep_alive_max_age, self.clock.now())),
            Err(Error::Unsupported { .. }) => Ok(KeepAlive::NotLooked),
            Err(error) => {
                self.metrics.count(|counted| counted.driver_errors += 1);
                Err(error)
            }
        }
    }

    /// Looks for it in a check. A worker in which nobody can look is as unknown as one of which nothing can be read:
    /// there may be somebody in it who asked to be left alone.
    pub(super) async fn read_keep_alive(&self, picture: &mut Picture, spec: &WorkerSpec) {
        let id = picture.worker.id.clone();
        let found = self.find_keep_alive(&id, spec, &picture.resolved.policy).await;
        if let Err(error) = &found {
            let why = format!("{} cannot be looked for: {error}", picture.resolved.policy.keep_alive_file);
            let cause = if matches!(error, Error::Denied { .. }) {
                UnknownCause::NotPermitted
            } else {
                UnknownCause::CannotLookInside
            };
            doubt_all(picture, &Doubt::new(cause, &why));
            self.fail_all(picture);
        }
        picture.is_kept_alive(found.unwrap_or(KeepAlive::Unreadable));
    }
}

/// Writes down what was found, if it is not as it was.
pub(super) fn write(
    change: &mut Change<'_>,
    before: Option<&Hold>,
    found: &KeepAlive,
) -> Result<(), ControlError> {
    let found = match found {
        KeepAlive::NotLooked | KeepAlive::Unreadable => return Ok(()),
        KeepAlive::Absent => None,
        KeepAlive::Holds(hold) => Some(hold),
    };
    let is_same = |one: &Hold, other: &Hold| one.owner == other.owner && one.until == other.until;
    match (before, found) {
        (None, None) => return Ok(()),
        (Some(before), Some(found)) if is_same(before, found) => return Ok(()),
        _ => {}
    }
    if let Some(before) = before
        && found.is_none_or(|found| found.owner != before.owner)
    {
        change.locked.end_hold(HoldKind::KeepAliveFile, &before.owner, change.now)?;
        change.journal("worker.keep_alive_ended", json!({ "file": before.owner }));
    }
    if let Some(found) = found {
        change.locked.take_hold(found)?;
        if before.is_none_or(|before| before.owner != found.owner) {
            change.journal("worker.kept_alive", json!({ "file": found.owner, "until": found.until }));
        }
    }
    Ok(())
}

/// Writes down what was found outside of a check.
pub(super) fn write_late(change: &mut Change<'_>, found: &KeepAlive) -> Result<(), ControlError> {
    let before = change.locked.holds(change.now)?;
    let before = before.iter().find(|hold| hold.kind == HoldKind::KeepAliveFile);
    write(change, before, found)
}
