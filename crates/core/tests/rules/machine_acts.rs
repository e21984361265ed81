//! Random histories: what may happen to a worker, the right, the late and the wrong.

use core::time::Duration;

use drowse_core::Timestamp;
use drowse_core::event::{Event, Observation};
use drowse_core::hold::HoldKind;
use drowse_core::id::{BootId, Generation, IntentId};
use drowse_core::machine::Fence;
use drowse_core::policy::Policy;
use drowse_core::reason::{PauseReason, PauseReasons, SleepMode};
use drowse_core::signal::DriverKind;
use drowse_core::status::WakeCause;
use drowse_core::worker::{Power, Worker};
use proptest::prelude::*;

use super::machine_bench::{Bench, hold, request, secs};

/// Which run somebody speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    Same,
    Other,
    Untold,
}

impl Run {
    /// Its name; the first one has to be made up.
    pub(crate) fn name(self, current: Option<&str>, now: Timestamp) -> Option<String> {
        match self {
            Run::Same => Some(current.map_or_else(|| format!("first-{}", now.as_micros()), String::from)),
            Run::Other => {
                let name = format!("other-{}", now.as_micros());
                Some(if current == Some(name.as_str()) { name + "+" } else { name })
            }
            Run::Untold => None,
        }
    }
}

/// Who asks for the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    Connection,
    Lease,
    KeepAwake,
    Resume,
    Schedule,
    Activity,
    /// Causes that nobody can ask for.
    Nonsense,
}

/// Something that happens. `late`: it carries an intent or a generation that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Wait(Duration),
    InService(bool),
    Look { power: Power, run: Run, late: bool, age: Duration },
    Idle { fenced: bool },
    ScaleDown { fenced: bool },
    MaxRuntime { fenced: bool },
    ScheduleSleep { fenced: bool, force: bool },
    Pause { force: bool, held: bool },
    Stop { force: bool, held: bool },
    Terminate { force: bool, held: bool },
    Ask(Asks),
    HookPassed { late: bool },
    HookVetoed { late: bool },
    Done { late: bool, code: Option<i32> },
    Ready { late: bool, run: Run },
    Refused { late: bool },
    Deadline { late: bool },
    Silent { late: bool },
    Exited { run: Run, code: i32 },
    StopAfter { late: bool },
    Drain,
    DrainCancelled,
    Drained { late: bool },
    DrainTimedOut { late: bool },
    Recovered(Option<Power>),
}

