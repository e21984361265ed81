//! What can be seen of one worker, and a check on demand.

use axum::Json;
use axum::extract::State;
use drowse_core::Timestamp;
use drowse_wire::problem::Code;
use drowse_wire::v1::{Explanation, IdleDetectionResult, Readings, WorkerActivity, WorkerIdleStatus};
use serde::Deserialize;

use super::ApiState;
use super::events::shown;
use super::extract::{Id, Query};
use super::failure::{Answered, Failure};
use super::show::show;
use crate::fleet::ControlError;
use crate::reconcile::JUDGED;

/// When it was used, slept and woke.
#[utoipa::path(get, path = "/api/v1/workers/{id}/activity", tag = "worker",
    responses((status = 200, description = "Its activity.", body = WorkerActivity)))]
pub(super) async fn activity(State(state): State<ApiState>, id: Id) -> Answered<Json<WorkerActivity>> {
    Ok(Json(show(state.fleet(), &id).await?.activity()))
}

/// Whether it is idle, and when it sleeps.
#[utoipa::path(get, path = "/api/v1/workers/{id}/idle-status", tag = "worker",
    responses((status = 200, description = "The countdown.", body = WorkerIdleStatus)))]
pub(super) async fn idle_status(State(state): State<ApiState>, id: Id) -> Answered<Json<WorkerIdleStatus>> {
    Ok(Json(show(state.fleet(), &id).await?.idle_status()))
}

/// When to explain.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct When {
    /// Explain the last decision that was acted on up to then, and what happened between it and then.
    #[param(value_type = Option<drowse_wire::schema::Instant>)]
    at: Option<String>,
}

/// How far back a decision is looked for, and how much of what happened since is told.
const FAR_BACK: usize = 20_000;
const MOST_TOLD: usize = 200;

/// Why it is awake or not, in full.
#[utoipa::path(get, path = "/api/v1/workers/{id}/explain", tag = "worker", params(When),
    responses((status = 200, description = "Every reason.", body = Explanation)))]
pub(super) async fn explain(
    State(state): State<ApiState>,
    id: Id,
    Query(when): Query<When>,
) -> Answered<Json<Explanation>> {
    match when.at {
        None => {
            let shown = show(state.fleet(), &id).await?;
            let mut explanation = shown.explanation();
            explanation.notes.extend(state.fleet().doubts(&id, shown.verdict.status));
            Ok(Json(explanation))
        }
        Some(at) => {
            let at = at.parse().map_err(|error| Failure::bad_request(format!("at: {error}")))?;
            explain_past(&state, &id, at).await.map(Json)
        }
    }
}

async fn explain_past(state: &ApiState, id: &Id, at: Timestamp) -> Answered<Explanation> {
    // A worker that nobody knows is told apart from one that nothing was decided about.
    show(state.fleet(), id).await?;
    let newest = state.fleet().newest_event().await?;
    let events = state.fleet().events_until(id, at, FAR_BACK).await?;
    let mut until_then = Vec::new();
    for stored in events {
        if stored.event.kind == JUDGED
            && let Ok(explanation) = serde_json::from_value::<Explanation>(stored.event.doc.clone())
        {
            until_then.reverse();
            until_then.truncate(MOST_TOLD);
            return Ok(Explanation { until_then, ..explanation });
        }
        until_then.push(shown(newest, stored));
    }
    let detail = format!("nothing was decided about {} up to {at} that the journal still has", **id);
    Err(Failure::new(Code::NotFound, detail))
}

/// What its signals last said.
#[utoipa::path(get, path = "/api/v1/workers/{id}/readings", tag = "worker",
    responses((status = 200, description = "The latest readings.", body = Readings)))]
pub(super) async fn readings(State(state): State<ApiState>, id: Id) -> Answered<Json<Readings>> {
    Ok(Json(show(state.fleet(), &id).await?.readings()))
}

/// Checks it now, and acts on what is found.
#[utoipa::path(post, path = "/api/v1/workers/{id}/detect-idle", tag = "worker",
    responses((status = 200, description = "What the check did and found.", body = IdleDetectionResult)))]
pub(super) async fn detect_idle(
    State(state): State<ApiState>,
    id: Id,
) -> Answered<Json<IdleDetectionResult>> {
    let result = match state.fleet().detect_idle(&id).await {
        Ok(found) => IdleDetectionResult::of(&id, &found.verdict, found.paused_for.is_some()),
        // The check was done as far as it went; that is an answer and no failure of the request.
        Err(ControlError::Driver(error)) => {
            IdleDetectionResult::failed(&id, state.fleet().clock().now(), error.to_string())
        }
        Err(other) => return Err(other.into()),
    };
    Ok(Json(result))
}
