//! Raw values of a container, from the kernel's own files: the engine takes a second for each answer.

use std::sync::Arc;

use drowse_core::Timestamp;
use drowse_core::counter::Total;
use drowse_core::signal::{Signal, UnknownCause};
use drowse_core::worker::Power;
use drowse_sensors::container::{Paths, ReadError};

use super::entry::Entry;
use super::look::Look;
use super::{Inside, gpu};
use crate::driver::{Error, Measure, Measures, Wanted};
use crate::process::established;

/// Each value on its own: one that cannot be read is unknown and does not spoil the others.
pub(super) async fn read(inside: &Arc<Inside>, entry: &Entry, wanted: Wanted<'_>) -> Result<Measures, Error> {
    // Whoever reads has just looked; if that is old news by now, its first process is gone and nothing is read.
    let look = match entry.last().filter(|look| look.seen.power == Power::Running) {
        Some(look) => look,
        None => entry.look(inside).await?,
    };
    match look.seen.power {
        Power::Gone => return Err(Error::Gone),
        Power::Stopped => return Err(Error::refused("it does not run")),
        Power::Running | Power::Paused => {}
    }
    let paths = entry.paths(|| find(&look))?;
    let mut measures = Measures::none(look.seen.boot.clone());
    let at = inside.now();
    let reading = paths.read();
    if reading.cpu_micros == Err(ReadError::Gone) {
        entry.forget_paths();
        return Err(Error::Unreachable { message: "its first process has ended".to_owned() });
    }
    if wanted.wants(Signal::Cpu) {
        measures.set(Signal::Cpu, total(&reading.cpu_micros, at));
        measures.note(Signal::Cpu, reading.cpu_micros.as_ref().err());
    }
    // One that shares the machine's interfaces has no such signal: the traffic of others says nothing about it.
    let is_own = !reading.network_bytes.as_ref().is_err_and(ReadError::is_not_own);
    if wanted.wants(Signal::Network) && is_own {
        measures.set(Signal::Network, total(&reading.network_bytes, at));
        measures.note(Signal::Network, reading.network_bytes.as_ref().err());
    }
    if wanted.wants(Signal::Processes) {
        measures.set(Signal::Processes, level(reading.processes.ok(), at));
    }
    if wanted.wants(Signal::Tcp) {
        let pids = paths.pids().ok().map(|pids| pids.into_iter().map(u32::cast_signed).collect::<Vec<_>>());
        let sockets = match pids {
            Some(pids) => established(&inside.tables, &pids, wanted.routed_ports).await.ok(),
            None => None,
        };
        measures.set(Signal::Tcp, level(sockets, at));
    }
    if wanted.wants(Signal::Gpu) {
        let (measure, problem) = gpu::of(inside, &look.id, &paths, wanted.since).await;
        measures.by_signal[Signal::Gpu as usize] = measure;
        measures.problems.extend(problem.map(|problem| (Signal::Gpu, problem)));
    }
    measures.memory_bytes = reading.memory_bytes.ok();
    Ok(measures)
}

fn find(look: &Look) -> Result<Paths, Error> {
    let cannot = |why: String| Error::Unreachable { message: format!("cannot find its cgroup: {why}") };
    let pid = look.pid.ok_or_else(|| cannot("the engine does not tell its first process".to_owned()))?;
    Paths::of_container(pid, &look.id).map_err(|error| cannot(error.to_string()))
}

fn total(read: &Result<u64, ReadError>, at: Timestamp) -> Measure {
    match read {
        Ok(value) => Measure::Total(Total { value: *value, at }),
        Err(_) => Measure::Unknown(UnknownCause::ProbeFailed),
    }
}

#[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 sockets or processes")]
fn level(read: Option<u64>, at: Timestamp) -> Measure {
    read.map_or(Measure::Unknown(UnknownCause::ProbeFailed), |value| Measure::Level {
        value: value as f64,
        at,
    })
}
