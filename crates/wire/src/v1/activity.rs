//! `GET workers/{id}/activity`: every field of seed 001, section 6.

use std::collections::BTreeMap;

use drowse_core::Timestamp;
use drowse_core::evidence::Evidence;
use drowse_core::telemetry::Activity;
use drowse_core::verdict::Verdict;
use drowse_core::worker as core;
use serde::{Deserialize, Serialize};

/// One thing that a person did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActivityEvent {
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub timestamp: Timestamp,
    /// The source's name for it, such as `start_lab`.
    pub category: String,
    /// Its details.
    #[serde(default)]
    pub data: BTreeMap<String, String>,
}

impl From<&Activity> for ActivityEvent {
    fn from(activity: &Activity) -> Self {
        Self { timestamp: activity.at, category: activity.category.clone(), data: activity.data.clone() }
    }
}

/// When a worker was used, slept and woke.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkerActivity {
    /// Which worker.
    pub worker_id: String,
    /// When it was last in use. It never goes back.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub last_activity_at: Option<Timestamp>,
    /// When its use was last checked.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub last_activity_check_at: Option<Timestamp>,
    /// The newest events, newest first.
    pub recent_activity_events: Vec<ActivityEvent>,
    /// Put to sleep for idleness or by a schedule.
    pub auto_pause_count: u64,
    /// Put to sleep by a person.
    pub manual_pause_count: u64,
    /// Back through a connection, a lease or a schedule.
    pub auto_resume_count: u64,
    /// Back through a person.
    pub manual_resume_count: u64,
    /// Put to sleep behind our back.
    pub external_pause_count: u64,
    /// Started behind our back.
    pub external_resume_count: u64,
    /// Stopped after `max_runtime`.
    pub max_runtime_count: u64,
    /// Drained because the fleet was too large.
    pub scale_down_count: u64,
    /// Its last sleep.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub last_paused_at: Option<Timestamp>,
    /// Its last resume.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub last_resumed_at: Option<Timestamp>,
    /// Who put it to sleep.
    pub paused_by: Option<String>,
    /// The same, under the other seed's name.
    pub last_paused_by: Option<String>,
    /// Why it was put to sleep.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::SleepReason>))]
    pub pause_reason: Option<String>,
    /// Who brought it back.
    pub resumed_by: Option<String>,
    /// Why it came back.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::WakeReason>))]
    pub resume_reason: Option<String>,
    /// When it is looked at next.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub next_idle_check_at: Option<Timestamp>,
    /// The earliest pause if nothing more happens.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub target_pause_at: Option<Timestamp>,
    /// The worker's own switch.
    pub is_idle_detection_enabled: bool,
}

impl WorkerActivity {
    pub fn of(
        worker: &core::Worker,
        evidence: &Evidence,
        verdict: &Verdict,
        recent: &[Activity],
        is_idle_detection_enabled: bool,
    ) -> Self {
        let pause = worker.last_pause.as_ref();
        let resume = worker.last_resume.as_ref();
        let counters = worker.counters;
        Self {
            worker_id: worker.id.to_string(),
            last_activity_at: evidence.last_activity_at(),
            last_activity_check_at: evidence.last_check_at,
            recent_activity_events: recent.iter().map(Into::into).collect(),
            auto_pause_count: counters.auto_pause,
            manual_pause_count: counters.manual_pause,
            auto_resume_count: counters.auto_resume,
            manual_resume_count: counters.manual_resume,
            external_pause_count: counters.external_pause,
            external_resume_count: counters.external_resume,
            max_runtime_count: counters.max_runtime,
            scale_down_count: counters.scale_down,
            last_paused_at: pause.map(|last| last.at),
            last_resumed_at: resume.map(|last| last.at),
            paused_by: pause.map(|last| last.by.clone()),
            last_paused_by: pause.map(|last| last.by.clone()),
            pause_reason: pause.map(|last| last.reason.code().to_owned()),
            resumed_by: resume.map(|last| last.by.clone()),
            resume_reason: resume.map(|last| last.reason.code().to_owned()),
            next_idle_check_at: Some(verdict.next_check_at),
            target_pause_at: verdict.target_pause_at,
            is_idle_detection_enabled,
        }
    }
}
