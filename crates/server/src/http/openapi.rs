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
use utoipa::openapi::{ContentBuilder, OpenApi, PathItem, Ref, RefOr, Required, ResponseBuilder};

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
    for code in problems(route, operation.request_body.is_some()) {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response =
            ResponseBuilder::new().description(code.title()).content(PROBLEM_TYPE, content).build();
        operation.responses.responses.entry(code.status().to_string()).or_insert(RefOr::T(response));
    }
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

/// What a route may refuse. One code for each status: the others of that status are told in the body.
fn problems(route: &Route, has_body: bool) -> Vec<Code> {
    let mut codes = vec![Code::BadRequest, Code::TooManyRequests, Code::Internal, Code::Unavailable];
    if route.access != Access::Anyone {
        codes.extend([Code::Unauthorized, Code::Forbidden, Code::NotFound]);
    }
    if has_body {
        codes.extend([Code::TooLarge, Code::UnsupportedMediaType, Code::Invalid]);
    }
    if route.method != Method::GET || route.path == "/api/v1/events" {
        codes.push(Code::WrongStatus);
    }
    codes.sort_by_key(|code| code.status());
    codes
}
