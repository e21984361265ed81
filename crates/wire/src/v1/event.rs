//! The journal: `GET events`, and each message of `GET events/stream`.

use drowse_core::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Something that was done or seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Event {
    /// Its place in the journal; grows, and is renewed as a whole when the database is restored.
    pub id: String,
    /// When it happened.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Instant))]
    pub at: Timestamp,
    /// What kind of thing it is, such as `worker.paused`.
    #[serde(rename = "type")]
    pub kind: String,
    /// To which worker, if to one.
    pub worker_id: Option<String>,
    /// The same in words.
    pub message: String,
    /// Its details.
    #[serde(default)]
    pub data: Map<String, Value>,
}

/// A page of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EventPage {
    /// Newest first; oldest first if `after` was given.
    pub events: Vec<Event>,
    /// Pass this as `before`, or as `after` if that was given, for the next page; null: this was the last.
    pub next: Option<String>,
}

/// Which events to read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct EventQuery {
    /// Only those of this worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Only those of this type, such as `worker.paused`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Only those after this id, oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Only those before this id, newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// How many at most, up to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 1000))]
    pub limit: Option<u32>,
}
