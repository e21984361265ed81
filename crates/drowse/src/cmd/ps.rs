//! `drowse ps`: the fleet in a table.

use std::process::ExitCode;

use drowse_core::Timestamp;
use drowse_wire::v1::{Reason, Worker, WorkerQuery};

use crate::connect::{Connect, after_help};
use crate::output;
use crate::output::time::{ago, until};

/// List workers: what keeps each awake and when it sleeps.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse ps
  drowse ps --status running --owner alice
  drowse ps --json | jq -r '.workers[] | select(.eligible_for_pause) | .id'"))]
pub(crate) struct Args {
    /// Only workers with this status, such as running or paused.
    #[arg(long)]
    status: Option<String>,
    /// Only workers of this driver.
    #[arg(long)]
    driver: Option<String>,
    /// Only workers of this type.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only workers in this region.
    #[arg(long)]
    region: Option<String>,
    /// Only workers of this group.
    #[arg(long)]
    group: Option<String>,
    /// Only workers of this owner.
    #[arg(long)]
    owner: Option<String>,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let query = WorkerQuery {
        status: args.status.clone(),
        driver: args.driver.clone(),
        kind: args.kind.clone(),
        region: args.region.clone(),
        group: args.group.clone(),
        owner: args.owner.clone(),
        ..WorkerQuery::default()
    };
    let page = args.connect.client()?.all_workers(&query)?;
    if args.json {
        output::json(&page)?;
        return Ok(ExitCode::SUCCESS);
    }
    let rows = page.workers.iter().map(|worker| {
        [
            worker.id.clone(),
            worker.status.clone(),
            why(worker),
            sleeps(worker, page.at),
            ago(worker.last_activity_at, page.at),
            output::or_dash(worker.owner.as_deref()),
        ]
    });
    let heading = ["WORKER", "STATUS", "KEPT AWAKE BY", "SLEEPS", "LAST ACTIVITY", "OWNER"];
    output::data(&output::table(heading, rows))?;
    if page.workers.is_empty() {
        output::talk("no workers\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// What keeps it awake, in a few words; what it sleeps for, if it does.
pub(super) fn why(worker: &Worker) -> String {
    if let Some(failure) = &worker.failure {
        return format!("({failure})");
    }
    if let Some(sleep) = &worker.sleep {
        return format!("(asleep: {}, {})", sleep.reason, sleep.by);
    }
    if worker.status == "terminated" {
        return "-".to_owned();
    }
    let reasons = worker.reasons.iter().filter_map(|reason| word(reason, worker));
    let words: Vec<String> = reasons.chain(veto(worker)).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

/// A reason that keeps awake, in a word or two; none for those that only say how far the clock is.
fn word(reason: &Reason, worker: &Worker) -> Option<String> {
    let signal = reason.signal.as_deref().unwrap_or_default();
    let word = match reason.code.as_str() {
        "recent_activity" => signal.to_owned(),
        "unknown_signal" => format!("{signal} unknown"),
        "held" => {
            let kind = reason.hold.as_deref().unwrap_or("hold");
            let owners: Vec<&str> = worker
                .holds
                .iter()
                .filter(|hold| hold.kind == kind)
                .map(|hold| hold.owner.as_str())
                .collect();
            if owners.is_empty() { kind.to_owned() } else { format!("{kind} of {}", owners.join(" and ")) }
        }
        "in_snooze_period" => "snooze".to_owned(),
        "not_idle_yet"
        | "window_not_full"
        | "not_running"
        | "notice_running"
        | "agent_not_asked"
        | "flap_guard"
        | "idle_timeout_exceeded" => return None,
        // What this program has not heard of is shown as it is.
        other => other.replace('_', " "),
    };
    Some(word)
}

/// That its last sleep was vetoed, which looks like a sleep in sight.
fn veto(worker: &Worker) -> Option<String> {
    match worker.vetoes {
        0 => None,
        1 => Some("vetoed by before_pause".to_owned()),
        vetoes => Some(format!("vetoed by before_pause {vetoes} times")),
    }
}

fn is_or_are(names: &[&str]) -> String {
    format!("{} {}", names.join(" and "), if names.len() == 1 { "is" } else { "are" })
}

/// When it sleeps, and what becomes of it then and after that.
pub(super) fn sleeps(worker: &Worker, now: Timestamp) -> String {
    let unknown: Vec<&str> = worker
        .reasons
        .iter()
        .filter(|reason| reason.code == "unknown_signal")
        .filter_map(|reason| reason.signal.as_deref())
        .collect();
    let rests_on_idleness =
        matches!(worker.target_pause_reason.as_deref(), Some("idle_timeout" | "scale_down"));
    if rests_on_idleness && !unknown.is_empty() {
        return format!("not while {} unknown", is_or_are(&unknown));
    }
    if rests_on_idleness && worker.used == "unknown" {
        return "not while nothing can be read".to_owned();
    }
    match (worker.target_pause_at, worker.target_pause_blocked_by.as_deref()) {
        (Some(at), _) if !worker.auto_pause_enabled => format!("would {}", until(at, now)),
        (Some(at), _) if worker.target_pause_reason.as_deref() == Some("scale_down") => {
            format!("deleted {}", until(at, now))
        }
        (Some(at), _) => until(at, now),
        (None, Some("not_running") | None) => sinks(worker, now),
        (None, Some(blocker)) => format!("never ({})", blocker.replace('_', " ")),
    }
}

/// What is ahead of one that sleeps.
pub(super) fn sinks(worker: &Worker, now: Timestamp) -> String {
    let stop = worker.stops_at.map(|at| format!("stopped {}", until(at, now)));
    let deletion = worker.deletes_at.map(|at| format!("deleted {}", until(at, now)));
    let ahead: Vec<String> = stop.into_iter().chain(deletion).collect();
    if ahead.is_empty() { "-".to_owned() } else { ahead.join(", ") }
}
