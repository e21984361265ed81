//! The hands of Drowse: what observes workers and acts on them.
//!
//! A [`Driver`] decides nothing. It is told to make something so, makes it so or says why not, and tells
//! what it sees with the time at which it began to look. Which worker sleeps when is a matter of
//! `drowse-core`; what is remembered is a matter of the store, which this crate does not know.
//!
//! - [`driver`]: the trait and its vocabulary
//! - [`hint`]: what a driver says unasked
//! - [`docker`]: containers of a Docker engine
//! - [`process`]: plain processes on this machine
//! - [`sim`]: a seeded world without real time, for simulations and tests

pub mod docker;
pub mod driver;
pub mod hint;
pub mod process;
pub mod sim;

pub use driver::{
    Acted, Answer, Driver, Error, Found, Hook, HookEnd, Located, Measure, Measures, Run, Seen, Spec, Stop,
    Terminate, Told, Wanted,
};
pub use hint::Hint;

/// `drowse thaw --all`: lets everything go on that was frozen by a Drowse with this data folder, without server or database.
/// Blocks, and must not be called on a runtime.
pub fn thaw_all(data_dir: &std::path::Path) -> std::io::Result<Vec<process::Thawed>> {
    let mut thawed = process::thaw_all(data_dir)?;
    thawed.extend(docker::thaw_all(data_dir)?);
    Ok(thawed)
}
