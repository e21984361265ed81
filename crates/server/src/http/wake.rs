//! `/wake/{id}`: a page that wakes a worker and goes there when it is awake, for those whose connections nobody can
//! put a page into: TLS ends at the worker.
//!
//! A look changes nothing: programs that check links follow them.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use drowse_core::host::HostPattern;
use drowse_core::status::{Status, StatusKind};

use super::ApiState;
use super::extract::Id;
use super::failure::Answered;
use super::page::{escape, html};
use super::show::show;
use crate::config::Protocol;
use crate::fleet::WakeRefused;
use crate::spec::WorkerSpec;

/// How long somebody waits for the worker before they see how it stands: what is frozen is back by then.
const WAIT_FOR: Duration = Duration::from_secs(1);

/// Ports that workers share, as far as an address can be made of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedPorts {
    /// The first that leads by TLS server name.
    pub tls: Option<u16>,
    /// The first that leads by HTTP host.
    pub http: Option<u16>,
}

/// How it stands, with a button.
pub(super) async fn look(State(state): State<ApiState>, id: Id) -> Answered<Response> {
    page(&state, &id, None).await
}

/// Wakes it as a connection would.
pub(super) async fn wake(State(state): State<ApiState>, id: Id) -> Answered<Response> {
    match tokio::time::timeout(WAIT_FOR, state.fleet().wake(&id)).await {
        // It is there, or on its way.
        Ok(Ok(_)) | Err(_) => {
            let there = format!("/wake/{}", *id);
            Ok((StatusCode::SEE_OTHER, [(LOCATION, there)]).into_response())
        }
        Ok(Err(WakeRefused::Control(error))) => Err(error.into()),
        Ok(Err(refused)) => page(&state, &id, Some(&refused.to_string())).await,
    }
}

async fn page(state: &ApiState, id: &Id, refused: Option<&str>) -> Answered<Response> {
    let shown = show(state.fleet(), id).await?;
    let worker = &shown.picture.worker;
    let spec: Option<WorkerSpec> = serde_json::from_value(shown.picture.record.spec.clone()).ok();
    let place = spec.and_then(|spec| place(&spec, state.fleet().shared_ports()));
    let name = escape(worker.id.as_str());
    let button = format!("<form method=\"post\" action=\"/wake/{name}\"><button>Wake it</button></form>");
    let (status, head, words) = match (&worker.status, &place) {
        _ if refused.is_some() => {
            let why = escape(refused.unwrap_or_default());
            (StatusCode::CONFLICT, String::new(), format!("<p>It was not woken: {why}.</p>"))
        }
        (Status::Running { .. }, Some(place)) => {
            let place = escape(place);
            let go = format!("<meta http-equiv=\"refresh\" content=\"0; url={place}\">");
            (StatusCode::OK, go, format!("<p>It is awake: <a href=\"{place}\">{place}</a></p>"))
        }
        (Status::Running { .. }, None) => (StatusCode::OK, String::new(), "<p>It is awake.</p>".to_owned()),
        (Status::Waking { .. } | Status::Provisioning { .. }, _) => {
            let again = "<meta http-equiv=\"refresh\" content=\"1\">".to_owned();
            (StatusCode::OK, again, "<p>It is waking up. This page goes on by itself.</p>".to_owned())
        }
        (status, _) => {
            let status = status.kind();
            let is_asleep = matches!(
                status,
                StatusKind::Paused | StatusKind::Stopped | StatusKind::Pausing | StatusKind::Stopping
            );
            let button = if is_asleep { button.as_str() } else { "" };
            (StatusCode::OK, String::new(), format!("<p>It is {status}.</p>{button}"))
        }
    };
    let body = format!("<h1>{name}</h1>{words}<p><small><a href=\"/\">Fleet</a></small></p>");
    Ok((status, html(&format!("{} · Drowse", worker.id), &head, &body)).into_response())
}

/// Where somebody with a browser finds it.
fn place(spec: &WorkerSpec, ports: SharedPorts) -> Option<String> {
    let named = |patterns: &[HostPattern]| {
        patterns.iter().find_map(|pattern| match pattern {
            HostPattern::Is(name) => Some(name.as_str().to_owned()),
            HostPattern::Below(_) => None,
        })
    };
    if let (Some(name), Some(port)) = (named(&spec.sni), ports.tls) {
        return Some(format!("https://{name}:{port}/"));
    }
    if let (Some(name), Some(port)) = (named(&spec.host), ports.http) {
        return Some(format!("http://{name}:{port}/"));
    }
    let own = spec.listen.filter(|listen| !listen.ip().is_unspecified() && spec.protocol == Protocol::Http);
    own.map(|listen| format!("http://{listen}/"))
}
