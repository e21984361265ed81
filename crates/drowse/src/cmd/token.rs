//! `drowse token`: who may do what.

use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;
use drowse_core::units::parse_duration;
use drowse_wire::v1::{CreateToken, Role};

use crate::connect::{Connect, after_help};
use crate::output;

/// Make, list and take back tokens.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Make a token and print its secret, this once.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse token create grafana --role viewer --expires-after 90d
  drowse token create web-agent --role agent --worker web
  export DROWSE_TOKEN=$(drowse token create deploy --role operator)"))]
struct Create {
    /// Whose it is, as the journal names them.
    name: String,
    /// What it may do: admin, operator, viewer, router or agent.
    #[arg(long, value_parser = role)]
    role: Role,
    /// The only worker that it may touch; for the role agent.
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    /// When it ends by itself, such as 90d; else never.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires_after: Option<Duration>,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

/// List tokens, without their secrets.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse token list"))]
struct List {
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

/// Take a token back; it opens nothing within five seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse token revoke t-1"))]
struct Revoke {
    /// Its id, from drowse token list.
    id: String,
    /// Print JSON to stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

fn role(text: &str) -> Result<Role, String> {
    Role::from_code(text).ok_or_else(|| {
        let known = Role::ALL.map(Role::code).join(", ");
        format!("expected one of {known}")
    })
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.what {
        What::Create(args) => create(args)?,
        What::List(args) => list(args)?,
        What::Revoke(args) => {
            let token = args.connect.client()?.revoke_token(&args.id)?;
            if args.json {
                output::json(&token)?;
            } else {
                output::talk(&format!("the token {} of {} is revoked\n", token.id, token.name));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn create(args: &Create) -> anyhow::Result<()> {
    let new = CreateToken {
        name: args.name.clone(),
        role: args.role,
        worker_id: args.worker.clone(),
        expires_after: args.expires_after,
    };
    let created = args.connect.client()?.create_token(&new)?;
    if args.json {
        return output::json(&created);
    }
    let token = &created.token;
    output::talk(&format!(
        "token {} of {} ({}); its secret is not shown again:\n",
        token.id, token.name, token.role
    ));
    Ok(output::data(&format!("{}\n", created.secret))?)
}

fn list(args: &List) -> anyhow::Result<()> {
    let list = args.connect.client()?.tokens()?;
    if args.json {
        return output::json(&list);
    }
    let rows = list.tokens.into_iter().map(|token| {
        let ends = match (token.revoked_at, token.expires_at) {
            (Some(at), _) => format!("revoked {at}"),
            (None, Some(at)) => at.to_string(),
            (None, None) => "never".to_owned(),
        };
        let worker = output::or_dash(token.worker_id.as_deref());
        [token.id, token.name, token.role, worker, token.created_at.to_string(), ends]
    });
    Ok(output::data(&output::table(["TOKEN", "NAME", "ROLE", "WORKER", "CREATED", "ENDS"], rows))?)
}
