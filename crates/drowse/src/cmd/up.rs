//! `drowse up`: the whole control plane in one process.
//!
//! Everything that can be wrong is found before anything is touched: first the configuration, then the data
//! folder and its lock, the database, the ports; only then are workers looked after.

mod api;
mod crash;
mod demo;
mod doors;
mod drain;
mod ending;
mod folder;
mod guest;
mod guests;
mod handover;
mod inherit;
mod life;
mod lines;
mod link;
mod lives;
mod news;
mod parts;
mod settings;
pub(super) mod terms;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Runtime;

use api::Api;
use drain::Draining;
use folder::Folder;
use inherit::Inherited;
use settings::Settings;

use crate::output;

/// Look after the workers of a configuration: put them to sleep when they are idle, wake them when somebody
/// connects.
///
/// Ends on SIGTERM or SIGINT. Workers go on running, and the next start finds them again; what Drowse froze is
/// thawed first, because nothing would wake it. SIGHUP reads the configuration again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  drowse up --demo                       three small local workers, to see one sleep and wake
  drowse up --config drowse.toml
  drowse up --data /var/lib/drowse --listen 127.0.0.1:7070
  drowse up --take-over                  a new version in the place of the one that runs")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Args {
    /// Look after three small workers that come with Drowse; ends them at the end.
    #[arg(long, conflicts_with = "config")]
    demo: bool,
    /// The configuration file; without it drowse.toml, if there is one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The folder for everything that is kept; without it `DROWSE_DATA`, or ./drowse-data.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where the API answers, instead of what the file says.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Answer beyond this machine too, where everybody on the way can read tokens: only behind a proxy that
    /// speaks TLS.
    #[arg(long)]
    plain_http: bool,
    /// `sqlite://FILE` or `postgres://…`, instead of what the file says.
    #[arg(long, value_name = "URL")]
    database: Option<String>,
    /// Leave frozen what is frozen at the end, for a restart that follows at once.
    #[arg(long)]
    keep_frozen: bool,
    /// Take over from the Drowse that runs on this data folder: a restart that refuses nobody and cuts nobody. The other
    /// one carries the connections it has to their end, and ends with the last. If none runs, this is an ordinary
    /// start.
    #[arg(long, conflicts_with = "demo")]
    take_over: bool,
    /// Do not tell what happens to workers.
    #[arg(long)]
    quiet: bool,
}

/// How long the other may take to let go: what it is about, the database.
const TAKE_OVER_FOR: Duration = Duration::from_mins(1);

impl Args {
    fn data(&self) -> PathBuf {
        let given = self.data.clone().or_else(|| std::env::var_os("DROWSE_DATA").map(PathBuf::from));
        let data = given.unwrap_or_else(|| PathBuf::from("drowse-data"));
        // The demo is thrown away at its end; it must not meet anybody's real data.
        if self.demo { data.join(drowse_wire::place::DEMO_FOLDER) } else { data }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    write_log();
    let inherited = Inherited::from_systemd()?;
    if args.demo {
        let folder = Folder::open(&args.data())?;
        let file = demo::write_config(&folder, args.listen)?;
        run_in(args, &folder, Settings::load(args, Some(file))?, inherited)?;
        demo::clear(folder);
        return Ok(ExitCode::SUCCESS);
    }
    let settings = Settings::load(args, args.config.clone())?;
    // Before another is asked to go for it.
    Api::check(settings.config.server.listen, args.plain_http)?;
    let former = if args.take_over { handover::take_over(&args.data())? } else { None };
    let Some(former) = former else {
        let folder = Folder::open(&args.data())?;
        let carrying = run_in(args, &folder, settings, inherited)?;
        return Ok(carry_on(carrying, folder));
    };
    output::talk("drowse: the ports are ours; waiting for the other to end\n");
    let outcome = Folder::open_when_free(&args.data(), TAKE_OVER_FOR)
        .and_then(|folder| Ok((run_in(args, &folder, settings, former)?, folder)));
    let (carrying, folder) = outcome.inspect_err(|_| {
        // The other one left frozen what was, because this one would wake it.
        ending::thaw_anyway(&args.data());
    })?;
    Ok(carry_on(carrying, folder))
}

/// What is left of a Drowse when another has taken over, and where it runs.
struct Carrying {
    runtime: Runtime,
    draining: Draining,
}

/// Gives the folder away, and carries to their end those who are in.
fn carry_on(carrying: Option<Carrying>, folder: Folder) -> ExitCode {
    drop(folder);
    if let Some(Carrying { runtime, draining }) = carrying {
        runtime.block_on(draining.carry_on());
        runtime.shutdown_timeout(Duration::from_secs(1));
    }
    ExitCode::SUCCESS
}

fn run_in(
    args: &Args,
    folder: &Folder,
    settings: Settings,
    inherited: Inherited,
) -> anyhow::Result<Option<Carrying>> {
    // Each connection is two files. With fewer than there could be it works too, only for fewer at a time.
    if let Err(error) = drowse_drivers::process::raise_file_limit() {
        tracing::warn!("cannot open more files than usual: {error}");
    }
    settings.remember_members();
    let memory = parts::open_store(&settings.config.server.database, folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the threads that Drowse runs on")?;
    // It stays here: a connection to PostgreSQL must not be closed by a thread of the runtime.
    let outcome = runtime.block_on(life::live(args, folder, settings, &memory, inherited));
    if let Ok(Some(draining)) = outcome {
        // The last of the database, which the fleet has let go of.
        drop(memory);
        return Ok(Some(Carrying { runtime, draining }));
    }
    runtime.shutdown_timeout(Duration::from_secs(1));
    drop(memory);
    outcome.map(|_| None)
}

/// What goes wrong behind the scenes goes to stderr, in lines that say when, how bad and what.
fn write_log() {
    let log = tracing_subscriber::fmt()
        .with_writer(|| output::Log)
        .with_max_level(tracing::Level::INFO)
        .with_target(false)
        .with_ansi(false);
    // A second one in the same process would be a test's, which has its own.
    let _ = log.try_init();
}
