//! What the workers of the suite do, as shell scripts and as simulations.

use std::path::Path;
use std::time::Duration;

use drowse_drivers::sim::{self, OnTerm, Span, Takes};
use drowse_drivers::{Spec, process};

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Makes a mark again and again. SIGTERM ends it.
    Counts,
    /// The same, but asked to end it notes that it heard and ends with code 7.
    HearsTerm,
    /// The same, but it notes and ignores SIGTERM.
    IgnoresTerm,
    /// Uses a processor.
    Busy,
    /// Does nothing until it is told to exit, with code 3.
    ExitsWhenTold,
    /// There is no such program.
    CannotRun,
    /// Prints without end.
    Talks,
    /// A child in a session of its own makes the marks.
    ChildInAnotherSession,
    /// The same, and the child's parent is gone.
    Orphan,
    /// Ends when asked to; its child, in a session of its own, ignores that and makes the marks.
    StubbornChild,
    /// Exits at once with code 0 and leaves a child that makes the marks.
    LeavesAChild,
    /// A child in its session makes the marks and does not care what becomes of it.
    LeavesAChildWhenKilled,
    /// Makes a cgroup below its own, where it can, and makes the marks in there.
    MakesACgroup,
    /// Prints its environment and waits.
    ShowsEnvironment,
}

/// A mark every few milliseconds, by appending: the length of the file is the progress.
const COUNT: &str = "while :; do printf x >> marks; sleep 0.005; done";

impl Workload {
    fn script(self) -> String {
        match self {
            Workload::Counts => COUNT.into(),
            Workload::HearsTerm => format!("trap 'echo heard > heard; exit 7' TERM; {COUNT}"),
            // An ignored signal would be ignored by its children too; a handled one is not.
            Workload::IgnoresTerm => format!("trap 'printf t >> terms' TERM; {COUNT}"),
            Workload::Busy => "while :; do :; done".into(),
            Workload::ExitsWhenTold => "while [ ! -e exit-now ]; do sleep 0.005; done; exit 3".into(),
            Workload::CannotRun => String::new(),
            Workload::Talks => "while :; do echo 0123456789012345678901234567890123456789; done".into(),
            Workload::ChildInAnotherSession => format!("setsid sh -c '{COUNT}' & wait"),
            Workload::Orphan => format!("(setsid sh -c '{COUNT}' &) ; while :; do sleep 1; done"),
            Workload::StubbornChild => {
                let child = format!("trap : TERM; echo $$ > child; {COUNT}");
                format!("setsid sh -c '{child}' & trap 'exit 7' TERM; while :; do sleep 0.005; done")
            }
            Workload::LeavesAChild => format!(
                "setsid sh -c 'echo $$ > child; {COUNT}' & while [ ! -e marks ]; do sleep 0.005; done; exit 0"
            ),
            Workload::LeavesAChildWhenKilled => {
                format!("(trap : HUP; {COUNT}) & while :; do sleep 0.005; done")
            }
            Workload::MakesACgroup => format!(
                "if [ \"$CGROUP\" ]; then mkdir \"$CGROUP/below\"; echo 0 > \"$CGROUP/below/cgroup.procs\"; fi; {COUNT}"
            ),
            Workload::ShowsEnvironment => "env > env.new; mv env.new env; while :; do sleep 1; done".into(),
        }
    }

    pub(crate) fn command(self) -> Vec<String> {
        if self == Workload::CannotRun {
            vec!["/no/such/program".into()]
        } else {
            vec!["/bin/sh".into(), "-c".into(), self.script()]
        }
    }

    pub(crate) fn process(self, dir: &Path) -> Spec {
        let command = self.command();
        Spec::Process(process::Spec { command, dir: Some(dir.into()), ..process::Spec::default() })
    }

    /// Calls take time in the simulation too, so that the suite sees them wait.
    pub(crate) fn sim(self) -> Spec {
        let millis = Duration::from_millis;
        let some = Span::between(millis(1), millis(20));
        Spec::Sim(Box::new(sim::Spec {
            is_running: false,
            takes: Takes {
                observe: some,
                freeze: some,
                thaw: some,
                start: some,
                stop: some,
                read: some,
                hook: some,
            },
            on_term: match self {
                Workload::HearsTerm => OnTerm::Ends { after: millis(5), code: 7 },
                Workload::IgnoresTerm => OnTerm::Ignores,
                Workload::Counts
                | Workload::Busy
                | Workload::ExitsWhenTold
                | Workload::CannotRun
                | Workload::Talks
                | Workload::ChildInAnotherSession
                | Workload::Orphan
                | Workload::StubbornChild
                | Workload::LeavesAChild
                | Workload::MakesACgroup
                | Workload::LeavesAChildWhenKilled
                | Workload::ShowsEnvironment => OnTerm::Ends { after: millis(1), code: 143 },
            },
            cannot_start: (self == Workload::CannotRun).then(|| "cannot run /no/such/program".into()),
            ..sim::Spec::default()
        }))
    }
}
