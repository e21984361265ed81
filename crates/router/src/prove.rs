//! Whether a worker that is awake really answers.
//!
//! A connection that is accepted and closed at once proves that something stands there, not that it is the
//! worker: port forwarders do that until the program behind them listens. Where a path is given, only an answer to
//! it proves anything.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::door::{Dial, Door};
use crate::route::{Ready, Target};

/// How long one attempt may take.
const WITHIN: Duration = Duration::from_secs(1);

/// How long a connection has to stand. A forwarder on the same machine notices within a millisecond that nobody
/// listens behind it; it is asked once in each run of a worker.
const STANDS_FOR: Duration = Duration::from_millis(10);

/// And how long at most.
const STANDS_FOR_AT_MOST: Duration = Duration::from_secs(1);

/// How soon one is tried again that is not there, while others take their time.
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// What an attempt came to.
pub(crate) struct Tried {
    pub(crate) target: Target,
    pub(crate) answers: bool,
    /// It was not tried before in this round.
    pub(crate) is_first: bool,
}

/// Tries to reach one.
pub(crate) async fn attempt(door: &Door, target: Target, is_first: bool) -> Tried {
    if !is_first {
        tokio::time::sleep(AGAIN_AFTER).await;
    }
    let answers = one(door, &target).await;
    Tried { target, answers, is_first }
}

async fn one(door: &Door, target: &Target) -> bool {
    let Some(dial) = door.find(target.place).await else { return false };
    if let Some(ready) = &target.ready {
        let Some(dial) = door.find(ready.place).await else { return false };
        return matches!(tokio::time::timeout(WITHIN, asks(&dial, ready)).await, Ok(Some(true)));
    }
    let began_at = Instant::now();
    let Ok(Ok(stream)) = tokio::time::timeout(WITHIN, TcpStream::connect(dial.address)).await else {
        return false;
    };
    let mut byte = [0];
    let stands_for = stands_for(began_at.elapsed(), door.fooled());
    match tokio::time::timeout(stands_for, stream.peek(&mut byte)).await {
        // It says nothing and stays, or it speaks first.
        Err(_) | Ok(Ok(1..)) => dial.stands(),
        Ok(Ok(0) | Err(_)) => false,
    }
}

/// How long a connection has to stand to a worker that took so long to pick up, and has hung up on so many who were let
/// through: what is far away notices later, and who hangs up later is watched for longer.
fn stands_for(connect: Duration, fooled: u32) -> Duration {
    let by_experience = STANDS_FOR.saturating_mul(1 << fooled.min(7));
    by_experience.max(connect * 3).min(STANDS_FOR_AT_MOST)
}

/// Whether a GET is answered with success.
async fn asks(dial: &Dial, ready: &Ready) -> Option<bool> {
    let (address, path) = (dial.address, &ready.path);
    let mut stream = TcpStream::connect(address).await.ok()?;
    if !dial.stands() {
        return None;
    }
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nuser-agent: drowse\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    // "HTTP/1.1 200": the status is all that counts.
    let mut line = [0; 12];
    stream.read_exact(&mut line).await.ok()?;
    Some(line.starts_with(b"HTTP/1.") && line[8] == b' ' && matches!(line[9], b'2' | b'3'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_far_away_or_has_fooled_us_is_watched_for_longer() {
        let ms = Duration::from_millis;
        assert_eq!(stands_for(ms(0), 0), ms(10));
        assert_eq!(stands_for(ms(80), 0), ms(240), "it may take as long to hear of an end");
        assert_eq!(stands_for(ms(0), 2), ms(40));
        assert_eq!(stands_for(ms(900), 40), STANDS_FOR_AT_MOST);
    }
}
