//! Signing in with a one-time link.

use axum::Json;
use axum::extract::State;
use axum::http::header::{REFERRER_POLICY, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use drowse_wire::v1::LoginLink;

use super::ApiState;
use super::extract::LinkSecret;
use super::failure::{Answered, Failure};
use super::page::html;
use crate::auth::{COOKIE_NAME, Principal, Secret};

/// Makes a link that signs whoever opens it in, once, as whoever asked for it.
#[utoipa::path(post, path = "/api/v1/login-links", tag = "tokens",
    responses((status = 201, description = "Where to go, within the hour.", body = LoginLink)))]
pub(super) async fn link(
    State(state): State<ApiState>,
    who: Principal,
) -> Answered<(StatusCode, Json<LoginLink>)> {
    let path = state.login_path(&who.name, who.role).await?;
    Ok((StatusCode::CREATED, Json(LoginLink { path })))
}

/// Uses the link up, gives the browser its cookie, and goes to the fleet.
///
/// The page goes there by itself instead of the answer being a redirect: a browser that came here from another
/// site would follow a redirect without the new `SameSite=Strict` cookie, and stand before the door again.
pub(super) async fn sign_in(
    State(state): State<ApiState>,
    LinkSecret(secret): LinkSecret,
) -> Answered<Response> {
    let opened = state.fleet().sign_in(&state.0.chance, &Secret::presented(&secret)).await?;
    let Some((session, lasts)) = opened else {
        return Ok(page(StatusCode::NOT_FOUND, "", "This link was used before, or is over."));
    };
    let cookie = format!(
        "{COOKIE_NAME}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={}",
        session.reveal(),
        lasts.as_secs()
    );
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| Failure::bad_request("no cookie can be made"))?;
    let go = "<meta http-equiv=\"refresh\" content=\"0; url=/\">";
    let mut response = page(StatusCode::OK, go, "You are signed in. <a href=\"/\">To the fleet</a>");
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

/// What a browser sees that has not signed in.
pub(super) fn how_to() -> Response {
    let text = "Please sign in: open the link that <code>drowse up</code> has printed, or ask whoever runs this \
                server for one.";
    page(StatusCode::UNAUTHORIZED, "", text)
}

fn page(status: StatusCode, head: &str, text: &str) -> Response {
    let mut response =
        (status, html("Drowse", head, &format!("<h1>Drowse</h1><p>{text}</p>"))).into_response();
    // The secret in the address is used up, but it is nobody's business either.
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
