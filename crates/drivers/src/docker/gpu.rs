//! How much of the machine's graphics processors a container uses: the sum over its processes.
//!
//! ```text
//!   every check, and every few seconds ──▶ NVML ──▶ history, by device and process ──▶ each container, since its last check
//! ```
//!
//! NVML is asked for all of them at once and tells each sample once; the driver below it keeps samples for seconds only. So
//! what was seen is kept for everybody, and it is looked between checks as soon as somebody could be read at all.

mod crowd;
mod history;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::signal::UnknownCause;
use drowse_sensors::container::Paths;
use drowse_sensors::gpu::{Device, GpuError, Reader};

use super::Inside;
use crate::driver::Measure;
use crowd::{Crowd, Process};
use history::History;

/// For how long an answer serves. The figures in it cover five seconds.
const SERVES_FOR: Duration = Duration::from_secs(1);

/// How often it is looked between checks: as far back as an answer covers at least.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A sample of a moment before the last check may have come after it: an answer serves for a second, and the driver
/// takes its time.
const OVERLAP: Duration = Duration::from_secs(2);

/// NVML answers within milliseconds; one that does not is known to hang.
const WITHIN: Duration = Duration::from_secs(2);

/// Whoever uses more than this of the devices that can be read is in use, whatever the others would tell.
const SURELY_IN_USE: u32 = 5;

/// What a container uses of the graphics processors.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Use {
    /// Per cent, of all devices together.
    Percent(u32),
    /// This machine cannot tell, or not of this container.
    Untold,
    /// It should be told and is not.
    Failed(String),
}

/// The graphics processors.
#[derive(Debug)]
pub(super) struct Gpus {
    library: Option<PathBuf>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Started with the first question.
    reader: Option<Reader>,
    latest: Option<(Timestamp, Result<Vec<Device>, GpuError>)>,
    history: History<Process>,
    crowd: Crowd,
    /// Somebody looks between checks.
    is_watched: bool,
}

impl Gpus {
    pub(super) fn new(library: Option<PathBuf>) -> Self {
        Self { library, known: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks, unless somebody just has. Blocks for as long as NVML takes.
    fn look(&self, now: Timestamp) -> MutexGuard<'_, Known> {
        let mut known = self.lock();
        if let Some((at, _)) = &known.latest
            && now >= *at
            && now.since(*at) < SERVES_FOR
        {
            return known;
        }
        if known.reader.is_none() {
            known.reader = Reader::start(self.library.clone()).ok();
        }
        let answer = known.reader.as_mut().map_or(Err(GpuError::Ended), |reader| reader.look(WITHIN));
        known.take_in(&answer, now);
        known.latest = Some((now, answer));
        known
    }

    /// What the container with this id and these processes used since then.
    fn used(&self, container: &str, pids: &[u32], since: Option<Timestamp>, now: Timestamp) -> Use {
        let mut known = self.look(now);
        let known = &mut *known;
        let devices = match &known.latest {
            Some((_, Ok(devices))) => devices,
            Some((_, Err(error))) => return untold(error),
            None => return Use::Untold,
        };
        let crowd = &known.crowd;
        let is_own = |process: Process| pids.contains(&process.pid) || crowd.is_of(process, container);
        let percent = known.history.used(since.map(|since| since - OVERLAP), is_own);
        if percent > SURELY_IN_USE {
            return Use::Percent(percent);
        }
        // Of a device that cannot be read it matters whether this container is on it.
        let concerns = |device: &Device| match &device.processes {
            Ok(listed) => listed.iter().any(|pid| pids.contains(pid)),
            Err(_) => true,
        };
        let errors = || devices.iter().filter_map(|device| Some((device, device.error()?)));
        if let Some((_, error)) = errors().find(|(_, error)| !error.is_unsupported()) {
            return untold(error);
        }
        let can_be_read = devices.iter().any(|device| device.error().is_none());
        if can_be_read && !errors().any(|(device, _)| concerns(device)) {
            Use::Percent(percent)
        } else {
            Use::Untold
        }
    }

    /// Whether somebody is to look between checks from now on, who was not before.
    fn begin_to_watch(&self) -> bool {
        let mut known = self.lock();
        let can_be_read = matches!(&known.latest, Some((_, Ok(_))));
        can_be_read && !std::mem::replace(&mut known.is_watched, can_be_read)
    }
}

impl Known {
    fn take_in(&mut self, answer: &Result<Vec<Device>, GpuError>, now: Timestamp) {
        let Ok(devices) = answer else { return };
        let mut present = Vec::new();
        for (index, device) in devices.iter().enumerate() {
            present.extend(device.processes.iter().flatten().map(|pid| self.crowd.meet(*pid)));
            for used in device.used.iter().flatten() {
                let process = self.crowd.meet(used.pid);
                self.history.note(index, process, now - used.ago, used.percent);
            }
        }
        self.history.forget_old(now);
        let history = &self.history;
        self.crowd.retain(|process| present.contains(&process) || history.knows(process));
    }
}

fn untold(error: &GpuError) -> Use {
    if error.is_unsupported() { Use::Untold } else { Use::Failed(error.to_string()) }
}

/// What a container used since then; `None`: nobody can tell. What went wrong is told beside it.
pub(super) async fn of(
    inside: &Arc<Inside>,
    container: &str,
    paths: &Paths,
    since: Option<Timestamp>,
) -> (Option<Measure>, Option<String>) {
    let at = inside.now();
    let failed = |why: String| (Some(Measure::Unknown(UnknownCause::ProbeFailed)), Some(why));
    let pids: Vec<u32> = match paths.pids() {
        Ok(pids) => pids.into_iter().collect(),
        Err(error) => return failed(format!("its processes cannot be listed: {error}")),
    };
    let (asked, container) = (Arc::clone(inside), container.to_owned());
    let used = inside.engine.block(move || asked.gpus.used(&container, &pids, since, at)).await;
    if inside.gpus.begin_to_watch() {
        watch(inside);
    }
    match used {
        Some(Use::Percent(percent)) => (Some(Measure::Level { value: f64::from(percent), at }), None),
        Some(Use::Untold) => (None, None),
        Some(Use::Failed(why)) => failed(why),
        None => failed("the driver is being closed".to_owned()),
    }
}

/// Looks between checks, for as long as the driver is there.
fn watch(inside: &Arc<Inside>) {
    let inside_of = Arc::downgrade(inside);
    inside.engine.spawn(async move {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Some(inside) = inside_of.upgrade() else { return };
            let looking = Arc::clone(&inside);
            if inside.engine.block(move || drop(looking.gpus.look(looking.now()))).await.is_none() {
                return;
            }
        }
    });
}
