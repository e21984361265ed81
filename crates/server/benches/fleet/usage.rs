//! How much processor time this process has used.

use std::time::Duration;

/// At one moment.
pub(crate) struct Usage(Duration);

impl Usage {
    pub(crate) fn read() -> Self {
        // User and system time, in nanoseconds of all threads that live and lived.
        let text = std::fs::read_to_string("/proc/self/stat").expect("Linux");
        let fields: Vec<&str> =
            text.rsplit_once(')').expect("a name in brackets").1.split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().map(|index| fields[*index].parse::<u64>().expect("a number")).sum();
        // `_SC_CLK_TCK` is 100 on every Linux that there is.
        Self(Duration::from_millis(ticks * 10))
    }

    pub(crate) fn cpu_since(&self) -> Duration {
        Self::read().0.saturating_sub(self.0)
    }
}
