//! `drowse replay FILE…`: what the rules make of a recorded stretch of a worker's life.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use drowse_core::replay::{Scenario, Timeline};
use drowse_core::savings::{Prices, savings};
use drowse_core::units::Human;
use serde_json::json;

use crate::output;

/// Run recorded scenarios against the rules and show their timelines.
///
/// A scenario tells what happened to a worker and which policy it had; the rules that run in production say
/// what Drowse would have done and when. The exit code is 1 if a timeline is not the one that its file expects.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  drowse replay scenarios/wake-on-connect.toml
  drowse replay scenarios/                        every scenario of a folder
  drowse replay scenarios/max-runtime.toml --json | jq '.[].timeline'")]
pub(crate) struct Args {
    /// Scenario files, or folders of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
}

/// A scenario that was run.
struct Ran {
    name: String,
    scenario: Scenario,
    timeline: Timeline,
    lines: Vec<String>,
}

impl Ran {
    /// A file that expects nothing asks a question; it cannot be wrong.
    fn is_as_expected(&self) -> bool {
        self.scenario.expect.is_empty() || self.lines == self.scenario.expect
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut all = Vec::new();
    for file in find(&args.files)? {
        all.push(run_one(&file)?);
    }
    if args.json {
        let report: Vec<_> = all.iter().map(as_json).collect();
        output::data(&format!("{:#}\n", serde_json::Value::from(report)))?;
    } else {
        for ran in &all {
            output::data(&as_text(ran))?;
        }
    }
    let wrong = all.iter().filter(|ran| !ran.is_as_expected()).count();
    if all.len() > 1 || wrong > 0 {
        output::talk(&format!("{} scenarios, {wrong} not as expected\n", all.len()));
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The files themselves, and those in the folders, sorted.
fn find(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        for entry in path.read_dir().with_context(|| format!("cannot read {}", path.display()))? {
            let file = entry.with_context(|| format!("cannot read {}", path.display()))?.path();
            if file.is_file() && file.extension().is_some_and(|extension| extension == "toml") {
                found.push(file);
            }
        }
        if found.is_empty() {
            bail!("{} holds no scenario (a file that ends in .toml)", path.display());
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

fn run_one(file: &Path) -> anyhow::Result<Ran> {
    let text = read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let scenario: Scenario =
        toml::from_str(&text).with_context(|| format!("{} is no scenario", file.display()))?;
    let timeline = scenario.run().with_context(|| format!("{} cannot be run", file.display()))?;
    let lines = scenario.lines(&timeline);
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Ran { name, scenario, timeline, lines })
}

/// A scenario is a page of text; what never ends is none.
const LARGEST: u64 = 1 << 20;

fn read(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let length = std::fs::File::open(file)?.take(LARGEST + 1).read_to_string(&mut text)?;
    if length as u64 > LARGEST {
        bail!("it is larger than 1 MiB");
    }
    Ok(text)
}

fn slept(ran: &Ran) -> (String, String) {
    let trace = ran.timeline.spans.first().zip(ran.timeline.spans.last());
    let period = trace.map(|(first, last)| first.from..last.until);
    let total = period
        .map(|period| savings(ran.timeline.spans.iter().copied(), &Prices::default(), period))
        .unwrap_or_default();
    (Human(total.frozen_for).to_string(), Human(total.stopped_for).to_string())
}

fn as_text(ran: &Ran) -> String {
    let (frozen, stopped) = slept(ran);
    let mut lines = vec![format!("{}: {}", ran.name, ran.scenario.title)];
    lines.extend(ran.lines.iter().map(|line| format!("  {line}")));
    lines.push(format!("  asleep through Drowse: frozen {frozen}, stopped {stopped}"));
    if !ran.is_as_expected() {
        lines.push("  NOT AS EXPECTED; the file says:".to_owned());
        for line in &ran.scenario.expect {
            let mark = if ran.lines.contains(line) { ' ' } else { '!' };
            lines.push(format!("  {mark} {line}"));
        }
    }
    format!("{}\n\n", lines.join("\n"))
}

fn as_json(ran: &Ran) -> serde_json::Value {
    let (frozen, stopped) = slept(ran);
    json!({
        "name": ran.name,
        "title": ran.scenario.title,
        "as_expected": ran.is_as_expected(),
        "timeline": ran.lines,
        "expected": ran.scenario.expect,
        "frozen_for": frozen,
        "stopped_for": stopped,
    })
}
