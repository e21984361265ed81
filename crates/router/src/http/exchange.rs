//! One request: from the gate to its answer.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::{self, Reader};
use super::body::{Tube, Words};
use super::carry::{self, Way};
use super::join::Joining;
use super::line::{Line, Unanswered};
use super::visit::Visit;
use super::{Caller, head, progress};
use crate::door::{Admitted, Door, Knocked, Pass};
use crate::route::{Asked, Route, Standing, Waiting};
use crate::router::lock;
use crate::turned::Turned;

/// How long the worker took to wake up for this request.
const COLD_START: HeaderName = HeaderName::from_static("drowse-cold-start-ms");

/// How long a request waits before it gets a page instead: what is frozen is back by then, and nobody notices.
const PAGE_AFTER: Duration = Duration::from_millis(700);

/// How large a body may be to be kept, so that it can be said again to a worker that hung up without a word.
const REPLAY_AT_MOST: u64 = 64 << 10;

/// How often a request is repeated to a worker that hangs up without a word while it comes up.
const REPEATS_AT_MOST: u32 = 3;

/// How long it is waited for such a body. One that takes longer goes on as it comes, and is said once.
const SAID_WITHIN: Duration = Duration::from_secs(2);

/// Answers a request.
pub(super) async fn answer(caller: &Arc<Caller>, request: Request<Incoming>) -> Response<Words> {
    let (parts, body) = request.into_parts();
    let reader = Reader::of(&parts);
    let host = match head::host(&parts) {
        Ok(host) => host,
        Err(why) => return answer::bad(&why.to_string()),
    };
    let Some(route) = caller.names().find(host.as_ref()).cloned() else {
        return match host {
            Some(host) => answer::nobody(host.as_str()),
            None => answer::bad("the request names no host"),
        };
    };
    let door = caller.router.door_of(&route);
    let standing = standing(caller, &route, &parts);
    if progress::is_asked_for(&parts) {
        return progress::follow(caller, door, &route, standing);
    }
    let lacks = route.rules.lacks(standing);
    let asked_at = Instant::now();
    let let_in = match standing {
        // What it would speak then is nobody's to read, and nobody's to end.
        Standing::Robot if head::upgrade(&parts.headers).is_some() => Err(Turned::Dormant),
        Standing::Robot => door.admit_robot(route.target.place).await.map(Admitted::Robot),
        Standing::MayWake | Standing::MayCome => {
            let may_wake = standing == Standing::MayWake;
            match enter(caller, &door, &route, may_wake, reader).await {
                Entered::Passed(pass) => Ok(Admitted::Counted(pass)),
                Entered::Turned(why) => Err(why),
                Entered::Page(ahead) => return answer::waiting(&route, reader, ahead),
            }
        }
    };
    let admitted = match let_in {
        Ok(admitted) => admitted,
        Err(why) => return answer::turned(&route, reader, &why.told_to(lacks)),
    };
    let is_cold = matches!(&admitted, Admitted::Counted(pass) if pass.is_cold());
    let took = asked_at.elapsed();
    let visit = Visit::new(door, Arc::clone(&route), (caller.from, standing == Standing::MayWake), admitted);
    // In a task of its own: the answer goes on after its head has been handed over, and a client that is gone is
    // noticed by both.
    let (tell, told) = oneshot::channel();
    caller.router.spawn(serve(Arc::clone(caller), visit, parts, body, tell));
    match told.await {
        Ok(Ok(mut response)) => {
            if is_cold && let Ok(value) = HeaderValue::from_str(&took.as_millis().to_string()) {
                response.headers_mut().insert(COLD_START, value);
            }
            response
        }
        Ok(Err(Failed::Turned(why))) => answer::turned(&route, reader, &why.told_to(lacks)),
        Ok(Err(failed)) => answer::failed(&route, reader, &failed),
        Err(_) => answer::turned(&route, reader, &Turned::Ending),
    }
}

fn standing(caller: &Caller, route: &Route, parts: &request::Parts) -> Standing {
    let agent = parts.headers.get(header::USER_AGENT).map(HeaderValue::as_bytes);
    let asked = Asked {
        agent: &String::from_utf8_lossy(agent.unwrap_or_default()),
        path: parts.uri.path(),
        token: parts.headers.get(&head::WAKE_TOKEN).map(HeaderValue::as_bytes),
    };
    route.rules.standing_of(caller.from, Some(&asked))
}

enum Entered {
    Passed(Pass),
    Turned(Turned),
    /// It takes a while, and so many wait before them.
    Page(usize),
}

