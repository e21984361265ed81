//! The keep-alive file in a worker, which holds it awake while it is young enough.

use std::sync::Arc;

use drowse_core::Timestamp;
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::signal::{DriverKind, UnknownCause};
use drowse_drivers::Error;
use serde_json::json;

use super::signals::{doubt_all, fail_all};
use crate::change::Change;
use crate::doubts::Doubt;
use crate::fleet::ControlError;
use crate::hands::LOOK_WITHIN;
use crate::picture::{KeepAlive, Picture};
use crate::shared::Shared;
use crate::spec::WorkerSpec;

impl Shared {
    /// Looks for it. A worker in which nobody can look is as unknown as one of which nothing can be read: there may be
    /// somebody in it who asked to be left alone.
    pub(super) async fn read_keep_alive(self: &Arc<Self>, picture: &mut Picture, spec: &WorkerSpec) {
        // Only containers have files of their own.
        if spec.driver.kind() != DriverKind::Docker {
            return;
        }
        let policy = &picture.resolved.policy;
        let (path, max_age) = (policy.keep_alive_file.clone(), policy.keep_alive_max_age);
        if path.is_empty() {
            return picture.is_kept_alive(None);
        }
        let id = picture.worker.id.clone();
        let looked = async {
            let driver = self.hands.of(&id, spec).await?;
            self.hands.call("touched", driver.touched(&id, &path, LOOK_WITHIN)).await
        };
        let touched = looked.await;
        let now = self.clock.now();
        match touched {
            Ok(touched) => {
                let hold = touched.map(|at| hold(&path, at.min(now), max_age));
                picture.is_kept_alive(hold.filter(|hold| hold.is_live(now)));
            }
            Err(Error::Unsupported { .. }) => {}
            Err(
                error @ (Error::Refused { .. }
                | Error::Unreachable { .. }
                | Error::TimedOut { .. }
                | Error::Gone),
            ) => {
                self.metrics.count(|counted| counted.driver_errors += 1);
                let why = format!("{path} cannot be looked for: {error}");
                doubt_all(picture, &Doubt::new(UnknownCause::CannotLookInside, &why));
                fail_all(picture, now);
            }
        }
    }
}

fn hold(path: &str, at: Timestamp, max_age: std::time::Duration) -> Hold {
    Hold {
        kind: HoldKind::KeepAliveFile,
        owner: path.to_owned(),
        reason: "there is a keep-alive file in it".to_owned(),
        since: at,
        until: Some(at + max_age),
    }
}

/// Writes down what was found, if it is not as it was.
pub(super) fn write(change: &mut Change<'_>, picture: &Picture) -> Result<(), ControlError> {
    let found = match &picture.keep_alive {
        KeepAlive::NotLooked => return Ok(()),
        KeepAlive::Absent => None,
        KeepAlive::Holds(hold) => Some(hold),
    };
    let before = &picture.kept_alive_before;
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
        if before.as_ref().is_none_or(|before| before.owner != found.owner) {
            change.journal("worker.kept_alive", json!({ "file": found.owner, "until": found.until }));
        }
    }
    Ok(())
}
