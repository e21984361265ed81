//! One worker and all that a verdict looks at, so that a test reads as the story it tells.

use core::time::Duration;

use drowse_core::evidence::{Evidence, Read};
use drowse_core::hold::{Hold, HoldKind};
use drowse_core::id::WorkerId;
use drowse_core::policy::exemption::{Exempt, Exemption, Expiry, From, Subject};
use drowse_core::policy::{Key, Kind, Level, Policy, PolicyLayer, Raw, Source, Value, resolve};
use drowse_core::reason::{PauseReason, SleepMode};
use drowse_core::schedule::Schedule;
use drowse_core::signal::{DriverKind, Need, Signal, UnknownCause};
use drowse_core::status::{Sleep, Status, StatusKind};
use drowse_core::verdict::{Action, Snapshot, Verdict, Warned};
use drowse_core::worker::{Terms, Worker};
use drowse_core::{Timestamp, judge};

/// A microsecond: the smallest step there is.
pub(super) const TICK: Duration = Duration::from_micros(1);

/// Monday, 2 March 2026, midnight in UTC, and that many seconds.
pub(super) fn at(secs: i64) -> Timestamp {
    Timestamp::from_secs(1_772_409_600 + secs)
}

pub(super) fn minute(minutes: i64) -> Timestamp {
    at(minutes * 60)
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A value as it is written in the configuration, without the quotation marks.
pub(super) fn raw(kind: Kind, text: &str) -> Raw {
    let list = || text.split(',').filter(|part| !part.is_empty()).map(|part| Raw::Text(part.trim().into()));
    match kind {
        Kind::Flag => Raw::Bool(text == "true"),
        Kind::Count { .. } => Raw::Integer(text.parse().expect("a count")),
        Kind::Number => Raw::Float(text.parse().expect("a number")),
        Kind::Percents | Kind::Command | Kind::Reasons => Raw::List(list().collect()),
        Kind::Schedule => Raw::Schedule(Box::new(schedule(text))),
        Kind::Duration
        | Kind::Interval
        | Kind::DurationOrNever
        | Kind::Percent
        | Kind::Size
        | Kind::Text
        | Kind::Sleep
        | Kind::IdlePolicy
        | Kind::Need => Raw::Text(text.into()),
    }
}

pub(super) fn value(key: Key, text: &str) -> Value {
    Value::read(key.kind(), &raw(key.kind(), text)).unwrap_or_else(|error| panic!("{key}: {error}"))
}

/// A schedule in UTC from the tables of its windows.
pub(super) fn schedule(windows: &str) -> Schedule {
    #[derive(serde::Deserialize)]
    struct File {
        schedule: Schedule,
    }
    let text = format!("schedule = {{ zone = \"UTC\", windows = [ {windows} ] }}");
    toml::from_str::<File>(&text).expect("a schedule").schedule
}

/// A layer whose values are written as in the configuration.
pub(super) fn layer(level: Level, name: Option<&str>, values: &[(&str, &str)]) -> PolicyLayer {
    values.iter().fold(PolicyLayer::new(level, name, Source::File), |layer, (name, text)| {
        let key = Key::from_name(name).unwrap_or_else(|| panic!("no key {name}"));
        layer.with(key, value(key, text))
    })
}

pub(super) fn policy(values: &[(&str, &str)]) -> Policy {
    resolve(&[layer(Level::Global, None, values)]).0
}

pub(super) fn hold(kind: HoldKind, since: Timestamp, until: Option<Timestamp>) -> Hold {
    Hold { kind, owner: "ada".into(), reason: "work".into(), since, until }
}

pub(super) fn exemption(from: &[From], expires_on: Expiry) -> Exemption {
    Exemption {
        subject: Subject::Worker("w".into()),
        from: from.into(),
        reason: "thesis".into(),
        approved_by: "carol".into(),
        expires_on,
    }
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) worker: Worker,
    pub(super) policy: Policy,
    pub(super) evidence: Evidence,
    pub(super) holds: Vec<Hold>,
    pub(super) hold_ended_at: Option<Timestamp>,
    pub(super) exemptions: Vec<Exemption>,
    pub(super) is_braked: bool,
    pub(super) is_seen: bool,
    pub(super) can_scale_down: bool,
    pub(super) idle_warned: Option<Warned>,
    pub(super) runtime_warned: Option<Warned>,
    pub(super) schedule_warned: Option<Warned>,
    pub(super) stop_warned: Option<Warned>,
    pub(super) deletion_warned: Option<Warned>,
}