async fn enter(caller: &Caller, door: &Arc<Door>, route: &Route, may_wake: bool, reader: Reader) -> Entered {
    let mut waits = match door.knock(caller.from, &route.target, may_wake, route.rules.wait_for) {
        Knocked::Passed(pass) => return Entered::Passed(pass),
        Knocked::Turned(why) => return Entered::Turned(why),
        Knocked::Waits(waits) => waits,
    };
    let takes_page = match route.rules.waiting {
        Waiting::Auto => reader == Reader::Person,
        Waiting::Page => true,
        Waiting::Hold => false,
    };
    let told = if takes_page {
        match tokio::time::timeout(PAGE_AFTER, waits.told()).await {
            Ok(told) => told,
            // The wake goes on, and the page asks how it stands.
            Err(_) => return Entered::Page(waits.ahead()),
        }
    } else {
        waits.told().await
    };
    match told {
        Ok(pass) => Entered::Passed(pass),
        Err(why) => Entered::Turned(why),
    }
}

/// Why a request that was let through has no answer.
#[derive(Debug)]
pub(super) enum Failed {
    /// The worker is not there.
    Turned(Turned),
    /// It hung up.
    HungUp,
    /// It said something that is no HTTP.
    Garbage(String),
    /// The client's own body could not be read.
    BadBody,
}

type Tell = oneshot::Sender<Result<Response<Words>, Failed>>;

/// What is sent up.
enum Saying {
    /// All of it is here, and can be said again.
    Whole(Bytes),
    /// It comes as it comes, after what is here already.
    Stream(BytesMut, Incoming),
}

/// Takes a request to the worker and its answer back.
async fn serve(caller: Arc<Caller>, mut visit: Visit, parts: request::Parts, body: Incoming, mut tell: Tell) {
    let outcome = tokio::select! {
        biased;
        // The client is gone before it was answered.
        () = tell.closed() => return,
        outcome = ask(&caller, &mut visit, parts, body) => outcome,
    };
    let Asking { line, response, mut up, has_body, client } = match outcome {
        Ok(asking) => asking,
        Err(failed) => return drop(tell.send(Err(failed))),
    };
    visit.door.has_answered();
    // Its head is use of the worker, and only bodies are counted.
    visit.moved(0, 0);
    let (mut head, body) = response.into_parts();
    head::drop_words_of_ours(&mut head.headers);
    if head.status == StatusCode::SWITCHING_PROTOCOLS {
        let Some(client) = client else { return drop(tell.send(Err(Failed::HungUp))) };
        let worker = hyper::upgrade::on(Response::from_parts(head.clone(), body));
        *lock(&caller.joining) = Some(Joining { client, worker, visit });
        let answer = Response::from_parts(head, super::body::whole(Bytes::new()));
        return drop(tell.send(Ok(answer)));
    }
    head::strip(&mut head.headers);
    // What the worker speaks is between it and us.
    head.version = hyper::Version::HTTP_11;
    let is_empty = body.is_end_stream();
    let (filler, tube) = Tube::new(body.size_hint(), &caller.flushes);
    let mut down = if is_empty { Way::default() } else { Way::new(body, filler) };
    let words = if is_empty { super::body::whole(Bytes::new()) } else { Either::Right(tube) };
    if tell.send(Ok(Response::from_parts(head, words))).is_err() {
        return;
    }
    // A worker that answers before it has read all may still be at it, or hang up over it.
    if carry::both(&mut visit, &mut up, &mut down).await.is_ok() && !has_body {
        *lock(&caller.line) = Some(line);
    }
}

/// A request whose answer has begun.
struct Asking {
    line: Line,
    response: Response<Incoming>,
    /// What the client still says.
    up: Way,
    /// It had something to say.
    has_body: bool,
    /// The client's connection, if it asked for an upgrade.
    client: Option<hyper::upgrade::OnUpgrade>,
}

