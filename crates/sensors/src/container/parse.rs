//! What the kernel's files say. Pure: text in, number out, `None` for anything unexpected.

/// A file that holds one number and nothing else: `cpuacct.usage`, `memory.current`, `pids.current`.
pub(super) fn number(text: &str) -> Option<u64> {
    digits(text.trim_ascii())
}

/// The value of `key` in a flat keyed file such as `cpu.stat` or `memory.stat`.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    digits(value.trim_ascii())
}

/// Received and sent bytes over all interfaces but loopback, from `/proc/PID/net/dev`.
///
/// A namespace with no interface but loopback moves no bytes, and that is known: zero. A file without its two
/// heading lines was not read.
pub(super) fn network(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let headings = [lines.next()?, lines.next()?];
    if !headings[1].contains("bytes") {
        return None;
    }
    lines.try_fold(0_u64, |sum, line| {
        // At the last colon: counters have none.
        let (name, counters) = line.rsplit_once(':')?;
        if name.trim() == "lo" {
            return Some(sum);
        }
        let mut counters = counters.split_ascii_whitespace();
        let received = digits(counters.next()?)?;
        let sent = digits(counters.nth(7)?)?;
        sum.checked_add(received)?.checked_add(sent)
    })
}

/// What `/proc/PID/stat` says about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// It started that many ticks after the machine.
    Since(u64),
    /// It only waits to be buried.
    Dead,
}

/// A command may contain spaces and brackets, so fields are counted from the *last* bracket.
pub(super) fn life(text: &str) -> Option<Life> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    // Field 3 is the state, field 22 the start.
    let state = fields.next()?;
    let ticks = digits(fields.nth(18)?)?;
    Some(if matches!(state, "Z" | "X" | "x") { Life::Dead } else { Life::Since(ticks) })
}

/// Digits only: `u64::from_str` would take a plus sign.
pub(super) fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests;
