//! Holds, leases and keep-awakes.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use drowse_core::id::WorkerId;
use drowse_wire::v1::{Hold, HoldList, Lease, SnoozeRequest, TakeLease};

use super::ApiState;
use super::extract::{Body, Holder, Id, OptionalBody};
use super::failure::{Answered, Failure};
use super::show::show;
use crate::auth::Principal;
use crate::fleet::{ControlError, LeaseAsked};

/// What keeps it awake.
#[utoipa::path(get, path = "/api/v1/workers/{id}/holds", tag = "holds",
    responses((status = 200, description = "The live holds.", body = HoldList)))]
pub(super) async fn list(State(state): State<ApiState>, id: Id) -> Answered<Json<HoldList>> {
    Ok(Json(show(state.fleet(), &id).await?.holds()))
}

/// Takes a lease, or renews it.
#[utoipa::path(put, path = "/api/v1/workers/{id}/leases/{holder}", tag = "holds", request_body = TakeLease,
    responses((status = 200, description = "The lease.", body = Lease)))]
pub(super) async fn take_lease(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
    Holder(holder): Holder,
    Body(asked): Body<TakeLease>,
) -> Answered<Json<Lease>> {
    let asked = LeaseAsked {
        credential: who.credential(),
        holder: Some(holder.clone()),
        ttl: asked.ttl,
        reason: asked.reason,
    };
    state.fleet().take_lease(&id, asked).await?;
    Ok(Json(lease(&state, &id, &who, &holder).await?))
}

/// The lease as it stands; between the grant and this it may have been renewed, and that is the truth then.
async fn lease(state: &ApiState, id: &WorkerId, who: &Principal, holder: &str) -> Answered<Lease> {
    let (worker, credential, name) = (id.clone(), who.credential(), holder.to_owned());
    let now = state.fleet().clock().now();
    let read = move |view: &drowse_store::View<'_>| {
        let leases = view.leases(&worker)?;
        let mut alive = leases.alive(now);
        let found = alive.find(|lease| lease.credential == credential && lease.holder == name);
        Ok::<_, ControlError>(found.map(Lease::from))
    };
    let found = state.fleet().0.db.read(read).await?;
    found.ok_or_else(|| Failure::not_found(format!("lease of {holder}: it has ended already")))
}

/// Lets a lease go.
#[utoipa::path(delete, path = "/api/v1/workers/{id}/leases/{holder}", tag = "holds",
    responses((status = 204, description = "It has ended.")))]
pub(super) async fn release_lease(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
    Holder(holder): Holder,
) -> Answered<StatusCode> {
    if state.fleet().release_lease(&id, &who.credential(), Some(&holder)).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Failure::not_found(format!("lease of {holder} that this token has taken")))
    }
}

/// Keeps it awake for a while.
#[utoipa::path(post, path = "/api/v1/workers/{id}/snooze", tag = "holds", request_body = Option<SnoozeRequest>,
    responses((status = 200, description = "The hold.", body = Hold)))]
pub(super) async fn snooze(
    State(state): State<ApiState>,
    who: Principal,
    id: Id,
    OptionalBody(request): OptionalBody<SnoozeRequest>,
) -> Answered<Json<Hold>> {
    let length = match (request.for_, request.until) {
        (Some(_), Some(_)) => {
            return Err(Failure::invalid("until", "expected either for or until, found both"));
        }
        (Some(length), None) => length,
        (None, Some(until)) => {
            let now = state.fleet().clock().now();
            if until <= now {
                return Err(Failure::invalid("until", "it is over already"));
            }
            until.since(now)
        }
        (None, None) => {
            let length = state.fleet().get(&id).await?.policy.policy.snooze;
            if length.is_zero() {
                let why = "its policy says snooze = \"0s\", so it has to be said for how long, such as 1h";
                return Err(Failure::invalid("for", why));
            }
            length
        }
    };
    let (hold, _) = state.fleet().snooze(&id, &who.name, &request.message, length).await?;
    Ok(Json(Hold::from(&hold)))
}

/// Ends one's own keep-awake.
#[utoipa::path(delete, path = "/api/v1/workers/{id}/snooze", tag = "holds",
    responses((status = 204, description = "It has ended.")))]
pub(super) async fn unsnooze(State(state): State<ApiState>, who: Principal, id: Id) -> Answered<StatusCode> {
    if state.fleet().unsnooze(&id, &who.name).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Failure::not_found(format!("keep-awake of {}", who.name)))
    }
}
