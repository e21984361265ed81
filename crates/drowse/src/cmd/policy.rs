//! `drowse policy`: what the layers say, and how to change them at run time.

mod layer;

use std::process::ExitCode;

use clap::Subcommand;
use drowse_wire::client::Client;
use drowse_wire::v1::ChangePolicy;
use serde_json::{Map, Value};

use self::layer::Layer;
use super::explain;
use crate::connect::{Connect, after_help};
use crate::output;

/// Show the layers of policy, or change one at run time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    List(List),
    Set(Set),
    Reset(Reset),
}

/// List every value that a layer sets; for one worker, what it gets and from where.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse policy list
  drowse policy list --worker web"))]
struct List {
    /// Show what this worker gets.
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

/// Change values of a layer. It applies at once, to running workers too, and survives a restart.
///
/// Values are written as in the configuration file: 30m, 2%, 1MiB, true, never, `["80%", "95%"]`.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse policy set global idle_timeout=30m
  drowse policy set group/student idle_timeout=20m max_runtime=24h -m \"exam week\"
  drowse policy set worker/web signals.cpu.active_above=5% 'warn_at=[\"90%\"]'"))]
struct Set {
    /// global, region/NAME, type/NAME, group/NAME, owner/NAME or worker/ID.
    layer: Layer,
    /// What to set.
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = layer::assignment)]
    values: Vec<(String, Value)>,
    #[command(flatten)]
    rest: Rest,
}

/// Undo run-time changes of a layer, so that the configuration file counts again.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse policy reset group/student idle_timeout max_runtime"))]
struct Reset {
    /// global, region/NAME, type/NAME, group/NAME, owner/NAME or worker/ID.
    layer: Layer,
    /// Which keys.
    #[arg(required = true, value_name = "KEY")]
    keys: Vec<String>,
    #[command(flatten)]
    rest: Rest,
}

#[derive(Debug, clap::Args)]
struct Rest {
    /// Why, for the journal and for whoever wonders later.
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::List(list) => self::list(list)?,
        What::Set(set) => {
            let values: Map<String, Value> = set.values.iter().cloned().collect();
            change(&set.layer, &set.rest, values, Vec::new())?;
        }
        What::Reset(reset) => change(&reset.layer, &reset.rest, Map::new(), reset.keys.clone())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(args: &List) -> anyhow::Result<()> {
    let client = args.connect.client()?;
    match &args.worker {
        Some(id) => list_worker(&client, id, args.json),
        None => list_layers(&client, args.json),
    }
}

fn list_worker(client: &Client, id: &str, json: bool) -> anyhow::Result<()> {
    let settings = client.explain(id, None)?.policy;
    if json {
        return output::json(&settings);
    }
    let rows =
        settings.into_iter().map(|setting| [setting.key, explain::value(&setting.value), setting.from]);
    Ok(output::data(&output::table(["KEY", "VALUE", "FROM"], rows))?)
}

fn list_layers(client: &Client, json: bool) -> anyhow::Result<()> {
    let policies = client.policies()?;
    if json {
        return output::json(&policies);
    }
    let rows = policies.layers.iter().flat_map(|layer| {
        let name = match &layer.name {
            Some(name) => format!("{}/{name}", layer.level),
            None => layer.level.clone(),
        };
        layer.values.iter().map(move |(key, value)| {
            let author = output::or_dash(layer.author.as_deref());
            [name.clone(), key.clone(), explain::value(value), layer.source.clone(), author]
        })
    });
    Ok(output::data(&output::table(["LAYER", "KEY", "VALUE", "SOURCE", "BY"], rows))?)
}

fn change(layer: &Layer, rest: &Rest, values: Map<String, Value>, keys: Vec<String>) -> anyhow::Result<()> {
    let change = ChangePolicy { set: values, reset: keys, message: rest.message.clone() };
    let done = rest.connect.client()?.change_policy(&layer.level, layer.name.as_deref(), &change)?;
    if rest.json {
        return output::json(&done);
    }
    let noun = if done.worker_count == 1 { "worker" } else { "workers" };
    output::talk(&format!("applies to {} {noun}; run-time values of {layer} are now:\n", done.worker_count));
    if let (0, "group", Some(name)) = (done.worker_count, layer.level.as_str(), &layer.name) {
        output::talk(&super::exempt::nobody_in(name));
    }
    let rows: Vec<Vec<String>> =
        done.layer.values.iter().map(|(key, value)| vec![key.clone(), explain::value(value)]).collect();
    Ok(output::data(&output::columns(0, &rows))?)
}
