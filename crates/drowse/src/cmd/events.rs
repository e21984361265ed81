//! `drowse events [--follow]`: the journal.

use std::process::ExitCode;
use std::time::Duration;

use drowse_wire::client::{Client, ClientError, Streamed};
use drowse_wire::v1::{Event, EventQuery};

use crate::connect::{Connect, after_help};
use crate::output;

/// Show what was done and seen, oldest first.
#[derive(Debug, clap::Args)]
#[command(after_help = after_help("  drowse events
  drowse events --follow --worker web             until you press Ctrl-C
  drowse events --type worker.paused --limit 100
  drowse events --follow --json | jq -r '.worker_id + \" \" + .message'"))]
pub(crate) struct Args {
    /// Go on with what happens from now on; after a break it goes on where it was.
    #[arg(short, long)]
    follow: bool,
    /// Only events of this worker.
    #[arg(long, value_name = "ID")]
    worker: Option<String>,
    /// Only events of this type, such as worker.paused.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// How many of the latest to show.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000))]
    limit: u32,
    /// Print JSON to stdout, one event a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connect: Connect,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let client = args.connect.client()?;
    let query = EventQuery { worker: args.worker.clone(), kind: args.kind.clone(), ..EventQuery::default() };
    // Even when none is to be shown, the newest one tells where to go on.
    let mut page = client.events(&EventQuery { limit: Some(args.limit.max(1)), ..query.clone() })?;
    let newest = page.events.first().map(|event| event.id.clone());
    page.events.truncate(args.limit as usize);
    for event in page.events.iter().rev() {
        show(event, args.json)?;
    }
    if args.follow { follow(&client, &query, newest, args.json) } else { Ok(ExitCode::SUCCESS) }
}

fn show(event: &Event, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json_line(event);
    }
    let worker = output::or_dash(event.worker_id.as_deref());
    let line = format!("{}  {worker}  {}  {}", event.at, event.kind, event.message);
    Ok(output::data(&format!("{}\n", output::line(&line)))?)
}

const GAP: &str = "some events are no longer in the journal; going on with the next\n";

/// About a minute in all: longer than a restart takes, short enough to be told.
const WAITS: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(16),
    Duration::from_secs(30),
];

fn follow(
    client: &Client,
    query: &EventQuery,
    mut last: Option<String>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let mut failures = 0;
    loop {
        let error = match client.stream(query, last.as_deref()) {
            Ok(mut stream) => {
                let mut end = None;
                for message in stream.by_ref() {
                    match message {
                        Ok(Streamed::Event(event)) => {
                            failures = 0;
                            show(&event, json)?;
                        }
                        Ok(Streamed::Lost) => output::talk(GAP),
                        Err(error) => {
                            end = Some(error);
                            break;
                        }
                    }
                }
                last = stream.last_event_id().map(str::to_owned);
                end
            }
            // A refusal stays one, however often it is asked for.
            Err(error) if error.is_without_answer() => Some(error),
            Err(error) => return Err(error.into()),
        };
        wait_to_reconnect(&mut failures, error)?;
    }
}

#[expect(clippy::disallowed_methods, reason = "there is no state to wait for: the other side is gone")]
fn wait_to_reconnect(failures: &mut usize, error: Option<ClientError>) -> anyhow::Result<()> {
    let Some(wait) = WAITS.get(*failures) else {
        return match error {
            Some(error) => Err(error.into()),
            None => anyhow::bail!("the stream ends again and again"),
        };
    };
    *failures += 1;
    let why = error.map_or_else(|| "the stream ended".to_owned(), |error| error.to_string());
    output::talk(&format!("{why}; trying again in {} s\n", wait.as_secs()));
    std::thread::sleep(*wait);
    Ok(())
}
