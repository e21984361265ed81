//! The table of lawful transitions, copied from the specification row by row.
//!
//! Whatever `step` does is held against it: a change of status that stands in no row is a bug, and so is a
//! row that nothing reaches.

use drowse_core::Timestamp;
use drowse_core::event::Event;
use drowse_core::status::StatusKind::{
    self, Draining, Failed, Paused, Pausing, Provisioning, Running, Stopped, Stopping, Terminated,
    Terminating, Unknown, Waking,
};
use drowse_core::status::{FailCause, Stage, Status, WakeCause};
use drowse_core::worker::{Power, Worker};

/// What the second column of the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A look at a worker at rest.
    Seen(Power),
    /// A look after a deadline, or at what nobody knew.
    Truth(Power),
    /// Another run was seen than the one we knew.
    SeenRestarted,
    ExitedWithError,
    ExitedOtherwise,
    /// By a stop of ours that had been given up.
    ExitedByUs,
    IdleConfirmed,
    ManualPause,
    ScheduleSleep,
    ManualStop,
    MaxRuntime,
    StopAfter,
    /// The driver is done and nothing waits.
    Done,
    /// The driver is done, or will not do it, and something waits.
    DoneAndWaitedFor,
    Ready,
    RefusedThrice,
    Silent,
    Wake,
    Lease,
    KeepAwake,
    Resume,
    ScheduleWake,
    Activity,
    Veto,
    Recovery,
    Shutdown,
    ScaleDown,
    Drain,
    DrainEnded,
    Drained,
    Terminate,
    TerminateAfter,
    /// Nothing that may change a status.
    Other,
}

/// One row: from any of these, by any of those, to one of these.
pub(crate) struct Row {
    pub(crate) says: &'static str,
    pub(crate) from: &'static [StatusKind],
    pub(crate) by: &'static [Cause],
    pub(crate) to: StatusKind,
}

const fn row(says: &'static str, from: &'static [StatusKind], by: &'static [Cause], to: StatusKind) -> Row {
    Row { says, from, by, to }
}

/// Any status but the last, in the order of the specification.
const ANY: &[StatusKind] = &[
    Provisioning,
    Running,
    Pausing,
    Paused,
    Waking,
    Stopping,
    Stopped,
    Draining,
    Terminating,
    Failed,
    Unknown,
];
const TRANSITIONS: &[StatusKind] = &[Provisioning, Pausing, Waking, Stopping, Terminating];

use Cause as C;