impl World {
    /// A worker that was registered, started and first seen running at midnight.
    pub(super) fn new(driver: DriverKind, policy: Policy) -> Self {
        let id = "w".parse::<WorkerId>().expect("a lawful id");
        let mut worker = Worker::registered(id, driver, &policy, at(0));
        worker.status = Status::Running { since: at(0) };
        worker.boot_started_at = Some(at(0));
        Self {
            worker,
            policy,
            evidence: Evidence::default(),
            holds: Vec::new(),
            hold_ended_at: None,
            exemptions: Vec::new(),
            is_braked: false,
            is_seen: true,
            can_scale_down: false,
            idle_warned: None,
            runtime_warned: None,
            schedule_warned: None,
            stop_warned: None,
            deletion_warned: None,
        }
    }

    /// A plain process with this policy, judged by its processor time alone.
    pub(super) fn process(values: &[(&str, &str)]) -> Self {
        Self::new(DriverKind::Process, policy(values))
    }

    /// The same behind the front door, so that its freeze needs no notice.
    pub(super) fn routed(values: &[(&str, &str)]) -> Self {
        let mut world = Self::process(values);
        world.worker.is_routed = true;
        world
    }

    pub(super) fn set_policy(&mut self, policy: Policy) {
        self.worker.terms = Terms::of(&policy, self.worker.can);
        self.policy = policy;
    }

    pub(super) fn needs(&self) -> [Need; Signal::COUNT] {
        self.policy.needs(self.worker.nature())
    }

    pub(super) fn interval(&self) -> Duration {
        self.policy.interval(&self.needs())
    }

    pub(super) fn record(&mut self, signal: Signal, read: Read, now: Timestamp) {
        let interval = self.interval();
        self.evidence.record(signal, read, true, interval, now);
    }

    /// Every signal that matters is read and quiet.
    pub(super) fn quiet(&mut self, now: Timestamp) {
        let needs = self.needs();
        for signal in Signal::ALL {
            if needs[signal as usize] != Need::Off {
                self.record(signal, Read::quiet(now), now);
            }
        }
    }

    pub(super) fn active(&mut self, signal: Signal, when: Timestamp, now: Timestamp) {
        self.record(signal, Read::active(when, now), now);
    }

    pub(super) fn unknown(&mut self, signal: Signal, cause: UnknownCause, now: Timestamp) {
        self.record(signal, Read::unknown(cause, now), now);
    }

    pub(super) fn status(&mut self, kind: StatusKind, since: Timestamp) {
        self.worker.status = status(kind, since);
    }

    fn judged(&self, check_began_at: Option<Timestamp>, now: Timestamp) -> Verdict {
        judge(&self.snapshot(check_began_at, now), &self.policy, now)
    }

