//! `brake`.

use axum::Json;
use axum::extract::State;
use drowse_wire::problem::Code;
use drowse_wire::v1::{Brake, ReleaseBrake};

use super::ApiState;
use super::extract::Body;
use super::failure::{Answered, Failure};
use crate::auth::Principal;

/// Whether automatic actions are held back.
#[utoipa::path(get, path = "/api/v1/brake", tag = "fleet",
    responses((status = 200, description = "The brake.", body = Brake)))]
pub(super) async fn get(State(state): State<ApiState>) -> Answered<Json<Brake>> {
    shown(&state).await
}

async fn shown(state: &ApiState) -> Answered<Json<Brake>> {
    let brake = state.fleet().brake().await?;
    Ok(Json(Brake::of(&brake, &state.fleet().0.brake_terms)))
}

/// Lets go of the brake.
#[utoipa::path(post, path = "/api/v1/brake/release", tag = "fleet", request_body = ReleaseBrake,
    responses((status = 200, description = "It is released.", body = Brake)))]
pub(super) async fn release(
    State(state): State<ApiState>,
    who: Principal,
    Body(request): Body<ReleaseBrake>,
) -> Answered<Json<Brake>> {
    if request.message.trim().is_empty() {
        return Err(Failure::invalid("message", "who lets go says why"));
    }
    if !state.fleet().release_brake(&who.name, &request.message).await? {
        return Err(Failure::new(Code::BrakeNotEngaged, "the brake is not engaged"));
    }
    shown(&state).await
}
