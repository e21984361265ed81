//! What people in front of a container are told, in words.

use std::fmt::Write as _;

use drowse_core::Timestamp;
use drowse_core::policy::Policy;
use drowse_core::reason::{PauseReason, SleepMode};
use drowse_core::status::Sleep;
use drowse_core::units::Rough;
use drowse_core::verdict::{Warning, WarningKind};
use drowse_core::worker::Worker;

use crate::plain::plain;

/// A freeze, for people.
pub(super) fn asleep(
    worker: &Worker,
    sleep: &Sleep,
    since: Timestamp,
    stops_at: Option<Timestamp>,
) -> String {
    let id = &worker.id;
    let why = match sleep.reason {
        PauseReason::IdleTimeout => "it was idle".to_owned(),
        PauseReason::Schedule => "its schedule says so".to_owned(),
        PauseReason::Manual => format!("{} asked for it", plain(&sleep.by)),
        PauseReason::External => "somebody paused it from outside".to_owned(),
        PauseReason::MaxRuntime => "it has run for as long as it may".to_owned(),
        PauseReason::ScaleDown => "it is not needed".to_owned(),
    };
    let mut text = format!("Drowse: {id} is paused since {}, because {why}.", since.to_the_second());
    let is_woken_by_visitors = worker.is_routed && worker.terms.wake_from.contains(sleep.reason);
    if is_woken_by_visitors {
        text.push_str(" Whoever connects wakes it.");
    }
    if let Some(at) = stops_at {
        let unless = if is_woken_by_visitors { "nobody comes" } else { "nobody resumes it" };
        let left = Rough(at.since(since));
        let _ = write!(text, "\nIt will be stopped at {}, {left} later, if {unless}.", at.to_the_second());
    }
    let _ = writeln!(text, "\nTo wake and keep it, where Drowse runs: drowse snooze {id} --for 1h");
    text
}

/// It goes on: what was announced is over.
pub(super) fn awake(worker: &Worker, now: Timestamp) -> String {
    format!("Drowse: {} is awake again since {}.\n", worker.id, now.to_the_second())
}

/// Warnings, for people.
pub(super) fn warnings(worker: &Worker, policy: &Policy, warnings: &[Warning], now: Timestamp) -> String {
    warnings.iter().map(|warning| one(worker, policy, warning, now)).collect()
}

fn one(worker: &Worker, policy: &Policy, warning: &Warning, now: Timestamp) -> String {
    let sleeps = match worker.terms.sleep {
        SleepMode::Freeze => "paused",
        SleepMode::Stop | SleepMode::Hibernate => "stopped",
    };
    let (why, what) = match warning.kind {
        WarningKind::Idle => ("it is idle", sleeps),
        WarningKind::ScaleDown => ("it is idle and not needed", "deleted"),
        WarningKind::MaxRuntime => ("it has run for as long as it may", "stopped"),
        WarningKind::Schedule => ("its schedule says so", "stopped"),
        WarningKind::StopAfter => ("it has been paused for long enough", "stopped"),
        WarningKind::TerminateAfter => ("it has slept for long enough", "DELETED"),
    };
    let id = &worker.id;
    if warning.is_fyi {
        return format!("Drowse, for your information: {id} would be {what}, because {why}; it is exempt.\n");
    }
    let (at, left) = (warning.happens_at.to_the_second(), Rough(warning.happens_at.since(now)));
    let mut text = format!("Drowse: {id} will be {what} at {at}, in {left}, because {why}.\nTo keep it");
    let is_for_idleness = matches!(warning.kind, WarningKind::Idle | WarningKind::ScaleDown);
    if is_for_idleness && !policy.keep_alive_file.is_empty() {
        let _ = write!(text, ", in here: {}; or", touch(&policy.keep_alive_file));
    }
    let _ = writeln!(text, ", where Drowse runs: drowse snooze {id} --for 1h");
    text
}

/// What makes the keep-alive file, also where its folder is not there yet.
fn touch(file: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !folder.is_empty() => format!("mkdir -p {folder} && touch {file}"),
        Some(_) | None => format!("touch {file}"),
    }
}

#[cfg(test)]
mod tests {
    use drowse_core::id::WorkerId;
    use drowse_core::signal::DriverKind;

    use super::*;

    fn worker(is_routed: bool) -> Worker {
        let id = WorkerId::new("web").unwrap();
        let mut worker = Worker::registered(id, DriverKind::Docker, &Policy::default(), Timestamp::EPOCH);
        worker.is_routed = is_routed;
        worker
    }

    /// With the fraction of a second that nobody reads.
    fn at(secs: i64) -> Timestamp {
        Timestamp::from_micros(secs * 1_000_000 + 358_033)
    }

    fn sleep(reason: PauseReason) -> Sleep {
        Sleep { reason, by: reason.code().to_owned(), message: String::new(), at: at(0), forced: false }
    }

    #[test]
    fn a_warning_names_a_time_that_people_read_and_advice_that_works_where_it_is_read() {
        let warning = Warning {
            kind: WarningKind::Idle,
            deadline: at(300),
            happens_at: at(300),
            percent: 80.0,
            is_fyi: false,
        };
        let said = one(&worker(false), &Policy::default(), &warning, at(0));
        let (what, how) = said.split_once('\n').unwrap();
        assert!(what.ends_with("at 1970-01-01T00:05:00Z, in 5m, because it is idle."), "{what}");
        assert_eq!(
            how,
            "To keep it, in here: mkdir -p /workspace && touch /workspace/.keep-alive; or, where Drowse runs: \
             drowse snooze web --for 1h\n"
        );
        let limit = Warning { kind: WarningKind::MaxRuntime, ..warning };
        let said = one(&worker(false), &Policy::default(), &limit, at(0));
        assert!(said.ends_with("\nTo keep it, where Drowse runs: drowse snooze web --for 1h\n"), "{said}");
    }

    #[test]
    fn a_freeze_promises_no_visitor_to_one_without_a_door() {
        let said = asleep(&worker(false), &sleep(PauseReason::IdleTimeout), at(0), Some(at(300)));
        assert!(said.contains("stopped at 1970-01-01T00:05:00Z, 5m later, if nobody resumes it"), "{said}");
        assert!(!said.contains("connects") && !said.contains(".358"), "{said}");
        let said = asleep(&worker(true), &sleep(PauseReason::External), at(0), None);
        assert!(said.contains("because somebody paused it from outside."), "{said}");
    }
}