pub(crate) const TABLE: &[Row] = &[
    row("provisioning, driver: running", &[Provisioning], &[C::Seen(Power::Running)], Running),
    row("observed stopped, not by us", &[Provisioning, Running], &[C::Seen(Power::Stopped)], Stopped),
    row("observed paused, not by us", &[Provisioning, Running], &[C::Seen(Power::Paused)], Paused),
    row("exits with an error", &[Running, Waking], &[C::ExitedWithError], Waking),
    row("exits otherwise", &[Running, Waking], &[C::ExitedOtherwise], Stopped),
    row("put to sleep, freeze", &[Running], &[C::IdleConfirmed, C::ManualPause, C::ScheduleSleep], Pausing),
    row("put to sleep, stop", &[Running], &[C::IdleConfirmed, C::ManualPause, C::ScheduleSleep], Stopping),
    row("pausing, done, nothing arrived", &[Pausing], &[C::Done], Paused),
    row("pausing, done, something arrived", &[Pausing], &[C::DoneAndWaitedFor], Waking),
    row("paused, woken", &[Paused], &[C::Wake, C::Lease, C::Resume, C::ScheduleWake, C::KeepAwake], Waking),
    row("paused, stop_after over", &[Paused], &[C::StopAfter], Stopping),
    row("paused, observed running", &[Paused], &[C::Seen(Power::Running)], Running),
    row("paused, observed stopped", &[Paused], &[C::Seen(Power::Stopped)], Stopped),
    row("waking, ready", &[Waking], &[C::Ready], Running),
    row("max runtime, manual stop", &[Running, Paused], &[C::MaxRuntime, C::ManualStop], Stopping),
    row("stopping, done, no wake waits", &[Stopping], &[C::Done], Stopped),
    row("stopping, done, a wake waits", &[Stopping], &[C::DoneAndWaitedFor], Waking),
    row("stopped, woken", &[Stopped], &[C::Wake, C::Resume, C::ScheduleWake], Waking),
    row("stopped, observed running", &[Stopped], &[C::Seen(Power::Running)], Running),
    row("drain", &[Running, Stopped], &[C::ScaleDown, C::Drain], Draining),
    row("drained", &[Draining], &[C::Drained], Terminating),
    row("drain ended, was running", &[Draining], &[C::DrainEnded], Running),
    row("drain ended, was stopped", &[Draining], &[C::DrainEnded], Stopped),
    row("terminate by a person", &[Running, Paused, Stopped, Unknown, Failed], &[C::Terminate], Terminating),
    row("terminate_after", &[Paused, Stopped], &[C::TerminateAfter], Terminating),
    row("terminating, done", &[Terminating], &[C::Done], Terminated),
    row("observed gone", ANY, &[C::Seen(Power::Gone), C::Truth(Power::Gone)], Terminated),
    row("deadline over, running", TRANSITIONS, &[C::Truth(Power::Running)], Running),
    row("deadline over, paused", TRANSITIONS, &[C::Truth(Power::Paused)], Paused),
    row("deadline over, stopped", TRANSITIONS, &[C::Truth(Power::Stopped)], Stopped),
    row(
        "deadline over, asleep, and somebody waits",
        &[Pausing, Stopping, Waking, Unknown, Failed],
        &[C::Truth(Power::Paused), C::Truth(Power::Stopped)],
        Waking,
    ),
    row("deadline over, driver silent", TRANSITIONS, &[C::Silent], Unknown),
    row(
        "refused three times",
        &[Provisioning, Pausing, Waking, Stopping, Terminating],
        &[C::RefusedThrice],
        Failed,
    ),
    row("observed running", &[Unknown, Failed], &[C::Truth(Power::Running)], Running),
    row("observed paused", &[Unknown, Failed], &[C::Truth(Power::Paused)], Paused),
    row("observed stopped", &[Unknown, Failed], &[C::Truth(Power::Stopped)], Stopped),
    row("unknown or failed, resume", &[Unknown, Failed], &[C::Resume], Waking),
    row("crash loop, observed running", &[Failed], &[C::Seen(Power::Running)], Running),
    row("five quick exits", &[Running, Waking], &[C::ExitedWithError], Failed),
    // Below the table, and in the laws of interleaving.
    row(
        "a hook runs and something arrives",
        &[Pausing, Stopping],
        &[C::Wake, C::Lease, C::Resume, C::ScheduleWake, C::KeepAwake, C::Activity],
        Waking,
    ),
    row("a hook or the last look says no", &[Pausing, Stopping], &[C::Veto], Waking),
    row("found in another run", &[Pausing, Stopping], &[C::Veto], Running),
    row("found awake, or in another run, before it is deleted", &[Terminating], &[C::Veto], Running),
    row("found asleep otherwise before it is deleted", &[Terminating], &[C::Veto], Paused),
    row("found stopped otherwise before it is deleted", &[Terminating], &[C::Veto], Stopped),
    row("activity that was on its way when the pause committed", &[Paused], &[C::Activity], Waking),
    // Waking: it was taken back too late and has stopped, and somebody waits for it.
    row("drowse came back and cannot vouch for it", &[Pausing, Stopping, Waking], &[C::Recovery], Waking),
    row(
        "drowse ends or lets go of it, and nothing would wake it",
        &[Pausing, Paused],
        &[C::Shutdown],
        Waking,
    ),
    row("drowse came back and it is done", &[Pausing], &[C::Recovery], Paused),
    row("drowse came back and it is stopped", &[Pausing, Stopping, Waking], &[C::Recovery], Stopped),
    row(
        "drowse came back and it is gone",
        &[Pausing, Stopping, Waking, Terminating],
        &[C::Recovery],
        Terminated,
    ),
    row("restarted behind our back", &[Running], &[C::SeenRestarted], Running),
    row("a draining one is deleted at once", &[Draining], &[C::Terminate], Terminating),
    row("frozen by a call that was given up", &[Running], &[C::Seen(Power::Paused)], Waking),
    row("stopped by a call that was given up", &[Running, Waking], &[C::ExitedByUs], Stopped),
    row("the same, and somebody waits", &[Running, Waking], &[C::ExitedByUs], Waking),
    row("stopped while a wake waited for that", &[Running, Paused], &[C::Seen(Power::Stopped)], Waking),
    row("observed paused while stopped: it must have run", &[Stopped], &[C::Seen(Power::Paused)], Running),
];

