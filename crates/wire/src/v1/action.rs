//! What people ask of a worker: `POST workers/{id}/pause /resume /stop /drain /terminate /snooze`,
//! `DELETE workers/{id}/drain`, `POST workers/{id}/idle-detection/enable|disable`.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::units;
use drowse_core::worker::Worker;
use serde::{Deserialize, Serialize};

/// A request to pause, resume, stop, drain or terminate. No body is the same as an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionRequest {
    /// Why, for the journal and for whoever wonders later.
    #[serde(default)]
    pub message: String,
    /// Overrule holds and vetoes; nothing for a resume.
    #[serde(default)]
    pub force: bool,
}

/// How a request was met. What cannot be done is a problem instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Answer {
    /// It has begun; `status` tells how far it is.
    Accepted,
    /// It was so already, and nothing was done.
    AlreadyTrue,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ActionAnswer {
    /// Which worker.
    pub worker_id: String,
    /// How the request was met.
    pub answer: Answer,
    /// What the worker is doing now: `pausing` is not yet `paused`.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Status))]
    pub status: String,
    /// Since when.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub status_since: Timestamp,
    /// By when this must be over.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub status_deadline: Option<Timestamp>,
}

impl ActionAnswer {
    pub fn of(worker: &Worker, answer: Answer) -> Self {
        Self {
            worker_id: worker.id.to_string(),
            answer,
            status: worker.status.kind().code().to_owned(),
            status_since: worker.status.since(),
            status_deadline: worker.status.deadline(),
        }
    }
}

impl From<drowse_core::machine::Answer> for Answer {
    fn from(answer: drowse_core::machine::Answer) -> Self {
        match answer {
            drowse_core::machine::Answer::Accepted => Answer::Accepted,
            drowse_core::machine::Answer::AlreadyTrue => Answer::AlreadyTrue,
        }
    }
}

/// A person asks to keep a worker awake. The answer is the hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SnoozeRequest {
    /// For how long. Unless this or `until` is given: the policy's `snooze`.
    #[serde(
        rename = "for",
        default,
        with = "units::optional_duration",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Span>))]
    pub for_: Option<Duration>,
    /// Until when, instead of for how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub until: Option<Timestamp>,
    /// Why.
    #[serde(default)]
    pub message: String,
}

/// The worker's own switch, and what all layers together make of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IdleDetection {
    /// Which worker.
    pub worker_id: String,
    /// The worker's own switch.
    pub is_idle_detection_enabled: bool,
    /// Every layer of its policy lets Drowse act.
    pub auto_pause_enabled: bool,
}
