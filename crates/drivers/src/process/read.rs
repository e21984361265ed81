//! Raw values of a run: processor time, sockets, bytes, processes.

use std::io;

use drowse_core::counter::Total;
use drowse_core::signal::{Signal, UnknownCause};
use drowse_core::worker::Power;

use super::entry::{Entry, cannot};
use super::{Inside, network, sockets};
use crate::driver::{Error, Measure, Measures, Wanted};

/// Each value on its own: one that cannot be read is unknown and does not spoil the others.
pub(super) async fn read(inside: &Inside, entry: &Entry, wanted: Wanted<'_>) -> Result<Measures, Error> {
    let seen = entry.look(inside.now())?;
    let (main, cage) = match (seen.power, entry.whereabouts()) {
        (Power::Gone, _) => return Err(Error::Gone),
        (Power::Running | Power::Paused, Some(whereabouts)) => whereabouts,
        (Power::Running | Power::Paused | Power::Stopped, _) => {
            return Err(Error::refused("it does not run"));
        }
    };
    let mut measures = Measures::none(seen.boot);
    if wanted.wants(Signal::Cpu) {
        let at = inside.now();
        measures.set(Signal::Cpu, total(cage.cpu_micros(&main), at));
    }
    if wanted.wants(Signal::Network) {
        let at = inside.now();
        // `None`: it shares the machine's interfaces, so it has no such signal.
        if let Some(bytes) = network::bytes(main.pid).transpose() {
            measures.set(Signal::Network, total(bytes, at));
        }
    }
    if wanted.wants(Signal::Tcp) || wanted.wants(Signal::Processes) {
        let at = inside.now();
        let pids = cage.pids(&main).map_err(cannot("count its processes"))?;
        if wanted.wants(Signal::Processes) {
            measures.set(Signal::Processes, level(Ok(pids.len() as u64), at));
        }
        if wanted.wants(Signal::Tcp) {
            let sockets = sockets::established(&inside.tables, &pids, wanted.routed_ports);
            measures.set(Signal::Tcp, level(sockets.await, at));
        }
    }
    Ok(measures)
}

fn total(read: io::Result<u64>, at: drowse_core::Timestamp) -> Measure {
    read.map_or(Measure::Unknown(UnknownCause::ProbeFailed), |value| Measure::Total(Total { value, at }))
}

#[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 sockets or processes")]
fn level(read: io::Result<u64>, at: drowse_core::Timestamp) -> Measure {
    read.map_or(Measure::Unknown(UnknownCause::ProbeFailed), |value| Measure::Level {
        value: value as f64,
        at,
    })
}
