//! From a request to types. What cannot be read is a problem that says where.

use std::ops::Deref;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use drowse_core::id::WorkerId;
use drowse_wire::problem::{Code, Problem};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;

use super::ApiState;
use super::failure::Failure;
use crate::auth::Principal;

/// A JSON body.
#[derive(Clone, Debug)]
pub(super) struct Body<T>(pub(super) T);

/// A JSON body that may be left out or null, which is the same as an empty object.
#[derive(Clone, Debug)]
pub(super) struct OptionalBody<T>(pub(super) T);

/// The query of a URL.
#[derive(Clone, Debug)]
pub(super) struct Query<T>(pub(super) T);

/// The parameter `{id}` of a path.
#[derive(Clone, Debug)]
pub(super) struct Id(pub(super) WorkerId);

impl Deref for Id {
    type Target = WorkerId;

    fn deref(&self) -> &WorkerId {
        &self.0
    }
}

impl<T: DeserializeOwned> FromRequest<ApiState> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &ApiState) -> Result<Self, Failure> {
        let bytes = read(request).await?;
        if bytes.is_empty() {
            return Err(Failure::bad_request("the body is missing: expected a JSON object"));
        }
        parse(&bytes).map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest<ApiState> for OptionalBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &ApiState) -> Result<Self, Failure> {
        let bytes = read(request).await?;
        parse(if matches!(bytes.trim_ascii(), b"" | b"null") { b"{}" } else { &bytes }).map(Self)
    }
}

/// The body, which the guard has read already; JSON, if there is any.
async fn read(request: Request) -> Result<Bytes, Failure> {
    let kind = request.headers().get(CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default().to_owned());
    let collected = request.into_body().collect().await;
    let bytes = collected.map_err(|_| Failure::bad_request("the body broke off"))?.to_bytes();
    if bytes.is_empty() || kind.as_deref().is_some_and(is_json) {
        return Ok(bytes);
    }
    let found = kind.unwrap_or_else(|| "none".to_owned());
    Err(Failure::new(Code::UnsupportedMediaType, format!("expected application/json, found {found}")))
}

fn is_json(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    // Types that take a list where they want an object are an accident of the parser.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Failure::bad_request("expected a JSON object, found a list"));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let problem = Problem::new(Code::BadRequest, error.to_string());
        problem.with("line", error.line()).with("column", error.column()).into()
    })
}

impl<T: DeserializeOwned> FromRequestParts<ApiState> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, Failure> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(query)| Self(query))
            .map_err(|rejection| Failure::bad_request(rejection.body_text()))
    }
}

impl FromRequestParts<ApiState> for Id {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Failure> {
        let text = parameter(parts, state, "id").await?;
        WorkerId::new(&text).map(Self).map_err(|error| Failure::bad_request(error.to_string()))
    }
}

/// One decoded parameter of the path.
pub(super) async fn parameter(parts: &mut Parts, state: &ApiState, name: &str) -> Result<String, Failure> {
    let parameters = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| Failure::bad_request("the path is not UTF-8"))?;
    let found = parameters.iter().find(|(found, _)| *found == name);
    found
        .map(|(_, value)| value.to_owned())
        .ok_or_else(|| Failure::bad_request("the path is not one of ours"))
}

macro_rules! path_parameters {
    ($($(#[$doc:meta])* $type:ident = $name:literal),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(super) struct $type(pub(super) String);

        impl FromRequestParts<ApiState> for $type {
            type Rejection = Failure;

            async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, Failure> {
                parameter(parts, state, $name).await.map(Self)
            }
        }
    )+};
}

path_parameters! {
    /// In whose name a lease is held.
    Holder = "holder",
    /// Which exemption.
    ExemptionId = "exemption_id",
    /// Which token.
    TokenId = "token_id",
    /// How specific a policy layer is.
    LevelName = "level",
    /// Which region, type, group, owner or worker a layer is for.
    LayerName = "name",
    /// The seeds' region.
    Region = "aws_region",
    /// What a login link carries.
    LinkSecret = "secret",
}

impl FromRequestParts<ApiState> for Principal {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, Failure> {
        // The guard puts it there for every route that is not open to anyone.
        parts.extensions.get().cloned().ok_or_else(|| Failure::unauthorized("a token is needed"))
    }
}
