//! NVIDIA's management library, as far as it is needed: the one file with `unsafe` in it.
//!
//! Signatures and layouts are those of NVIDIA's `nvml.h`. Nothing that the library says about sizes is believed
//! beyond what was allocated for it, and no pointer of the library outlives the call that uses it.

#![expect(
    unsafe_code,
    reason = "NVML is a C library that comes with the driver and is only found at run time"
)]

use std::ffi::{CStr, OsStr, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use super::GpuError;
use super::call::Code;

/// `nvmlDevice_t`: opaque, valid while the library is initialised.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Device(*mut c_void);

/// `nvmlProcessUtilizationSample_t`: what a process used in one sample period of the driver.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) pid: c_uint,
    /// Microseconds since the epoch.
    pub(super) timestamp: c_ulonglong,
    pub(super) compute: c_uint,
    pub(super) memory: c_uint,
    pub(super) encoder: c_uint,
    pub(super) decoder: c_uint,
}

/// `nvmlProcessInfo_v2_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ProcessV2 {
    pid: c_uint,
    used_memory: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct ProcessV1 {
    pid: c_uint,
    used_memory: c_ulonglong,
}

// A layout that is off by a field would show one process's figures as another's.
const _: () = {
    assert!(size_of::<Sample>() == 32 && size_of::<ProcessV2>() == 24 && size_of::<ProcessV1>() == 16);
    assert!(std::mem::offset_of!(Sample, timestamp) == 8 && std::mem::offset_of!(Sample, compute) == 16);
    assert!(std::mem::offset_of!(Sample, memory) == 20 && std::mem::offset_of!(Sample, encoder) == 24);
    assert!(
        std::mem::offset_of!(Sample, decoder) == 28 && std::mem::offset_of!(ProcessV2, gpu_instance) == 16
    );
};

type Plain = unsafe extern "C" fn() -> c_int;
type GetCount = unsafe extern "C" fn(*mut c_uint) -> c_int;
type GetHandle = unsafe extern "C" fn(c_uint, *mut Device) -> c_int;
type GetSamples = unsafe extern "C" fn(Device, *mut Sample, *mut c_uint, c_ulonglong) -> c_int;
type GetProcesses<T> = unsafe extern "C" fn(Device, *mut c_uint, *mut T) -> c_int;

/// Which of its kind a library has. The second version has had one layout since it exists; the third had another one
/// in some drivers, and tells nothing more that is needed here.
#[derive(Clone, Copy, Debug)]
enum ListProcesses {
    V2(GetProcesses<ProcessV2>),
    V1(GetProcesses<ProcessV1>),
}

/// The library, loaded. Not yet initialised.
#[derive(Debug)]
pub(super) struct Library {
    init: Plain,
    shutdown: Plain,
    count: GetCount,
    handle: GetHandle,
    samples: GetSamples,
    processes: ListProcesses,
    /// What the functions above point into: it must live as long as they do.
    _loaded: libloading::Library,
}

impl Library {
    pub(super) fn open(name: &OsStr) -> Result<Self, GpuError> {
        // SAFETY: loading runs the library's initialisers, which is what NVIDIA's library is made for. Whoever names
        // another file vouches for it, as with `LD_LIBRARY_PATH`.
        let loaded = unsafe { libloading::Library::new(name) }.map_err(|error| GpuError::NoLibrary {
            name: name.to_string_lossy().into_owned(),
            reason: reason(&error),
        })?;
        let processes = match symbol(&loaded, c"nvmlDeviceGetComputeRunningProcesses_v2") {
            Ok(function) => ListProcesses::V2(function),
            Err(_) => ListProcesses::V1(symbol(&loaded, c"nvmlDeviceGetComputeRunningProcesses")?),
        };
        Ok(Self {
            init: symbol(&loaded, c"nvmlInit_v2")?,
            shutdown: symbol(&loaded, c"nvmlShutdown")?,
            count: symbol(&loaded, c"nvmlDeviceGetCount_v2")?,
            handle: symbol(&loaded, c"nvmlDeviceGetHandleByIndex_v2")?,
            samples: symbol(&loaded, c"nvmlDeviceGetProcessUtilization")?,
            processes,
            _loaded: loaded,
        })
    }

    pub(super) fn init(&self) -> Result<(), Code> {
        // SAFETY: takes nothing; may be called any number of times, from any thread.
        Code::check(unsafe { (self.init)() })
    }

