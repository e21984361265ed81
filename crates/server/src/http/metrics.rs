//! `/metrics`: the counters in the text format of Prometheus.
//!
//! By hand: it is forty lines, and the numbers are kept elsewhere already, so a library would only hold a second
//! copy of them.

use std::fmt::{Display, Write as _};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use drowse_core::status::StatusKind;

use super::ApiState;
use super::failure::Answered;
use crate::metrics::{BUCKETS, Distribution, Snapshot};

/// The type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is counted.
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, description = "Text for Prometheus.", body = String, content_type = "text/plain")))]
pub(super) async fn metrics(State(state): State<ApiState>) -> Answered<impl IntoResponse> {
    let workers = state.fleet().count_by_status().await?;
    let brake = state.fleet().brake().await?;
    let text = render(&state.fleet().metrics(), &workers, brake.is_engaged());
    Ok(([(CONTENT_TYPE, TEXT)], text))
}

fn render(counted: &Snapshot, workers: &[(StatusKind, u64)], is_braked: bool) -> String {
    let mut page = Page(String::new());
    page.family("drowse_workers", "gauge", "Workers by status.");
    for kind in StatusKind::ALL {
        let count = workers.iter().find(|(found, _)| *found == kind).map_or(0, |(_, count)| *count);
        page.line("drowse_workers", &[("status", kind.code())], count);
    }
    page.family("drowse_brake_engaged", "gauge", "1 while automatic actions are held back.");
    page.line("drowse_brake_engaged", &[], u8::from(is_braked));
    page.family("drowse_pauses_total", "counter", "Sleeps by reason, frozen or stopped.");
    for (reason, count) in &counted.pauses {
        page.line("drowse_pauses_total", &[("reason", reason.code())], count);
    }
    page.family("drowse_resumes_total", "counter", "Resumes by reason.");
    for (reason, count) in &counted.resumes {
        page.line("drowse_resumes_total", &[("reason", reason.code())], count);
    }
    let counters = [
        (
            "drowse_regretted_pauses_total",
            "Sleeps that a person took back within ten minutes.",
            counted.regretted,
        ),
        ("drowse_would_pause_total", "Sleeps that observe mode left undone.", counted.would_pause),
        ("drowse_warnings_total", "Warnings that were sent.", counted.warnings),
        ("drowse_unknown_alerts_total", "Alerts about workers unknown for too long.", counted.unknown_alerts),
        ("drowse_checks_total", "Checks that were finished.", counted.checks),
        ("drowse_overtaken_checks_total", "Checks that something else came before.", counted.overtaken),
        ("drowse_failed_checks_total", "Checks that failed for want of the database.", counted.failed_checks),
        ("drowse_driver_errors_total", "Driver calls refused or not answered.", counted.driver_errors),
        ("drowse_failed_flushes_total", "Flushes of evidence that failed.", counted.failed_flushes),
    ];
    for (name, help, count) in counters {
        page.family(name, "counter", help);
        page.line(name, &[], count);
    }
    page.histogram(
        "drowse_deadline_lateness_seconds",
        "From being due to being looked at.",
        &counted.tick_lag,
    );
    page.histogram("drowse_wake_seconds", "From a wake to the worker being ready.", &counted.wake_seconds);
    page.0
}

/// The page of all metrics: what a server that has just started shows, as a table.
pub fn reference() -> String {
    let mut page = "# Every metric\n\nThis page is written by `cargo xtask gen`. `GET /metrics` needs a token \
         of any person's role and answers in the text format of Prometheus.\n\n| metric | type | what it tells |\n\
         | --- | --- | --- |\n"
        .to_owned();
    let text = render(&Snapshot::default(), &[], false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let kind = lines.next().and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
        page.extend(["| `", name, "` | ", kind, " | ", help, " |\n"]);
    }
    page
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Labels are words of ours and need no escaping.
    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.put(format_args!("{name}{labels} {value}\n"));
    }

    fn histogram(&mut self, name: &str, help: &str, distribution: &Distribution) {
        self.family(name, "histogram", help);
        let mut below = 0;
        for (bound, count) in BUCKETS.iter().zip(distribution.buckets) {
            below += count;
            self.line(&format!("{name}_bucket"), &[("le", &bound.to_string())], below);
        }
        self.line(&format!("{name}_bucket"), &[("le", "+Inf")], distribution.count);
        self.line(&format!("{name}_sum"), &[], distribution.sum);
        self.line(&format!("{name}_count"), &[], distribution.count);
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("a String takes all that is written to it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_and_every_line_is_a_sample_or_a_comment() {
        let mut counted = Snapshot::default();
        counted.wake_seconds.buckets[0] = 2;
        counted.wake_seconds.buckets[3] = 1;
        counted.wake_seconds.count = 3;
        let text = render(&counted, &[(StatusKind::Running, 7)], true);
        assert!(text.contains("drowse_workers{status=\"running\"} 7\n"), "{text}");
        assert!(text.contains("drowse_wake_seconds_bucket{le=\"0.05\"} 3\n"), "{text}");
        assert!(text.contains("drowse_wake_seconds_bucket{le=\"+Inf\"} 3\n"), "{text}");
        assert!(text.contains("drowse_brake_engaged 1\n"), "{text}");
        let is_fine = |line: &str| {
            line.starts_with("# ")
                || line.split_once(' ').is_some_and(|(_, value)| value.parse::<f64>().is_ok())
        };
        assert!(text.lines().all(is_fine), "{text}");
    }
}
