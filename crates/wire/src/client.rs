//! A small blocking client: one method for each route.
//!
//! It follows no redirect and uses no proxy, so that a token goes where it was meant to go and nowhere else.

mod error;
mod routes;
mod stream;

use std::io::Read as _;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::{Request, Response};
use ureq::{Agent, Body};

pub use error::ClientError;
pub use routes::Action;
pub use stream::{EventStream, Streamed};

use crate::place::Place;
use crate::problem::Problem;

/// Long enough for any machine that is there at all.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A check on request may have to ask a slow source.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);
/// The server says something at least every 15 s; after four times that nobody is there.
const STREAM_SILENT_FOR: Duration = Duration::from_mins(1);
/// A page of a thousand workers is about 2 MB.
const LONGEST_ANSWER: u64 = 64 << 20;

/// Unreserved characters of RFC 3986 stay as they are.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Talks to one Drowse.
#[derive(Debug)]
pub struct Client {
    place: Place,
    calls: Agent,
    streams: Agent,
}

impl Client {
    pub fn new(place: Place) -> Self {
        let config = || {
            Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .proxy(None)
                .user_agent(concat!("drowse/", env!("CARGO_PKG_VERSION")))
                .timeout_connect(Some(CONNECT_WITHIN))
        };
        Self {
            place,
            calls: config().timeout_global(Some(ANSWER_WITHIN)).build().into(),
            streams: config().timeout_per_read(Some(STREAM_SILENT_FOR)).build().into(),
        }
    }

    /// Where it asks.
    pub fn url(&self) -> &str {
        &self.place.url
    }

    fn request(&self, method: &str, path: &str) -> ureq::http::request::Builder {
        let builder = Request::builder().method(method).uri(format!("{}/api/v1/{path}", self.place.url));
        match &self.place.token {
            Some(token) => builder.header("authorization", format!("Bearer {token}")),
            None => builder,
        }
    }

    /// Sends a request without a body.
    fn ask<T: DeserializeOwned>(&self, method: &str, path: &str) -> Result<T, ClientError> {
        self.read(self.send(method, path)?)
    }

    /// Sends a request whose answer has no body.
    fn tell(&self, method: &str, path: &str) -> Result<(), ClientError> {
        self.send(method, path).map(drop)
    }

    fn send(&self, method: &str, path: &str) -> Result<Response<Body>, ClientError> {
        let request = self.request(method, path).header("accept", "application/json").body(());
        let request = request.map_err(|error| self.unsendable(&error))?;
        self.check(self.calls.run(request))
    }

    /// Sends a request with a JSON body.
    fn post<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).expect("messages have text keys and no numbers out of range");
        let request = self
            .request(method, path)
            .header("accept", "application/json")
            .header("content-type", "application/json")
            .body(body);
        let request = request.map_err(|error| self.unsendable(&error))?;
        self.read(self.check(self.calls.run(request))?)
    }

    /// Lets through what went well; everything else becomes an error that says what to do.
    fn check(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, ClientError> {
        let mut response = answer.map_err(|error| ClientError::of(&self.place.url, error))?;
        let status = response.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(response);
        }
        let text = self.text(&mut response)?;
        match serde_json::from_str::<Problem>(&text) {
            Ok(problem) if status == 401 => Err(ClientError::Unauthorized {
                url: self.place.url.clone(),
                had_token: self.place.token.is_some(),
                detail: problem.detail,
            }),
            Ok(problem) => Err(ClientError::Problem(Box::new(problem))),
            Err(_) => Err(self.garbage(status, &text)),
        }
    }

    fn read<T: DeserializeOwned>(&self, mut response: Response<Body>) -> Result<T, ClientError> {
        let status = response.status().as_u16();
        let text = self.text(&mut response)?;
        serde_json::from_str(&text).map_err(|_| self.garbage(status, &text))
    }

    fn text(&self, response: &mut Response<Body>) -> Result<String, ClientError> {
        let mut bytes = Vec::new();
        let mut reader = response.body_mut().as_reader().take(LONGEST_ANSWER);
        reader
            .read_to_end(&mut bytes)
            .map_err(|source| ClientError::Broken { url: self.place.url.clone(), source })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn garbage(&self, status: u16, text: &str) -> ClientError {
        let start: String =
            text.trim().chars().take(120).map(|c| if c.is_control() { ' ' } else { c }).collect();
        ClientError::Garbage { url: self.place.url.clone(), status, start }
    }

    fn unsendable(&self, error: &ureq::http::Error) -> ClientError {
        ClientError::Unsendable { url: self.place.url.clone(), why: error.to_string() }
    }
}

/// A part of a path, whatever characters it has.
fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// A path with the fields of `query` that are set.
fn with_query(path: &str, query: &impl Serialize) -> String {
    let fields = serde_json::to_value(query).expect("a query is an object of texts and numbers");
    let mut text = path.to_owned();
    for (index, (name, value)) in fields.as_object().into_iter().flatten().enumerate() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.push(if index == 0 { '?' } else { '&' });
        text.push_str(&[segment(name), segment(&value)].join("="));
    }
    text
}
