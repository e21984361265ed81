//! `POST workers/{id}/detect-idle`: one check now. The table of seed 001.

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::status::StatusKind;
use drowse_core::verdict::{Use, Verdict};
use serde::{Deserialize, Serialize};

use super::idle_status::{is_snoozed, minutes};

/// What one check did and found. A step that could not be done leaves what comes after it at false and zero, and
/// `error` says why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[expect(clippy::struct_excessive_bools, reason = "the seed's table: each step on its own")]
pub struct IdleDetectionResult {
    /// Which worker.
    pub worker_id: String,
    /// When it was checked.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub checked_at: Timestamp,
    /// Its signals could be read.
    pub telemetry_fetched: bool,
    /// What they say was written down.
    pub activity_updated: bool,
    /// It was judged.
    pub idle_check_performed: bool,
    /// It is being put to sleep now.
    pub auto_pause_triggered: bool,
    /// Idle for long enough, and seen quiet often enough.
    pub is_idle: bool,
    /// For how long it has been idle.
    pub idle_minutes: f64,
    /// Idle, enabled, not held, not braked and running.
    pub eligible_for_pause: bool,
    /// A snooze or a keep-awake protects it.
    pub in_snooze_period: bool,
    /// Why the check ended early.
    pub error: Option<String>,
}

impl IdleDetectionResult {
    /// A check that went to its end.
    pub fn of(id: &WorkerId, verdict: &Verdict, auto_pause_triggered: bool) -> Self {
        let is_running = verdict.status == StatusKind::Running;
        Self {
            worker_id: id.to_string(),
            checked_at: verdict.at,
            telemetry_fetched: is_running && verdict.used != Use::Unknown,
            activity_updated: is_running,
            idle_check_performed: is_running,
            auto_pause_triggered,
            is_idle: verdict.is_idle,
            idle_minutes: minutes(verdict.idle_for),
            eligible_for_pause: verdict.eligible,
            in_snooze_period: is_snoozed(verdict),
            error: (!is_running)
                .then(|| format!("it is {}: only a running worker is checked", verdict.status)),
        }
    }

    /// A check that ended before it judged anything.
    pub fn failed(id: &WorkerId, at: Timestamp, error: String) -> Self {
        Self {
            worker_id: id.to_string(),
            checked_at: at,
            telemetry_fetched: false,
            activity_updated: false,
            idle_check_performed: false,
            auto_pause_triggered: false,
            is_idle: false,
            idle_minutes: 0.0,
            eligible_for_pause: false,
            in_snooze_period: false,
            error: Some(error),
        }
    }
}
