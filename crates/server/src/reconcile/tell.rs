//! Warnings, told to whoever sits in front of the worker.
//!
//! The journal has them first. That one could not be delivered is journalled too, and changes nothing else: notice runs
//! from the warning, and nobody is put to sleep sooner or later for a full disk.

use std::fmt::Write as _;
use std::sync::Arc;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::policy::Policy;
use drowse_core::reason::{PauseReason, SleepMode};
use drowse_core::signal::DriverKind;
use drowse_core::status::{Sleep, Status};
use drowse_core::units::Human;
use drowse_core::verdict::{Warning, WarningKind};
use drowse_core::worker::Worker;
use drowse_drivers::Error;
use drowse_store::{Lane, NewEvent};
use serde_json::json;

use super::Subject;
use crate::fleet::ControlError;
use crate::hands::LOOK_WITHIN;
use crate::picture::Picture;
use crate::shared::Shared;
use crate::spec::WorkerSpec;

impl Shared {
    /// Tells warnings that have been journalled; goes on by itself.
    pub(super) fn tell_warnings(self: &Arc<Self>, picture: &Picture, warnings: &[Warning]) {
        let Ok(spec) = serde_json::from_value::<WorkerSpec>(picture.record.spec.clone()) else { return };
        if spec.driver.kind() != DriverKind::Docker || warnings.is_empty() {
            return;
        }
        let now = self.clock.now();
        let text: String = warnings
            .iter()
            .map(|warning| words(&picture.worker, &picture.resolved.policy, warning, now))
            .collect();
        let (shared, id) = (Arc::clone(self), picture.worker.id.clone());
        self.tasks.spawn(async move { shared.tell(&id, &spec, &text).await });
    }

    /// Tells that it is frozen, once that is written down; goes on by itself, because whoever wakes it does not wait
    /// for its terminals. Nothing runs in it, and its files can be reached all the same.
    pub(super) fn announce_sleep(self: &Arc<Self>, subject: &Subject, stops_at: Option<Timestamp>) {
        // It is awake again: that would be old news.
        let Status::Paused { since, sleep } = &subject.worker.status else { return };
        if subject.spec.driver.kind() != DriverKind::Docker {
            return;
        }
        let text = announced(&subject.worker, sleep, *since, stops_at);
        let (shared, id, spec) = (Arc::clone(self), subject.worker.id.clone(), subject.spec.clone());
        self.tasks.spawn(async move { shared.tell(&id, &spec, &text).await });
    }

    async fn tell(&self, id: &WorkerId, spec: &WorkerSpec, text: &str) {
        let told = async {
            let driver = self.hands.of(id, spec).await?;
            self.hands.call("tell", driver.tell(id, text, LOOK_WITHIN)).await
        };
        let (kind, doc) = match told.await {
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

/// A freeze, for people.
fn announced(worker: &Worker, sleep: &Sleep, since: Timestamp, stops_at: Option<Timestamp>) -> String {
    let id = &worker.id;
    let why = match sleep.reason {
        PauseReason::IdleTimeout => "it was idle".to_owned(),
        PauseReason::Schedule => "its schedule says so".to_owned(),
        PauseReason::Manual | PauseReason::External | PauseReason::MaxRuntime | PauseReason::ScaleDown => {
            format!("{} asked for it", sleep.by)
        }
    };
    let mut text = format!("Drowse: {id} is paused since {since}, because {why}.");
    if worker.is_routed && worker.terms.wake_from.contains(sleep.reason) {
        text.push_str(" Whoever connects wakes it.");
    }
    if let Some(at) = stops_at {
        let left = std::time::Duration::from_secs(at.since(since).as_secs());
        let _ = write!(text, "\nIt will be stopped at {at}, {} later, if nobody comes.", Human(left));
    }
    let _ = writeln!(text, "\nTo keep it: drowse snooze {id} --for 1h");
    text
}

/// One warning, for people.
fn words(worker: &Worker, policy: &Policy, warning: &Warning, now: Timestamp) -> String {
    let sleeps = match worker.terms.sleep {
        SleepMode::Freeze => "paused",
        SleepMode::Stop | SleepMode::Hibernate => "stopped",
    };
    let (why, what) = match warning.kind {
        WarningKind::Idle => ("it is idle", sleeps),
        WarningKind::ScaleDown => ("it is idle and not needed", "deleted"),
        WarningKind::MaxRuntime => ("it has run for as long as it may", "stopped"),
        WarningKind::Schedule => ("its schedule says so", "stopped"),
    };
    let id = &worker.id;
    if warning.is_fyi {
        return format!("Drowse, for your information: {id} would be {what}, because {why}; it is exempt.\n");
    }
    let left = std::time::Duration::from_secs(warning.happens_at.since(now).as_secs());
    let mut text = format!(
        "Drowse: {id} will be {what} at {}, in {}, because {why}.\n",
        warning.happens_at,
        Human(left)
    );
    let _ = write!(text, "To keep it: drowse snooze {id} --for 1h");
    let is_for_idleness = matches!(warning.kind, WarningKind::Idle | WarningKind::ScaleDown);
    if is_for_idleness && !policy.keep_alive_file.is_empty() {
        let _ = write!(text, ", or touch {} in it", policy.keep_alive_file);
    }
    text.push('\n');
    text
}
