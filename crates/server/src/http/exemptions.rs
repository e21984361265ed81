//! `exemptions`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use drowse_core::Timestamp;
use drowse_core::policy::Source;
use drowse_core::policy::exemption::{Expiry, Record};
use drowse_wire::problem::Code;
use drowse_wire::v1::{CreateExemption, Exemption, ExemptionList};

use super::ApiState;
use super::extract::{Body, ExemptionId};
use super::failure::{Answered, Failure};
use crate::auth::Principal;
use crate::fleet::Granting;

/// How the ids of those begin that stand in the file.
const OF_FILE: &str = "file-";

/// Lists all exemptions that are not over.
#[utoipa::path(get, path = "/api/v1/exemptions", tag = "policy",
    responses((status = 200, description = "All of them.", body = ExemptionList)))]
pub(super) async fn list(State(state): State<ApiState>) -> Answered<Json<ExemptionList>> {
    let now = state.fleet().clock().now();
    let all = state.fleet().exemptions().await?;
    let shown = all.iter().enumerate().filter(|(_, granting)| match granting.exemption.expires_on {
        Expiry::At(end) => end > now,
        Expiry::Never => true,
    });
    Ok(Json(ExemptionList { exemptions: shown.map(|(place, granting)| of(place, granting, now)).collect() }))
}

fn of(place: usize, granting: &Granting, now: Timestamp) -> Exemption {
    // Those of the file come first, so that their place in the list is that in the file.
    let (id, source) = match granting.id {
        Some(id) => (id.to_string(), Source::RunTime),
        None => (format!("{OF_FILE}{}", place + 1), Source::File),
    };
    Exemption::of(id, &granting.exemption, source.code(), granting.at, now)
}

/// Grants an exemption.
#[utoipa::path(post, path = "/api/v1/exemptions", tag = "policy", request_body = CreateExemption,
    responses((status = 201, description = "It counts from now on.", body = Exemption)))]
pub(super) async fn create(
    State(state): State<ApiState>,
    who: Principal,
    Body(new): Body<CreateExemption>,
) -> Answered<(StatusCode, Json<Exemption>)> {
    let exemption =
        Record::from(new).read().map_err(|error| Failure::new(Code::Invalid, error.to_string()))?;
    let at = state.fleet().clock().now();
    let id = state.fleet().add_exemption(exemption.clone(), &who.name).await?;
    let shown = Exemption::of(id.to_string(), &exemption, Source::RunTime.code(), Some(at), at);
    Ok((StatusCode::CREATED, Json(shown)))
}

/// Takes an exemption back.
#[utoipa::path(delete, path = "/api/v1/exemptions/{exemption_id}", tag = "policy",
    responses((status = 204, description = "It counts no more.")))]
pub(super) async fn delete(
    State(state): State<ApiState>,
    who: Principal,
    ExemptionId(id): ExemptionId,
) -> Answered<StatusCode> {
    if id.starts_with(OF_FILE) {
        return Err(Failure::new(
            Code::FromFile,
            format!("exemption {id} stands in the file: change it there"),
        ));
    }
    let id = id.parse().map_err(|_| Failure::not_found(format!("exemption {id}")))?;
    state.fleet().remove_exemption(id, &who.name).await?;
    Ok(StatusCode::NO_CONTENT)
}
