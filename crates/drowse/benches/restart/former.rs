//! What a former life has left behind, written through the store.

use std::path::Path;
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::id::{BootId, WorkerId};
use drowse_core::lease::{Asked, Credential, LeaseTerms};
use drowse_core::policy::Policy;
use drowse_core::reason::PauseReason;
use drowse_core::signal::DriverKind;
use drowse_core::status::{Sleep, Status};
use drowse_core::worker::Worker;
use drowse_server::Clock;
use drowse_server::spec::{DriverSpec, WorkerSpec};
use drowse_store::{Epoch, Options, Replica, Store, StoreError, Tx};

pub(crate) const WORKERS: usize = 100_000;

/// How many are written in one transaction.
const AT_ONCE: usize = 1_000;

/// How long before the start the former life ended.
const AWAY_FOR: Duration = Duration::from_secs(2);

/// Who the workers are.
#[derive(Clone, Copy)]
pub(crate) enum Fleet {
    /// All run, each with a lease.
    Leased,
    /// Half run with a lease, two fifths are frozen, a tenth is stopped.
    Mixed,
}

pub(crate) fn write(url: &str, folder: &Path, fleet: Fleet) {
    let store = Store::open(url, folder, &Options::new(Epoch(7))).expect("it opens");
    let now = Clock::system().now();
    for first in (0..WORKERS).step_by(AT_ONCE) {
        let write =
            |tx: &Tx<'_>| (first..first + AT_ONCE).try_for_each(|index| write_worker(tx, index, fleet, now));
        store.tx(write).expect("it is written");
    }
    let replica = Replica {
        id: "former".to_owned(),
        doc: serde_json::Value::Null,
        started_at: now - Duration::from_hours(1),
        alive_until: now,
        flushed_through: Some(now - AWAY_FOR),
    };
    store.tx(|tx| tx.announce_replica(&replica)).expect("it is written");
}

fn write_worker(tx: &Tx<'_>, index: usize, fleet: Fleet, now: Timestamp) -> Result<(), StoreError> {
    let since = now - Duration::from_mins(30);
    let sleep = || Sleep {
        reason: PauseReason::IdleTimeout,
        by: "drowse".to_owned(),
        message: String::new(),
        at: since,
        forced: false,
    };
    let status = match (fleet, index % 10) {
        (Fleet::Leased, _) | (Fleet::Mixed, 0..5) => Status::Running { since },
        (Fleet::Mixed, 5..9) => Status::Paused { since, sleep: sleep() },
        (Fleet::Mixed, _) => Status::Stopped { since, sleep: sleep() },
    };
    let id = WorkerId::new(&format!("w-{index:06}")).expect("a name");
    let mut worker = Worker::registered(id.clone(), DriverKind::Process, &Policy::default(), since);
    worker.status = status;
    worker.boot = Some(BootId::new("a-boot-of-the-machine/12345/67890"));
    worker.boot_started_at = Some(since);
    let spec = WorkerSpec {
        driver: DriverSpec::Process {
            command: ["python3", "-m", "http.server", "9001"].map(str::to_owned).to_vec(),
            directory: None,
            environment: std::collections::BTreeMap::new(),
        },
        listen: None,
        target: None,
        sni: Vec::new(),
        tls_target: None,
        host: Vec::new(),
        protocol: drowse_server::config::Protocol::Tcp,
        ready_path: None,
        price_per_hour: None,
        paused_price_per_hour: None,
        target_port: None,
        tls_target_port: None,
        is_listed: false,
        found_by: None,
    };
    let spec = serde_json::to_value(spec).expect("plain data");
    // Deadlines over the next five minutes, as a fleet of this size has them.
    let due = now + Duration::from_mins(5) * u32::try_from(index).expect("fits") / 100_000;
    tx.register(&worker, "local", &spec, due)?;
    if let Status::Running { .. } = worker.status {
        let mut locked = tx.lock_worker(&id)?.expect("just written");
        let mut leases = locked.leases()?;
        let asked = Asked {
            credential: &Credential::new("job"),
            holder: Some("nightly"),
            ttl: Duration::from_mins(30),
            reason: "a build",
        };
        let terms = LeaseTerms {
            ttl_max: Duration::from_hours(1),
            ceiling: Duration::from_hours(24),
            idle_timeout: Some(Duration::from_hours(1)),
        };
        leases.take(&asked, &terms, now - Duration::from_mins(10)).expect("it is granted");
        locked.save_leases(&leases)?;
    }
    Ok(())
}
