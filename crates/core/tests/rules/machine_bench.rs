//! A worker on the bench: time moves by hand, and every step is held against the laws.

#![expect(clippy::needless_pass_by_value, reason = "an event is made where it is sent")]

use core::time::Duration;

use drowse_core::Timestamp;
use drowse_core::effect::Effect;
use drowse_core::event::{Event, Observation, Request};
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::id::{BootId, Generation, IntentId, WorkerId};
use drowse_core::journal::Entry;
use drowse_core::machine::{Fence, Step, step};
use drowse_core::policy::Policy;
use drowse_core::reason::SleepMode;
use drowse_core::refusal::Refusal;
use drowse_core::signal::DriverKind;
use drowse_core::status::{StatusKind, WakeCause};
use drowse_core::worker::{Power, Worker};

use super::machine_laws::obey;

pub(crate) const TICK: Duration = Duration::from_micros(1);

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) const fn mins(mins: u64) -> Duration {
    Duration::from_mins(mins)
}

#[derive(Clone, Debug)]
pub(crate) struct Bench {
    pub(crate) worker: Worker,
    pub(crate) now: Timestamp,
    pub(crate) effects: Vec<Effect>,
    pub(crate) entries: Vec<Entry>,
}

impl Bench {
    pub(crate) fn registered(driver: DriverKind, policy: &Policy) -> Bench {
        let now = Timestamp::from_secs(1_767_225_600);
        let id = WorkerId::new("web").expect("a slug");
        let worker = Worker::registered(id, driver, policy, now);
        Bench { worker, now, effects: Vec::new(), entries: Vec::new() }
    }

    /// A running worker with the built-in policy.
    pub(crate) fn running(driver: DriverKind) -> Bench {
        Bench::running_with(driver, |_| {})
    }

    pub(crate) fn running_with(driver: DriverKind, change: impl FnOnce(&mut Policy)) -> Bench {
        let mut policy = Policy::default();
        change(&mut policy);
        let mut bench = Bench::registered(driver, &policy);
        bench.ok(bench.look(Power::Running));
        assert_eq!(bench.kind(), StatusKind::Running);
        bench.wait(mins(61));
        bench
    }

    /// One that sleeps by being stopped.
    pub(crate) fn that_stops() -> Bench {
        Bench::running_with(DriverKind::Process, |policy| policy.sleep = Some(SleepMode::Stop))
    }

    pub(crate) fn kind(&self) -> StatusKind {
        self.worker.status.kind()
    }

    pub(crate) fn wait(&mut self, duration: Duration) -> &mut Bench {
        self.now = self.now + duration;
        self
    }

    /// Moves to `instant`.
    pub(crate) fn at(&mut self, instant: Timestamp) -> &mut Bench {
        self.now = instant;
        self
    }

    pub(crate) fn send(&mut self, event: Event) -> Result<Step, Refusal> {
        let outcome = step(&self.worker, &event, self.now);
        if let Ok(step) = &outcome {
            if let Err(broken) = obey(&self.worker, &event, step, self.now) {
                panic!("{broken}\nevent: {event:?}\nbefore: {:?}\nafter: {:?}", self.worker, step);
            }
            self.worker = step.worker.clone();
            self.effects.clone_from(&step.effects);
            self.entries.clone_from(&step.entries);
        }
        outcome
    }

    /// Sends what must not be refused.
    pub(crate) fn ok(&mut self, event: Event) -> &mut Bench {
        if let Err(refusal) = self.send(event.clone()) {
            panic!("{event:?} was refused ({refusal}) by {:?}", self.worker.status);
        }
        self
    }

    /// Sends what must be refused.
    pub(crate) fn refused(&mut self, event: Event) -> Refusal {
        match self.send(event.clone()) {
            Err(refusal) => refusal,
            Ok(step) => panic!("{event:?} was not refused: {step:?}"),
        }
    }

    /// Sends an event that must lead to `kind`.
    pub(crate) fn to(&mut self, kind: StatusKind, event: Event) -> &mut Bench {
        self.ok(event.clone());
        assert_eq!(self.kind(), kind, "after {event:?}: {:?}", self.worker.status);
        self
    }

    /// Sends an event that must change nothing.
    pub(crate) fn unchanged(&mut self, event: Event) -> &mut Bench {
        let before = self.worker.clone();
        let _ = self.send(event.clone());
        assert_eq!(self.worker, before, "{event:?} changed it");
        self
    }

    // What the shell knows of the worker.

    pub(crate) fn generation(&self) -> Generation {
        self.worker.generation
    }

    pub(crate) fn intent(&self) -> IntentId {
        self.worker.status.intent().expect("an intent is open")
    }

    pub(crate) fn deadline(&self) -> Timestamp {
        self.worker.status.deadline().expect("it has a deadline")
    }

    pub(crate) fn boot(&self) -> BootId {
        self.worker.boot.clone().unwrap_or_else(|| BootId::new("run-0"))
    }

