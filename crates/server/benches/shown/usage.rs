//! How much processor time a process has used.

use std::time::Duration;

/// At one moment, of one process: "self" or its number.
pub(crate) struct Usage {
    process: String,
    used: Duration,
}

impl Usage {
    pub(crate) fn of(process: &str) -> Self {
        // User and system time of all threads that live and lived.
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
        let fields: Vec<&str> =
            text.rsplit_once(')').expect("a name in brackets").1.split_whitespace().collect();
        let ticks: u64 = [11, 12].iter().map(|index| fields[*index].parse::<u64>().expect("a number")).sum();
        // `_SC_CLK_TCK` is 100 on every Linux that there is.
        Self { process: process.to_owned(), used: Duration::from_millis(ticks * 10) }
    }

    pub(crate) fn cpu_since(&self) -> Duration {
        Self::of(&self.process).used.saturating_sub(self.used)
    }
}
