//! Which call into NVML, and what it answered.

use std::ffi::c_int;
use std::fmt;

/// A call that is under way or went wrong. Devices are numbered as NVML does, from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The library is being loaded.
    Load,
    /// `nvmlInit_v2`
    Init,
    /// `nvmlDeviceGetCount_v2`
    Count,
    /// `nvmlDeviceGetHandleByIndex_v2`
    Handle(u32),
    /// `nvmlDeviceGetProcessUtilization`
    Utilization(u32),
    /// `nvmlDeviceGetComputeRunningProcesses`
    Processes(u32),
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Call::Load => f.write_str("loading the library"),
            Call::Init => f.write_str("nvmlInit_v2"),
            Call::Count => f.write_str("nvmlDeviceGetCount_v2"),
            Call::Handle(device) => write!(f, "nvmlDeviceGetHandleByIndex_v2 for GPU {device}"),
            Call::Utilization(device) => write!(f, "nvmlDeviceGetProcessUtilization for GPU {device}"),
            Call::Processes(device) => write!(f, "nvmlDeviceGetComputeRunningProcesses for GPU {device}"),
        }
    }
}

/// What NVML answers when it does not succeed: `nvmlReturn_t`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code(c_int);

impl Code {
    /// The library was shut down, or never initialised.
    pub const UNINITIALIZED: Self = Self(1);
    /// Something makes no sense.
    pub const INVALID_ARGUMENT: Self = Self(2);
    /// The device or the driver cannot do this; so with MIG.
    pub const NOT_SUPPORTED: Self = Self(3);
    /// Nothing is there to be listed.
    pub const NOT_FOUND: Self = Self(6);
    /// There is more to be listed than there is room for.
    pub const INSUFFICIENT_SIZE: Self = Self(7);
    /// The device fell off the bus.
    pub const GPU_IS_LOST: Self = Self(15);

    pub(super) fn check(answer: c_int) -> Result<(), Self> {
        if answer == 0 { Ok(()) } else { Err(Self(answer)) }
    }

    /// The number.
    pub fn number(self) -> i32 {
        self.0
    }

    fn words(self) -> &'static str {
        match self.0 {
            1 => "not initialised",
            2 => "invalid argument",
            3 => "not supported",
            4 => "no permission",
            6 => "not found",
            7 => "insufficient size",
            8 => "power cables not attached",
            9 => "driver not loaded",
            10 => "timeout",
            11 => "interrupt problem",
            13 => "function not found",
            14 => "corrupted infoROM",
            15 => "GPU is lost",
            16 => "reset required",
            17 => "blocked by the operating system",
            18 => "driver and library versions differ",
            19 => "in use",
            20 => "out of memory",
            21 => "no data",
            23 => "out of resources",
            25 => "argument version mismatch",
            27 => "not ready",
            28 => "no GPU found",
            29 => "invalid state",
            _ => "unknown error",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.words(), self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Code({self})")
    }
}
