//! Death on demand, for the tests of this project.
//!
//! `DROWSE_CRASH_DIR=FOLDER` makes this process write the name of every crash point that it passes to the file
//! `passed` in that folder, and look into `die-at` there before it goes on: a line such as `freeze:after-call 2`
//! kills it, as `kill -9` would, the second time it passes that point after the line was written, and one such as
//! `freeze:after-call 1 stop` lets it stand still there until it gets SIGCONT. Without the variable there is
//! nothing of all this. Whoever can set it can kill the process anyway.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use drowse_server::crash::{CrashPoint, CrashPoints};
use rustix::process::{Signal, getpid, kill_process};

/// Like every variable that begins so, it is not passed on to workers.
const VARIABLE: &str = "DROWSE_CRASH_DIR";

/// Where this process may be made to die: nowhere, unless a test says otherwise.
pub(super) fn points() -> anyhow::Result<CrashPoints> {
    let folder = std::env::var_os(VARIABLE).filter(|folder: &OsString| !folder.is_empty());
    let Some(folder) = folder.map(PathBuf::from) else { return Ok(CrashPoints::default()) };
    let watched =
        Mutex::new(Watched::open(&folder).with_context(|| format!("{VARIABLE}: {}", folder.display()))?);
    Ok(CrashPoints::new(move |point| watched.lock().unwrap_or_else(PoisonError::into_inner).pass(point)))
}

struct Watched {
    passed: File,
    die_at: PathBuf,
    /// What `die-at` said when it was last read, and how often its point has been passed since.
    line: String,
    times: u32,
}

impl Watched {
    fn open(folder: &Path) -> io::Result<Self> {
        let passed = File::options().create(true).append(true).open(folder.join("passed"))?;
        Ok(Self { passed, die_at: folder.join("die-at"), line: String::new(), times: 0 })
    }

    /// Whether the process is dead. Under the lock of its owner: of two threads that come to a point at once, one
    /// is the second.
    fn pass(&mut self, point: CrashPoint) -> bool {
        // A test that cannot be told of a point will miss it and say so.
        let _ = self.passed.write_all(format!("{point}\n").as_bytes());
        let line = fs::read_to_string(&self.die_at).unwrap_or_default();
        if line != self.line {
            self.line = line;
            self.times = 0;
        }
        let mut words = self.line.split_whitespace();
        if words.next() != Some(&point.to_string()) {
            return false;
        }
        self.times += 1;
        let is_due = words.next().and_then(|times| times.parse().ok()) == Some(self.times);
        let only_stops = words.next() == Some("stop");
        if is_due {
            let _ = kill_process(getpid(), if only_stops { Signal::STOP } else { Signal::KILL });
        }
        is_due && !only_stops
    }
}
