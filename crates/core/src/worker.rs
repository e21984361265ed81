//! A worker: what it is, what it is doing, and what has happened to it.

use alloc::boxed::Box;
use alloc::string::String;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::flap::Flap;
use crate::grace::CrashLoop;
use crate::id::{BootId, Generation, WorkerId};
use crate::policy::{Policy, Selectors};
use crate::reason::{PauseReason, PauseReasons, ResumeReason, SleepMode};
use crate::signal::{DriverKind, Nature};
use crate::status::Status;

/// How long a stop may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopTime {
    /// We count the worker's grace; this long beyond it.
    BeyondGrace(Duration),
    /// The cloud counts a grace of its own; this long in all.
    InAll(Duration),
}

impl StopTime {
    /// The time for a worker whose grace is `grace`.
    pub const fn with(self, grace: Duration) -> Duration {
        match self {
            StopTime::BeyondGrace(more) => grace.saturating_add(more),
            StopTime::InAll(all) => all,
        }
    }
}

/// What a driver can do and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each says what one driver can do and another cannot")]
pub struct Capabilities {
    /// It can freeze in place.
    pub can_freeze: bool,
    /// It can put memory to disk.
    pub can_hibernate: bool,
    /// It exits by itself and can be started again by us.
    pub restarts_on_error: bool,
    /// Others start and stop it too, so that it is looked at once more before it is acted on.
    #[serde(default)]
    pub is_shared: bool,
    /// How long a thaw or a start may take.
    pub waking_within: Duration,
    /// How long a stop may take.
    pub stopping_within: StopTime,
    /// How long after one of our own changes an observation may still show the old state.
    pub settle_for: Duration,
}

impl Capabilities {
    pub const fn of(driver: DriverKind) -> Self {
        let local = Capabilities {
            can_freeze: true,
            can_hibernate: false,
            restarts_on_error: false,
            is_shared: false,
            waking_within: Duration::from_mins(1),
            stopping_within: StopTime::BeyondGrace(Duration::from_secs(30)),
            settle_for: Duration::ZERO,
        };
        match driver {
            DriverKind::Process | DriverKind::Sim => Capabilities { restarts_on_error: true, ..local },
            DriverKind::Qemu => local,
            // The engine answers before its events and lists agree.
            DriverKind::Docker => {
                Capabilities { is_shared: true, settle_for: Duration::from_secs(1), ..local }
            }
            // EC2 is eventually consistent and takes minutes.
            DriverKind::Ec2 => Capabilities {
                can_freeze: false,
                can_hibernate: true,
                is_shared: true,
                waking_within: Duration::from_mins(10),
                stopping_within: StopTime::InAll(Duration::from_mins(10)),
                settle_for: Duration::from_secs(30),
                ..local
            },
        }
    }
}

/// The settings that a change of status needs, taken from the worker's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "settings that have nothing to do with each other")]
pub struct Terms {
    /// How it sleeps, after what the driver can do.
    pub sleep: SleepMode,
    /// The policy asked for something that the driver cannot do, and stop took its place.
    pub sleep_replaced: bool,
    pub stop_after: Option<Duration>,
    pub terminate_after: Option<Duration>,
    pub grace: Duration,
    pub snooze: Duration,
    pub snooze_after_thaw: Duration,
    pub wake_from: PauseReasons,
    pub drain_timeout: Duration,
    /// For the flap guard: how long a sleep must last to count as one.
    pub idle_timeout: Option<Duration>,
    pub has_before_pause: bool,
    pub has_after_resume: bool,
    /// Nobody touches it who does not insist.
    pub protected: bool,
}

impl Default for Terms {
    /// What stands in for the terms of a stored worker until they are taken from its policy again: nothing
    /// happens by itself, and nothing but a person wakes it.
    fn default() -> Self {
        Self {
            sleep: SleepMode::Stop,
            sleep_replaced: false,
            stop_after: None,
            terminate_after: None,
            grace: Duration::from_mins(1),
            snooze: Duration::ZERO,
            snooze_after_thaw: Duration::ZERO,
            wake_from: PauseReasons::NONE,
            drain_timeout: Duration::from_mins(10),
            idle_timeout: None,
            has_before_pause: false,
            has_after_resume: false,
            protected: false,
        }
    }
}

impl Terms {
    pub fn of(policy: &Policy, can: Capabilities) -> Self {
        let wanted = policy.sleep.unwrap_or(if can.can_freeze { SleepMode::Freeze } else { SleepMode::Stop });
        let is_possible = match wanted {
            SleepMode::Freeze => can.can_freeze,
            SleepMode::Stop => true,
            SleepMode::Hibernate => can.can_hibernate,
        };
        Self {
            sleep: if is_possible { wanted } else { SleepMode::Stop },
            sleep_replaced: !is_possible,
            stop_after: policy.stop_after,
            terminate_after: policy.terminate_after,
            grace: policy.grace,
            snooze: policy.snooze,
            snooze_after_thaw: policy.snooze_after_thaw,
            wake_from: policy.wake_from,
            drain_timeout: policy.drain_timeout,
            idle_timeout: policy.idle_timeout,
            has_before_pause: policy.before_pause.is_some(),
            has_after_resume: policy.after_resume.is_some(),
            protected: policy.protected,
        }
    }
}

/// How often what has happened. Counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Put to sleep for idleness or by a schedule.
    pub auto_pause: u64,
    /// Put to sleep by a person.
    pub manual_pause: u64,
    /// Back through a connection, a lease or a schedule.
    pub auto_resume: u64,
    /// Back through a person.
    pub manual_resume: u64,
    /// Put to sleep behind our back.
    pub external_pause: u64,
    /// Started behind our back.
    pub external_resume: u64,
    /// Stopped after `max_runtime`.
    pub max_runtime: u64,
    /// Drained because the fleet was too large.
    pub scale_down: u64,
}

