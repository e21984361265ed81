//! What a fleet is made of: its memory and its hands.

use std::sync::Arc;

use anyhow::Context as _;
use drowse_drivers::docker::{self, DockerDriver};
use drowse_drivers::process::{self, ProcessDriver, cgroup};
use drowse_server::clock::Clock;
use drowse_server::config::Database;
use drowse_server::tasks::Tasks;
use drowse_server::{CHECKS_AT_ONCE, Drivers, Fleet, Parts};
use drowse_store::{Alone, Epoch, Options, Store, StoreError};
use tokio::sync::watch;

use super::crash;
use super::folder::{Folder, random};
use super::lives::Lives;
use super::settings::Settings;
use crate::cmd::EXEC;

/// What a worker says is kept up to this; the older half goes first.
const LOG_LIMIT: u64 = 10 << 20;

/// The database, and that it is ours alone.
#[derive(Debug)]
pub(super) struct Memory {
    store: Store,
    /// The clock that goes with it.
    clock: Clock,
    /// Whether somebody else has it now, after an outage of it.
    pub(super) is_lost: watch::Sender<bool>,
    _alone: Alone,
}

/// Opens the database and brings it up to date, unless another Drowse looks after it. Blocks, and must not be
/// called on the runtime.
pub(super) fn open_store(database: &Database, folder: &Folder) -> anyhow::Result<Memory> {
    let options = Options::new(Epoch(u64::from_le_bytes(random()?)));
    let (url, shown) = match database {
        Database::Sqlite { file } => {
            (format!("sqlite://{}", file.display()), folder.path().join(file).display().to_string())
        }
        Database::Postgres { url, password_file } => {
            let mut secret = url.clone();
            if let Some(file) = password_file {
                let password = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read the database password in {}", file.display()))?;
                secret.push(if url.contains('?') { '&' } else { '?' });
                secret.push_str("password=");
                secret.push_str(&percent(password.trim_end_matches(['\r', '\n'])));
            }
            // Never the one with the password.
            (secret, url.clone())
        }
    };
    let is_lost = watch::Sender::new(false);
    let open = || -> Result<Memory, StoreError> {
        let lost = is_lost.clone();
        let lost = move || {
            lost.send_replace(true);
        };
        let alone = Alone::take(&url, folder.path(), &options, lost)?;
        let store = Store::open(&url, folder.path(), &options)?;
        let clock = Clock::of(&store)?;
        Ok(Memory { store, clock, is_lost: is_lost.clone(), _alone: alone })
    };
    open().with_context(|| format!("cannot open the database {shown}"))
}

fn percent(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}

/// The fleet and the freezer that it uses.
pub(super) fn fleet(
    settings: &Settings,
    folder: &Folder,
    lives: &Lives,
    memory: &Memory,
    tasks: &Tasks,
) -> anyhow::Result<(Fleet, String)> {
    let clock = memory.clock.clone();
    let process = ProcessDriver::open(process::Config {
        data_dir: folder.path().to_owned(),
        // Whatever becomes of the file that this program was started from, such as an upgrade.
        helper: vec!["/proc/self/exe".into(), EXEC.into()],
        freezer: cgroup::Choice::Auto,
        log_limit: LOG_LIMIT,
        now: clock.reader(),
    })
    .context("cannot look after processes")?;
    let freezer = process.freezer().freezer.to_string();
    let docker = DockerDriver::open(docker::Config {
        data_dir: folder.path().to_owned(),
        socket: settings.docker_socket(),
        nvml: settings.config.docker.nvml.clone(),
        now: clock.reader(),
    })
    .context("cannot look after containers")?;
    let fleet = Fleet::new(Parts {
        store: memory.store.clone(),
        drivers: Drivers::default().with(Arc::new(process)).with(Arc::new(docker)),
        clock,
        tasks: tasks.clone(),
        crash: crash::points()?,
        replica: lives.own().to_owned(),
        former: lives.former().to_vec(),
        file: settings.layers(),
        brake: settings.config.brake,
        checks_at_once: CHECKS_AT_ONCE,
        head_starts: Some(folder.path().join("head-starts")),
    });
    fleet.keep_history_for(settings.config.journal.keep);
    Ok((fleet, freezer))
}
