//! `/metrics`: the counters in the text format of Prometheus.
//!
//! By hand: the numbers are kept elsewhere already, so a library would only hold a second copy of them, and what is left
//! is to write a name and a number.

use std::fmt::{self, Display, Write as _};
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use drowse_core::id::WorkerId;
use drowse_core::status::StatusKind;

use super::ApiState;
use super::failure::Answered;
use crate::metrics::{BUCKETS, Distribution, Snapshot};

/// The type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What went through the door of one worker since Drowse began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoorCounts {
    pub worker: WorkerId,
    /// Connections that are open now or wait, and count.
    pub open: u64,
    /// How often somebody was let through.
    pub let_through: u64,
    /// How often somebody was turned away.
    pub turned_away: u64,
    /// Bytes from clients.
    pub to_worker: u64,
    /// Bytes from the worker.
    pub to_client: u64,
}

/// Tells what went through all doors. The front door is not for this crate to know.
#[derive(Clone)]
pub struct AllDoors(Arc<dyn Fn() -> Vec<DoorCounts> + Send + Sync>);

impl AllDoors {
    pub fn new(count: impl Fn() -> Vec<DoorCounts> + Send + Sync + 'static) -> Self {
        Self(Arc::new(count))
    }

    /// There are none.
    pub fn none() -> Self {
        Self::new(Vec::new)
    }

    fn count(&self) -> Vec<DoorCounts> {
        (self.0)()
    }
}

impl fmt::Debug for AllDoors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AllDoors")
    }
}

/// What is counted.
#[utoipa::path(get, path = "/metrics", tag = "health",
    responses((status = 200, description = "Text for Prometheus.", body = String, content_type = "text/plain")))]
pub(super) async fn metrics(State(state): State<ApiState>) -> Answered<impl IntoResponse> {
    let workers = state.fleet().count_by_status().await?;
    let brake = state.fleet().brake().await?;
    let mut page = Page::default();
    page.fleet(&state.fleet().metrics(), &workers, brake.is_engaged());
    page.doors(&state.0.doors.count());
    let text = page.0;
    Ok(([(CONTENT_TYPE, TEXT)], text))
}

/// The page of all metrics: what a server that has just started shows, as a table.
pub fn reference() -> String {
    let mut page = "# Every metric\n\nThis page is written by `cargo xtask gen`. `GET /metrics` needs a token \
         of any person's role and answers in the text format of Prometheus.\n\n| metric | type | what it tells |\n\
         | --- | --- | --- |\n"
        .to_owned();
    let mut all = Page::default();
    all.fleet(&Snapshot::default(), &[], false);
    all.doors(&[]);
    let mut lines = all.0.lines();
    while let Some(line) = lines.next() {
        let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let kind = lines.next().and_then(|line| line.rsplit(' ').next()).unwrap_or_default();
        page.extend(["| `", name, "` | ", kind, " | ", help, " |\n"]);
    }
    page
}

/// One figure of a door.
type Figure = fn(&DoorCounts) -> u64;

#[derive(Default)]
struct Page(String);

impl Page {
    fn fleet(&mut self, counted: &Snapshot, workers: &[(StatusKind, u64)], is_braked: bool) {
        self.family("drowse_workers", "gauge", "Workers by status.");
        for kind in StatusKind::ALL {
            let count = workers.iter().find(|(found, _)| *found == kind).map_or(0, |(_, count)| *count);
            self.line("drowse_workers", &[("status", kind.code())], count);
        }
        self.family("drowse_brake_engaged", "gauge", "1 while automatic actions are held back.");
        self.line("drowse_brake_engaged", &[], u8::from(is_braked));
        self.family("drowse_pauses_total", "counter", "Sleeps by reason, frozen or stopped.");
        for (reason, count) in &counted.pauses {
            self.line("drowse_pauses_total", &[("reason", reason.code())], count);
        }
        self.family("drowse_resumes_total", "counter", "Resumes by reason.");
        for (reason, count) in &counted.resumes {
            self.line("drowse_resumes_total", &[("reason", reason.code())], count);
        }
        let counters = [
            (
                "drowse_regretted_pauses_total",
                "Sleeps that a person took back within ten minutes.",
                counted.regretted,
            ),
            ("drowse_would_pause_total", "Sleeps that observe mode left undone.", counted.would_pause),
            ("drowse_warnings_total", "Warnings that were sent.", counted.warnings),
            (
                "drowse_unknown_alerts_total",
                "Alerts about workers unknown for too long.",
                counted.unknown_alerts,
            ),
            ("drowse_checks_total", "Checks that were finished.", counted.checks),
            ("drowse_overtaken_checks_total", "Checks that something else came before.", counted.overtaken),
            (
                "drowse_failed_checks_total",
                "Checks that failed for want of the database.",
                counted.failed_checks,
            ),
            ("drowse_driver_errors_total", "Driver calls refused or not answered.", counted.driver_errors),
            ("drowse_failed_flushes_total", "Flushes of evidence that failed.", counted.failed_flushes),
        ];
        for (name, help, count) in counters {
            self.family(name, "counter", help);
            self.line(name, &[], count);
        }
        self.histogram(
            "drowse_deadline_lateness_seconds",
            "From being due to being looked at.",
            &counted.tick_lag,
        );
        self.histogram(
            "drowse_wake_seconds",
            "From a wake to the worker being ready.",
            &counted.wake_seconds,
        );
    }

    fn doors(&mut self, doors: &[DoorCounts]) {
        self.door(
            "drowse_door_connections",
            "gauge",
            "Connections and HTTP requests at a worker's door that count now. Not those that a former process carries on \
             after a planned restart.",
            doors,
            |door| door.open,
        );
        let counters: [(&str, &str, Figure); 4] = [
            (
                "drowse_door_let_through_total",
                "Times that a worker's door let somebody through: a connection, an HTTP request, or one of them again, after \
                 silence or a call that failed.",
                |door| door.let_through,
            ),
            ("drowse_door_turned_away_total", "Times that a worker's door turned somebody away.", |door| {
                door.turned_away
            }),
            (
                "drowse_door_received_bytes_total",
                "Bytes from clients that a worker took. Of HTTP only bodies.",
                |door| door.to_worker,
            ),
            (
                "drowse_door_sent_bytes_total",
                "Bytes from a worker that clients took. Of HTTP only bodies.",
                |door| door.to_client,
            ),
        ];
        for (name, help, figure) in counters {
            self.door(name, "counter", help, doors, figure);
        }
    }

    fn door(&mut self, name: &str, kind: &str, help: &str, doors: &[DoorCounts], figure: Figure) {
        self.family(name, kind, help);
        for door in doors {
            self.line(name, &[("worker", door.worker.as_str())], figure(door));
        }
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.put(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// Labels are words of ours, or slugs, and need no escaping.
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

    fn put(&mut self, text: fmt::Arguments<'_>) {
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
        let mut page = Page::default();
        page.fleet(&counted, &[(StatusKind::Running, 7)], true);
        let worker = WorkerId::new("web.1").expect("a slug");
        page.doors(&[DoorCounts {
            worker,
            open: 1,
            let_through: 5,
            turned_away: 2,
            to_worker: 70,
            to_client: 90,
        }]);
        let text = page.0;
        assert!(text.contains("drowse_door_connections{worker=\"web.1\"} 1\n"), "{text}");
        assert!(text.contains("drowse_door_sent_bytes_total{worker=\"web.1\"} 90\n"), "{text}");
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
