//! What the engine itself counts of a container, where the kernel's files cannot be read from here: another layout of
//! cgroups, another machine behind the socket.
//!
//! An answer takes the engine a second, so it is asked only then, and only so many times at once.

use std::sync::Arc;
use std::time::Duration;

use bollard::models::ContainerStatsResponse;

use super::Inside;
use super::entry::Entry;
use super::look::{Look, Network};
use crate::driver::{Error, bounded};

/// How long one answer may take, the wait for a turn included.
const ANSWERED_WITHIN: Duration = Duration::from_secs(6);

/// How many are asked for at once: each keeps the engine busy for a second.
pub(super) const AT_ONCE: usize = 32;

/// Running totals of one run, as far as the engine tells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stats {
    pub(super) cpu_micros: Option<u64>,
    pub(super) network_bytes: Option<u64>,
    pub(super) processes: Option<u64>,
}

/// Asks the engine about this run.
pub(super) async fn ask(inside: &Arc<Inside>, entry: &Entry, look: &Look) -> Result<Stats, Error> {
    let asking = async {
        let _turn = inside.stats.acquire().await;
        inside.engine.stats(&look.id).await
    };
    let said = bounded(ANSWERED_WITHIN, asking).await?;
    // Of a container that does not run it says zeros, and of one that was started meanwhile what that one used.
    if !entry.peek(inside).await?.is_same_run(look) {
        return Err(Error::Unreachable { message: "it was started or stopped meanwhile".to_owned() });
    }
    Ok(of(&said, look.network))
}

fn of(said: &ContainerStatsResponse, network: Network) -> Stats {
    let cpu = said.cpu_stats.as_ref().and_then(|cpu| cpu.cpu_usage.as_ref()?.total_usage);
    let bytes = said.networks.as_ref().filter(|networks| !networks.is_empty()).and_then(|networks| {
        let of_all = networks.values().map(|one| Some(one.rx_bytes?.saturating_add(one.tx_bytes?)));
        of_all.sum::<Option<u64>>()
    });
    Stats {
        cpu_micros: cpu.map(|nanos| nanos / 1_000),
        network_bytes: match network {
            // There is nothing to count, and the engine leaves it out.
            Network::None => Some(0),
            // The machine's, and so everybody's.
            Network::Machine => None,
            Network::Own => bytes,
        },
        processes: said.pids_stats.as_ref().and_then(|pids| pids.current),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(text: &str, network: Network) -> Stats {
        of(&serde_json::from_str(text).expect("an answer"), network)
    }

    #[test]
    fn what_the_engine_does_not_tell_is_not_zero() {
        let all = r#"{"cpu_stats":{"cpu_usage":{"total_usage":5000}},"pids_stats":{"current":3},
            "networks":{"eth0":{"rx_bytes":1,"tx_bytes":2},"eth1":{"rx_bytes":4,"tx_bytes":8}}}"#;
        let whole = Stats { cpu_micros: Some(5), network_bytes: Some(15), processes: Some(3) };
        assert_eq!(stats(all, Network::Own), whole);
        assert_eq!(stats(all, Network::Machine), Stats { network_bytes: None, ..whole });
        for text in ["{}", r#"{"cpu_stats":{},"networks":{},"pids_stats":{}}"#] {
            assert_eq!(stats(text, Network::Own), Stats::default(), "{text}");
            assert_eq!(stats(text, Network::None).network_bytes, Some(0), "{text}");
        }
        let half = r#"{"networks":{"eth0":{"rx_bytes":1},"eth1":{"rx_bytes":4,"tx_bytes":8}}}"#;
        assert_eq!(stats(half, Network::Own), Stats::default());
    }
}
