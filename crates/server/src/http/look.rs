//! What can be seen of one worker, and a check on demand.

use axum::Json;
use axum::extract::State;
use drowse_wire::v1::{Explanation, IdleDetectionResult, Readings, WorkerActivity, WorkerIdleStatus};
use serde::Deserialize;

use super::ApiState;
use super::extract::{Id, Query};
use super::failure::{Answered, Failure};
use super::show::show;
use crate::fleet::ControlError;

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
#[derive(Debug, Deserialize)]
pub(super) struct When {
    at: Option<String>,
}

/// Why it is awake or not, in full.
#[utoipa::path(get, path = "/api/v1/workers/{id}/explain", tag = "worker",
    responses((status = 200, description = "Every reason.", body = Explanation)))]
pub(super) async fn explain(
    State(state): State<ApiState>,
    id: Id,
    Query(when): Query<When>,
) -> Answered<Json<Explanation>> {
    // The present must not be taken for an answer about the past.
    if when.at.is_some() {
        return Err(Failure::bad_request("at: only the present can be explained yet"));
    }
    Ok(Json(show(state.fleet(), &id).await?.explanation()))
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
