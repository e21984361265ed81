//! The seeds' own paths: the same answers, with the region in front.

use axum::Json;
use axum::extract::State;
use drowse_wire::v1::{ActionAnswer, ActionRequest, WorkerActivity, WorkerIdleStatus};

use super::ApiState;
use super::act::{Told, order, told};
use super::extract::{Id, OptionalBody, Region};
use super::failure::{Answered, Failure};
use super::show::{Shown, show};
use crate::auth::Principal;

/// When it was used, slept and woke.
#[utoipa::path(get, path = "/region/{aws_region}/workers/{id}/activity", tag = "seeds",
    responses((status = 200, description = "Its activity.", body = WorkerActivity)))]
pub(super) async fn activity(
    State(state): State<ApiState>,
    region: Region,
    id: Id,
) -> Answered<Json<WorkerActivity>> {
    Ok(Json(in_region(&state, &region, &id).await?.activity()))
}

/// Whether it is idle, and when it sleeps.
#[utoipa::path(get, path = "/region/{aws_region}/workers/{id}/idle-status", tag = "seeds",
    responses((status = 200, description = "The countdown.", body = WorkerIdleStatus)))]
pub(super) async fn idle_status(
    State(state): State<ApiState>,
    region: Region,
    id: Id,
) -> Answered<Json<WorkerIdleStatus>> {
    Ok(Json(in_region(&state, &region, &id).await?.idle_status()))
}

/// Puts it to sleep, as its policy says how.
#[utoipa::path(post, path = "/region/{aws_region}/workers/{id}/pause", tag = "seeds",
    request_body = Option<ActionRequest>,
    responses((status = 202, description = "It has begun.", body = ActionAnswer),
        (status = 200, description = "It was so already.", body = ActionAnswer)))]
pub(super) async fn pause(
    State(state): State<ApiState>,
    who: Principal,
    region: Region,
    id: Id,
    OptionalBody(request): OptionalBody<ActionRequest>,
) -> Answered<Told> {
    in_region(&state, &region, &id).await?;
    Ok(told(&state.fleet().pause(&id, order(who, request)).await?))
}

/// A worker elsewhere is not there.
async fn in_region(state: &ApiState, Region(region): &Region, id: &Id) -> Answered<Shown> {
    let shown = show(state.fleet(), id).await?;
    if shown.picture.worker.selectors.region.as_ref() == Some(region) {
        Ok(shown)
    } else {
        Err(Failure::not_found(format!("worker {} in region {region}", id.0)))
    }
}
