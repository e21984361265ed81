//! `drowse exempt`: who is spared what.

use std::process::ExitCode;

use clap::Subcommand;
use drowse_wire::v1::{CreateExemption, Exemption, WorkerQuery};

use crate::connect::{Connect, after_help};
use crate::output;

/// Spare workers from being put to sleep or stopped, with a reason, an approval and an end.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Add(Add),
    List(List),
    Remove(Remove),
}

/// Add an exemption. Exempt workers are still judged, and told what would have happened.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("subject").required(true).args(["owner", "group", "worker"]))]
#[command(after_help = after_help("  drowse exempt add --owner bob --reason \"grant deadline\" --approved-by carol --expires-on 2026-12-01T00:00:00Z
  drowse exempt add --worker web --from max_runtime --reason \"long experiment\" --approved-by carol --expires-on never"))]
struct Add {
    /// For every worker of this owner.
    #[arg(long)]
    owner: Option<String>,
    /// For every worker of this group.
    #[arg(long)]
    group: Option<String>,
    /// For this worker.
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    /// From what; may be given twice.
    #[arg(long, value_name = "WHAT", value_parser = ["idle_timeout", "max_runtime"], default_values = ["idle_timeout", "max_runtime"])]
    from: Vec<String>,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Who said so.
    #[arg(long, value_name = "NAME")]
    approved_by: String,
    /// When it ends, such as 2026-12-01T00:00:00Z; never for a permanent one.
    #[arg(long, value_name = "TIME")]
    expires_on: String,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

/// List exemptions.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse exempt list
  drowse exempt list --expiring"))]
struct List {
    /// Only those that end within a week.
    #[arg(long)]
    expiring: bool,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

/// End an exemption now. One from the configuration file can only be ended there.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse exempt remove x-1"))]
struct Remove {
    /// Its id, from drowse exempt list.
    id: String,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::Add(args) => add(args)?,
        What::List(args) => {
            let mut list = args.connect.client()?.exemptions()?;
            list.exemptions.retain(|exemption| !args.expiring || exemption.is_expiring);
            if args.json {
                output::json(&list)?;
            } else {
                output::data(&table(&list.exemptions))?;
            }
        }
        What::Remove(args) => {
            args.connect.client()?.delete_exemption(&args.id)?;
            output::talk(&format!("the exemption {} is ended\n", args.id));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// It counts from when somebody is; but it may be a slip of the keyboard.
pub(super) fn nobody_in(group: &str) -> String {
    format!("note: no worker is in a group {group}; it counts for those who come\n")
}

fn add(args: &Add) -> anyhow::Result<()> {
    let new = CreateExemption {
        owner: args.owner.clone(),
        group: args.group.clone(),
        worker: args.worker.clone(),
        from: args.from.clone(),
        reason: args.reason.clone(),
        approved_by: args.approved_by.clone(),
        expires_on: args.expires_on.clone(),
    };
    let client = args.connect.client()?;
    let exemption = client.create_exemption(&new)?;
    if let Some(group) = &args.group {
        let query = WorkerQuery { group: Some(group.clone()), limit: Some(1), ..WorkerQuery::default() };
        // It is granted either way.
        if client.workers(&query).is_ok_and(|page| page.workers.is_empty()) {
            output::talk(&nobody_in(group));
        }
    }
    if args.json { output::json(&exemption) } else { Ok(output::data(&table(&[exemption]))?) }
}

fn table(exemptions: &[Exemption]) -> String {
    let rows = exemptions.iter().map(|exemption| {
        let subject =
            [("owner", &exemption.owner), ("group", &exemption.group), ("worker", &exemption.worker)]
                .into_iter()
                .find_map(|(kind, name)| name.as_ref().map(|name| format!("{kind}/{name}")));
        [
            exemption.id.clone(),
            output::or_dash(subject.as_deref()),
            exemption.from.join(", "),
            exemption.expires_on.clone(),
            exemption.approved_by.clone(),
            exemption.source.clone(),
            exemption.reason.clone(),
        ]
    });
    output::table(["EXEMPTION", "FOR", "FROM", "ENDS", "APPROVED BY", "SOURCE", "REASON"], rows)
}
