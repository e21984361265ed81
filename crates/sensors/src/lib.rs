//! The eyes of Drowse: what containers and graphics processors are doing.
//!
//! A sensor decides nothing. It reads what the system tells and says what could not be read, one by one: a
//! figure that is missing is an error with a name, never a zero, because a zero would put somebody to sleep.
//!
//! Everything here is plain synchronous code that may wait for the kernel; whoever calls it from an async runtime
//! does so on a thread. What can hang for good, NVIDIA's library, has a thread of its own: [`gpu::Reader`].
//!
//! - [`container`]: processor time, memory, processes and network bytes of one container, from the kernel's files
//! - [`gpu`]: how much of the graphics processors each process uses, from NVML

pub mod container;
pub mod gpu;
