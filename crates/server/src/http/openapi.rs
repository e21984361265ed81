//! The `OpenAPI` document: what the handlers say about themselves, and what the table of routes adds to each.

use std::sync::OnceLock;

use axum::Json;
use axum::http::Method;
use axum::response::IntoResponse;
use drowse_wire::problem::{Code, PROBLEM_TYPE, Problem};
use drowse_wire::v1::{Event, Role};
use utoipa::OpenApi as _;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{ContentBuilder, OpenApi, PathItem, Ref, RefOr, Required, Response, ResponseBuilder};

use super::documented;
use super::routes::{Access, ROUTES, Route};
use crate::auth::COOKIE_NAME;

const BEARER: &str = "token";
const COOKIE: &str = "session";

/// What is the same for every route.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Drowse",
        version = "1",
        description = "Puts idle compute to sleep and wakes it on demand, and never sleeps something that is in use.",
        license(name = "Apache-2.0 OR MIT", identifier = "Apache-2.0 OR MIT")
    ),
    components(schemas(Problem, Event))
)]
struct Frame;

pub(super) fn frame() -> OpenApi {
    Frame::openapi()
}

/// `/openapi.json`.
pub(super) async fn serve() -> impl IntoResponse {
    Json(document())
}

/// The document. Made once: nothing in it changes while the program runs.
pub fn document() -> &'static OpenApi {
    static DOCUMENT: OnceLock<OpenApi> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let (_, mut document) = documented().split_for_parts();
        for route in ROUTES {
            let item = document.paths.paths.get_mut(route.path);
            if let Some(operation) = item.and_then(|item| operation(item, &route.method)) {
                complete(operation, route);
            }
        }
        let components = document.components.get_or_insert_default();
        for code in ALWAYS.into_iter().chain(BEHIND_THE_DOOR).chain(WITH_BODY).chain([Code::WrongStatus]) {
            components.responses.insert(code.code().to_owned(), RefOr::T(refused(code)));
        }
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
        let cookie = ApiKeyValue::new(COOKIE_NAME);
        components.add_security_scheme(COOKIE, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        document
    })
}

fn operation<'a>(item: &'a mut PathItem, method: &Method) -> Option<&'a mut Operation> {
    match method.as_str() {
        "GET" => item.get.as_mut(),
        "POST" => item.post.as_mut(),
        "PUT" => item.put.as_mut(),
        "PATCH" => item.patch.as_mut(),
        "DELETE" => item.delete.as_mut(),
        _ => None,
    }
}

fn complete(operation: &mut Operation, route: &Route) {
    let parameters = names(route.path).map(|name| RefOr::T(parameter(name)));
    operation.parameters.get_or_insert_default().splice(0..0, parameters);
    if let Access::Only(roles) = route.access {
        let schemes = [BEARER, COOKIE].map(|name| SecurityRequirement::new::<_, [&str; 0], &str>(name, []));
        operation.security = Some(schemes.to_vec());
        let roles: Vec<&str> = roles.iter().map(Role::code).collect();
        let about = operation.description.take().map_or_else(String::new, |about| format!("{about}\n\n"));
        operation.description = Some(format!("{about}For: {}.", roles.join(", ")));
    }
    operation.operation_id = Some(operation_id(route));
    for code in problems(route, operation.request_body.is_some()) {
        let refused = RefOr::Ref(Ref::from_response_name(code.code()));
        operation.responses.responses.entry(code.status().to_string()).or_insert(refused);
    }
}

/// A name that tells the route, so that no two are the same and none changes when a function does.
fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/v1").replace(['{', '}'], "").replace(['/', '-'], "_");
    format!("{}{path}", route.method.as_str().to_lowercase())
}

/// A problem as an answer, told once and referred to by every route.
fn refused(code: Code) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new().description(code.title()).content(PROBLEM_TYPE, content).build()
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn parameter(name: &str) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1));
    let (schema, about) = match name {
        "id" => {
            let id = text.max_length(Some(128)).pattern(Some("^[A-Za-z0-9][A-Za-z0-9._-]*$"));
            (id, "The worker.")
        }
        "holder" => (text.max_length(Some(128)), "In whose name; several programs may each hold one."),
        "level" => (
            text.enum_values(Some(["region", "type", "group", "owner", "worker"])),
            "How specific the layer is.",
        ),
        "name" => (text, "Which region, type, group, owner or worker."),
        "aws_region" => (text, "The worker's region."),
        "exemption_id" => (text, "The exemption."),
        "token_id" => (text, "The token."),
        _ => (text, ""),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(about))
        .schema(Some(Schema::Object(schema.build())))
        .build()
}

/// What any route may answer.
const ALWAYS: [Code; 5] =
    [Code::BadRequest, Code::TooLarge, Code::TooManyRequests, Code::Internal, Code::Unavailable];

/// What a route may answer that asks for a token.
const BEHIND_THE_DOOR: [Code; 3] = [Code::Unauthorized, Code::Forbidden, Code::NotFound];

/// What a route may answer that takes a body.
const WITH_BODY: [Code; 2] = [Code::UnsupportedMediaType, Code::Invalid];

/// What a route may refuse. One code for each status: the others of that status are told in the body.
fn problems(route: &Route, has_body: bool) -> Vec<Code> {
    let mut codes = ALWAYS.to_vec();
    if route.access != Access::Anyone {
        codes.extend(BEHIND_THE_DOOR);
    }
    if has_body {
        codes.extend(WITH_BODY);
    }
    // A change may be refused, and a place in the journal may be gone.
    if route.method != Method::GET || route.path == "/api/v1/events" {
        codes.push(Code::WrongStatus);
    }
    codes
}
