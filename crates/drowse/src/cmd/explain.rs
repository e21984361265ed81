//! `drowse explain WORKER`: why it is awake or not, and what happens next.

use std::process::ExitCode;

use drowse_core::Timestamp;
use drowse_core::units::rough_size;
use drowse_wire::v1::{Explanation, Setting};

use crate::connect::{Connect, after_help};
use crate::output;
use crate::output::time::{coarse, until};

/// Say why a worker is awake or asleep, and what would have to change.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse explain web
  drowse explain web --all                        every setting, not only those that somebody set
  drowse explain web --at 2026-03-01T09:30:00Z    the decision that stood then"))]
pub(crate) struct Args {
    /// The worker.
    worker: String,
    /// Explain the decision that stood at this instant.
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// Show the built-in settings too.
    #[arg(long)]
    all: bool,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let explanation = args.connect.client()?.explain(&args.worker, args.at)?;
    if args.json {
        output::json(&explanation)?;
    } else {
        output::data(&text(&explanation, args.all, args.at))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(explanation: &Explanation, all: bool, asked_at: Option<Timestamp>) -> String {
    let now = explanation.at;
    let when = asked_at.map_or_else(String::new, |_| format!(" as judged at {now}"));
    let mut text =
        format!("{} ({}){when}: {}", explanation.worker_id, explanation.status, explanation.summary);
    text = output::line(&text) + "\n";
    let mut section = |title: &str, rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            text.push_str(&["\n", title, "\n"].concat());
            text.push_str(&output::columns(2, &rows));
        }
    };
    let lines = |sentences: &mut dyn Iterator<Item = &String>| -> Vec<Vec<String>> {
        sentences.map(|sentence| vec![sentence.clone()]).collect()
    };
    let reasons = explanation.reasons.iter().map(|reason| vec![reason.code.clone(), reason.sentence.clone()]);
    section("reasons", reasons.collect());
    section("what would have to change for it to sleep", lines(&mut explanation.would_have_to_change.iter()));
    section("notes", lines(&mut explanation.notes.iter()));
    let signals = explanation.signals.iter().map(|reading| {
        let age = reading.age.map_or("-".to_owned(), |age| format!("{} old", coarse(age)));
        vec![
            reading.signal.clone(),
            reading.need.clone(),
            reading.state.clone(),
            age,
            reading.sentence.clone(),
        ]
    });
    // Nobody looks at what sleeps.
    if !matches!(explanation.status.as_str(), "paused" | "stopped") {
        section("signals", signals.collect());
    }
    #[expect(clippy::cast_precision_loss, reason = "it is rounded anyway")]
    let memory = explanation
        .memory_bytes
        .map(|bytes| vec![format!("{} in use; not judged", rough_size(bytes as f64))]);
    section("memory", memory.into_iter().collect());
    let holds = explanation.holds.iter().map(|hold| {
        let ends = hold.until.map_or("no known end".to_owned(), |end| format!("ends {}", until(end, now)));
        vec![hold.kind.clone(), hold.owner.clone(), ends, hold.reason.clone()]
    });
    section("holds", holds.collect());
    let is_shown = |setting: &&Setting| all || setting.source != "built-in" || setting.key == "idle_timeout";
    let policy = explanation.policy.iter().filter(is_shown);
    section(
        "policy",
        policy
            .map(|setting| vec![setting.key.clone(), value(&setting.value), setting.from.clone()])
            .collect(),
    );
    let happened = explanation.until_then.iter();
    section(
        "what happened between then and the time asked for",
        happened.map(|event| vec![event.at.to_string(), event.message.clone()]).collect(),
    );
    if asked_at.is_some() {
        return text;
    }
    let next = until(explanation.next_check_at, now);
    text + &format!(
        "
next check {next} ({})
",
        explanation.next_check_at
    )
}

/// A policy value as it is written in the file, without the quotes of a text.
pub(super) fn value(value: &serde_json::Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_null() => "never".to_owned(),
        None => value.to_string(),
    }
}
