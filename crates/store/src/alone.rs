//! One control plane for one database.
//!
//! Two that do not know of each other judge each other's workers by their own machine, and one of them leaves
//! frozen what the other thinks it woke. Whoever looks after a database therefore holds a lock that the kernel or
//! the database lets go of when the holder dies, however it dies: nobody has to wait for a time to run out.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::error::StoreError;
use crate::postgres;
use crate::store::Options;

/// How often it is looked whether the lock is still ours: a server that was started anew has forgotten it.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A server takes a moment to notice that the last holder is dead: this often it is asked again, this long apart.
const TRIES: u32 = 20;
const TRY_EVERY: Duration = Duration::from_millis(100);

/// That nobody else looks after a database, for as long as this lives.
#[derive(Debug)]
pub struct Alone {
    _held: Held,
}

#[derive(Debug)]
enum Held {
    /// A file beside the database file.
    File { _lock: File },
    /// A session of its own, kept by a thread: none of the runtime's may close a connection.
    Session { _stop: Sender<()> },
}

impl Alone {
    /// Takes the lock of `sqlite://FILE` (relative to `folder`) or `postgres://…`, which must not be open yet.
    /// `lost` is called should somebody else get it meanwhile, after an outage of the database.
    pub fn take(
        url: &str,
        folder: &Path,
        options: &Options,
        lost: impl FnOnce() + Send + 'static,
    ) -> Result<Self, StoreError> {
        let held = match url.strip_prefix("sqlite://") {
            Some(file) => lock_file(&folder.join(file))?,
            None => hold_session(url, options, lost)?,
        };
        Ok(Self { _held: held })
    }
}

fn lock_file(database: &Path) -> Result<Held, StoreError> {
    // By its true name, or a link to it would be another database.
    let database = true_name(database).unwrap_or_else(|| database.to_owned());
    let mut name = database.clone().into_os_string();
    name.push(".lock");
    let path = PathBuf::from(name);
    let missing = |error: std::io::Error| StoreError::Missing {
        name: database.display().to_string(),
        source: error.into(),
    };
    let open = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let lock = open.map_err(missing)?;
    match lock.try_lock() {
        Ok(()) => Ok(Held::File { _lock: lock }),
        Err(TryLockError::WouldBlock) => Err(StoreError::Taken),
        Err(TryLockError::Error(error)) => Err(missing(error)),
    }
}

/// Of a file that may not be there yet.
fn true_name(file: &Path) -> Option<PathBuf> {
    let whole = file.canonicalize().ok();
    whole.or_else(|| Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?)))
}

fn hold_session(
    url: &str,
    options: &Options,
    lost: impl FnOnce() + Send + 'static,
) -> Result<Held, StoreError> {
    let mut session = postgres::Session::new(url, options)?;
    let (stop, stopped) = channel();
    let mut tries = 1;
    while !session.lock()? {
        if tries == TRIES {
            return Err(StoreError::Taken);
        }
        tries += 1;
        let _ = stopped.recv_timeout(TRY_EVERY);
    }
    let keep = move || {
        while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            // A database that does not answer is nobody's.
            if matches!(session.lock(), Ok(false)) {
                return lost();
            }
        }
    };
    // Nobody waits for its end: the session may be waiting for a server that does not answer.
    let kept = thread::Builder::new().name("database-lock".to_owned()).spawn(keep);
    kept.map_err(|error| StoreError::Unavailable(error.into()))?;
    Ok(Held::Session { _stop: stop })
}
