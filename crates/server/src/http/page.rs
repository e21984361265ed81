//! `/`: the fleet as a plain table. No script, nothing from elsewhere.

use axum::extract::State;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::response::IntoResponse;
use drowse_core::Timestamp;
use drowse_core::units::Human;
use drowse_wire::v1::{Worker, WorkerPage, WorkerQuery};

use super::ApiState;
use super::extract::Query;
use super::failure::Answered;
use super::workers::{self, Filter};

/// How many workers are on one page.
const ROWS: usize = 500;

/// The page looks again by itself, this often.
const REFRESH: &str = "<meta http-equiv=\"refresh\" content=\"5\">";

/// Nothing is loaded from anywhere, nothing runs, and nobody puts the page into a frame of theirs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;\
color:#1b1f24;background:#fff}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;\
border-bottom:1px solid #d8dee4;vertical-align:top}code,pre{font-family:ui-monospace,monospace;font-size:.92em}\
.running{color:#116329}.paused,.stopped{color:#57606a}.failed,.unknown{color:#a40e26}small{color:#57606a}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}th,td{border-color:#30363d}\
a{color:#79c0ff}.running{color:#56d364}.paused,.stopped,small{color:#9da7b3}.failed,.unknown{color:#ff7b72}}";

/// Shows the fleet.
pub(super) async fn fleet(
    State(state): State<ApiState>,
    Query(query): Query<WorkerQuery>,
) -> Answered<impl IntoResponse> {
    let found = workers::page(state.fleet(), Filter::of(&query)?, ROWS).await?;
    Ok(html("Fleet · Drowse", REFRESH, &table(&found)))
}

/// A page. `head` and `body` are HTML already.
pub(super) fn html(title: &str, head: &str, body: &str) -> impl IntoResponse + use<> {
    let title = escape(title);
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title>{head}<style>{STYLE}</style></head>\
         <body>{body}</body></html>\n"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, text)
}

/// Text as HTML, inside an element or a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
        safe
    })
}

fn table(page: &WorkerPage) -> String {
    let rows: String = page.workers.iter().map(|worker| row(worker, page.at)).collect();
    let rows = if rows.is_empty() {
        "<tr><td colspan=\"6\">There are no workers.</td></tr>".to_owned()
    } else {
        rows
    };
    let next = page.next.as_ref().map_or_else(String::new, |next| {
        format!("<p><a href=\"/?after={}\">Next page</a></p>", escape(next))
    });
    let at = escape(&page.at.to_string());
    format!(
        "<h1>Fleet</h1><p><small>at {at}, looked at again every 5 s · <a href=\"/docs\">API</a></small></p>\
         <table><thead><tr><th>Worker</th><th>Status</th><th>Use</th><th>Kept awake by</th><th>Sleeps</th>\
         <th>Owner</th></tr></thead><tbody>{rows}</tbody></table>{next}"
    )
}

fn row(worker: &Worker, now: Timestamp) -> String {
    let holds: Vec<String> = worker
        .holds
        .iter()
        .map(|hold| {
            let reason = if hold.reason.is_empty() { String::new() } else { format!(": {}", hold.reason) };
            escape(&format!("{} of {}{reason}", hold.kind, hold.owner))
        })
        .collect();
    let why = worker.sleep.as_ref().map_or_else(String::new, |sleep| {
        let reason = sleep.reason.replace('_', " ");
        format!("<br><small>{}, by {}</small>", escape(&reason), escape(&sleep.by))
    });
    let last = worker
        .last_activity_at
        .map_or_else(String::new, |at| format!("<br><small>last {}</small>", ago(at, now)));
    let status = escape(&worker.status);
    let mut name = escape(&worker.id);
    if matches!(worker.status.as_str(), "paused" | "stopped" | "waking") {
        // A name of a worker is letters, digits and a few signs: it is its own address.
        name = format!("<a href=\"/wake/{name}\">{name}</a>");
    }
    format!(
        "<tr><td><b>{name}</b><br><small>{}</small></td><td class=\"{status}\">{status}{why}</td><td>{}{last}</td>\
         <td>{}</td><td>{}</td><td>{}</td></tr>",
        escape(&worker.driver),
        escape(&worker.used),
        holds.join("<br>"),
        sleeps(worker, now),
        escape(worker.owner.as_deref().unwrap_or_default()),
    )
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ago", whole_seconds(now.since(at)))
}

fn sleeps(worker: &Worker, now: Timestamp) -> String {
    let text = match (worker.target_pause_at, &worker.target_pause_blocked_by) {
        (Some(at), _) if at > now => format!("in {}", whole_seconds(at.since(now))),
        (Some(_), _) => "now".to_owned(),
        (None, Some(_)) if worker.status != "running" => String::new(),
        (None, Some(by)) => format!("never: {}", by.replace('_', " ")),
        (None, None) => String::new(),
    };
    let observed =
        if worker.auto_pause_enabled || text.is_empty() { "" } else { "<br><small>observed only</small>" };
    format!("{}{observed}", escape(&text))
}

fn whole_seconds(duration: std::time::Duration) -> Human {
    Human(std::time::Duration::from_secs(duration.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_somebody_typed_becomes_html() {
        assert_eq!(escape("<b a='1' b=\"2\">&"), "&lt;b a=&#39;1&#39; b=&quot;2&quot;&gt;&amp;");
    }
}