    pub(crate) fn new_boot(&self) -> BootId {
        BootId::new(format!("run-{}", self.worker.generation))
    }

    // Events as the shell would send them now.

    pub(crate) fn look(&self, power: Power) -> Event {
        Event::Observed(Observation {
            power,
            began_at: self.now,
            generation: self.worker.generation,
            boot: matches!(power, Power::Running | Power::Paused).then(|| self.boot()),
            dated_at: None,
        })
    }

    pub(crate) fn look_at_run(&self, power: Power, boot: BootId) -> Event {
        let Event::Observed(seen) = self.look(power) else { unreachable!("a look is a look") };
        Event::Observed(Observation { boot: Some(boot), ..seen })
    }

    pub(crate) fn idle(&self) -> Event {
        Event::IdleConfirmed { fence: Fence::alone(&self.worker) }
    }

    pub(crate) fn max_runtime(&self) -> Event {
        Event::MaxRuntimeReached { fence: Fence::alone(&self.worker) }
    }

    pub(crate) fn schedule_sleep(&self, force: bool) -> Event {
        Event::ScheduleSaidSleep { force, fence: Fence::alone(&self.worker) }
    }

    pub(crate) fn done(&self) -> Event {
        Event::DriverDone { intent: self.intent(), exit_code: None, asked_at: None }
    }

    pub(crate) fn exit_done(&self, code: i32) -> Event {
        Event::DriverDone { intent: self.intent(), exit_code: Some(code), asked_at: None }
    }

    pub(crate) fn ready(&self) -> Event {
        let boot = if self.worker.boot_started_at.is_some() { self.boot() } else { self.new_boot() };
        Event::DriverReady { intent: self.intent(), boot: Some(boot), started_at: None }
    }

    pub(crate) fn refuses(&self) -> Event {
        Event::DriverRefused { intent: self.intent(), message: "busy".into() }
    }

    pub(crate) fn silent(&self) -> Event {
        Event::DriverSilent { generation: self.generation() }
    }

    pub(crate) fn exits(&self, code: i32) -> Event {
        Event::Exited { boot: self.boot(), code }
    }

    // Short cuts to a status.

    /// Looks twice, with time to settle between.
    pub(crate) fn see_twice(&mut self, power: Power) -> &mut Bench {
        self.wait(self.worker.can.settle_for + TICK);
        self.ok(self.look(power));
        self.wait(self.worker.can.settle_for + TICK);
        self.ok(self.look(power))
    }

    pub(crate) fn falls_asleep(&mut self, event: Event) -> &mut Bench {
        self.ok(event);
        self.wait(secs(1));
        self.ok(self.done());
        assert!(matches!(self.kind(), StatusKind::Paused | StatusKind::Stopped));
        self.wait(secs(1))
    }

    pub(crate) fn idles(&mut self) -> &mut Bench {
        self.falls_asleep(self.idle())
    }

    pub(crate) fn wakes(&mut self, event: Event) -> &mut Bench {
        self.to(StatusKind::Waking, event);
        self.wait(secs(1));
        self.to(StatusKind::Running, self.ready())
    }

    /// Past the deadline of what is under way.
    pub(crate) fn overdue(&mut self) -> &mut Bench {
        self.at(self.deadline())
    }

    pub(crate) fn becomes_unknown(&mut self) -> &mut Bench {
        self.overdue();
        self.to(StatusKind::Unknown, self.silent());
        self.wait(secs(60))
    }

    pub(crate) fn fails(&mut self) -> &mut Bench {
        for _ in 0..3 {
            self.ok(self.refuses());
        }
        assert_eq!(self.kind(), StatusKind::Failed);
        self.wait(secs(60))
    }
}

pub(crate) fn connect() -> Event {
    Event::WakeRequested { cause: WakeCause::Connection }
}

pub(crate) fn lease() -> Event {
    Event::WakeRequested { cause: WakeCause::Lease { holder: "build".into() } }
}

pub(crate) fn keep_awake() -> Event {
    Event::WakeRequested { cause: WakeCause::KeepAwake { by: "bob".into() } }
}

pub(crate) fn resume() -> Event {
    Event::ResumeRequested { by: "bob".into() }
}

pub(crate) fn request(force: bool, holds: Vec<Hold>) -> Request {
    Request { by: "alice".into(), message: "lunch".into(), force, holds }
}

pub(crate) fn pause() -> Event {
    Event::PauseRequested(request(false, Vec::new()))
}

pub(crate) fn stop() -> Event {
    Event::StopRequested(request(false, Vec::new()))
}

pub(crate) fn terminate() -> Event {
    Event::TerminateRequested(request(false, Vec::new()))
}

pub(crate) fn drain() -> Event {
    Event::DrainRequested(request(false, Vec::new()))
}

pub(crate) fn hold(kind: HoldKind, owner: &str) -> Hold {
    Hold { kind, owner: owner.into(), reason: "work".into(), since: Timestamp::EPOCH, until: None }
}
