//! Bytes that a worker received and sent.
//!
//! The kernel counts bytes per interface, and interfaces belong to a network namespace. A process that shares
//! the machine's namespace shares its counters with everybody, so for it there is no such signal: counting
//! the neighbours' traffic would keep it awake for ever.

use std::fs;
use std::io;

/// `None`: it shares our namespace.
pub(crate) fn bytes(pid: i32) -> io::Result<Option<u64>> {
    if fs::read_link(format!("/proc/{pid}/ns/net"))? == fs::read_link("/proc/self/ns/net")? {
        return Ok(None);
    }
    let text = fs::read_to_string(format!("/proc/{pid}/net/dev"))?;
    parse(&text)
        .map(Some)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/net/dev is not as expected"))
}

/// Received and sent, over all interfaces but loopback.
fn parse(text: &str) -> Option<u64> {
    text.lines().skip(2).try_fold(0_u64, |sum, line| {
        let (name, counters) = line.split_once(':')?;
        if name.trim() == "lo" {
            return Some(sum);
        }
        let mut counters = counters.split_ascii_whitespace();
        let received: u64 = counters.next()?.parse().ok()?;
        let sent: u64 = counters.nth(7)?.parse().ok()?;
        sum.checked_add(received)?.checked_add(sent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 999999     100    0    0    0     0          0         0   999999     100    0    0    0     0       0          0
  eth0:    1000      10    0    0    0     0          0         0      234       5    0    0    0     0       0          0
  eth1:1       1    0    0    0     0          0         0      1       1    0    0    0     0       0          0
";

    #[test]
    fn all_interfaces_but_loopback() {
        assert_eq!(parse(DEV), Some(1_236));
        assert_eq!(parse(&DEV.replace("234", "many")), None);
    }

    #[test]
    fn the_machines_own_namespace_is_nobodys() {
        let pid = i32::try_from(std::process::id()).expect("a pid fits");
        assert_eq!(bytes(pid).unwrap(), None);
    }
}
