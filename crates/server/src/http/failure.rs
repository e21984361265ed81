//! What went wrong, as an answer.

use std::time::Duration;

use axum::Json;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use drowse_core::policy::Conflict;
use drowse_store::StoreError;
use drowse_wire::problem::{Code, PROBLEM_TYPE, Problem};

use crate::fleet::ControlError;

/// A problem on its way out, with what belongs into the head of the answer.
#[derive(Debug)]
pub(crate) struct Failure(Box<Told>);

#[derive(Debug)]
struct Told {
    problem: Problem,
    header: Option<(HeaderName, HeaderValue)>,
    /// The connection cannot be used again: there is more on it than we are willing to read.
    hangs_up: bool,
}

/// What a handler answers.
pub(super) type Answered<T> = Result<T, Failure>;

/// What to say about a fault of ours: its cause is for the log, and may name what is nobody's business.
const OUR_FAULT: &str = "something went wrong here; the server's log says what";

impl Failure {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Problem::new(code, detail).into()
    }

    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, detail)
    }

    pub(super) fn invalid(field: &str, message: impl std::fmt::Display) -> Self {
        Problem::new(Code::Invalid, format!("{field}: {message}")).with("field", field).into()
    }

    pub(super) fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(Code::NotFound, format!("there is no {what}"))
    }

    pub(super) fn unauthorized(detail: &str) -> Self {
        Self::new(Code::Unauthorized, detail).with(WWW_AUTHENTICATE, "Bearer")
    }

    pub(super) fn method_not_allowed(allow: &str) -> Self {
        Self::new(Code::MethodNotAllowed, format!("here one can {allow}")).with(ALLOW, allow)
    }

    /// `after`: when to come back.
    pub(super) fn too_many_requests(after: Duration) -> Self {
        let seconds = after.as_secs_f64().ceil().max(1.0);
        Self::new(Code::TooManyRequests, format!("try again in {seconds} s"))
            .with(RETRY_AFTER, &format!("{seconds}"))
    }

    fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.0.header = HeaderValue::from_str(value).ok().map(|value| (name, value));
        self
    }

    #[must_use]
    pub(super) fn and_hang_up(mut self) -> Self {
        self.0.hangs_up = true;
        self
    }

    pub(super) fn code(&self) -> &str {
        &self.0.problem.code
    }

    /// The same refusal under the code that says more about it here.
    pub(super) fn conflict_is(error: ControlError, code: Code) -> Self {
        if let ControlError::Conflict { message } = error { Self::new(code, message) } else { error.into() }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(Box::new(Told { problem, header: None, hangs_up: false }))
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let text = error.to_string();
        match error {
            ControlError::NotFound(_) | ControlError::NoSuch { .. } => Self::new(Code::NotFound, text),
            ControlError::Refused(refusal) => Problem::from(&refusal).into(),
            ControlError::LeaseRefused(refusal) => Problem::from(&refusal).into(),
            ControlError::Conflict { .. } => Self::new(Code::WrongStatus, text),
            ControlError::Pinned { key, by } => {
                Problem::new(Code::Pinned, text).with("key", key.name()).with("by", by).into()
            }
            ControlError::Invalid { field, .. } => {
                Problem::new(Code::Invalid, text).with("field", field).into()
            }
            ControlError::Conflicting { conflicts } => {
                let all: Vec<String> = conflicts.iter().map(Conflict::to_string).collect();
                Problem::new(Code::PolicyConflict, text).with("conflicts", all).into()
            }
            ControlError::Driver(_) => Self::new(Code::Unavailable, text).with(RETRY_AFTER, "5"),
            ControlError::Unavailable(error) => error.into(),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        if error.is_worth_retrying() || error.is_outage() || matches!(error, StoreError::CommitUnknown(_)) {
            return Self::new(Code::Unavailable, error.to_string()).with(RETRY_AFTER, "1");
        }
        tracing::error!(%error, "a request could not be answered");
        Self::new(Code::Internal, OUR_FAULT)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Told { problem, header, hangs_up } = *self.0;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.extend(header);
        if hangs_up {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
