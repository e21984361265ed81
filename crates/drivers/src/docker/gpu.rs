//! How much of the machine's graphics processors a container uses: the sum over its processes.
//!
//! ```text
//!   every check, and every few seconds ──▶ NVML ──▶ history, by device and process ──▶ each container, since its last check
//! ```
//!
//! NVML is asked for all of them at once and tells each sample once; the driver below it keeps samples for seconds only. So
//! what was seen is kept for everybody, and it is looked between checks as soon as somebody could be read at all. What
//! happened while nobody looked, or a look failed, is unknown: nothing tells it afterwards.

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

/// How far back an answer goes at least, whoever looked before.
const COVERS: Duration = Duration::from_secs(5);

/// How often it is looked between checks.
const LOOK_EVERY: Duration = COVERS;

/// Looks that are further apart than this have a gap between them: one may be late, and the driver keeps samples for
/// seconds only.
const APART: Duration = Duration::from_secs(10);

/// A sample of a moment before the last check may have come after it: an answer serves for a second, and the driver
/// takes its time.
const OVERLAP: Duration = Duration::from_secs(2);

/// NVML answers within milliseconds; one that does not is known to hang.
const WITHIN: Duration = Duration::from_secs(2);

/// What a container uses of the graphics processors.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Use {
    /// Per cent, of all devices together.
    Percent(u32),
    /// So much was seen, and something was not: whether that is enough to be in use is for the policy to say.
    AtLeast { percent: u32, cause: UnknownCause, why: Option<String> },
    /// This machine cannot tell, or not of this container.
    Untold(String),
}

/// A container, as it is asked about.
#[derive(Clone, Debug)]
struct Asked {
    container: String,
    pids: Vec<u32>,
    /// It was given graphics processors, or was seen on one.
    has_gpus: bool,
    /// Since when; `None`: nobody has looked before.
    since: Option<Timestamp>,
}

/// What is known of a container's graphics processors.
#[derive(Debug)]
pub(super) struct Answer {
    /// `None`: nobody can tell.
    pub(super) measure: Option<Measure>,
    /// What went wrong, if it concerns this container.
    pub(super) problem: Option<String>,
    /// It was given some, or was seen on one.
    pub(super) has_gpus: bool,
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
    /// For each device, since when no look at it failed and none was missing.
    unbroken: Vec<Option<Timestamp>>,
    /// The last look that failed, and why.
    failed: Option<(Timestamp, String)>,
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

    /// What a container used, and whether graphics processors are any concern of its.
    fn used(&self, asked: &Asked, now: Timestamp) -> (Use, bool) {
        let mut known = self.look(now);
        let known = &mut *known;
        let crowd = &known.crowd;
        let is_own =
            |process: Process| asked.pids.contains(&process.pid) || crowd.is_of(process, &asked.container);
        let since = asked.since.unwrap_or(now - COVERS);
        let percent = known.history.used(Some(since - OVERLAP), is_own);
        let devices = match &known.latest {
            Some((_, Ok(devices))) => devices.as_slice(),
            Some((_, Err(_))) | None => &[],
        };
        let sits_on = |device: &Device| device.processes.iter().flatten().any(|pid| asked.pids.contains(pid));
        let has_gpus = asked.has_gpus || crowd.has_any_of(&asked.container) || devices.iter().any(sits_on);
        let partly = |cause: UnknownCause, why: Option<String>| {
            // What is wrong with the machine's devices is no concern of those who have none.
            Use::AtLeast { percent, cause, why: why.filter(|_| has_gpus) }
        };
        let told = match &known.latest {
            Some((_, Ok(_))) => {
                // Of a device that cannot be read it matters whether this container is on it.
                let concerns = |device: &Device| device.processes.is_err() || sits_on(device);
                let errors = || devices.iter().filter_map(|device| Some((device, device.error()?)));
                let failure = errors().find(|(_, error)| !error.is_unsupported());
                let concern = errors().find(|(device, _)| concerns(device)).or(errors().next());
                let is_concerned = errors().any(|(device, _)| concerns(device));
                let can_be_read = devices.iter().any(|device| device.error().is_none());
                if let Some((_, error)) = failure {
                    partly(UnknownCause::ProbeFailed, Some(error.to_string()))
                } else if is_concerned || !can_be_read {
                    let why = concern.map_or_else(String::new, |(_, error)| error.to_string());
                    let seen = partly(UnknownCause::ProbeFailed, Some(why.clone()));
                    if percent > 0 { seen } else { Use::Untold(why) }
                } else if asked.since.is_some_and(|since| known.is_broken_since(since)) {
                    let failed = known.failed.as_ref().filter(|(at, _)| *at >= since);
                    let why = failed.map(|(_, why)| format!("it could not be read between checks: {why}"));
                    partly(UnknownCause::FirstSample, why)
                } else {
                    Use::Percent(percent)
                }
            }
            Some((_, Err(error))) if error.is_unsupported() => Use::Untold(error.to_string()),
            Some((_, Err(error))) => partly(UnknownCause::ProbeFailed, Some(error.to_string())),
            None => Use::Untold("nobody has looked".to_owned()),
        };
        (told, has_gpus)
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
        let is_next = self.latest.as_ref().is_some_and(|(at, _)| now >= *at && now.since(*at) <= APART);
        if !is_next {
            self.unbroken.clear();
        }
        let devices = match answer {
            Ok(devices) => devices,
            Err(error) => {
                self.unbroken.clear();
                self.failed = Some((now, error.to_string()));
                return;
            }
        };
        self.unbroken.resize(devices.len(), None);
        let mut present = Vec::new();
        for (index, (device, unbroken)) in devices.iter().zip(&mut self.unbroken).enumerate() {
            if let Some(error) = device.error() {
                if unbroken.take().is_some() {
                    self.failed = Some((now, error.to_string()));
                }
            } else {
                unbroken.get_or_insert(now - COVERS);
            }
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

    /// Whether something may have been used since then of a device that can be read now, and nobody saw it.
    fn is_broken_since(&self, since: Timestamp) -> bool {
        self.unbroken.iter().flatten().any(|unbroken| *unbroken > since)
    }
}

/// What a container used since then.
pub(super) async fn of(
    inside: &Arc<Inside>,
    container: &str,
    paths: &Paths,
    has_gpus: bool,
    since: Option<Timestamp>,
) -> Answer {
    let at = inside.now();
    let failed = |why: String| Answer {
        measure: Some(Measure::Unknown(UnknownCause::ProbeFailed)),
        problem: has_gpus.then_some(why),
        has_gpus,
    };
    let pids: Vec<u32> = match paths.pids() {
        Ok(pids) => pids.into_iter().collect(),
        Err(error) => return failed(format!("its processes cannot be listed: {error}")),
    };
    let asked = Asked { container: container.to_owned(), pids, has_gpus, since };
    let gpus = Arc::clone(inside);
    let used = inside.engine.block(move || gpus.gpus.used(&asked, at)).await;
    if inside.gpus.begin_to_watch() {
        watch(inside);
    }
    let Some((used, has_gpus)) = used else { return failed("the driver is being closed".to_owned()) };
    let (measure, problem) = match used {
        Use::Percent(percent) => (Some(Measure::Level { value: f64::from(percent), at }), None),
        Use::AtLeast { percent, cause, why } => {
            (Some(Measure::AtLeast { value: f64::from(percent), at, cause }), why)
        }
        Use::Untold(why) => (None, has_gpus.then_some(why)),
    };
    Answer { measure, problem, has_gpus }
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
