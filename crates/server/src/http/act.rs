//! What people can have done to a worker.
//!
//! `202`: it has begun, and the answer says what the worker is doing now. `200`: it was so already. `409`: it was
//! refused, and nothing has changed.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use drowse_core::machine::Answer as Made;
use drowse_wire::v1::{ActionAnswer, ActionRequest, IdleDetection};

use super::ApiState;
use super::extract::{Id, OptionalBody};
use super::failure::Answered;
use crate::auth::Principal;
use crate::fleet::{Done, Order};

/// The answer to an order.
pub(super) type Told = (StatusCode, Json<ActionAnswer>);

pub(super) fn told(done: &Done) -> Told {
    let status = match done.answer {
        Made::Accepted => StatusCode::ACCEPTED,
        Made::AlreadyTrue => StatusCode::OK,
    };
    (status, Json(ActionAnswer::of(&done.worker, done.answer.into())))
}

pub(super) fn order(who: Principal, request: ActionRequest) -> Order {
    Order { by: who.name, message: request.message, force: request.force }
}

/// Puts it to sleep, as its policy says how.
#[utoipa::path(post, path = "/api/v1/workers/{id}/pause", tag = "power", request_body = Option<ActionRequest>,
    responses((status = 202, description = "It has begun.", body = ActionAnswer),
        (status = 200, description = "It was so already.", body = ActionAnswer)))]
pub(super) async fn pause(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
    OptionalBody(request): OptionalBody<ActionRequest>,
) -> Answered<Told> {
    Ok(told(&state.fleet().pause(&id, order(who, request)).await?))
}

/// Brings it back.
#[utoipa::path(post, path = "/api/v1/workers/{id}/resume", tag = "power", request_body = Option<ActionRequest>,
    responses((status = 202, description = "It has begun.", body = ActionAnswer),
        (status = 200, description = "It was so already.", body = ActionAnswer)))]
pub(super) async fn resume(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
    OptionalBody(request): OptionalBody<ActionRequest>,
) -> Answered<Told> {
    Ok(told(&state.fleet().resume(&id, &who.name, &request.message).await?))
}

/// Stops it.
#[utoipa::path(post, path = "/api/v1/workers/{id}/stop", tag = "power", request_body = Option<ActionRequest>,
    responses((status = 202, description = "It has begun.", body = ActionAnswer),
        (status = 200, description = "It was so already.", body = ActionAnswer)))]
pub(super) async fn stop(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
    OptionalBody(request): OptionalBody<ActionRequest>,
) -> Answered<Told> {
    Ok(told(&state.fleet().stop(&id, order(who, request)).await?))
}

/// Lets it take no new work, and deletes it when nothing holds it any more.
#[utoipa::path(post, path = "/api/v1/workers/{id}/drain", tag = "power", request_body = Option<ActionRequest>,
    responses((status = 202, description = "It has begun.", body = ActionAnswer),
        (status = 200, description = "It was so already.", body = ActionAnswer)))]
pub(super) async fn drain(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
    OptionalBody(request): OptionalBody<ActionRequest>,
) -> Answered<Told> {
    Ok(told(&state.fleet().drain(&id, order(who, request)).await?))
}

/// Takes a drain back.
#[utoipa::path(delete, path = "/api/v1/workers/{id}/drain", tag = "power",
    responses((status = 202, description = "It has begun.", body = ActionAnswer),
        (status = 200, description = "It was so already.", body = ActionAnswer)))]
pub(super) async fn undrain(State(state): State<ApiState>, who: Principal, id: Id) -> Answered<Told> {
    Ok(told(&state.fleet().undrain(&id, &who.name).await?))
}

/// Deletes it for good.
#[utoipa::path(post, path = "/api/v1/workers/{id}/terminate", tag = "power",
    request_body = Option<ActionRequest>,
    responses((status = 202, description = "It has begun.", body = ActionAnswer),
        (status = 200, description = "It was so already.", body = ActionAnswer)))]
pub(super) async fn terminate(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
    OptionalBody(request): OptionalBody<ActionRequest>,
) -> Answered<Told> {
    Ok(told(&state.fleet().terminate(&id, order(who, request)).await?))
}

/// Lets Drowse act on it, as far as the other layers of its policy do.
#[utoipa::path(post, path = "/api/v1/workers/{id}/idle-detection/enable", tag = "power",
    responses((status = 200, description = "The switch is on.", body = IdleDetection)))]
pub(super) async fn enable(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
) -> Answered<Json<IdleDetection>> {
    switch(&state, &who, &id, true).await
}

/// Lets Drowse only observe it.
#[utoipa::path(post, path = "/api/v1/workers/{id}/idle-detection/disable", tag = "power",
    responses((status = 200, description = "The switch is off.", body = IdleDetection)))]
pub(super) async fn disable(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
) -> Answered<Json<IdleDetection>> {
    switch(&state, &who, &id, false).await
}

async fn switch(
    state: &ApiState,
    who: &Principal,
    id: &Id,
    is_enabled: bool,
) -> Answered<Json<IdleDetection>> {
    let resolved = state.fleet().set_idle_detection(id, is_enabled, &who.name).await?;
    Ok(Json(IdleDetection {
        worker_id: id.to_string(),
        is_idle_detection_enabled: is_enabled,
        auto_pause_enabled: resolved.policy.auto_pause,
    }))
}
