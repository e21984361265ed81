//! `events/stream`: the journal as it grows.
//!
//! A reader that comes back with `Last-Event-ID` gets what it missed and loses nothing; where that is not
//! possible it is told so with an event `lost`. The stream reads only when the reader has taken what was read
//! before, so a slow one costs a connection and no memory.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use drowse_store::{EventId, Resume};
use drowse_wire::events::{Frame, LAST_EVENT_ID, LOST, STREAM_TYPE, encode, keepalive};
use drowse_wire::problem::Code;
use futures_util::stream;
use serde::Deserialize;
use tokio::sync::watch;

use super::ApiState;
use super::events::{event_id, filter, shown};
use super::extract::Query;
use super::failure::{Answered, Failure};
use super::places::Place;
use crate::auth::{Presented, Principal};
use crate::fleet::{ControlError, EventFilterOwned};

/// How many events are read at once.
const BATCH: usize = 100;

/// Which events to hear of.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct StreamQuery {
    /// Only those of this worker.
    worker: Option<String>,
    /// Only those of this type, such as `worker.paused`.
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// Hears of events as they happen. Each is an `Event` in the data of a server-sent event; `Last-Event-ID` goes on
/// where a stream was cut off.
#[utoipa::path(get, path = "/api/v1/events/stream", tag = "events",
    params(StreamQuery, ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen.")),
    responses((status = 200, description = "Server-sent events, without end.", body = String, content_type = "text/event-stream")))]
pub(super) async fn stream(
    State(state): State<ApiState>,
    who: Principal,
    headers: HeaderMap,
    Query(query): Query<StreamQuery>,
) -> Answered<Response> {
    let filter = filter(query.worker.as_deref(), query.kind)?;
    let most = state.0.limits.streams_of_one;
    let place = state.0.streams.take(&who.token_id, most).ok_or_else(|| {
        Failure::new(
            Code::TooManyRequests,
            format!("this token has {most} streams open, and may have no more"),
        )
    })?;
    let last = headers.get(LAST_EVENT_ID).map(|id| id.to_str().unwrap_or_default());
    let last = last.filter(|id| !id.is_empty()).map(|id| event_id(LAST_EVENT_ID, id)).transpose()?;
    // Before the first read: what is written in between is not missed.
    let grown = state.fleet().subscribe();
    let newest = state.fleet().newest_event().await?;
    let (seq, first) = match last {
        Some(last) => match state.fleet().resume_after(last).await? {
            Resume::After(seq) => (seq, String::new()),
            Resume::Lost => (newest.seq, frame(newest, Some(LOST), "{}".to_owned())),
        },
        // An id without an event: who is cut off before the first one can come back too.
        None => (newest.seq, format!("id: {newest}\n\n")),
    };
    let reader = Reader {
        presented: Presented::of(&headers),
        at: EventId { seq, ..newest },
        first: Some(first + keepalive()),
        state,
        who,
        filter,
        grown,
        _place: place,
    };
    let chunks = stream::unfold(reader, |mut reader| async move {
        let chunk = reader.next().await?;
        Some((Ok::<_, Infallible>(chunk), reader))
    });
    Ok(([(CONTENT_TYPE, STREAM_TYPE), (X_ACCEL, "no")], Body::from_stream(chunks)).into_response())
}

/// Some proxies collect an answer before they pass it on, unless they are told.
const X_ACCEL: axum::http::HeaderName = axum::http::HeaderName::from_static("x-accel-buffering");

fn frame(id: EventId, event: Option<&str>, data: String) -> String {
    encode(&Frame { id: Some(id.to_string()), event: event.map(str::to_owned), data })
}

struct Reader {
    state: ApiState,
    who: Principal,
    presented: Option<Presented>,
    filter: EventFilterOwned,
    grown: watch::Receiver<u64>,
    at: EventId,
    first: Option<String>,
    _place: Place,
}

impl Reader {
    /// What comes next; `None` ends the stream.
    async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let closing = self.state.0.closing.clone();
        let heartbeat = self.state.0.limits.heartbeat;
        loop {
            self.grown.mark_unchanged();
            match self.read().await {
                Ok(text) if !text.is_empty() => return Some(text),
                Ok(_) => {}
                // The reader comes back with its last id, when the store may be back too.
                Err(_) => return None,
            }
            tokio::select! {
                biased;
                () = closing.cancelled() => return None,
                changed = self.grown.changed() => changed.ok()?,
                // Also a look at the journal: another replica tells nobody here when it writes.
                () = tokio::time::sleep(heartbeat) => {
                    if !self.is_still_welcome().await {
                        return None;
                    }
                    let text = self.read().await.ok()?;
                    return Some(if text.is_empty() { keepalive().to_owned() } else { text });
                }
            }
        }
    }

    async fn read(&mut self) -> Result<String, ControlError> {
        let events = self.state.fleet().events(self.at.seq, BATCH, self.filter.clone()).await?;
        let mut text = String::new();
        for stored in events {
            self.at.seq = stored.seq;
            let event = shown(self.at, stored);
            let data = serde_json::to_string(&event).unwrap_or_default();
            text.push_str(&frame(self.at, Some(&event.kind), data));
        }
        Ok(text)
    }

    /// A token that was taken back hears nothing more. When the store cannot say, it is not asked to leave: the
    /// store has no news either.
    async fn is_still_welcome(&self) -> bool {
        let Some(presented) = &self.presented else { return false };
        let found = self.state.fleet().principal(presented.secret()).await;
        found.map_or(true, |found| found.as_ref() == Some(&self.who))
    }
}
