//! `drowse show WORKER`: everything about one worker.

use std::process::ExitCode;

use drowse_core::Timestamp;
use drowse_wire::v1::{Worker, WorkerActivity};
use serde_json::json;

use super::ps;
use crate::connect::{Connect, after_help};
use crate::output;
use crate::output::time::ago;

/// Show a worker: what it is, what it is doing, its activity and its sleeps.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse show web
  drowse show web --json | jq .activity.recent_activity_events"))]
pub(crate) struct Args {
    /// The worker.
    worker: String,
    /// Print JSON to stdout: `{worker, activity, idle_status}`.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let client = args.connect.client()?;
    let worker = client.worker(&args.worker)?;
    let activity = client.activity(&args.worker)?;
    let idle = client.idle_status(&args.worker)?;
    if args.json {
        output::json(&json!({ "worker": worker, "activity": activity, "idle_status": idle }))?;
    } else {
        output::data(&text(&worker, &activity, idle.checked_at))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(worker: &Worker, activity: &WorkerActivity, now: Timestamp) -> String {
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    let mut attribute = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            row(name, value.to_owned());
        }
    };
    attribute("worker", Some(&worker.id));
    attribute("driver", Some(&worker.driver));
    attribute("type", worker.kind.as_deref());
    attribute("region", worker.region.as_deref());
    attribute("group", worker.group.as_deref());
    attribute("owner", worker.owner.as_deref());
    attribute("listens at", worker.listen.as_deref());
    attribute("answers at", worker.target.as_deref());
    attribute("liveness", worker.liveness.as_deref());
    row(
        "status",
        format!("{} for {}", worker.status, ago(Some(worker.status_since), now).replace(" ago", "")),
    );
    if !worker.in_service {
        row("in service", "no: nothing wakes it".to_owned());
    }
    if let Some(sleep) = &worker.sleep {
        row("asleep because", ps::why(worker));
        if !sleep.message.is_empty() {
            row("in their words", sleep.message.clone());
        }
        if worker.stops_at.or(worker.deletes_at).is_some() {
            row("ahead of it", ps::sinks(worker, now));
        }
    } else {
        row("kept awake by", ps::why(worker));
        row("sleeps", ps::sleeps(worker, now));
    }
    row("used", worker.used.clone());
    let by = worker.last_activity_by.as_deref().map(|by| format!(" ({by})")).unwrap_or_default();
    row("last activity", ago(worker.last_activity_at, now) + &by);
    row("last checked", ago(activity.last_activity_check_at, now));
    row(
        "last paused",
        last(activity.last_paused_at, activity.pause_reason.as_ref(), activity.paused_by.as_ref(), now),
    );
    row(
        "last resumed",
        last(activity.last_resumed_at, activity.resume_reason.as_ref(), activity.resumed_by.as_ref(), now),
    );
    row("pauses", format!("{} automatic, {} manual", activity.auto_pause_count, activity.manual_pause_count));
    row(
        "resumes",
        format!("{} automatic, {} manual", activity.auto_resume_count, activity.manual_resume_count),
    );
    let others = [
        (activity.external_pause_count, "external pauses"),
        (activity.external_resume_count, "external resumes"),
        (activity.max_runtime_count, "stops after max_runtime"),
        (activity.scale_down_count, "scale-downs"),
    ];
    let others: Vec<String> = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    if !others.is_empty() {
        row("also", others.join(", "));
    }
    let mut text = output::columns(0, &rows);
    if !activity.recent_activity_events.is_empty() {
        text.push_str("\nrecent activity\n");
        let events = activity.recent_activity_events.iter().map(|event| {
            let details: Vec<String> =
                event.data.iter().map(|(name, value)| format!("{name}={value}")).collect();
            vec![event.timestamp.to_string(), event.category.clone(), details.join(", ")]
        });
        text.push_str(&output::columns(2, &events.collect::<Vec<_>>()));
    }
    text
}

fn last(at: Option<Timestamp>, reason: Option<&String>, by: Option<&String>, now: Timestamp) -> String {
    let words: Vec<&str> = [reason, by].into_iter().flatten().map(String::as_str).collect();
    match (at, words.is_empty()) {
        (None, _) => "never".to_owned(),
        (Some(_), true) => ago(at, now),
        (Some(_), false) => format!("{} ({})", ago(at, now), words.join(", by ")),
    }
}
