//! Raw values of a container, from the kernel's own files where they can be read, else from the engine, which takes a
//! second for each answer.

use std::sync::Arc;

use drowse_core::Timestamp;
use drowse_core::counter::Total;
use drowse_core::signal::{Signal, UnknownCause};
use drowse_core::worker::Power;
use drowse_sensors::container::{Paths, ReadError};
use rustix::io::Errno;

use super::entry::Entry;
use super::look::Look;
use super::run::check_is_of;
use super::{Inside, gpu, stats};
use crate::driver::{Error, Measure, Measures, Wanted};
use crate::process::established;

/// Why a value is not there, for the rules and for people.
#[derive(Clone, Debug)]
struct Why {
    cause: UnknownCause,
    text: String,
}

impl From<&ReadError> for Why {
    fn from(error: &ReadError) -> Self {
        let cause = match error {
            ReadError::NotOwn { .. } => UnknownCause::NotItsOwn,
            ReadError::NoController { .. } | ReadError::Missing { .. } => UnknownCause::NotCounted,
            ReadError::Failed { errno: Errno::ACCESS | Errno::PERM, .. } => UnknownCause::NotPermitted,
            ReadError::Gone | ReadError::Odd { .. } | ReadError::Failed { .. } => UnknownCause::ProbeFailed,
        };
        let said =
            if let ReadError::Failed { errno, .. } = error { format!(": {errno}") } else { String::new() };
        Self { cause, text: format!("{error}{said}") }
    }
}

/// What is wanted of the engine if the files do not have it.
struct Figures {
    cpu: Result<u64, Why>,
    network: Result<u64, Why>,
    processes: Result<u64, Why>,
}

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
    let paths = entry.paths(|| find(&look));
    let mut at = inside.now();
    let mut memory = None;
    let mut figures = match &paths {
        Ok(paths) => {
            let reading = paths.read();
            memory = reading.memory_bytes.as_ref().ok().copied();
            if reading.cpu_micros == Err(ReadError::Gone) {
                entry.forget_paths();
                return Err(Error::Unreachable { message: "its first process has ended".to_owned() });
            }
            Figures {
                cpu: reading.cpu_micros.map_err(|error| Why::from(&error)),
                network: reading.network_bytes.map_err(|error| Why::from(&error)),
                processes: reading.processes.map_err(|error| Why::from(&error)),
            }
        }
        Err(error) => {
            let why = Why { cause: UnknownCause::NotCounted, text: error.to_string() };
            Figures { cpu: Err(why.clone()), network: Err(why.clone()), processes: Err(why) }
        }
    };
    if figures.lack(wanted) {
        match stats::ask(inside, entry, &look).await {
            Ok(said) => figures.fill(said),
            Err(Error::Gone) => return Err(Error::Gone),
            Err(error) => figures.note(&error),
        }
        at = inside.now();
    }
    let mut measures = Measures::none(look.seen.boot.clone());
    if wanted.wants(Signal::Cpu) {
        put(&mut measures, Signal::Cpu, figures.cpu.map(|value| total(value, at)));
    }
    if wanted.wants(Signal::Network) {
        put(&mut measures, Signal::Network, figures.network.map(|value| total(value, at)));
    }
    if wanted.wants(Signal::Processes) {
        put(&mut measures, Signal::Processes, figures.processes.map(|value| level(value, at)));
    }
    if wanted.wants(Signal::Tcp) {
        let sockets = sockets(inside, paths.as_ref(), wanted.routed_ports).await;
        put(&mut measures, Signal::Tcp, sockets.map(|value| level(value, at)));
    }
    if wanted.wants(Signal::Gpu) {
        // Without them nobody can tell which processes are its own. Whether that matters is for the rules: it does once
        // it was read.
        let has_gpus = look.has_gpus || entry.was_on_gpu(&look.id);
        let answer = match &paths {
            Ok(paths) => gpu::of(inside, &look.id, paths, has_gpus, wanted.since).await,
            Err(error) => {
                gpu::Answer { measure: None, problem: has_gpus.then(|| error.to_string()), has_gpus }
            }
        };
        if answer.has_gpus {
            entry.is_on_gpu(&look.id);
        }
        measures.by_signal[Signal::Gpu as usize] = answer.measure;
        measures.because.extend(answer.problem.map(|problem| (Signal::Gpu, problem)));
        measures.has_gpus = answer.has_gpus;
    }
    measures.memory_bytes = memory;
    Ok(measures)
}

impl Figures {
    /// Whether the engine may have something that is wanted and not there.
    fn lack(&self, wanted: Wanted<'_>) -> bool {
        (wanted.wants(Signal::Cpu) && self.cpu.is_err())
            || (wanted.wants(Signal::Processes) && self.processes.is_err())
            || (wanted.wants(Signal::Network) && !self.is_on_the_machines_network() && self.network.is_err())
    }

    /// What the machine sends and receives is everybody's, whoever counts it. A cgroup that looks like the machine's from
    /// here may be the container's own in the engine's eyes.
    fn is_on_the_machines_network(&self) -> bool {
        self.network.as_ref().is_err_and(|why| why.cause == UnknownCause::NotItsOwn)
    }

    fn fill(&mut self, said: stats::Stats) {
        let is_on_the_machines_network = self.is_on_the_machines_network();
        let mut filled = vec![(&mut self.cpu, said.cpu_micros), (&mut self.processes, said.processes)];
        if !is_on_the_machines_network {
            filled.push((&mut self.network, said.network_bytes));
        }
        for (figure, said) in filled {
            match (&mut *figure, said) {
                (Err(_), Some(value)) => *figure = Ok(value),
                (Err(why), None) => why.text.push_str("; the engine does not count it either"),
                (Ok(_), _) => {}
            }
        }
    }

    fn note(&mut self, error: &Error) {
        for figure in [&mut self.cpu, &mut self.network, &mut self.processes] {
            if let Err(why) = figure {
                why.text = format!("{}; the engine was asked instead: {error}", why.text);
            }
        }
    }
}

async fn sockets(
    inside: &Inside,
    paths: Result<&Arc<Paths>, &Error>,
    routed_ports: &[u16],
) -> Result<u64, Why> {
    let failed = |text: String| Why { cause: UnknownCause::ProbeFailed, text };
    let pids = paths.map_err(|error| failed(error.to_string()))?.pids().map_err(|error| Why::from(&error))?;
    let pids: Vec<_> = pids.into_iter().map(u32::cast_signed).collect();
    let sockets = established(&inside.tables, &pids, routed_ports).await;
    sockets.map_err(|error| failed(error.to_string()))
}

fn find(look: &Look) -> Result<Paths, Error> {
    let cannot = |why: String| Error::Unreachable { message: format!("cannot find its cgroup: {why}") };
    let pid = look.pid.ok_or_else(|| cannot("the engine does not tell its first process".to_owned()))?;
    let paths = Paths::of_container(pid, &look.id).map_err(|error| cannot(error.to_string()))?;
    // Looked at afterwards, as with everything that is found by a number: a stranger's figures would be believed.
    check_is_of(pid, &look.id).map_err(|error| cannot(error.to_string()))?;
    Ok(paths)
}

fn put(measures: &mut Measures, signal: Signal, measure: Result<Measure, Why>) {
    match measure {
        Ok(measure) => measures.set(signal, measure),
        Err(Why { cause, text }) => measures.cannot(signal, cause, text),
    }
}

const fn total(value: u64, at: Timestamp) -> Measure {
    Measure::Total(Total { value, at })
}

#[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 sockets or processes")]
fn level(value: u64, at: Timestamp) -> Measure {
    Measure::Level { value: value as f64, at }
}
