//! What everybody else did to the machine while a benchmark ran: a figure from a busy machine says so.
//!
//! The load average would count the build before the run, and the benchmark itself. So: the time that all
//! processors were busy, less the time that our own children used.

/// Everybody else, during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Neighbours {
    /// The part of the machine's time that they used, between 0 and 1.
    pub(super) share: f64,
}

/// Times in the kernel's ticks, whatever those are: only ratios are made of them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    busy: u64,
    idle: u64,
    children: u64,
}

impl Neighbours {
    /// Runs `work`, which waits for all it starts. `None`: this system does not tell.
    pub(super) fn during<T>(work: impl FnOnce() -> T) -> (T, Option<Self>) {
        let before = Ticks::read();
        let done = work();
        let neighbours = before.zip(Ticks::read()).map(|(before, after)| Self::between(before, after));
        (done, neighbours)
    }

    #[expect(clippy::cast_precision_loss, reason = "ticks of one run are far below 2^52")]
    fn between(before: Ticks, after: Ticks) -> Self {
        let busy = after.busy.saturating_sub(before.busy);
        let idle = after.idle.saturating_sub(before.idle);
        let others = busy.saturating_sub(after.children.saturating_sub(before.children));
        Self { share: others as f64 / (busy + idle).max(1) as f64 }
    }
}

impl Ticks {
    fn read() -> Option<Self> {
        let machine = std::fs::read_to_string("/proc/stat").ok()?;
        let ourselves = std::fs::read_to_string("/proc/self/stat").ok()?;
        Self::parse(&machine, &ourselves)
    }

    fn parse(machine: &str, ourselves: &str) -> Option<Self> {
        let cpu = machine.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let times: Vec<u64> = cpu.split_whitespace().map_while(|time| time.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; the guests' time after them is in `user` already.
        let [user, nice, system, idle, waiting, irq, softirq, steal] = *times.get(..8)? else { return None };
        // After the last bracket: a program's name may contain anything.
        let fields: Vec<&str> = ourselves.rsplit_once(')')?.1.split_whitespace().collect();
        let child = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            busy: user + nice + system + irq + softirq + steal,
            idle: idle + waiting,
            children: child(13)? + child(14)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_used_is_what_we_did_not() {
        let before = Ticks { busy: 100, idle: 100, children: 10 };
        let after = Ticks { busy: 160, idle: 140, children: 40 };
        assert_eq!(Neighbours::between(before, after), Neighbours { share: 0.3 });
    }

    #[test]
    fn the_kernels_files_are_read_by_their_fields() {
        let machine = "cpu  1 2 3 40 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let ourselves = "7 (a (name) b) S 1 7 7 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 1 0 99 1 2\n";
        let read = Ticks::parse(machine, ourselves);
        assert_eq!(read, Some(Ticks { busy: 27, idle: 45, children: 27 }));
        assert_eq!(Ticks::parse("cpu 1 2\n", ourselves), None);
    }
}
