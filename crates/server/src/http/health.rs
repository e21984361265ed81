//! `/healthz` and `/readyz`.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use drowse_wire::problem::{Code, Problem};
use serde::Serialize;
use utoipa::ToSchema;

use super::ApiState;
use super::failure::Answered;

/// Whether Drowse can do its work.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(super) struct Ready {
    /// It has come up and taken over what it found.
    is_up: bool,
    /// The database answers.
    has_store: bool,
    /// Evidence that arrives can be written.
    takes_evidence: bool,
}

/// The process is alive. Nothing is asked: who restarts what does not answer here must not do so for the
/// database's sake.
#[utoipa::path(get, path = "/healthz", tag = "health",
    responses((status = 200, description = "It is alive.", body = String, content_type = "text/plain")))]
pub(super) async fn healthz() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], "ok\n")
}

/// Whether it can do its work.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, description = "It can.", body = Ready)))]
pub(super) async fn readyz(State(state): State<ApiState>) -> Answered<Json<Ready>> {
    let ready = state.fleet().ready().await;
    let shown =
        Ready { is_up: ready.is_up, has_store: ready.has_store, takes_evidence: ready.takes_evidence };
    if ready.is_ready() {
        return Ok(Json(shown));
    }
    let detail = if !ready.has_store {
        "the database does not answer"
    } else if ready.is_up {
        "evidence cannot be written"
    } else {
        "still coming up"
    };
    Err(Problem::new(Code::Unavailable, detail).with("ready", shown).into())
}
