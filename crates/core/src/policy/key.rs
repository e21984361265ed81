//! Every setting of a worker, as one table.
//!
//! A key's name, kind, default and description stand in one place. Parsing, merging, provenance, the
//! environment, the API and the generated reference all read this table, so that a key cannot be known
//! to one of them and lost by another.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::{Kind, Value};
use crate::reason::{IdlePolicy, PauseReason, PauseReasons};
use crate::signal::{Need, Signal};

/// A setting that a policy layer can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    AutoPause,
    IdleTimeout,
    Window,
    CheckInterval,
    TelemetryInterval,
    ActivityDetection,
    Snooze,
    SnoozeAfterThaw,
    Sleep,
    StopAfter,
    TerminateAfter,
    Grace,
    MaxRuntime,
    RuntimeExtensionMax,
    WarnAt,
    WarnRuntimeAt,
    MinNotice,
    LeaseTtlMax,
    LeaseCeiling,
    UnknownAlertAfter,
    HeartbeatInterval,
    StaleAfter,
    FlapGuard,
    StartupGrace,
    Protected,
    KeepAliveFile,
    KeepAliveMaxAge,
    Schedule,
    ConnectionIdle,
    IdlePolicy,
    WakeFrom,
    ScaleDown,
    MinWorkers,
    ScaleDownCooldown,
    DrainTimeout,
    RecentEvents,
    BeforePause,
    AfterResume,
    /// `signals.NAME.use`
    SignalUse(Signal),
    /// `signals.NAME.active_above`
    SignalAbove(Signal),
}

/// The keys that are not about one signal, in the order in which they are shown.
const PLAIN: [Key; 38] = [
    Key::AutoPause,
    Key::IdleTimeout,
    Key::Window,
    Key::CheckInterval,
    Key::TelemetryInterval,
    Key::ActivityDetection,
    Key::Snooze,
    Key::SnoozeAfterThaw,
    Key::Sleep,
    Key::StopAfter,
    Key::TerminateAfter,
    Key::Grace,
    Key::MaxRuntime,
    Key::RuntimeExtensionMax,
    Key::WarnAt,
    Key::WarnRuntimeAt,
    Key::MinNotice,
    Key::LeaseTtlMax,
    Key::LeaseCeiling,
    Key::UnknownAlertAfter,
    Key::HeartbeatInterval,
    Key::StaleAfter,
    Key::FlapGuard,
    Key::StartupGrace,
    Key::Protected,
    Key::KeepAliveFile,
    Key::KeepAliveMaxAge,
    Key::Schedule,
    Key::ConnectionIdle,
    Key::IdlePolicy,
    Key::WakeFrom,
    Key::ScaleDown,
    Key::MinWorkers,
    Key::ScaleDownCooldown,
    Key::DrainTimeout,
    Key::RecentEvents,
    Key::BeforePause,
    Key::AfterResume,
];

/// Signals that are measured, and therefore have a threshold.
const MEASURED: [Signal; 6] =
    [Signal::Tcp, Signal::Cpu, Signal::Gpu, Signal::Network, Signal::Processes, Signal::Prometheus];

impl Key {
    /// All keys, in the order in which they are shown.
    pub fn all() -> impl Iterator<Item = Key> {
        PLAIN
            .into_iter()
            .chain(Signal::ALL.into_iter().map(Key::SignalUse))
            .chain(MEASURED.into_iter().map(Key::SignalAbove))
    }

    /// The name as it is written below `[policy]`.
    pub fn name(self) -> String {
        if let Key::SignalUse(signal) = self {
            alloc::format!("signals.{signal}.use")
        } else if let Key::SignalAbove(signal) = self {
            alloc::format!("signals.{signal}.active_above")
        } else {
            self.plain_name().to_string()
        }
    }

    pub fn from_name(name: &str) -> Option<Key> {
        if let Some(rest) = name.strip_prefix("signals.") {
            let (signal, what) = rest.split_once('.')?;
            let signal = Signal::from_code(signal)?;
            return match what {
                "use" => Some(Key::SignalUse(signal)),
                "active_above" if MEASURED.contains(&signal) => Some(Key::SignalAbove(signal)),
                _ => None,
            };
        }
        PLAIN.into_iter().find(|key| key.plain_name() == name)
    }