async fn ask(
    caller: &Arc<Caller>,
    visit: &mut Visit,
    mut parts: request::Parts,
    body: Incoming,
) -> Result<Asking, Failed> {
    let deadline = Instant::now() + visit.route.rules.wait_for;
    let upgrade = head::upgrade(&parts.headers);
    let is_upgrade = upgrade.is_some();
    let client = is_upgrade.then(|| parts.extensions.remove::<hyper::upgrade::OnUpgrade>()).flatten();
    let is_trusted = visit.route.rules.trusted_proxies.contain(caller.from);
    head::pass_on(&mut parts, caller.from, is_trusted, upgrade);
    let is_unproven = visit.door.may_be_called_again();
    // Before any of it is read.
    let hint = body.size_hint();
    let has_body = !body.is_end_stream();
    let mut saying = Some(said(body, is_unproven).await?);
    let may_repeat = head::is_idempotent(&parts.method) && matches!(saying, Some(Saying::Whole(_)));
    let mut repeats = 0;
    loop {
        if let Err(stopped) = visit.be_present().await {
            return Err(Failed::Turned(visit.ended(stopped).await));
        }
        let target = visit.door.known(visit.route.target.place);
        let left = lock(&caller.line).take();
        let leads_there = |line: &Line| target.as_ref().is_some_and(|target| line.leads_to(target.address));
        let reused = left.filter(|line| may_repeat && !has_body && !is_upgrade && leads_there(line));
        let mut line = if let Some(line) = reused {
            line
        } else {
            let dialled = match &target {
                Some(target) => Line::dial(&caller.router, target).await,
                None => None,
            };
            let Some(line) = dialled else {
                let left = deadline.saturating_duration_since(Instant::now());
                visit.enter_again(left).await.map_err(Failed::Turned)?;
                continue;
            };
            line
        };
        let is_reused = line.is_used;
        let Some(saying_now) = saying.take() else { return Err(Failed::HungUp) };
        let (words, mut up) = match saying_now {
            Saying::Whole(bytes) => {
                let words = Either::Left(Full::new(bytes.clone()));
                saying = Some(Saying::Whole(bytes));
                (words, Way::default())
            }
            Saying::Stream(begun, body) => {
                let (filler, tube) = Tube::new(hint, &line.flushes);
                (Either::Right(tube), Way::new(body, filler).after(begun.freeze()))
            }
        };
        let mut request = Request::from_parts(copy(&parts), words);
        head::name_host(request.headers_mut(), line.to);
        let asked = carry::up_until(visit, &mut up, line.ask(request)).await;
        let unanswered = match asked {
            Ok(Ok(response)) => return Ok(Asking { line, response, up, has_body, client }),
            Ok(Err(unanswered)) => unanswered,
            Err(stopped) => return Err(Failed::Turned(visit.ended(stopped).await)),
        };
        match unanswered {
            Unanswered::Garbage(error) => return Err(Failed::Garbage(error.to_string())),
            Unanswered::HungUp { was_sent, was_reset } => {
                let may_again = saying.is_some() && Instant::now() < deadline;
                // A connection that was left over had perhaps ended already; what was never sent was never heard.
                let was_stale = is_reused && (may_repeat || !was_sent);
                if may_again && was_stale {
                    continue;
                }
                // What may have been heard is said again only where that does no harm, and what was not heard whole; but
                // not time after time.
                let may_say_again = (may_repeat || was_reset) && repeats < REPEATS_AT_MOST;
                if may_again && (!was_sent || may_say_again) && visit.door.may_be_called_again() {
                    repeats += u32::from(was_sent);
                    visit.door.was_fooled();
                    let left = deadline.saturating_duration_since(Instant::now());
                    visit.enter_again(left).await.map_err(Failed::Turned)?;
                    continue;
                }
                return Err(visit.hung_up().await.map_or(Failed::HungUp, Failed::Turned));
            }
        }
    }
}

/// What is to be said. To a worker that may hang up without a word it can be said again, if it is short.
async fn said(mut body: Incoming, is_unproven: bool) -> Result<Saying, Failed> {
    if body.is_end_stream() {
        return Ok(Saying::Whole(Bytes::new()));
    }
    let is_short = body.size_hint().upper().is_some_and(|upper| upper <= REPLAY_AT_MOST);
    if !(is_unproven && is_short) {
        return Ok(Saying::Stream(BytesMut::new(), body));
    }
    let mut begun = BytesMut::new();
    let whole = async {
        while let Some(piece) = body.frame().await {
            begun.extend_from_slice(&piece.map_err(|_| Failed::BadBody)?.into_data().unwrap_or_default());
        }
        Ok(())
    };
    match tokio::time::timeout(SAID_WITHIN, whole).await {
        Ok(whole) => whole.map(|()| Saying::Whole(begun.freeze())),
        Err(_) => Ok(Saying::Stream(begun, body)),
    }
}

/// The head once more. Extensions are ours and go no further.
fn copy(parts: &request::Parts) -> request::Parts {
    let (mut copy, ()) = Request::new(()).into_parts();
    copy.method = parts.method.clone();
    copy.uri = parts.uri.clone();
    copy.headers = parts.headers.clone();
    // A proxy speaks for itself.
    copy.version = hyper::Version::HTTP_11;
    if copy.method == Method::HEAD {
        copy.headers.remove(header::CONTENT_LENGTH);
    }
    copy
}
