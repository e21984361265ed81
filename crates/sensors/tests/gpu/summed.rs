//! What a look tells, summed by process: what a caller makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use drowse_sensors::gpu::{Device, GpuError, Gpus, Reader, Used};

/// Per cent of one device that a process uses, by the machine's pids. Several devices add up, beyond 100.
pub(crate) type ByProcess = BTreeMap<u32, f64>;

pub(crate) trait Library {
    fn by_process(&mut self) -> Result<ByProcess, GpuError>;
    fn by_device(&mut self) -> Result<Vec<Result<ByProcess, GpuError>>, GpuError>;
}

impl Library for Gpus {
    fn by_process(&mut self) -> Result<ByProcess, GpuError> {
        sum(by_device(self.look()?))
    }

    fn by_device(&mut self) -> Result<Vec<Result<ByProcess, GpuError>>, GpuError> {
        self.look().map(by_device)
    }
}

pub(crate) trait Thread {
    fn by_process(&mut self, within: Duration) -> Result<ByProcess, GpuError>;
}

impl Thread for Reader {
    fn by_process(&mut self, within: Duration) -> Result<ByProcess, GpuError> {
        sum(by_device(self.look(within)?))
    }
}

fn sum(devices: Vec<Result<ByProcess, GpuError>>) -> Result<ByProcess, GpuError> {
    let mut sum = ByProcess::new();
    let mut unsupported = None;
    for device in devices {
        match device {
            Ok(processes) => {
                for (pid, percent) in processes {
                    *sum.entry(pid).or_default() += percent;
                }
            }
            // A failure goes first: it is news, and the other is not.
            Err(error) if error.is_unsupported() => unsupported = unsupported.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    unsupported.map_or(Ok(sum), Err)
}

fn by_device(devices: Vec<Device>) -> Vec<Result<ByProcess, GpuError>> {
    let usage = |device: Device| Ok(usage(&device.processes?, &device.used?));
    devices.into_iter().map(usage).collect()
}

/// Joins the processes of a device with what they used.
fn usage(listed: &BTreeSet<u32>, used: &[Used]) -> ByProcess {
    let mut usage: ByProcess = listed.iter().map(|pid| (*pid, 0.0)).collect();
    for used in used {
        // Of several samples the busiest: they come from a stretch in which one burst is enough to be in use.
        let known = usage.entry(used.pid).or_default();
        *known = known.max(f64::from(used.percent));
    }
    usage
}