    const fn plain_name(self) -> &'static str {
        match self {
            Key::AutoPause => "auto_pause",
            Key::IdleTimeout => "idle_timeout",
            Key::Window => "window",
            Key::CheckInterval => "check_interval",
            Key::TelemetryInterval => "telemetry_interval",
            Key::ActivityDetection => "activity_detection",
            Key::Snooze => "snooze",
            Key::SnoozeAfterThaw => "snooze_after_thaw",
            Key::Sleep => "sleep",
            Key::StopAfter => "stop_after",
            Key::TerminateAfter => "terminate_after",
            Key::Grace => "grace",
            Key::MaxRuntime => "max_runtime",
            Key::RuntimeExtensionMax => "runtime_extension_max",
            Key::WarnAt => "warn_at",
            Key::WarnRuntimeAt => "warn_runtime_at",
            Key::MinNotice => "min_notice",
            Key::LeaseTtlMax => "lease_ttl_max",
            Key::LeaseCeiling => "lease_ceiling",
            Key::UnknownAlertAfter => "unknown_alert_after",
            Key::HeartbeatInterval => "heartbeat_interval",
            Key::StaleAfter => "stale_after",
            Key::FlapGuard => "flap_guard",
            Key::StartupGrace => "startup_grace",
            Key::Protected => "protected",
            Key::KeepAliveFile => "keep_alive_file",
            Key::KeepAliveMaxAge => "keep_alive_max_age",
            Key::Schedule => "schedule",
            Key::ConnectionIdle => "connection_idle",
            Key::IdlePolicy => "idle_policy",
            Key::WakeFrom => "wake_from",
            Key::ScaleDown => "scale_down",
            Key::MinWorkers => "min_workers",
            Key::ScaleDownCooldown => "scale_down_cooldown",
            Key::DrainTimeout => "drain_timeout",
            Key::RecentEvents => "recent_events",
            Key::BeforePause => "before_pause",
            Key::AfterResume => "after_resume",
            Key::SignalUse(_) | Key::SignalAbove(_) => "signals",
        }
    }

    /// What its value looks like.
    pub const fn kind(self) -> Kind {
        match self {
            Key::AutoPause | Key::ActivityDetection | Key::FlapGuard | Key::Protected | Key::ScaleDown => {
                Kind::Flag
            }
            Key::IdleTimeout
            | Key::StopAfter
            | Key::TerminateAfter
            | Key::MaxRuntime
            | Key::ConnectionIdle => Kind::DurationOrNever,
            Key::CheckInterval | Key::TelemetryInterval | Key::HeartbeatInterval | Key::StaleAfter => {
                Kind::Interval
            }
            Key::Snooze
            | Key::SnoozeAfterThaw
            | Key::Grace
            | Key::RuntimeExtensionMax
            | Key::MinNotice
            | Key::LeaseTtlMax
            | Key::LeaseCeiling
            | Key::UnknownAlertAfter
            | Key::StartupGrace
            | Key::KeepAliveMaxAge
            | Key::ScaleDownCooldown
            | Key::DrainTimeout => Kind::Duration,
            Key::Window | Key::RecentEvents => Kind::Count { least: 1, most: 1_000 },
            Key::MinWorkers => Kind::Count { least: 0, most: 1_000_000 },
            Key::WarnAt | Key::WarnRuntimeAt => Kind::Percents,
            Key::Sleep => Kind::Sleep,
            Key::KeepAliveFile => Kind::Text,
            Key::Schedule => Kind::Schedule,
            Key::IdlePolicy => Kind::IdlePolicy,
            Key::WakeFrom => Kind::Reasons,
            Key::BeforePause | Key::AfterResume => Kind::Command,
            Key::SignalUse(_) => Kind::Need,
            Key::SignalAbove(signal) => match signal {
                Signal::Cpu | Signal::Gpu => Kind::Percent,
                Signal::Network => Kind::Size,
                Signal::Prometheus => Kind::Number,
                Signal::Telemetry
                | Signal::Connections
                | Signal::Activity
                | Signal::Tcp
                | Signal::Processes => Kind::Count { least: 0, most: 1_000_000 },
            },
        }
    }

    /// The built-in value; `None` where the value follows another key or the driver, or is simply absent.
    pub fn default(self) -> Option<Value> {
        let secs = |n| Some(Value::Duration(Duration::from_secs(n)));
        let minutes = |n: u64| Some(Value::Duration(Duration::from_mins(n)));
        let hours = |n: u64| Some(Value::Duration(Duration::from_hours(n)));
        match self {
            Key::AutoPause | Key::ActivityDetection | Key::FlapGuard => Some(Value::Flag(true)),
            Key::Protected | Key::ScaleDown => Some(Value::Flag(false)),
            Key::Window => Some(Value::Count(1)),
            Key::RecentEvents => Some(Value::Count(10)),
            Key::MinWorkers => Some(Value::Count(0)),
            Key::IdleTimeout => minutes(60),
            Key::StopAfter => minutes(5),
            Key::TerminateAfter | Key::MaxRuntime | Key::ConnectionIdle => Some(Value::Never),
            Key::Grace => secs(60),
            Key::SnoozeAfterThaw | Key::StartupGrace => secs(0),
            Key::RuntimeExtensionMax => hours(4),
            Key::WarnAt => Some(Value::Percents(vec![80.0, 95.0])),
            Key::WarnRuntimeAt => Some(Value::Percents(vec![75.0, 90.0])),
            Key::LeaseTtlMax => hours(1),
            Key::LeaseCeiling | Key::KeepAliveMaxAge => hours(24),
            Key::UnknownAlertAfter => minutes(15),
            Key::HeartbeatInterval => secs(30),
            Key::StaleAfter => secs(90),
            Key::KeepAliveFile => Some(Value::Text("/workspace/.keep-alive".to_string())),
            Key::IdlePolicy => Some(Value::IdlePolicy(IdlePolicy::Default)),
            Key::WakeFrom => {
                Some(Value::Reasons(PauseReasons::of([PauseReason::IdleTimeout, PauseReason::Schedule])))
            }
            Key::ScaleDownCooldown | Key::DrainTimeout => minutes(10),
            Key::SignalAbove(signal) => Some(default_threshold(signal)),
            Key::CheckInterval
            | Key::TelemetryInterval
            | Key::Snooze
            | Key::Sleep
            | Key::MinNotice
            | Key::Schedule
            | Key::BeforePause
            | Key::AfterResume
            | Key::SignalUse(_) => None,
        }
    }

    /// What it does, in one sentence for the person who sets it.
    pub const fn describe(self) -> &'static str {
        match self {
            Key::AutoPause => {
                "Whether Drowse may act. False at any layer means observe mode: verdicts are computed and journalled as `would_pause`, and nothing is touched."
            }
            Key::IdleTimeout => "How long a worker must be idle before it is put to sleep.",
            Key::Window => "How many consecutive quiet checks are needed besides the idle timeout.",
            Key::CheckInterval => {
                "How often a worker is looked at. Unless set: idle_timeout / (window + 1), between 1s and 5m."
            }
            Key::TelemetryInterval => {
                "How often a worker is looked at where telemetry is required. Unless set: idle_timeout / (window + 1), between 1s and 30m."
            }
            Key::ActivityDetection => {
                "Whether telemetry is read at all. False makes it unknown, so that nothing is put to sleep by it."
            }
            Key::Snooze => {
                "Protection from automatic sleep after a manual or external resume and after any start. Unless set: the smaller of 60m and idle_timeout."
            }
            Key::SnoozeAfterThaw => "The same after a connection woke a frozen worker.",
            Key::Sleep => {
                "How a worker is put to sleep: freeze, stop or hibernate. Unless set: freeze where the driver can, else stop."
            }
            Key::StopAfter => "How long a worker stays frozen before it is stopped.",
            Key::TerminateAfter => "How long a worker stays asleep before it is deleted.",
            Key::Grace => "The time between SIGTERM and SIGKILL when a worker is stopped.",
            Key::MaxRuntime => {
                "How long a worker may run at most, busy or not. Time spent frozen does not count."
            }
            Key::RuntimeExtensionMax => "How far a person's keep-awake may put off the end of max_runtime.",
            Key::WarnAt => "At which parts of the idle timeout the user is warned.",
            Key::WarnRuntimeAt => "At which parts of max_runtime the user is warned.",
            Key::MinNotice => {
                "The least time between a warning and what it warns of, at most 20 % of the timeout. Unless set: 5m."
            }
            Key::LeaseTtlMax => "The longest time for which a lease may be taken or renewed at once.",
            Key::LeaseCeiling => {
                "The longest time for which a worker may be kept awake by leases without a break."
            }
            Key::UnknownAlertAfter => "How long a worker may be unknown before an event says so.",
            Key::HeartbeatInterval => "How often an agent says that it exists.",
            Key::StaleAfter => "How old the last heartbeat may be before the worker counts as offline.",
            Key::FlapGuard => {
                "Whether the idle timeout grows, up to eight times, while every sleep is undone by a wake at once."
            }
            Key::StartupGrace => "How long a worker is left alone after its start.",
            Key::Protected => "Never touched: neither put to sleep nor stopped nor warned.",
            Key::KeepAliveFile => "A file in the worker that keeps it awake while it exists.",
            Key::KeepAliveMaxAge => "How old that file may be and still count.",
            Key::Schedule => {
                "Weekly windows with a time zone: keep awake, sleep, or shorten the idle timeout."
            }
            Key::ConnectionIdle => "After how long without a byte a connection stops counting.",
            Key::IdlePolicy => {
                "Which of the agent's signals count: default, or leases_only for programs that always poll."
            }
            Key::WakeFrom => "Which kinds of sleep a connection or a lease may end.",
            Key::ScaleDown => "Whether an idle worker is drained and deleted instead of put to sleep.",
            Key::MinWorkers => "How many workers of a region are never scaled down.",
            Key::ScaleDownCooldown => "The least time between two scale-downs.",
            Key::DrainTimeout => "How long a worker may drain before it goes back to work.",
            Key::RecentEvents => "How many activity events are kept with a worker.",
            Key::BeforePause => "A hook that runs before a worker sleeps and may veto it.",
            Key::AfterResume => "A hook that runs when a worker is back.",
            Key::SignalUse(_) => {
                "Whether the signal is required, counted or off. Unless set: as the driver's table says."
            }
            Key::SignalAbove(Signal::Network) => {
                "Bytes received and sent per 5 minutes above which the worker counts as in use; scaled to the check interval, at least 512 bytes."
            }
            Key::SignalAbove(_) => "The value above which the worker counts as in use; equal is quiet.",
        }
    }

    /// The key that decides when this one is not set, for the explanation.
    pub const fn follows(self) -> Option<Key> {
        if matches!(self, Key::CheckInterval | Key::TelemetryInterval | Key::Snooze | Key::MinNotice) {
            Some(Key::IdleTimeout)
        } else {
            None
        }
    }
}