impl Act {
    /// The event that it is for this worker; `None` for what is no event.
    pub(crate) fn event(&self, worker: &Worker, now: Timestamp) -> Option<Event> {
        let intent = |late: bool| match worker.status.intent() {
            Some(intent) if !late => intent,
            Some(intent) => IntentId(intent.0 - 1),
            None => IntentId(worker.generation.0),
        };
        let generation = |late: bool| Generation(worker.generation.0.wrapping_sub(u64::from(late)));
        let boot = |run: Run| run.name(worker.boot.as_ref().map(|boot| boot.0.as_str()), now).map(BootId);
        let fence = |fenced: bool| {
            let mut fence = Fence::alone(worker);
            fence.found.is_braked = fenced;
            fence
        };
        let asked = |force: bool, held: bool| {
            request(force, if held { vec![hold(HoldKind::Lease, "build")] } else { Vec::new() })
        };
        Some(match *self {
            Act::Wait(_) | Act::InService(_) => return None,
            Act::Look { power, run, late, age } => Event::Observed(Observation {
                power,
                began_at: now - age,
                generation: generation(late),
                boot: boot(run),
                dated_at: None,
            }),
            Act::Idle { fenced } => Event::IdleConfirmed { fence: fence(fenced) },
            Act::ScaleDown { fenced } => Event::ScaleDownConfirmed { fence: fence(fenced) },
            Act::MaxRuntime { fenced } => Event::MaxRuntimeReached { fence: fence(fenced) },
            Act::ScheduleSleep { fenced, force } => Event::ScheduleSaidSleep { force, fence: fence(fenced) },
            Act::Pause { force, held } => Event::PauseRequested(asked(force, held)),
            Act::Stop { force, held } => Event::StopRequested(asked(force, held)),
            Act::Terminate { force, held } => Event::TerminateRequested(asked(force, held)),
            Act::Ask(Asks::Schedule) => Event::ScheduleSaidWake,
            Act::Ask(Asks::Activity) => Event::ActivityArrived { by: drowse_core::signal::Signal::Telemetry },
            Act::Ask(asks) => Event::WakeRequested {
                cause: match asks {
                    Asks::Connection => WakeCause::Connection,
                    Asks::Lease => WakeCause::Lease { holder: "build".into() },
                    Asks::KeepAwake => WakeCause::KeepAwake { by: "bob".into() },
                    Asks::Resume => WakeCause::Resume { by: "bob".into() },
                    Asks::Schedule | Asks::Activity | Asks::Nonsense => WakeCause::Recovery,
                },
            },
            Act::HookPassed { late } => Event::HookPassed { intent: intent(late) },
            Act::HookVetoed { late } => Event::HookVetoed { intent: intent(late), message: "no".into() },
            Act::Done { late, code } => {
                Event::DriverDone { intent: intent(late), exit_code: code, asked_at: None }
            }
            Act::Ready { late, run } => {
                Event::DriverReady { intent: intent(late), boot: boot(run), started_at: None }
            }
            Act::Refused { late } => Event::DriverRefused { intent: intent(late), message: "no".into() },
            Act::Deadline { late } => Event::DeadlinePassed { generation: generation(late) },
            Act::Silent { late } => Event::DriverSilent { generation: generation(late) },
            Act::Exited { run, code } => {
                Event::Exited { boot: boot(if run == Run::Untold { Run::Other } else { run })?, code }
            }
            Act::StopAfter { late } => Event::StopAfterElapsed { generation: generation(late) },
            Act::Drain => Event::DrainRequested(request(false, Vec::new())),
            Act::DrainCancelled => Event::DrainCancelled { by: "alice".into() },
            Act::Drained { late } => Event::Drained { generation: generation(late) },
            Act::DrainTimedOut { late } => {
                Event::DrainTimedOut { generation: generation(late), is_held: true }
            }
            Act::Recovered(power) => Event::Recovered { power },
        })
    }
}

fn power() -> impl Strategy<Value = Power> {
    prop_oneof![
        4 => Just(Power::Running),
        4 => Just(Power::Paused),
        4 => Just(Power::Stopped),
        1 => Just(Power::Gone),
    ]
}

fn run() -> impl Strategy<Value = Run> {
    prop_oneof![4 => Just(Run::Same), 2 => Just(Run::Other), 1 => Just(Run::Untold)]
}

fn late() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.15)
}

fn wait() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::from_micros(1)),
        (1u64..12).prop_map(secs),
        Just(secs(31)),
        Just(secs(61)),
        Just(secs(91)),
        Just(secs(301)),
        Just(secs(601)),
        Just(secs(901)),
    ]
}

fn asks() -> impl Strategy<Value = Asks> {
    prop::sample::select(vec![
        Asks::Connection,
        Asks::Connection,
        Asks::Lease,
        Asks::KeepAwake,
        Asks::Resume,
        Asks::Schedule,
        Asks::Activity,
        Asks::Nonsense,
    ])
}

