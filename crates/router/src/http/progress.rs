//! How a wake stands, for the page that waits for it: server-sent events until the worker is there.
//!
//! Whoever follows it waits at the gate like anybody else, so the worker is held until the page has been told to
//! load again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Either;
use hyper::body::{Frame, SizeHint};
use hyper::http::request;
use hyper::{Method, Response};
use tokio::time::Instant;

use super::body::{Filler, Piece, Tube, Words};
use super::{Caller, answer};
use crate::door::{Door, Knocked, Pass};
use crate::route::{Route, Standing};
use crate::turned::Turned;

/// Where a page asks, at the host of its worker.
pub(super) const PATH: &str = "/.well-known/drowse/wake";

const EVERY: Duration = Duration::from_millis(500);

/// How long the last word may take to be heard. An event source that loses its connection comes again, so it is the
/// page that ends this; but a page that never does must not keep a worker awake.
const LINGERS_FOR: Duration = Duration::from_secs(5);

/// How long a page waits for a worker that does not answer. It holds the worker all that time, and nobody may look at it.
const WAITS_AT_MOST: Duration = Duration::from_mins(10);

pub(super) fn is_asked_for(parts: &request::Parts) -> bool {
    parts.method == Method::GET && parts.uri.path() == PATH
}

pub(super) fn follow(
    caller: &Arc<Caller>,
    door: Arc<Door>,
    route: &Arc<Route>,
    standing: Standing,
) -> Response<Words> {
    let (filler, tube) = Tube::new(SizeHint::default(), &caller.flushes);
    let (from, route) = (caller.from, Arc::clone(route));
    caller.router.spawn(async move {
        tokio::select! {
            // Whoever closes the page waits no more.
            () = filler.closed() => {}
            () = tell(&filler, from, &door, &route, standing) => {}
        }
    });
    answer::events(Either::Right(tube))
}

async fn tell(filler: &Filler, from: std::net::IpAddr, door: &Arc<Door>, route: &Route, standing: Standing) {
    let last = match standing {
        Standing::Robot => failed(&Turned::Dormant),
        Standing::MayWake | Standing::MayCome => {
            let may_wake = standing == Standing::MayWake;
            let began = Instant::now();
            let told = loop {
                let knocked = door.knock(from, &route.target, may_wake, route.rules.wait_for);
                let Some(told) = wait(filler, knocked, began).await else { return };
                match told.map_err(|why| has_lost_patience(why, began.elapsed())) {
                    Err(None) => {}
                    Err(Some(why)) => break Err(why),
                    Ok(pass) => break Ok(pass),
                }
            };
            match told {
                // It is held until the page has heard of it.
                Ok(pass) => {
                    let _ = filler
                        .send(Piece::Frame(Frame::data(Bytes::from_static(b"event: ready\ndata: {}\n\n"))))
                        .await;
                    let _ = tokio::time::timeout(LINGERS_FOR, filler.closed()).await;
                    return drop(pass);
                }
                Err(why) => failed(&why.told_to(route.rules.lacks(standing))),
            }
        }
    };
    let _ = filler.send(Piece::Frame(Frame::data(last))).await;
    let _ = tokio::time::timeout(LINGERS_FOR, filler.closed()).await;
}

/// Tells how it stands until it is decided; `None`: nobody listens any more.
async fn wait(filler: &Filler, knocked: Knocked, began: Instant) -> Option<Result<Pass, Turned>> {
    let mut waits = match knocked {
        Knocked::Passed(pass) => return Some(Ok(pass)),
        Knocked::Turned(why) => return Some(Err(why)),
        Knocked::Waits(waits) => waits,
    };
    loop {
        let event = waiting(began.elapsed(), waits.ahead());
        filler.send(Piece::Frame(Frame::data(event))).await.ok()?;
        if let Ok(told) = tokio::time::timeout(EVERY, waits.told()).await {
            return Some(told);
        }
    }
}

/// Why a page that was turned away after so long waits no more; `None`: it does, and shows that it takes long. It has more
/// patience than a program.
fn has_lost_patience(why: Turned, waited: Duration) -> Option<Turned> {
    let Turned::Late { is_up, .. } = why else { return Some(why) };
    (waited >= WAITS_AT_MOST).then_some(Turned::Late { waited_for: waited, is_up })
}

fn waiting(waited: Duration, ahead: usize) -> Bytes {
    format!("event: waiting\ndata: {{\"waited_ms\":{},\"ahead\":{ahead}}}\n\n", waited.as_millis()).into()
}

fn failed(why: &Turned) -> Bytes {
    // Of JSON only what a sentence needs.
    let mut text = String::new();
    for c in why.to_string().chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
    let (_, title) = answer::heading(why);
    format!("event: failed\ndata: {{\"title\":\"{title}\",\"reason\":\"{text}\"}}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_waits_for_ten_minutes_and_then_says_why_it_does_not() {
        let late = Turned::Late { waited_for: Duration::from_secs(30), is_up: true };
        assert_eq!(has_lost_patience(late.clone(), Duration::from_millis(599_999)), None);
        let why = has_lost_patience(late, Duration::from_mins(10)).unwrap();
        assert!(why.to_string().contains("within 600 s"), "{why}");
        assert_eq!(has_lost_patience(Turned::Ending, Duration::ZERO), Some(Turned::Ending));
    }
}
