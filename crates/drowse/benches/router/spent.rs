//! How much processor time the processes of a proxy have used.

use std::fs;
use std::time::Duration;

/// At one moment.
pub(crate) struct Spent {
    pids: Vec<u32>,
    exact: Duration,
    ticks: Duration,
}

/// A clock tick: `_SC_CLK_TCK` is 100 on every Linux that there is.
const TICK: Duration = Duration::from_millis(10);

impl Spent {
    pub(crate) fn by(pids: &[u32]) -> Self {
        let sum = |of: fn(u32) -> Duration| pids.iter().map(|pid| of(*pid)).sum();
        Self { pids: pids.to_vec(), exact: sum(threads), ticks: sum(process) }
    }

    /// Since then.
    pub(crate) fn since(&self) -> Duration {
        let now = Self::by(&self.pids);
        let exact = now.exact.saturating_sub(self.exact);
        // Threads that have ended meanwhile are in these only, which are coarse.
        let ticks = now.ticks.saturating_sub(self.ticks).saturating_sub(2 * TICK);
        exact.max(ticks)
    }
}

/// To the nanosecond, of all threads that live.
fn threads(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").flatten();
    let spent = |task: fs::DirEntry| -> Option<u64> {
        fs::read_to_string(task.path().join("schedstat")).ok()?.split(' ').next()?.parse().ok()
    };
    tasks.filter_map(spent).map(Duration::from_nanos).sum()
}

/// In ticks, of all threads that live and lived.
fn process(pid: u32) -> Duration {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields: Vec<&str> = text.rsplit_once(')').expect("a name in brackets").1.split_whitespace().collect();
    let ticks: u32 = [11, 12].iter().map(|index| fields[*index].parse::<u32>().expect("a number")).sum();
    TICK * ticks
}
