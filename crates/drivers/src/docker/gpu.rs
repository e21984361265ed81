//! How much of the machine's graphics processors a container uses: the sum over its processes.
//!
//! NVML is asked for all of them at once, so one answer serves everybody who asks within a moment.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::signal::UnknownCause;
use drowse_sensors::container::Paths;
use drowse_sensors::gpu::{ByProcess, GpuError, Reader};

use super::Inside;
use crate::driver::Measure;

/// For how long an answer serves. The figures in it cover five seconds.
const SERVES_FOR: Duration = Duration::from_secs(1);

/// NVML answers within milliseconds; one that does not is known to hang.
const WITHIN: Duration = Duration::from_secs(2);

/// Whoever uses more than this of the devices that can be read is in use, whatever the others would tell.
const SURELY_IN_USE: f64 = 5.0;

type Answer = Result<Vec<Result<ByProcess, GpuError>>, GpuError>;

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
    latest: Option<(Timestamp, Arc<Answer>)>,
}

impl Gpus {
    pub(super) fn new(library: Option<PathBuf>) -> Self {
        Self { library, known: Mutex::default() }
    }

    /// Blocks for as long as NVML takes.
    fn ask(&self, now: Timestamp) -> Arc<Answer> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, answer)) = &known.latest
            && now >= *at
            && now.since(*at) < SERVES_FOR
        {
            return Arc::clone(answer);
        }
        if known.reader.is_none() {
            known.reader = Reader::start(self.library.clone()).ok();
        }
        let answer = known.reader.as_mut().map_or(Err(GpuError::Ended), |reader| reader.by_device(WITHIN));
        let answer = Arc::new(answer);
        known.latest = Some((now, Arc::clone(&answer)));
        answer
    }
}

/// `None`: this machine cannot tell at all.
pub(super) async fn of(inside: &Arc<Inside>, paths: &Paths) -> Option<Measure> {
    let (asked, at) = (Arc::clone(inside), inside.now());
    let answer = inside.engine.block(move || asked.gpus.ask(at)).await;
    let Some(answer) = answer else { return Some(Measure::Unknown(UnknownCause::ProbeFailed)) };
    let devices = match answer.as_ref() {
        Ok(devices) => devices,
        Err(error) if error.is_unsupported() => return None,
        Err(_) => return Some(Measure::Unknown(UnknownCause::ProbeFailed)),
    };
    let Ok(pids) = paths.pids() else { return Some(Measure::Unknown(UnknownCause::ProbeFailed)) };
    let used = |device: &ByProcess| pids.iter().filter_map(|pid| device.get(pid)).sum::<f64>();
    let value: f64 = devices.iter().flatten().map(used).sum();
    let errors: Vec<&GpuError> = devices.iter().filter_map(|device| device.as_ref().err()).collect();
    if errors.is_empty() || value > SURELY_IN_USE {
        return Some(Measure::Level { value, at });
    }
    let is_unsupported = errors.iter().all(|error| error.is_unsupported());
    (!is_unsupported).then_some(Measure::Unknown(UnknownCause::ProbeFailed))
}
