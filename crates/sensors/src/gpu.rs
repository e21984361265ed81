//! How much of the graphics processors each process uses.
//!
//! NVIDIA's NVML tells it for each device and process; which process belongs to which container is for the caller, who
//! has [`crate::container::Paths::pids`]. NVML must run in the machine's own pid namespace for the numbers to agree.
//!
//! What must stay true: an answer covers every device that there is. A device that fails is in it with an error that names
//! device and call, because its processes might be the busy ones.
//!
//! Under MPS several processes can share one context, and a driver may tell what they use under the pid of the server:
//! whoever runs containers that way should not rely on this signal alone.
//!
//! Calls into NVML can hang for good, in the driver, out of reach of any signal. [`Reader`] bounds that.

mod call;
mod nvml;
mod reader;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use call::Call as At;
use nvml::{Library, Sample};
use reader::Progress;

pub use call::{Call, Code};
pub use reader::Reader;

/// One device, as a look found it.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// Everybody with a compute context on it.
    pub processes: Result<BTreeSet<u32>, GpuError>,
    /// What was used since the last look, and for five seconds at least. Not told by a device with MIG.
    pub used: Result<Vec<Used>, GpuError>,
}

impl Device {
    /// Why it does not tell what is used of it, or by whom.
    pub fn error(&self) -> Option<&GpuError> {
        self.processes.as_ref().err().or(self.used.as_ref().err())
    }
}

/// That a process used a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Used {
    /// As this machine numbers it.
    pub pid: u32,
    /// How long ago.
    pub ago: Duration,
    /// How much of it.
    pub percent: u32,
}

/// As the driver's package installs it.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// The least that an answer looks back, in microseconds.
///
/// An answer covers the time since the last one, and one that is asked for soon after another must not say that nobody
/// is busy only because the driver has taken no new sample. It takes one to six a second.
const LOOK_BACK: u64 = 5_000_000;

/// No machine has more devices: a count beyond this is nonsense.
const MOST: usize = 4096;

/// NVML, loaded and initialised.
#[derive(Debug)]
pub struct Gpus {
    library: Library,
    is_initialised: bool,
    /// The newest sample that each device has shown.
    newest: Vec<u64>,
    progress: Arc<Progress>,
}

/// Why nothing is known of graphics processors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// No NVML on this machine: no driver by NVIDIA, most likely.
    #[error("no NVML: {name} cannot be loaded: {reason}")]
    NoLibrary {
        /// What was looked for.
        name: String,
        /// What the system said.
        reason: String,
    },
    /// An NVML that is too old, or no NVML at all.
    #[error("NVML has no function {function}")]
    Incomplete {
        /// The function.
        function: &'static str,
    },
    /// NVML works and there is no device.
    #[error("NVML knows no GPU")]
    NoDevice,
    /// The device does not tell by process, as with MIG.
    #[error("{call}: not supported (MIG?)")]
    NotSupported {
        /// What was asked.
        call: Call,
    },
    /// NVML failed.
    #[error("{call}: {code}")]
    Failed {
        /// What was asked.
        call: Call,
        /// What it answered.
        code: Code,
    },
    /// A device that was there before is not listed any more. It stays an error until NVML is loaded again: who took the
    /// device away on purpose starts Drowse again.
    #[error("there were {before} GPUs and now there are {now}")]
    Vanished {
        /// How many there were.
        before: usize,
        /// How many there are.
        now: usize,
    },
    /// NVML did not answer in time, or has not answered since an earlier question.
    #[error("{call}: no answer in time")]
    Hung {
        /// Where it hangs.
        call: Call,
    },
    /// The thread that talks to NVML ended by a defect of ours.
    #[error("the thread that reads GPUs has ended")]
    Ended,
}

impl GpuError {
    /// Whether this machine cannot tell at all, rather than failed to tell this time.
    pub fn is_unsupported(&self) -> bool {
        match self {
            GpuError::NoLibrary { .. }
            | GpuError::Incomplete { .. }
            | GpuError::NoDevice
            | GpuError::NotSupported { .. } => true,
            GpuError::Failed { .. } | GpuError::Vanished { .. } | GpuError::Hung { .. } | GpuError::Ended => {
                false
            }
        }
    }

    fn at(call: Call) -> impl FnOnce(Code) -> Self {
        move |code| match code {
            Code::NOT_SUPPORTED => GpuError::NotSupported { call },
            code => GpuError::Failed { call, code },
        }
    }
}

impl Gpus {
    /// Loads and initialises NVML: the file `path`, or the one that the driver installed.
    ///
    /// Whoever names a file vouches for it: its code runs in this process.
    pub fn load(path: Option<&Path>) -> Result<Self, GpuError> {
        Self::load_watched(path, Arc::default())
    }

