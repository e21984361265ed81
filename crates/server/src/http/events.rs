//! `events`: the journal, page by page.

use axum::Json;
use axum::extract::State;
use drowse_core::id::WorkerId;
use drowse_store::{EventId, Resume, StoredEvent};
use drowse_wire::problem::Code;
use drowse_wire::v1::{Event, EventPage, EventQuery};
use serde_json::{Map, Value};

use super::ApiState;
use super::extract::Query;
use super::failure::{Answered, Failure};
use super::workers::page_length;
use crate::fleet::EventFilterOwned;
use crate::said::sentence;

/// Reads the journal.
#[utoipa::path(get, path = "/api/v1/events", tag = "events", params(EventQuery),
    responses((status = 200, description = "A page of it.", body = EventPage)))]
pub(super) async fn list(
    State(state): State<ApiState>,
    Query(query): Query<EventQuery>,
) -> Answered<Json<EventPage>> {
    let limit = page_length(query.limit)?;
    let filter = filter(query.worker.as_deref(), query.kind.clone())?;
    let newest = state.fleet().newest_event().await?;
    // One more than asked for tells whether there is a next page.
    let events = match (&query.after, &query.before) {
        (Some(_), Some(_)) => return Err(Failure::bad_request("expected after or before, found both")),
        (Some(after), None) => match state.fleet().resume_after(event_id("after", after)?).await? {
            Resume::After(seq) => state.fleet().events(seq, limit + 1, filter).await?,
            Resume::Lost => return Err(lost(after)),
        },
        (None, Some(before)) => {
            let id = event_id("before", before)?;
            if id.epoch != newest.epoch {
                return Err(lost(before));
            }
            state.fleet().events_before(id.seq, limit + 1, filter).await?
        }
        (None, None) => state.fleet().events_before(i64::MAX, limit + 1, filter).await?,
    };
    let has_more = events.len() > limit;
    let events: Vec<Event> = events.into_iter().take(limit).map(|event| shown(newest, event)).collect();
    let next = events.last().filter(|_| has_more).map(|event| event.id.clone());
    Ok(Json(EventPage { events, next }))
}

fn lost(id: &str) -> Failure {
    let detail = format!("{id} is of another life of the journal, or what came next was pruned: begin again");
    Failure::new(Code::Late, detail)
}

pub(super) fn event_id(field: &str, text: &str) -> Answered<EventId> {
    text.parse().map_err(|error| Failure::bad_request(format!("{field}: {error}")))
}

pub(super) fn filter(worker: Option<&str>, kind: Option<String>) -> Answered<EventFilterOwned> {
    let worker = worker.map(WorkerId::new).transpose();
    let worker = worker.map_err(|error| Failure::bad_request(format!("worker: {error}")))?;
    Ok(EventFilterOwned { worker, kind })
}

/// An event as others see it. `journal`: any id of the same life of the journal.
pub(super) fn shown(journal: EventId, stored: StoredEvent) -> Event {
    let StoredEvent { seq, event } = stored;
    Event {
        id: EventId { seq, ..journal }.to_string(),
        at: event.at,
        message: sentence(&event.kind, &event.doc),
        kind: event.kind,
        worker_id: event.worker.map(|worker| worker.to_string()),
        data: match event.doc {
            Value::Object(data) => data,
            Value::Null => Map::new(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Map::from_iter([("value".to_owned(), other)])
            }
        },
    }
}