    pub(super) fn snapshot(&self, check_began_at: Option<Timestamp>, now: Timestamp) -> Snapshot<'_> {
        Snapshot {
            worker: &self.worker,
            evidence: &self.evidence,
            holds: &self.holds,
            hold_ended_at: self.hold_ended_at,
            exempt: Exempt::of(&self.exemptions, &self.worker.selectors, now),
            is_braked: self.is_braked,
            check_began_at,
            is_seen: self.is_seen,
            idle_warned: self.idle_warned,
            runtime_warned: self.runtime_warned,
            schedule_warned: self.schedule_warned,
            stop_warned: self.stop_warned,
            deletion_warned: self.deletion_warned,
            can_scale_down: self.can_scale_down,
        }
    }

    /// Somebody looks between checks.
    pub(super) fn look(&self, now: Timestamp) -> Verdict {
        self.judged(None, now)
    }

    /// A check on what was read at `now`. What it finds is written down, its warnings are sent.
    pub(super) fn check(&mut self, now: Timestamp) -> Verdict {
        let verdict = self.judged(Some(now), now);
        verdict.note(&mut self.evidence);
        for (warning, warned) in [
            (verdict.idle_warning, &mut self.idle_warned),
            (verdict.runtime_warning, &mut self.runtime_warned),
            (verdict.schedule_warning, &mut self.schedule_warned),
            (verdict.stop_warning, &mut self.stop_warned),
            (verdict.deletion_warning, &mut self.deletion_warned),
        ] {
            if let Some(warning) = warning {
                *warned = Some(warning.sent(*warned, now));
            }
        }
        verdict
    }

    /// All is quiet, and a check sees it.
    pub(super) fn quiet_check(&mut self, now: Timestamp) -> Verdict {
        self.quiet(now);
        self.check(now)
    }

    /// Checks whenever one is due from `from` on, and at `until`; `read` says what is found each time. Ends
    /// with the first action or at `until`.
    pub(super) fn run(
        &mut self,
        from: Timestamp,
        until: Timestamp,
        read: impl Fn(&mut World, Timestamp),
    ) -> Vec<Verdict> {
        let mut seen = Vec::new();
        let mut now = from;
        loop {
            read(self, now);
            let verdict = self.check(now);
            seen.push(verdict);
            assert!(verdict.next_check_at > now, "{verdict:?}");
            assert!(seen.len() < 20_000, "no end at {now}: {verdict:?}");
            if verdict.action != Action::None || now == until {
                return seen;
            }
            now = verdict.next_check_at.min(until);
        }
    }

    /// As [`World::run`] with nothing but quiet; only the last verdict.
    pub(super) fn run_quiet(&mut self, from: Timestamp, until: Timestamp) -> Verdict {
        *self.run(from, until, World::quiet).last().expect("at least one check")
    }
}

/// The action that puts to sleep for idleness.
pub(super) const IDLE: Action = Action::Sleep { reason: PauseReason::IdleTimeout };

pub(super) fn sleep(reason: PauseReason, when: Timestamp) -> Sleep {
    Sleep { reason, by: "drowse".into(), message: String::new(), at: when, forced: false }
}

/// A status of this kind, with data that fits.
pub(super) fn status(kind: StatusKind, since: Timestamp) -> Status {
    use drowse_core::id::IntentId;
    use drowse_core::status::{FailCause, Stage, WakeCause, WakeFrom};
    let intent = IntentId(1);
    let deadline = since + secs(600);
    let sleep = sleep(PauseReason::IdleTimeout, since);
    let by = String::from("ada");
    match kind {
        StatusKind::Provisioning => Status::Provisioning { since, deadline, refusals: 0 },
        StatusKind::Running => Status::Running { since },
        StatusKind::Pausing => {
            Status::Pausing { intent, since, deadline, sleep, stage: Stage::Acting, wake: None, refusals: 0 }
        }
        StatusKind::Paused => Status::Paused { since, sleep },
        StatusKind::Waking => Status::Waking {
            intent,
            since,
            deadline,
            from: WakeFrom::Frozen,
            cause: WakeCause::Connection,
            sleep: None,
            not_before: since,
            refusals: 0,
        },
        StatusKind::Stopping => Status::Stopping {
            intent,
            since,
            deadline,
            sleep,
            mode: SleepMode::Stop,
            stage: Stage::Acting,
            was_paused: false,
            wake: None,
            refusals: 0,
        },
        StatusKind::Stopped => Status::Stopped { since, sleep },
        StatusKind::Draining => {
            Status::Draining { since, deadline, by, reason: PauseReason::ScaleDown, was_stopped: None }
        }
        StatusKind::Terminating => {
            Status::Terminating { intent, since, deadline, by, is_ordered: false, refusals: 0, sleep: None }
        }
        StatusKind::Terminated => Status::Terminated { since },
        StatusKind::Failed => Status::Failed { since, cause: FailCause::Refused, message: "no".into() },
        StatusKind::Unknown => Status::Unknown { since, sleep: None },
    }
}