/// The row that allows it.
pub(crate) fn row_of(from: StatusKind, by: Cause, to: StatusKind) -> Option<usize> {
    TABLE.iter().position(|row| row.from.contains(&from) && row.by.contains(&by) && row.to == to)
}

/// What the event is, in the words of the table.
pub(crate) fn cause_of(before: &Worker, event: &Event, now: Timestamp) -> Cause {
    let waits = matches!(
        before.status,
        Status::Pausing { wake: Some(_), .. } | Status::Stopping { wake: Some(_), .. }
    );
    match event {
        Event::Observed(seen) if matches!(before.status, Status::Running { .. }) => {
            if seen.power == Power::Running { C::SeenRestarted } else { C::Seen(seen.power) }
        }
        Event::Observed(seen) => {
            let is_known = !matches!(
                before.status,
                Status::Unknown { .. } | Status::Failed { cause: FailCause::Refused, .. }
            );
            let is_at_rest = before.status.intent().is_none() && is_known;
            if is_at_rest { C::Seen(seen.power) } else { C::Truth(seen.power) }
        }
        Event::Exited { .. } if is_stopped_late(before, now) => C::ExitedByUs,
        Event::Exited { code, .. } if *code != 0 && before.can.restarts_on_error => C::ExitedWithError,
        Event::Exited { .. } => C::ExitedOtherwise,
        Event::IdleConfirmed { .. } => C::IdleConfirmed,
        Event::ScaleDownConfirmed { .. } => C::ScaleDown,
        Event::MaxRuntimeReached { .. } => C::MaxRuntime,
        Event::ScheduleSaidSleep { .. } => C::ScheduleSleep,
        Event::PauseRequested(_) => C::ManualPause,
        Event::StopRequested(_) => C::ManualStop,
        Event::ResumeRequested { .. } | Event::WakeRequested { cause: WakeCause::Resume { .. } } => C::Resume,
        Event::ScheduleSaidWake | Event::WakeRequested { cause: WakeCause::Schedule } => C::ScheduleWake,
        Event::WakeRequested { cause: WakeCause::Connection } => C::Wake,
        Event::WakeRequested { cause: WakeCause::Lease { .. } } => C::Lease,
        Event::WakeRequested { cause: WakeCause::KeepAwake { .. } } => C::KeepAwake,
        Event::ActivityArrived { .. } | Event::WakeRequested { cause: WakeCause::Activity } => C::Activity,
        Event::HookVetoed { .. } | Event::LookedAgain { .. } => C::Veto,
        Event::DriverDone { .. } | Event::DriverRefused { .. } if waits => C::DoneAndWaitedFor,
        Event::DriverDone { .. } => C::Done,
        Event::DriverReady { .. } => C::Ready,
        Event::DriverRefused { .. } | Event::MakeRefused { .. } => C::RefusedThrice,
        Event::DriverSilent { .. } => C::Silent,
        Event::StopAfterElapsed { .. } => C::StopAfter,
        Event::TerminateAfterElapsed { .. } => C::TerminateAfter,
        Event::DrainRequested(_) => C::Drain,
        Event::Drained { .. } | Event::DrainTimedOut { is_held: false, .. } => C::Drained,
        Event::DrainCancelled { .. } | Event::DrainTimedOut { .. } => C::DrainEnded,
        Event::TerminateRequested(_) => C::Terminate,
        Event::Recovered { .. } => C::Recovery,
        Event::WakeRequested { cause: WakeCause::Shutdown | WakeCause::Removal } => C::Shutdown,
        Event::WakeRequested { .. } | Event::HookPassed { .. } | Event::DeadlinePassed { .. } => C::Other,
    }
}

/// A stop of ours was given up and may still come.
fn is_stopped_late(worker: &Worker, now: Timestamp) -> bool {
    worker.abandoned.as_deref().is_some_and(|it| {
        matches!(it.was, Status::Stopping { stage: Stage::Acting, .. })
            && it.until.is_none_or(|until| now < until)
    })
}