impl Counters {
    pub(crate) fn count_pause(&mut self, reason: PauseReason) {
        match reason {
            PauseReason::IdleTimeout | PauseReason::Schedule => self.auto_pause += 1,
            PauseReason::Manual => self.manual_pause += 1,
            PauseReason::External => self.external_pause += 1,
            PauseReason::MaxRuntime => self.max_runtime += 1,
            PauseReason::ScaleDown => self.scale_down += 1,
        }
    }

    pub(crate) fn count_resume(&mut self, reason: ResumeReason) {
        match reason {
            ResumeReason::Wake | ResumeReason::Schedule => self.auto_resume += 1,
            ResumeReason::Manual => self.manual_resume += 1,
            ResumeReason::External => self.external_resume += 1,
            ResumeReason::Undo | ResumeReason::Restart => {}
        }
    }
}

/// The last time something happened, by whom and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last<R> {
    /// When.
    pub at: Timestamp,
    /// Who caused it.
    pub by: String,
    /// Why.
    pub reason: R,
}

/// A look at the driver that contradicts what we believe, waiting for a second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspicion {
    /// What was seen.
    pub power: Power,
    /// When the look began.
    pub seen_at: Timestamp,
}

/// A transition that was given up. What the driver does late still belongs to it and is put right, never
/// taken for somebody else's doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abandoned {
    /// The transition as it was.
    pub was: Status,
    /// How long its effect may be late; `None` until the worker has come to rest.
    pub until: Option<Timestamp>,
}

/// What a driver can see of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Power {
    /// It runs.
    Running,
    /// It is frozen.
    Paused,
    /// It is there and does not run.
    Stopped,
    /// It no longer exists.
    Gone,
}

/// One unit of compute that Drowse looks after.
///
/// All of it can be stored but `terms`: they follow from the policy, and whoever reads a worker back
/// resolves it again and sets them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// Its stable name.
    pub id: WorkerId,
    /// The attributes that select its policy.
    pub selectors: Selectors,
    /// Who looks after it.
    pub driver: DriverKind,
    /// What that driver can do.
    pub can: Capabilities,
    /// What its policy says about changes of status. Not stored: whoever loads a worker takes it from the
    /// policy of that moment.
    #[serde(skip)]
    pub terms: Terms,
    /// The front door has a port for it.
    pub is_routed: bool,
    /// False: taken out of service, so nothing wakes it.
    pub in_service: bool,
    /// What it is doing.
    pub status: Status,
    /// How many transitions it has made.
    pub generation: Generation,
    /// Identity of this run; `None` until it has run.
    pub boot: Option<BootId>,
    /// When Drowse first heard of it.
    pub created_at: Timestamp,
    /// When this run began.
    pub boot_started_at: Option<Timestamp>,
    /// How long it has been frozen in this run, up to the last thaw.
    pub frozen_for: Duration,
    /// Its last sleep.
    pub last_pause: Option<Last<PauseReason>>,
    /// Its last resume.
    pub last_resume: Option<Last<ResumeReason>>,
    /// How often what has happened.
    pub counters: Counters,
    /// Whether its sleeps are undone at once.
    pub flap: Flap,
    /// Its latest exits.
    pub crashes: CrashLoop,
    /// A contradiction that was seen once.
    pub suspicion: Option<Suspicion>,
    /// The last transition, if it did not end as it was meant to.
    #[serde(default)]
    pub abandoned: Option<Box<Abandoned>>,
    /// How often in a row its `before_pause` hook has said no.
    #[serde(default)]
    pub vetoes: u32,
    /// It was told at its freeze that `stop_after` stops it then.
    #[serde(default)]
    pub stop_announced_for: Option<Timestamp>,
    /// Its GPU has been read in this run.
    pub gpu_was_read: bool,
}

/// How long a worker may take to appear.
const PROVISIONING_WITHIN: Duration = Duration::from_mins(15);

impl Worker {
    /// A worker that has just been registered and not been looked at.
    pub fn registered(id: WorkerId, driver: DriverKind, policy: &Policy, now: Timestamp) -> Self {
        let can = Capabilities::of(driver);
        Self {
            selectors: Selectors { worker: id.as_str().into(), ..Selectors::default() },
            id,
            driver,
            can,
            terms: Terms::of(policy, can),
            is_routed: false,
            in_service: true,
            status: Status::Provisioning { since: now, deadline: now + PROVISIONING_WITHIN, refusals: 0 },
            generation: Generation::default(),
            boot: None,
            created_at: now,
            boot_started_at: None,
            frozen_for: Duration::ZERO,
            last_pause: None,
            last_resume: None,
            counters: Counters::default(),
            flap: Flap::default(),
            crashes: CrashLoop::default(),
            suspicion: None,
            abandoned: None,
            vetoes: 0,
            stop_announced_for: None,
            gpu_was_read: false,
        }
    }

    /// What decides which signals it needs.
    pub fn nature(&self) -> Nature {
        Nature {
            driver: self.driver,
            is_cml: self.selectors.kind.as_deref() == Some("cml"),
            is_routed: self.is_routed,
            gpu_was_read: self.gpu_was_read,
        }
    }

    /// How long it has run in this boot, without the time it was frozen.
    pub fn ran_for(&self, now: Timestamp) -> Duration {
        let frozen_now =
            if let Status::Paused { since, .. } = self.status { now.since(since) } else { Duration::ZERO };
        self.boot_started_at
            .map_or(Duration::ZERO, |started| now.since(started).saturating_sub(self.frozen_for + frozen_now))
    }
}
