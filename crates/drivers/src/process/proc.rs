//! Processes as `/proc` shows them: pure parsers, and thin readers beside them.

use std::fs;
use std::io;

use rustix::io::Errno;

/// What we need of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    /// `R`, `S`, `D`, `T`, `Z`…
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// Its own time and that of the children it has waited for, user and system.
    pub(crate) cpu_ticks: u64,
    /// Field 22: when it started, in ticks since the machine's boot.
    pub(crate) start_ticks: u64,
}

impl Stat {
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// In the kernel, where signals do not reach it.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state == 'D'
    }

    /// Stopped by a signal or by a debugger.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// How many of a family cannot go on.
///
/// One that waits in the kernel cannot be stopped until its wait is over. A shell in the middle of `vfork` waits
/// for its child, and if that is stopped the wait has no end; but neither does it run.
pub(crate) fn halted(family: &[Stat]) -> usize {
    let has_stopped_child =
        |stat: &Stat| family.iter().any(|child| child.parent == stat.pid && child.is_stopped());
    family.iter().filter(|stat| stat.is_stopped() || (stat.is_waiting() && has_stopped_child(stat))).count()
}

/// A command may contain spaces and brackets, so everything is counted from the *last* bracket.
pub(crate) fn parse_stat(text: &str) -> Option<Stat> {
    let (pid, rest) = text.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(')')?;
    // Field 3 comes first.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    // Waited-for children are signed in the kernel and never negative.
    let cpu_ticks =
        [14, 15, 16, 17].into_iter().try_fold(0_u64, |sum, field| sum.checked_add(number(field)?))?;
    Some(Stat {
        pid: pid.trim().parse().ok()?,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        cpu_ticks,
        start_ticks: number(22)?,
    })
}

/// `None`: there is no such process.
pub(crate) fn stat(pid: i32) -> io::Result<Option<Stat>> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => parse_stat(&text).map(Some).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat is not as expected"))
        }),
        Err(error) if is_no_process(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Every process of the machine.
pub(crate) fn all() -> io::Result<Vec<Stat>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        // One that ends while we look was there when we began; it no longer matters.
        found.extend(stat(pid)?);
    }
    Ok(found)
}

/// The processes of a run without a cgroup: its session, and everybody who descends from one of them.
/// Parents come before their children.
///
/// A grandchild that began a session of its own *and* lost its parent is not found; only a cgroup finds it.
pub(crate) fn family(all: &[Stat], main_pid: i32, main_start_ticks: u64) -> Vec<Stat> {
    // Somebody else bears the number now. A session keeps its number from being used again, so none of
    // the run is left.
    let is_reused = all.iter().any(|stat| stat.pid == main_pid && stat.start_ticks != main_start_ticks);
    if is_reused {
        return Vec::new();
    }
    let mut family: Vec<Stat> =
        all.iter().filter(|stat| stat.pid == main_pid || stat.session == main_pid).copied().collect();
    let mut next = 0;
    while let Some(parent) = family.get(next).map(|stat| stat.pid) {
        next += 1;
        let children = all.iter().filter(|stat| stat.parent == parent);
        let new: Vec<Stat> =
            children.filter(|child| family.iter().all(|known| known.pid != child.pid)).copied().collect();
        family.extend(new);
    }
    family.retain(|stat| !stat.is_dead());
    family
}

pub(crate) fn micros(ticks: u64) -> u64 {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    ticks.saturating_mul(1_000_000) / per_second
}

/// A file under `/proc/PID` answers one or the other, by when the process ended.
pub(crate) fn is_no_process(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::SRCH].into_iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "4242 (a) b (c) S 17 4242 99 0 -1 4194560 2364 37463 0 19 5 3 31 15 20 0 1 0 248165 \
                        5124096 925 18446744073709551615 1 2 3 0 0 0 65536 4 1132560123 1 0 0 17 1 0 0 0 0 0";

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let expected =
            Stat { pid: 4242, state: 'S', parent: 17, session: 99, cpu_ticks: 54, start_ticks: 248_165 };
        assert_eq!(parse_stat(LINE), Some(expected));
    }

    #[test]
    fn nonsense_is_nothing() {
        for text in ["", "1", "1 (x", "1 (x) S", "x (y) S 1 2 3", &LINE.replace("248165", "soon")] {
            assert_eq!(parse_stat(text), None, "{text:?}");
        }
    }

    fn process(pid: i32, parent: i32, session: i32) -> Stat {
        Stat { pid, state: 'S', parent, session, cpu_ticks: 0, start_ticks: 1_000 }
    }

    fn pids(family: &[Stat]) -> Vec<i32> {
        family.iter().map(|stat| stat.pid).collect()
    }

    #[test]
    fn a_family_is_the_session_and_all_descendants() {
        let all = [
            process(1, 0, 1),
            process(10, 1, 10),
            process(11, 10, 10),
            // It lost its parent and stayed in the session.
            process(12, 1, 10),
            // It left the session and kept its parent.
            process(13, 11, 13),
            process(14, 13, 13),
            // It left both: only a cgroup would know it.
            process(15, 1, 15),
            Stat { state: 'Z', ..process(16, 10, 10) },
        ];
        assert_eq!(pids(&family(&all, 10, 1_000)), [10, 11, 12, 13, 14]);
    }

    #[test]
    fn what_is_left_of_a_dead_leader_is_found() {
        assert_eq!(pids(&family(&[process(1, 0, 1), process(12, 1, 10)], 10, 1_000)), [12]);
    }

    #[test]
    fn a_parent_in_the_middle_of_vfork_counts_as_halted() {
        let family = [
            Stat { state: 'D', ..process(10, 1, 10) },
            Stat { state: 'T', ..process(11, 10, 10) },
            process(12, 1, 10),
        ];
        assert_eq!(halted(&family), 2);
        assert_eq!(halted(&family[..1]), 0, "it waits for something else");
    }

    #[test]
    fn a_reused_number_has_no_family() {
        let all = [Stat { start_ticks: 2_000, ..process(10, 1, 10) }, process(11, 10, 10)];
        assert!(family(&all, 10, 1_000).is_empty());
    }

    #[test]
    fn we_find_ourselves() {
        let pid = i32::try_from(std::process::id()).expect("a pid fits");
        assert_eq!(stat(pid).unwrap().map(|stat| stat.pid), Some(pid));
        assert!(all().unwrap().iter().any(|stat| stat.pid == pid));
        assert_eq!(stat(i32::MAX).unwrap(), None);
    }
}