fn act() -> impl Strategy<Value = Act> {
    let flags = || (prop::bool::weighted(0.2), prop::bool::weighted(0.3));
    let sleeps = prop_oneof![
        3 => late().prop_map(|fenced| Act::Idle { fenced }),
        1 => late().prop_map(|fenced| Act::MaxRuntime { fenced }),
        1 => (late(), any::<bool>()).prop_map(|(fenced, force)| Act::ScheduleSleep { fenced, force }),
        2 => flags().prop_map(|(force, held)| Act::Pause { force, held }),
        2 => flags().prop_map(|(force, held)| Act::Stop { force, held }),
        3 => late().prop_map(|late| Act::StopAfter { late }),
    ];
    let answers = prop_oneof![
        2 => late().prop_map(|late| Act::HookPassed { late }),
        1 => late().prop_map(|late| Act::HookVetoed { late }),
        3 => (late(), prop::option::of(prop::sample::select(vec![0, 137, 143])))
            .prop_map(|(late, code)| Act::Done { late, code }),
        4 => (late(), run()).prop_map(|(late, run)| Act::Ready { late, run }),
        3 => late().prop_map(|late| Act::Refused { late }),
        1 => late().prop_map(|late| Act::Deadline { late }),
        2 => late().prop_map(|late| Act::Silent { late }),
        2 => (run(), prop::sample::select(vec![0, 1, 137])).prop_map(|(run, code)| Act::Exited { run, code }),
    ];
    let ends = prop_oneof![
        1 => late().prop_map(|fenced| Act::ScaleDown { fenced }),
        1 => Just(Act::Drain),
        1 => Just(Act::DrainCancelled),
        1 => late().prop_map(|late| Act::Drained { late }),
        1 => late().prop_map(|late| Act::DrainTimedOut { late }),
        1 => flags().prop_map(|(force, held)| Act::Terminate { force, held }),
    ];
    let looks = (power(), run(), late(), prop::sample::select(vec![0u64, 0, 0, 1, 40]))
        .prop_map(|(power, run, late, age)| Act::Look { power, run, late, age: secs(age) });
    prop_oneof![
        24 => wait().prop_map(Act::Wait),
        1 => prop::bool::weighted(0.8).prop_map(Act::InService),
        20 => looks,
        16 => sleeps,
        12 => asks().prop_map(Act::Ask),
        24 => answers,
        2 => ends,
        2 => prop::option::of(power()).prop_map(Act::Recovered),
    ]
}

fn look(power: Power) -> Act {
    Act::Look { power, run: Run::Same, late: false, age: Duration::ZERO }
}

/// Things that chance alone seldom brings together.
fn burst() -> impl Strategy<Value = Vec<Act>> {
    let ready = || Act::Ready { late: false, run: Run::Other };
    let crash = vec![Act::Exited { run: Run::Same, code: 1 }, Act::Wait(secs(2)), ready()];
    let crash_loop = (Just(crash), 4usize..7).prop_map(|(crash, times)| crash.repeat(times));
    let given_up = (power(), power(), any::<[bool; 2]>(), prop::option::of(asks())).prop_map(
        |(found, then, [by_idleness, is_slow], asks)| {
            let sleep = if by_idleness {
                Act::Idle { fenced: false }
            } else {
                Act::Stop { force: false, held: false }
            };
            let mut acts = vec![sleep, Act::HookPassed { late: false }];
            acts.extend(asks.map(Act::Ask));
            let settled = Act::Wait(secs(if is_slow { 31 } else { 2 }));
            acts.extend([Act::Wait(secs(601)), look(found), settled, look(then), settled, look(then)]);
            acts
        },
    );
    prop_oneof![crash_loop, given_up]
}

/// A life: mostly chance.
pub(crate) fn history(longest: usize) -> impl Strategy<Value = Vec<Act>> {
    let chunk = prop_oneof![24 => act().prop_map(|act| vec![act]), 1 => burst()];
    prop::collection::vec(chunk, 1..longest).prop_map(|chunks| chunks.concat())
}

/// A worker of any driver with any terms, just registered.
pub(crate) fn worker() -> impl Strategy<Value = Bench> {
    (
        prop::sample::select(vec![
            DriverKind::Process,
            DriverKind::Docker,
            DriverKind::Qemu,
            DriverKind::Ec2,
            DriverKind::Sim,
        ]),
        prop::option::of(prop::sample::select(SleepMode::ALL.to_vec())),
        prop::collection::vec(prop::sample::select(PauseReason::ALL.to_vec()), 0..4),
        any::<[bool; 4]>(),
        prop::option::of((1u64..400).prop_map(secs)),
    )
        .prop_map(|(driver, sleep, wake_from, [before, after, thaw, usual], stop_after)| {
            let mut policy = Policy { sleep, stop_after, ..Policy::default() };
            if !usual {
                policy.wake_from = PauseReasons::of(wake_from);
            }
            policy.before_pause = before.then(|| vec!["sync".into()]);
            policy.after_resume = after.then(|| vec!["clock".into()]);
            if thaw {
                policy.snooze_after_thaw = secs(30);
            }
            Bench::registered(driver, &policy)
        })
}
