//! Connections.
//!
//! `hyper` directly and not `axum::serve`, which passes no time limit on: somebody who sends one byte of a head
//! every minute would keep a connection for ever.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use super::guard::Peer;
use super::places::{Place, Places};
use super::{ApiState, router};

/// How long requests that are under way may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// When the system has no room for a connection, asking again at once only makes it worse.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `shutdown`, then lets what is under way end.
pub async fn serve(listener: TcpListener, state: ApiState, shutdown: impl Future<Output = ()>) {
    let app = TowerToHyperService::new(router(state.clone()));
    let permits = Arc::new(Semaphore::new(state.0.limits.connections.max(1)));
    let places = Places::default();
    let connections = TaskTracker::new();
    let mut shutdown = pin!(shutdown);
    loop {
        // The permit first: beyond the limit, connections wait in the system's queue and cost us nothing.
        let accepted = async {
            let permit = Arc::clone(&permits).acquire_owned().await.ok()?;
            listener.accept().await.ok().map(|(stream, peer)| (permit, stream, peer))
        };
        let accepted = tokio::select! {
            biased;
            () = &mut shutdown => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Some((permit, stream, peer)) => {
                // Beyond what one address may have, it is closed at once; everybody else still gets in.
                let most = state.0.limits.connections_of_one;
                let Some(place) = places.take(&peer.ip().to_string(), most) else { continue };
                let permit = (permit, place);
                let connection = connection(app.clone(), state.clone(), stream, peer, permit);
                state.fleet().0.tasks.spawn(connections.track_future(connection));
            }
            None => tokio::time::sleep(PAUSE).await,
        }
    }
    drop(listener);
    state.0.closing.cancel();
    connections.close();
    let _ = tokio::time::timeout(GRACE, connections.wait()).await;
}

async fn connection(
    app: TowerToHyperService<axum::Router>,
    state: ApiState,
    stream: TcpStream,
    peer: SocketAddr,
    _permit: (OwnedSemaphorePermit, Place),
) {
    // Answers are small and whole; there is nothing to wait for.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer.ip()));
        app.call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(state.0.limits.head_for);
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => Some(ended),
        () = state.0.closing.cancelled() => None,
    };
    if ended.is_none() {
        served.as_mut().graceful_shutdown();
        // After the grace it is dropped: a reader that takes for ever must not keep us from stopping.
        let _ = tokio::time::timeout(GRACE, served).await;
    }
}
