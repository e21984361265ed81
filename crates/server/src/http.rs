//! The HTTP API, version 1, with its document and two plain pages.
//!
//! - [`mod@routes`]: every route with who may use it; what is not in that table cannot be reached
//! - `guard`: the one door that every request passes: known route, rate, credential, role, own worker
//! - one file for each resource
//!
//! What must stay true: an answer never says that something was done which was not; every error is a problem
//! (RFC 9457) and has changed nothing; the `OpenAPI` document lists what is served and nothing else.

mod act;
mod backup;
mod brake;
mod docs;
mod events;
mod exemptions;
mod extract;
mod failure;
mod guard;
mod health;
mod holds;
mod intake;
mod login;
mod look;
mod metrics;
mod openapi;
mod page;
mod places;
mod policies;
mod register;
pub mod routes;
mod seeds;
mod serve;
mod show;
mod stream;
mod tokens;
mod wake;
mod workers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use drowse_wire::v1::{CreateToken, Role};
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::auth::{Chance, Rate, Secret};
use crate::fleet::{ControlError, Fleet};
use places::Places;

pub use metrics::{AllDoors, DoorCounts, reference as metrics_reference};
pub use openapi::document;
pub use serve::serve;
pub use wake::SharedPorts;

/// How much anybody may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; the next one waits until one ends.
    pub connections: usize,
    /// Of these, from one address; the others are for everybody else.
    pub connections_of_one: usize,
    /// Event streams of one token at once.
    pub streams_of_one: usize,
    /// Requests a second of one token, or of one address without a token, in the long run.
    pub requests_per_second: u32,
    /// Requests at once.
    pub burst: u32,
    /// The largest body. The largest that anybody has reason to send is a policy with a schedule.
    pub body_bytes: usize,
    /// How long the head of a request may take to arrive.
    pub head_for: Duration,
    /// How long its body may take.
    pub body_for: Duration,
    /// How long an event stream is silent before a comment shows that it is alive. Also how long a stream
    /// outlives its token: it is looked at again each time.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1_024,
            connections_of_one: 768,
            streams_of_one: 32,
            requests_per_second: 100,
            burst: 500,
            body_bytes: 64 * 1_024,
            head_for: Duration::from_secs(10),
            body_for: Duration::from_secs(10),
            heartbeat: Duration::from_secs(4),
        }
    }
}

/// What the API is made of.
#[derive(Debug)]
pub struct ApiParts {
    /// What it serves.
    pub fleet: Fleet,
    /// Where secrets come from.
    pub chance: Chance,
    /// A folder of ours for a backup on its way out.
    pub scratch: PathBuf,
    /// What went through the front door.
    pub doors: AllDoors,
    /// How much anybody may ask for.
    pub limits: Limits,
}

/// The API. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ApiState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fleet: Fleet,
    chance: Chance,
    scratch: PathBuf,
    doors: AllDoors,
    limits: Limits,
    rate: Rate,
    /// The event streams of each token.
    streams: Places,
    /// Ends streams, which would otherwise keep a shutdown waiting for ever.
    closing: CancellationToken,
}

impl ApiState {
    pub fn new(parts: ApiParts) -> Self {
        let ApiParts { fleet, chance, scratch, doors, limits } = parts;
        let rate = Rate::new(limits.requests_per_second, limits.burst);
        let (streams, closing) = (Places::default(), CancellationToken::new());
        Self(Arc::new(Inner { fleet, chance, scratch, doors, limits, rate, streams, closing }))
    }

    pub fn fleet(&self) -> &Fleet {
        &self.0.fleet
    }

    /// Makes a token, for whoever starts the server; the secret, which cannot be read again.
    pub async fn create_token(&self, new: CreateToken, by: &str) -> Result<String, ControlError> {
        let (_, secret) = self.0.fleet.create_token(&self.0.chance, new, by).await?;
        Ok(secret.reveal().to_owned())
    }

    /// What a token may do, if it opens anything now.
    pub async fn role_of(&self, secret: &str) -> Result<Option<Role>, ControlError> {
        let principal = self.0.fleet.principal(&Secret::presented(secret)).await?;
        Ok(principal.map(|principal| principal.role))
    }

    /// Makes a link that signs somebody in, once, within the hour; its path, such as `/login/…`.
    pub async fn login_path(&self, name: &str, role: Role) -> Result<String, ControlError> {
        let secret = self.0.fleet.login_link(&self.0.chance, name, role).await?;
        Ok(format!("/login/{}", secret.reveal()))
    }
}

/// Everything that is served.
pub fn router(state: ApiState) -> Router {
    let (documented, _) = documented().split_for_parts();
    documented
        .route("/", get(page::fleet))
        .route("/docs", get(docs::page))
        .route("/openapi.json", get(openapi::serve))
        .route("/login/{secret}", get(login::sign_in))
        .route("/wake/{id}", get(wake::look).post(wake::wake))
        .fallback(guard::no_route)
        .layer(from_fn_with_state(state.clone(), guard::pass))
        .with_state(state)
}

/// What the document lists.
fn documented() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(openapi::frame())
        .routes(routes!(workers::list, register::register))
        .routes(routes!(workers::get, workers::patch, workers::delete))
        .routes(routes!(look::activity))
        .routes(routes!(look::idle_status))
        .routes(routes!(look::explain))
        .routes(routes!(look::readings))
        .routes(routes!(look::detect_idle))
        .routes(routes!(holds::list))
        .routes(routes!(holds::take_lease, holds::release_lease))
        .routes(routes!(holds::snooze, holds::unsnooze))
        .routes(routes!(act::pause))
        .routes(routes!(act::resume))
        .routes(routes!(act::stop))
        .routes(routes!(act::drain, act::undrain))
        .routes(routes!(act::terminate))
        .routes(routes!(act::enable))
        .routes(routes!(act::disable))
        .routes(routes!(exemptions::list, exemptions::create))
        .routes(routes!(exemptions::delete))
        .routes(routes!(policies::list))
        .routes(routes!(policies::change_global))
        .routes(routes!(policies::change))
        .routes(routes!(brake::get))
        .routes(routes!(brake::release))
        .routes(routes!(events::list))
        .routes(routes!(stream::stream))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(login::link))
        .routes(routes!(tokens::revoke))
        .routes(routes!(backup::backup))
        .routes(routes!(seeds::activity))
        .routes(routes!(seeds::idle_status))
        .routes(routes!(seeds::pause))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(metrics::metrics))
}
