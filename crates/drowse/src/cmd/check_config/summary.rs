//! A right configuration in words.

use std::fmt::Write as _;
use std::path::Path;

use drowse_core::policy::exemption::{Exemption, Expiry, From, Subject};
use drowse_core::policy::{PolicyLayer, Value};
use drowse_server::config::{Config, Resolved, Worker};

use crate::output::columns;

/// Layers, groups, workers with what they get, and exemptions.
pub(super) fn whole(config: &Config, file: &Path) -> String {
    let mut text = format!("{} is right\n", file.display());
    let layers: Vec<Vec<String>> = config.policy.layers().iter().map(layer).collect();
    part(&mut text, "layers", &columns(2, &layers));
    let groups: Vec<Vec<String>> = config
        .groups
        .sizes()
        .into_iter()
        .map(|(group, size)| vec![group.to_owned(), counted(size, "member")])
        .collect();
    part(&mut text, "groups", &columns(2, &groups));
    let workers: Vec<String> = config
        .workers
        .iter()
        .map(|worker| {
            let changed: Vec<Vec<String>> =
                config.resolved(worker).iter().filter(|row| row.is_changed).map(row).collect();
            format!("  {}\n{}", title(worker), columns(4, &changed))
        })
        .collect();
    part(&mut text, "workers", &workers.concat());
    let exemptions: String = config.exemptions.iter().map(exemption).collect();
    part(&mut text, "exemptions", &exemptions);
    text
}

/// Every key of one worker.
pub(super) fn worker(config: &Config, worker: &Worker) -> String {
    let rows: Vec<Vec<String>> = config.resolved(worker).iter().map(row).collect();
    format!("{}\n{}", title(worker), columns(2, &rows))
}

fn part(text: &mut String, heading: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(text, "\n{heading}\n{body}");
    }
}

fn layer(layer: &PolicyLayer) -> Vec<String> {
    vec![layer.origin().to_string(), counted(layer.values.len(), "key")]
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn title(worker: &Worker) -> String {
    let selectors = &worker.selectors;
    let attributes = [
        ("type", &selectors.kind),
        ("region", &selectors.region),
        ("group", &selectors.group),
        ("owner", &selectors.owner),
    ];
    let mut title = format!("{} ({}", worker.id, worker.driver.kind());
    for (word, name) in attributes {
        if let Some(name) = name {
            let _ = write!(title, ", {word} {name}");
        }
    }
    title.push(')');
    title
}

fn row(row: &Resolved) -> Vec<String> {
    let value = row.value.as_ref().map_or_else(|| "-".to_owned(), Value::to_toml);
    let mut origin = row.origin.to_string();
    if let Some(place) = &row.place {
        let _ = write!(origin, ", {place}");
    }
    vec![row.key.name(), value, origin]
}

fn exemption(exemption: &Exemption) -> String {
    let (word, name) = match &exemption.subject {
        Subject::Owner(name) => ("owner", name),
        Subject::Group(name) => ("group", name),
        Subject::Worker(name) => ("worker", name),
    };
    let from: Vec<&str> = exemption
        .from
        .iter()
        .map(|from| match from {
            From::IdleTimeout => "idle_timeout",
            From::MaxRuntime => "max_runtime",
        })
        .collect();
    let until = match exemption.expires_on {
        Expiry::At(end) => format!("until {end}"),
        Expiry::Never => "for ever".to_owned(),
    };
    format!(
        "  {word} {name} from {} {until}: {} (approved by {})\n",
        from.join(" and "),
        exemption.reason,
        exemption.approved_by
    )
}
