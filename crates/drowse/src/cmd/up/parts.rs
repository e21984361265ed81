//! What a fleet is made of: its memory and its hands.

use std::sync::Arc;

use anyhow::Context as _;
use drowse_drivers::process::{self, ProcessDriver, cgroup};
use drowse_server::clock::Clock;
use drowse_server::config::Database;
use drowse_server::tasks::Tasks;
use drowse_server::{CHECKS_AT_ONCE, Drivers, Fleet, Parts};
use drowse_store::{Epoch, Options, Store};

use super::crash;
use super::folder::{Folder, random};
use super::lives::Lives;
use super::settings::Settings;
use crate::cmd::EXEC;

/// What a worker says is kept up to this; the older half goes first.
const LOG_LIMIT: u64 = 10 << 20;

/// Opens the database and brings it up to date, and takes the clock that goes with it. Blocks, and must not be
/// called on the runtime.
pub(super) fn open_store(database: &Database, folder: &Folder) -> anyhow::Result<(Store, Clock)> {
    let store = open(database, folder)?;
    let clock = Clock::of(&store).context("cannot ask the database what time it is")?;
    Ok((store, clock))
}

fn open(database: &Database, folder: &Folder) -> anyhow::Result<Store> {
    let options = Options::new(Epoch(u64::from_le_bytes(random()?)));
    match database {
        Database::Sqlite { file } => {
            let url = format!("sqlite://{}", file.display());
            Store::open(&url, folder.path(), &options)
                .with_context(|| format!("cannot open the database {}", folder.path().join(file).display()))
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
            Store::open(&secret, folder.path(), &options)
                .with_context(|| format!("cannot open the database {url}"))
        }
    }
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
    (store, clock): (Store, Clock),
    tasks: &Tasks,
) -> anyhow::Result<(Fleet, String)> {
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
    let fleet = Fleet::new(Parts {
        store,
        drivers: Drivers::default().with(Arc::new(process)),
        clock,
        tasks: tasks.clone(),
        crash: crash::points()?,
        replica: lives.own().to_owned(),
        former: lives.former().to_vec(),
        file: settings.layers(),
        brake: settings.config.brake,
        checks_at_once: CHECKS_AT_ONCE,
    });
    Ok((fleet, freezer))
}
