//! The one door: known route, credential, rate, role, own worker, own page. In this order, so that who may not
//! come in learns nothing, and nothing is kept of their body.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::http::header::{CACHE_CONTROL, EXPECT, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use drowse_wire::problem::Code;
use drowse_wire::v1::Role;

use super::ApiState;
use super::extract::parameter;
use super::failure::{Answered, Failure};
use super::intake;
use super::routes::{self, Access, Found};
use crate::auth::{Presented, Principal, Roles, is_same_origin};

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// There is no such route.
pub(super) async fn no_route(request: Request) -> Failure {
    Failure::not_found(format!("route {}", request.uri().path()))
}

/// Lets a request through, or not.
pub(super) async fn pass(State(state): State<ApiState>, request: Request, next: Next) -> Response {
    let is_page = request.uri().path() == "/" || request.uri().path().starts_with("/wake/");
    let limits = &state.0.limits;
    let (parts, body) = request.into_parts();
    // Who waits to be told before sending the body has not sent it, and reading would ask for it.
    let is_waiting = parts.headers.contains_key(EXPECT);
    let admitted = match admit(&state, Request::from_parts(parts, Body::empty())).await {
        Ok(request) => intake::read(body, limits).await.map(|bytes| request.map(|_| Body::from(bytes))),
        Err(failure) if is_waiting || !intake::discard(body, limits).await => Err(failure.and_hang_up()),
        Err(failure) => Err(failure),
    };
    match admitted {
        Ok(request) => {
            let mut response = next.run(request).await;
            // What a worker does now is not what it did a minute ago.
            response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
            response
        }
        Err(failure) if is_page && failure.code() == Code::Unauthorized.code() => super::login::how_to(),
        Err(failure) => failure.into_response(),
    }
}

async fn admit(state: &ApiState, request: Request) -> Answered<Request> {
    let Some(path) = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()) else {
        // Nobody has to sign in to be told that there is nothing.
        state.count(&caller(&request))?;
        return Ok(request);
    };
    let Found::Route(access) = routes::find(&path, request.method()) else {
        return Err(Failure::method_not_allowed(&routes::methods(&path)));
    };
    match access {
        Access::Anyone => {
            state.count(&caller(&request))?;
            Ok(request)
        }
        Access::Only(roles) => sign_in(state, request, roles).await,
    }
}

async fn sign_in(state: &ApiState, request: Request, roles: Roles) -> Answered<Request> {
    let Some(presented) = Presented::of(request.headers()) else {
        state.count(&caller(&request))?;
        return Err(Failure::unauthorized("a token is needed: Authorization: Bearer TOKEN"));
    };
    let Some(principal) = state.fleet().principal(presented.secret()).await? else {
        state.count(&caller(&request))?;
        return Err(Failure::unauthorized("this token opens nothing: it is wrong, over, or was taken back"));
    };
    state.count(&principal.token_id)?;
    if !roles.contains(principal.role) {
        let allowed: Vec<_> = roles.iter().map(Role::code).collect();
        let detail = format!("this is for {}, and the token is {}'s", allowed.join(", "), principal.role);
        return Err(Failure::new(Code::Forbidden, detail));
    }
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    if changes && matches!(presented, Presented::Cookie(_)) && !is_same_origin(request.headers()) {
        let detail = "with a cookie, only a page of this server may change something";
        return Err(Failure::new(Code::Forbidden, detail));
    }
    let (mut parts, body) = request.into_parts();
    if let Some(own) = &principal.worker {
        let asked = parameter(&mut parts, state, "id").await?;
        if asked != own.as_str() {
            let detail = format!("this token is for worker {own} only");
            return Err(Failure::new(Code::Forbidden, detail));
        }
    }
    parts.extensions.insert::<Principal>(principal);
    Ok(Request::from_parts(parts, body))
}

impl ApiState {
    fn count(&self, caller: &str) -> Answered<()> {
        let now = self.0.fleet.clock().now();
        self.0.rate.take(caller, now).map_err(Failure::too_many_requests)
    }
}

/// Who asks, without a token.
fn caller(request: &Request) -> String {
    let peer = request.extensions().get::<Peer>();
    peer.map_or_else(|| "somewhere".to_owned(), |Peer(address)| address.to_string())
}
