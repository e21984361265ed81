//! Reasons to stay awake that people and programs give: keep-awakes and leases.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::event::Event;
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::id::{Generation, WorkerId};
use drowse_core::lease::{Asked, Credential, Ended, LeaseSummary, LeaseTerms};
use drowse_core::policy::Policy;
use drowse_core::status::WakeCause;
use drowse_core::worker::Worker;
use drowse_store::Lane;
use serde_json::json;

use super::{ControlError, Fleet};
use crate::change::Change;

/// A program's request for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseAsked {
    /// Whose token or channel it came by.
    pub credential: Credential,
    /// In what name; none means `default`.
    pub holder: Option<String>,
    /// For how long.
    pub ttl: Duration,
    /// What for.
    pub reason: String,
}

/// A lease that was granted.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseGranted {
    /// When it ends; sooner than asked for where the ceiling is nearer.
    pub until: Timestamp,
    /// Which grant this is.
    pub generation: Generation,
    /// The worker afterwards; it may be waking.
    pub worker: Worker,
}

/// The longest keep-awake: what is meant for longer is an exemption, which somebody approves.
const LONGEST_KEEP_AWAKE: Duration = Duration::from_hours(7 * 24);

impl Fleet {
    /// Keeps it awake for a while; wakes it if it is frozen. A person's request goes ahead of checks.
    pub async fn snooze(
        &self,
        id: &WorkerId,
        by: &str,
        message: &str,
        length: Duration,
    ) -> Result<(Hold, Worker), ControlError> {
        if length.is_zero() || length > LONGEST_KEEP_AWAKE {
            return Err(ControlError::invalid("for", "expected more than 0s and at most 7d"));
        }
        let (by, message) = (by.to_owned(), message.to_owned());
        self.0
            .change("snooze", Lane::Wake, id, move |change| {
                change.apply(&Event::WakeRequested { cause: WakeCause::KeepAwake { by: by.clone() } })?;
                let hold = Hold {
                    kind: HoldKind::KeepAwake,
                    owner: by.clone(),
                    reason: message.clone(),
                    since: change.now,
                    until: Some(change.now + length),
                };
                change.locked.take_hold(&hold)?;
                change
                    .journal("worker.snoozed", json!({ "by": by, "message": message, "until": hold.until }));
                look_again(change)?;
                Ok(hold)
            })
            .await
    }

    /// Ends a person's keep-awake; false if there is none.
    pub async fn unsnooze(&self, id: &WorkerId, by: &str) -> Result<bool, ControlError> {
        let by = by.to_owned();
        let (ended, _) = self
            .0
            .change("unsnooze", Lane::Ordinary, id, move |change| {
                let ended = change.locked.end_hold(HoldKind::KeepAwake, &by, change.now)?;
                if ended.is_some() {
                    change.journal("worker.snooze_ended", json!({ "by": by }));
                    look_again(change)?;
                }
                Ok(ended.is_some())
            })
            .await?;
        Ok(ended)
    }

    /// Takes a lease, or renews it. It wakes what is frozen, where `wake_from` allows.
    ///
    /// Waking and granting are one transaction: a pause that commits before it is undone by it, and one that
    /// comes after it finds the lease.
    pub async fn take_lease(&self, id: &WorkerId, asked: LeaseAsked) -> Result<LeaseGranted, ControlError> {
        let (granted, worker) = self
            .0
            .change("lease", Lane::Wake, id, move |change| {
                let holder = asked.holder.clone().filter(|name| !name.is_empty());
                let holder = holder.unwrap_or_else(|| drowse_core::lease::DEFAULT_HOLDER.to_owned());
                change.apply(&Event::WakeRequested { cause: WakeCause::Lease { holder: holder.clone() } })?;
                let mut leases = change.locked.leases()?;
                let was_held = leases
                    .alive(change.now)
                    .any(|lease| lease.credential == asked.credential && lease.holder == holder);
                let request = Asked {
                    credential: &asked.credential,
                    holder: Some(&holder),
                    ttl: asked.ttl,
                    reason: &asked.reason,
                };
                let granted = leases.take(&request, &terms(&change.resolved.policy), change.now)?;
                change.locked.save_leases(&leases)?;
                journal_ended(change, &granted.ended);
                // A renewal is no news.
                if !was_held {
                    let doc = json!({ "holder": holder, "reason": asked.reason, "until": granted.until });
                    change.journal("worker.lease_taken", doc);
                }
                if granted.warn_ceiling {
                    change.journal("worker.lease_ceiling_near", json!({ "credential": asked.credential }));
                }
                look_again(change)?;
                Ok((granted.until, granted.generation))
            })
            .await?;
        Ok(LeaseGranted { until: granted.0, generation: granted.1, worker })
    }

    /// Lets a lease go; false if it was not held.
    pub async fn release_lease(
        &self,
        id: &WorkerId,
        credential: &Credential,
        holder: Option<&str>,
    ) -> Result<bool, ControlError> {
        let (credential, holder) = (credential.clone(), holder.map(str::to_owned));
        let (released, _) = self
            .0
            .change("release", Lane::Ordinary, id, move |change| {
                let mut leases = change.locked.leases()?;
                let Some(ended) = leases.release(&credential, holder.as_deref(), change.now) else {
                    return Ok(false);
                };
                change.locked.save_leases(&leases)?;
                journal_ended(change, &[ended]);
                look_again(change)?;
                Ok(true)
            })
            .await?;
        Ok(released)
    }

    /// The flat fields about leases of seed 002.
    pub async fn lease_summary(&self, id: &WorkerId) -> Result<LeaseSummary, ControlError> {
        let (id, clock) = (id.clone(), self.0.clock.clone());
        self.0.db.read(move |view| Ok(view.leases(&id)?.summary(clock.now()))).await
    }
}

pub(crate) fn journal_ended(change: &mut Change<'_>, ended: &[Ended]) {
    for ended in ended {
        let doc = json!({ "holder": ended.lease.holder, "by": ended.by, "at": ended.at });
        change.journal("worker.lease_ended", doc);
    }
}

/// The picture has changed: the next verdict may be another, and sooner.
fn look_again(change: &Change<'_>) -> Result<(), ControlError> {
    Ok(change.tx.nudge(change.locked.id(), change.now)?)
}

pub(crate) fn terms(policy: &Policy) -> LeaseTerms {
    LeaseTerms {
        ttl_max: policy.lease_ttl_max,
        ceiling: policy.lease_ceiling,
        idle_timeout: policy.idle_timeout,
    }
}