/// Seed 004's thresholds, and "any at all" for what is counted in pieces.
fn default_threshold(signal: Signal) -> Value {
    match signal {
        Signal::Cpu => Value::Percent(2.0),
        Signal::Gpu => Value::Percent(5.0),
        Signal::Network => Value::Size(1 << 20),
        Signal::Prometheus => Value::Number(0.0),
        // One process is the worker itself.
        Signal::Processes => Value::Count(1),
        Signal::Telemetry | Signal::Connections | Signal::Activity | Signal::Tcp => Value::Count(0),
    }
}

/// The needs that a policy may name, for error messages.
pub(super) fn need_codes() -> Vec<&'static str> {
    Need::ALL.iter().map(|need| need.code()).collect()
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <alloc::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Key::from_name(&name)
            .ok_or_else(|| serde::de::Error::custom(alloc::format!("unknown policy key {name:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_by_its_name() {
        for key in Key::all() {
            assert_eq!(Key::from_name(&key.name()), Some(key), "{key}");
        }
        assert_eq!(Key::all().count(), 38 + 9 + 6);
        for unknown in ["", "signals", "signals.cpu", "signals.cpu.above", "signals.telemetry.active_above"] {
            assert_eq!(Key::from_name(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn every_default_is_of_its_kind() {
        for key in Key::all() {
            if let Some(value) = key.default() {
                assert!(value.is_of(key.kind()), "{key}: {value:?}");
            }
        }
    }
}