    pub(super) fn shutdown(&self) -> Result<(), Code> {
        // SAFETY: takes nothing; without a matching `init` it only answers with an error.
        Code::check(unsafe { (self.shutdown)() })
    }

    pub(super) fn count(&self) -> Result<u32, Code> {
        let mut count = 0;
        // SAFETY: `count` is a valid place for the one number that is written.
        Code::check(unsafe { (self.count)(&raw mut count) })?;
        Ok(count)
    }

    pub(super) fn handle(&self, index: u32) -> Result<Device, Code> {
        let mut device = Device(ptr::null_mut());
        // SAFETY: `device` is a valid place for the one handle that is written.
        Code::check(unsafe { (self.handle)(index, &raw mut device) })?;
        Ok(device)
    }

    /// Samples that are newer than `since`, in microseconds since the epoch.
    pub(super) fn samples(&self, device: Device, since: u64) -> Result<Vec<Sample>, Code> {
        let found = list(|count, room| {
            // SAFETY: `device` came from `handle`; `list` says how `count` and `room` fit together. The layout is the
            // one of `nvml.h`, see above. With `room` null the function only writes `count`.
            unsafe { (self.samples)(device, room, count, since) }
        });
        match found {
            // So it says that nobody used the device since then.
            Err(Code::NOT_FOUND) => Ok(Vec::new()),
            other => other,
        }
    }

    /// Everybody with a compute context on the device.
    pub(super) fn processes(&self, device: Device) -> Result<Vec<u32>, Code> {
        match self.processes {
            ListProcesses::V2(function) => {
                // SAFETY: as for `samples`; this version fills 24-byte entries.
                let all: Vec<ProcessV2> = list(|count, room| unsafe { function(device, count, room) })?;
                Ok(all.iter().map(|process| process.pid).collect())
            }
            ListProcesses::V1(function) => {
                // SAFETY: as for `samples`; this version fills 16-byte entries.
                let all: Vec<ProcessV1> = list(|count, room| unsafe { function(device, count, room) })?;
                Ok(all.iter().map(|process| process.pid).collect())
            }
        }
    }
}

/// No driver lists more: a count beyond this is nonsense, and not worth the memory.
const MOST: usize = 1 << 16;
/// Between being asked for the size and for the list, processes start. Each time there is more room than was needed.
const ATTEMPTS: u32 = 8;

/// Asks for a list whose length only the library knows: first without room, then with as much as it said.
///
/// `call` gets a pointer to the number of entries that fit and one to room for as many, or null for none.
fn list<T: Copy + Default>(mut call: impl FnMut(*mut c_uint, *mut T) -> c_int) -> Result<Vec<T>, Code> {
    let mut room: Vec<T> = Vec::new();
    for _ in 0..ATTEMPTS {
        let offered = c_uint::try_from(room.len()).expect("at most 65,536 entries");
        let mut count = offered;
        let start = if room.is_empty() { ptr::null_mut() } else { room.as_mut_ptr() };
        let answer = Code::check(call(&raw mut count, start));
        let said = usize::try_from(count).unwrap_or(usize::MAX);
        match answer {
            Ok(()) if said <= room.len() => {
                room.truncate(said);
                return Ok(room);
            }
            // Asked for the size alone, some answer with success.
            Ok(()) | Err(Code::INSUFFICIENT_SIZE) => {
                let wanted = said.max(room.len()).max(1).saturating_mul(2);
                if said > MOST {
                    return Err(Code::INSUFFICIENT_SIZE);
                }
                room.clear();
                room.resize(wanted.min(MOST), T::default());
            }
            Err(code) => return Err(code),
        }
    }
    Err(Code::INSUFFICIENT_SIZE)
}

/// A function of the library. `T` is the type that `nvml.h` gives it.
fn symbol<T: Copy>(library: &libloading::Library, name: &'static CStr) -> Result<T, GpuError> {
    // SAFETY: the callers above name the function and its type together, from `nvml.h`; the copy is kept beside the
    // library and not used after it.
    let found = unsafe { library.get::<T>(name.to_bytes_with_nul()) };
    let missing = || GpuError::Incomplete { function: name.to_str().unwrap_or("a function") };
    found.map(|function| *function).map_err(|_| missing())
}

/// What the system says, without the variants of the loader.
fn reason(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
