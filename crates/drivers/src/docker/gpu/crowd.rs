//! Whose a process is that uses a graphics processor.
//!
//! Found out when it is first seen, because it may have ended by the time that somebody asks for its container. A number
//! alone is nobody: with the time at which it was started it is.

use std::collections::BTreeMap;
use std::fs;

/// A process: its number, and when it was started, in ticks since the machine's boot. Zero: it had ended before anybody
/// could look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Process {
    pub(super) pid: u32,
    since: u64,
}

/// Who has been seen on any device.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// With the cgroups that it was seen in, where a container's id stands.
    known: BTreeMap<Process, String>,
}

impl Crowd {
    /// Who has this number now, or had it last.
    pub(super) fn meet(&mut self, pid: u32) -> Process {
        let since = fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|stat| started(&stat));
        let Some(since) = since else {
            let had = self.known.range(Process { pid, since: 0 }..=Process { pid, since: u64::MAX });
            return had.last().map_or(Process { pid, since: 0 }, |(process, _)| *process);
        };
        let process = Process { pid, since };
        if !self.known.contains_key(&process)
            && let Ok(cgroups) = fs::read_to_string(format!("/proc/{pid}/cgroup"))
        {
            self.known.insert(process, cgroups);
        }
        process
    }

    /// Whether a process was seen in the container with this id.
    pub(super) fn is_of(&self, process: Process, container: &str) -> bool {
        self.known.get(&process).is_some_and(|cgroups| cgroups.contains(container))
    }

    /// Whether anybody was seen in it.
    pub(super) fn has_any_of(&self, container: &str) -> bool {
        self.known.values().any(|cgroups| cgroups.contains(container))
    }

    pub(super) fn retain(&mut self, mut is_needed: impl FnMut(Process) -> bool) {
        self.known.retain(|process, _| is_needed(*process));
    }
}

/// Field 22, counted after the name, which may contain anything.
fn started(stat: &str) -> Option<u64> {
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_and_stays_known_after_its_end() {
        let mut crowd = Crowd::default();
        let own = crowd.meet(std::process::id());
        assert_ne!(own.since, 0);
        assert_eq!(crowd.meet(std::process::id()), own);
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let met = crowd.meet(child.id());
        let cgroups = fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(crowd.meet(met.pid), met, "it had that number last");
        assert!(crowd.is_of(met, cgroups.lines().next().unwrap()));
        assert!(!crowd.is_of(met, "another"));
        crowd.retain(|process| process == own);
        assert_eq!(crowd.meet(met.pid).since, 0);
    }

    #[test]
    fn a_name_with_brackets_and_spaces_is_no_field() {
        let fields: Vec<String> = (3..=30).map(|field| field.to_string()).collect();
        assert_eq!(started(&format!("7 (a) b (c)) {}", fields.join(" "))), Some(22));
        assert_eq!(started("7 (a) S"), None);
    }
}
