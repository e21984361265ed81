//! `GET workers/{id}/idle-status`: the countdown, with the seeds' field names.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::evidence::Evidence;
use drowse_core::hold::HoldKind;
use drowse_core::id::WorkerId;
use drowse_core::verdict::Verdict;
use serde::{Deserialize, Serialize};

/// Whether a worker is idle and when it sleeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[expect(clippy::struct_excessive_bools, reason = "the seeds' fields: each condition on its own")]
pub struct WorkerIdleStatus {
    /// Which worker.
    pub worker_id: String,
    /// Idle for long enough, and seen quiet often enough.
    pub is_idle: bool,
    /// For how long it has been idle.
    pub idle_minutes: f64,
    /// How long it must be idle; null: it never sleeps for idleness.
    pub idle_threshold_minutes: Option<f64>,
    /// When it was last in use.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub last_activity_at: Option<Timestamp>,
    /// A snooze or a keep-awake protects it.
    pub in_snooze_period: bool,
    /// Until when.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub snooze_until: Option<Timestamp>,
    /// Every layer of its policy lets Drowse act.
    pub auto_pause_enabled: bool,
    /// Idle, enabled, not held, not braked and running.
    pub eligible_for_pause: bool,
    /// When it is looked at next.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub next_idle_check_at: Timestamp,
    /// The earliest pause if nothing more happens.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub target_pause_at: Option<Timestamp>,
    /// Why there is none: `not_running`, `idle_timeout_never`, `protected`, `permanent_exemption`,
    /// `schedule_always`.
    pub target_pause_blocked_by: Option<String>,
    /// When this was found out.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub checked_at: Timestamp,
}

impl WorkerIdleStatus {
    pub fn of(id: &WorkerId, evidence: &Evidence, verdict: &Verdict) -> Self {
        Self {
            worker_id: id.to_string(),
            is_idle: verdict.is_idle,
            idle_minutes: minutes(verdict.idle_for),
            idle_threshold_minutes: verdict.idle_timeout.map(minutes),
            last_activity_at: evidence.last_activity_at(),
            in_snooze_period: is_snoozed(verdict),
            snooze_until: verdict.snooze_until,
            auto_pause_enabled: verdict.auto_pause_enabled,
            eligible_for_pause: verdict.eligible,
            next_idle_check_at: verdict.next_check_at,
            target_pause_at: verdict.target_pause_at,
            target_pause_blocked_by: verdict.target_pause_blocked_by.map(|by| by.code().to_owned()),
            checked_at: verdict.at,
        }
    }
}

pub(super) fn minutes(duration: Duration) -> f64 {
    duration.as_secs_f64() / 60.0
}

pub(super) fn is_snoozed(verdict: &Verdict) -> bool {
    verdict.holds.contains(HoldKind::Snooze) || verdict.holds.contains(HoldKind::KeepAwake)
}