    fn load_watched(path: Option<&Path>, progress: Arc<Progress>) -> Result<Self, GpuError> {
        let library = progress
            .during(Call::Load, || Library::open(path.map_or(OsStr::new(LIBRARY), Path::as_os_str)))?;
        let mut gpus = Self { library, is_initialised: false, newest: Vec::new(), progress };
        gpus.devices()?;
        Ok(gpus)
    }

    /// Each device with who is on it and what has been used since the last look.
    ///
    /// What one look has told, the next does not tell again: whoever asks for several keeps it for all of them.
    pub fn look(&mut self) -> Result<Vec<Device>, GpuError> {
        let count = self.devices()?;
        let now = micros_now();
        let all = (0_u32..).zip(0..count).map(|(index, _)| self.device(index, now)).collect::<Vec<_>>();
        // Somebody else's reset or an upgraded driver: next time from the beginning.
        let lost = |error: &GpuError| matches!(error, GpuError::Failed { code: Code::UNINITIALIZED, .. });
        let is_lost = |device: &Device| {
            device.processes.as_ref().is_err_and(lost) || device.used.as_ref().is_err_and(lost)
        };
        self.is_initialised = !all.iter().any(is_lost);
        Ok(all)
    }

    /// How many there are, which must not become fewer.
    fn devices(&mut self) -> Result<usize, GpuError> {
        if !self.is_initialised {
            self.progress.during(At::Init, || self.library.init()).map_err(GpuError::at(At::Init))?;
            self.is_initialised = true;
        }
        let count = self.progress.during(At::Count, || self.library.count()).map_err(|code| {
            self.is_initialised = code != Code::UNINITIALIZED;
            GpuError::at(At::Count)(code)
        })?;
        let (now, before) = (usize::try_from(count).unwrap_or(usize::MAX), self.newest.len());
        if now > MOST {
            return Err(GpuError::Failed { call: At::Count, code: Code::INVALID_ARGUMENT });
        }
        if now < before {
            return Err(GpuError::Vanished { before, now });
        }
        if now == 0 {
            return Err(GpuError::NoDevice);
        }
        self.newest.resize(now, 0);
        Ok(now)
    }

    fn device(&mut self, index: u32, now: u64) -> Device {
        let newest = usize::try_from(index).ok().and_then(|index| self.newest.get_mut(index));
        let newest = newest.expect("`devices` made room for each");
        let (library, progress) = (&self.library, &self.progress);
        // Handles are asked for each time: they are worth nothing after a device was reset.
        let handle = At::Handle(index);
        let device = match progress.during(handle, || library.handle(index)).map_err(GpuError::at(handle)) {
            Ok(device) => device,
            Err(error) => return Device { processes: Err(error.clone()), used: Err(error) },
        };
        let call = At::Processes(index);
        let listed = progress.during(call, || library.processes(device)).map_err(GpuError::at(call));
        let call = At::Utilization(index);
        let since = (*newest).min(now.saturating_sub(LOOK_BACK));
        let samples = progress.during(call, || library.samples(device, since)).map_err(GpuError::at(call));
        if let Ok(samples) = &samples {
            // A stamp from the future would hide what comes until then.
            *newest = samples.iter().map(|sample| sample.timestamp.min(now)).fold(*newest, u64::max);
        }
        Device {
            // Entries that the driver did not fill have no pid.
            processes: listed.map(|listed| listed.into_iter().filter(|pid| *pid != 0).collect()),
            used: samples.map(|samples| samples.iter().filter_map(|sample| Used::of(sample, now)).collect()),
        }
    }
}

impl Used {
    fn of(sample: &Sample, now: u64) -> Option<Self> {
        // Whoever only encodes video is busy too. More than all of it is nonsense that some drivers tell, but surely
        // not idleness.
        let parts = [sample.compute, sample.memory, sample.encoder, sample.decoder];
        let percent = parts.into_iter().fold(0, u32::max).min(100);
        let ago = Duration::from_micros(now.saturating_sub(sample.timestamp));
        (sample.pid != 0).then_some(Self { pid: sample.pid, ago, percent })
    }
}

impl Drop for Gpus {
    fn drop(&mut self) {
        if self.is_initialised {
            // There is nobody to tell, and nothing depends on it.
            let _ = self.library.shutdown();
        }
    }
}

/// On the clock that the driver stamps its samples with.
#[expect(clippy::disallowed_methods, reason = "compared with nothing but the driver's own stamps")]
fn micros_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(pid: u32, compute: u32, encoder: u32) -> Option<Used> {
        Used::of(&Sample { pid, timestamp: 1, compute, memory: 0, encoder, decoder: 0 }, 2)
    }

    #[test]
    fn the_busiest_part_counts_and_nonsense_is_not_idleness() {
        let percent = |compute, encoder| used(8, compute, encoder).map(|used| used.percent);
        assert_eq!(percent(40, 0), Some(40));
        assert_eq!(percent(3, 60), Some(60));
        assert_eq!(percent(u32::MAX, 0), Some(100));
        assert_eq!(used(0, 99, 99), None, "nobody has that number");
    }
}
