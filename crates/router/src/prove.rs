//! Whether a worker that is awake really answers.
//!
//! A connection that is accepted and closed at once proves that something stands there, not that it is the
//! worker: port forwarders do that until the program behind them listens.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;

/// How long one attempt may take.
const WITHIN: Duration = Duration::from_secs(1);

/// How long a connection has to stand. A forwarder on the same machine notices within a millisecond that nobody
/// listens behind it; it is asked once in each run of a worker.
const STANDS_FOR: Duration = Duration::from_millis(5);

/// Tries to reach all of them at once; those that answer.
pub(crate) async fn all(targets: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut answered = Vec::new();
    let attempts: Vec<_> = targets.iter().map(|target| one(*target)).collect();
    for (target, stands) in targets.iter().zip(futures_util::future::join_all(attempts).await) {
        if stands {
            answered.push(*target);
        }
    }
    answered
}

async fn one(target: SocketAddr) -> bool {
    let Ok(Ok(stream)) = tokio::time::timeout(WITHIN, TcpStream::connect(target)).await else { return false };
    let mut byte = [0];
    match tokio::time::timeout(STANDS_FOR, stream.peek(&mut byte)).await {
        // It says nothing and stays, or it speaks first.
        Err(_) | Ok(Ok(1..)) => true,
        Ok(Ok(0) | Err(_)) => false,
    }
}
