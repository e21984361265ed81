//! Every route, its method and who may use it, in one place.
//!
//! The guard looks a request up here before anything else: a handler that is not in the table cannot be reached,
//! and a test finds it. The tests read the same table, for every route × every role.

use axum::http::Method;
use drowse_wire::v1::Role;

use crate::auth::Roles;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever can reach us.
    Anyone,
    /// These.
    Only(Roles),
}

/// One method of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub method: Method,
    /// As the router writes it.
    pub path: &'static str,
    pub access: Access,
}

const fn route(method: Method, path: &'static str, roles: Roles) -> Route {
    Route { method, path, access: Access::Only(roles) }
}

const fn open(path: &'static str) -> Route {
    Route { method: Method::GET, path, access: Access::Anyone }
}

const OWN: Roles = Roles::OWN;
const ACT: Roles = Roles::ACT;
const LOOK: Roles = Roles::LOOK;
/// An agent sees how its own worker is judged, and nobody else's.
const LOOK_AGENT: Roles = LOOK.and(Role::Agent);
/// A router must know the workers and hear what becomes of them.
const LOOK_ROUTER: Roles = LOOK.and(Role::Router);

/// The table. For an agent every route with an `{id}` means its own worker.
pub const ROUTES: &[Route] = &[
    route(Method::GET, "/api/v1/workers", LOOK_ROUTER),
    route(Method::POST, "/api/v1/workers", OWN),
    route(Method::GET, "/api/v1/workers/{id}", LOOK_ROUTER.and(Role::Agent)),
    route(Method::PATCH, "/api/v1/workers/{id}", ACT),
    route(Method::DELETE, "/api/v1/workers/{id}", OWN),
    route(Method::GET, "/api/v1/workers/{id}/activity", LOOK_AGENT),
    route(Method::GET, "/api/v1/workers/{id}/idle-status", LOOK_AGENT),
    route(Method::GET, "/api/v1/workers/{id}/explain", LOOK_AGENT),
    route(Method::GET, "/api/v1/workers/{id}/readings", LOOK_AGENT),
    route(Method::GET, "/api/v1/workers/{id}/holds", LOOK_AGENT),
    route(Method::PUT, "/api/v1/workers/{id}/leases/{holder}", ACT.and(Role::Agent)),
    route(Method::DELETE, "/api/v1/workers/{id}/leases/{holder}", ACT.and(Role::Agent)),
    route(Method::POST, "/api/v1/workers/{id}/pause", ACT),
    route(Method::POST, "/api/v1/workers/{id}/resume", ACT),
    route(Method::POST, "/api/v1/workers/{id}/stop", ACT),
    route(Method::POST, "/api/v1/workers/{id}/snooze", ACT),
    route(Method::DELETE, "/api/v1/workers/{id}/snooze", ACT),
    route(Method::POST, "/api/v1/workers/{id}/detect-idle", ACT),
    route(Method::POST, "/api/v1/workers/{id}/drain", ACT),
    route(Method::DELETE, "/api/v1/workers/{id}/drain", ACT),
    route(Method::POST, "/api/v1/workers/{id}/terminate", ACT),
    route(Method::POST, "/api/v1/workers/{id}/idle-detection/enable", ACT),
    route(Method::POST, "/api/v1/workers/{id}/idle-detection/disable", ACT),
    route(Method::GET, "/api/v1/exemptions", LOOK),
    route(Method::POST, "/api/v1/exemptions", ACT),
    route(Method::DELETE, "/api/v1/exemptions/{exemption_id}", ACT),
    route(Method::GET, "/api/v1/policies", LOOK),
    route(Method::PATCH, "/api/v1/policies/global", ACT),
    route(Method::PATCH, "/api/v1/policies/{level}/{name}", ACT),
    route(Method::GET, "/api/v1/brake", LOOK),
    route(Method::POST, "/api/v1/brake/release", ACT),
    route(Method::GET, "/api/v1/events", LOOK_ROUTER),
    route(Method::GET, "/api/v1/events/stream", LOOK_ROUTER),
    route(Method::GET, "/api/v1/tokens", OWN),
    route(Method::POST, "/api/v1/tokens", OWN),
    route(Method::DELETE, "/api/v1/tokens/{token_id}", OWN),
    route(Method::POST, "/api/v1/login-links", LOOK),
    route(Method::POST, "/api/v1/backup", OWN),
    // The seeds' own paths.
    route(Method::GET, "/region/{aws_region}/workers/{id}/activity", LOOK_AGENT),
    route(Method::GET, "/region/{aws_region}/workers/{id}/idle-status", LOOK_AGENT),
    route(Method::POST, "/region/{aws_region}/workers/{id}/pause", ACT),
    // How many workers there are and what they do is nobody's business but ours.
    route(Method::GET, "/metrics", LOOK),
    open("/healthz"),
    open("/readyz"),
    route(Method::GET, "/", LOOK),
    route(Method::GET, "/wake/{id}", LOOK),
    // No more than a connection can do, and everybody who may look may connect.
    route(Method::POST, "/wake/{id}", LOOK),
    open("/docs"),
    open("/openapi.json"),
    open(USED_UP),
];

/// What the table says about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is there.
    Route(Access),
    /// The path is, the method is not.
    OtherMethod,
}

/// What a look alone uses up, so that only a `GET` counts: a program that looks where a link leads asks with `HEAD`.
const USED_UP: &str = "/login/{secret}";

/// Looks a request up; `HEAD` is a `GET` without the body.
pub(super) fn find(path: &str, method: &Method) -> Found {
    if method == Method::HEAD && path == USED_UP {
        return Found::OtherMethod;
    }
    let method = if method == Method::HEAD { &Method::GET } else { method };
    ROUTES
        .iter()
        .find(|route| route.path == path && route.method == *method)
        .map_or(Found::OtherMethod, |route| Found::Route(route.access))
}

/// The methods of a path, as `Allow` lists them.
pub(super) fn methods(path: &str) -> String {
    let of_path = ROUTES.iter().filter(|route| route.path == path);
    of_path.map(|route| route.method.as_str()).collect::<Vec<_>>().join(", ")
}
