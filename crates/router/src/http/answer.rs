//! What Drowse itself answers: that it takes a moment, that it does not work and why, that nobody is there.

use bytes::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request;
use hyper::{Method, Response, StatusCode};

use super::body::{Words, whole};
use super::exchange::Failed;
use super::page::Shown;
use crate::route::Route;
use crate::turned::Turned;

/// What a program can tell an answer of Drowse from one of the worker by, and what it means.
const STATE: HeaderName = HeaderName::from_static("drowse-state");

/// When a page that waits is worth loading again, for whoever runs no scripts.
const AGAIN_AFTER: u64 = 2;

/// Who reads an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// Somebody with a browser who looks at this very page.
    Person,
    /// A program: what it asked for is of use to it, and nothing else.
    Program,
}

impl Reader {
    pub(super) fn of(parts: &request::Parts) -> Self {
        let text = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let accepts = text(header::ACCEPT).is_some_and(|accept| accept.contains("text/html"));
        // Browsers say what a request is for: a script's or a frame's is not the page itself.
        let mode = text(HeaderName::from_static("sec-fetch-mode"));
        let is_page = mode.is_none_or(|mode| mode == "navigate");
        if parts.method == Method::GET && accepts && is_page { Self::Person } else { Self::Program }
    }
}

/// It takes a moment.
pub(super) fn waiting(route: &Route, reader: Reader, ahead: usize) -> Response<Words> {
    let worker = route.worker.as_str();
    let shown = Shown { worker, title: "Waking up", message: &waits(ahead), is_waiting: true };
    let mut answer = say(StatusCode::SERVICE_UNAVAILABLE, "waking", route, reader, &shown);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(AGAIN_AFTER));
    answer
}

fn waits(ahead: usize) -> String {
    match ahead {
        0 => "It was asleep and is being woken. This page goes on by itself.".to_owned(),
        1 => "It is being woken, and one other waits for it. This page goes on by itself.".to_owned(),
        more => format!("It is being woken, and {more} others wait for it. This page goes on by itself."),
    }
}

/// What somebody is told who is not let through: the word for programs, and the title for people.
pub(super) fn heading(why: &Turned) -> (&'static str, &'static str) {
    match why {
        Turned::NotAllowed { .. } | Turned::PutToSleep => ("asleep", "Asleep"),
        Turned::MayNotWake(_) => ("refused", "Asleep"),
        Turned::Dormant => ("dormant", "Dormant"),
        Turned::DidNotComeUp { .. } => ("failed", "It did not come up"),
        // It may yet: whoever comes again finds it further.
        Turned::Late { is_up: false, .. } => ("waking", "Still waking up"),
        Turned::Late { is_up: true, .. } => ("waking", "No answer yet"),
        Turned::QueueFull | Turned::HostFull => ("full", "Too many are waiting"),
        Turned::NoSuchWorker | Turned::Ending => ("unavailable", "Not available"),
    }
}

/// It was not let through.
pub(super) fn turned(route: &Route, reader: Reader, why: &Turned) -> Response<Words> {
    let (state, title) = heading(why);
    let message = why.to_string();
    let shown = Shown { worker: route.worker.as_str(), title, message: &message, is_waiting: false };
    let mut answer = say(StatusCode::SERVICE_UNAVAILABLE, state, route, reader, &shown);
    if let Some(after) = why.retry_after() {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs()));
    }
    answer
}

/// It was let through, and there is no answer.
pub(super) fn failed(route: &Route, reader: Reader, failed: &Failed) -> Response<Words> {
    let message = match failed {
        Failed::Turned(why) => return turned(route, reader, why),
        Failed::BadBody => return bad("the body of the request did not arrive"),
        Failed::HungUp => "it closed the connection without an answer".to_owned(),
        Failed::Garbage(why) => format!("its answer is no HTTP: {why}"),
    };
    let shown =
        Shown { worker: route.worker.as_str(), title: "No answer", message: &message, is_waiting: false };
    say(StatusCode::BAD_GATEWAY, "failed", route, reader, &shown)
}

/// A request that is for nobody.
pub(super) fn bad(why: &str) -> Response<Words> {
    plain(StatusCode::BAD_REQUEST, "refused", why)
}

/// There is no such host here.
pub(super) fn nobody(host: &str) -> Response<Words> {
    plain(StatusCode::NOT_FOUND, "unknown", &format!("no worker answers to {host}"))
}

/// Events, as they come.
pub(super) fn events(words: Words) -> Response<Words> {
    let mut answer = Response::new(words);
    mark(&mut answer, "waking", "text/event-stream");
    answer
}

fn say(
    status: StatusCode,
    state: &'static str,
    route: &Route,
    reader: Reader,
    shown: &Shown<'_>,
) -> Response<Words> {
    match reader {
        Reader::Person => {
            let mut answer = Response::new(whole(route.rules.page.render(shown)));
            *answer.status_mut() = status;
            mark(&mut answer, state, "text/html; charset=utf-8");
            answer
        }
        Reader::Program => plain(status, state, &format!("{}: {}", shown.worker, shown.message)),
    }
}

fn plain(status: StatusCode, state: &'static str, words: &str) -> Response<Words> {
    let mut answer = Response::new(whole(Bytes::from(format!("drowse: {words}\n"))));
    *answer.status_mut() = status;
    mark(&mut answer, state, "text/plain; charset=utf-8");
    answer
}

fn mark(answer: &mut Response<Words>, state: &'static str, content: &'static str) {
    let headers = answer.headers_mut();
    headers.insert(STATE, HeaderValue::from_static(state));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    #[test]
    fn a_page_is_for_whoever_looks_at_it() {
        let of = |method: &str, headers: &[(&str, &str)]| {
            let mut request = Request::builder().method(method).uri("/");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            Reader::of(&request.body(()).unwrap().into_parts().0)
        };
        let html = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        assert_eq!(of("GET", &[html]), Reader::Person);
        assert_eq!(of("GET", &[html, ("sec-fetch-mode", "navigate")]), Reader::Person);
        assert_eq!(of("GET", &[html, ("sec-fetch-mode", "cors")]), Reader::Program);
        assert_eq!(of("POST", &[html]), Reader::Program);
        assert_eq!(of("GET", &[("accept", "*/*")]), Reader::Program);
        assert_eq!(of("GET", &[]), Reader::Program);
    }
}
