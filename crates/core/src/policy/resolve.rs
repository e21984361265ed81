//! From layers to one policy, with the layer that set each value.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::Policy;
use super::key::Key;
use super::layer::{Level, Origin, PolicyLayer, Source};
use super::value::Value;
use crate::reason::{IdlePolicy, PauseReasons, SleepMode};
use crate::schedule::Schedule;
use crate::signal::{Need, PerSignal, Signal};

/// Which layer set which value.
pub type Provenance = BTreeMap<Key, Origin>;

/// Layers on their way to a policy.
///
/// Of each key it keeps one value a level, the one from the strongest source. That makes the order in
/// which layers are pushed irrelevant, and pushing them one by one the same as all at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stack {
    values: BTreeMap<(Key, Level), (Value, Origin)>,
}

impl Stack {
    pub fn push(&mut self, layer: &PolicyLayer) {
        for (key, value) in &layer.values {
            let slot = (*key, layer.level);
            let stands = self.values.get(&slot).is_some_and(|(_, origin)| origin.source > layer.source);
            if !stands {
                self.values.insert(slot, (value.clone(), layer.origin()));
            }
        }
    }

    /// The value that counts for `key`, with its origin.
    fn winner(&self, key: Key) -> Option<(&Value, &Origin)> {
        let mut levels = self.values.range((key, Level::BuiltIn)..=(key, Level::Worker)).rev();
        if key == Key::AutoPause {
            // Joined by AND over all levels: false anywhere means observe mode. The most specific "no" is
            // named, else the most specific "yes".
            let mut first = None;
            for (_, (value, origin)) in levels {
                if *value == Value::Flag(false) {
                    return Some((value, origin));
                }
                first = first.or(Some((value, origin)));
            }
            return first;
        }
        levels.next().map(|(_, (value, origin))| (value, origin))
    }

    /// The resolved policy and where each of its values comes from.
    pub fn finish(&self) -> (Policy, Provenance) {
        let mut provenance = Provenance::new();
        for key in Key::all() {
            let origin = match (self.winner(key), key.follows()) {
                (Some((_, origin)), _) => origin.clone(),
                (None, Some(followed)) => Origin::following(followed),
                (None, None) => Origin::BUILT_IN,
            };
            provenance.insert(key, origin);
        }
        (Reader(self).policy(), provenance)
    }

    /// The values as they were set, for display; keys that nobody set are left out.
    pub fn set_values(&self) -> BTreeMap<Key, Value> {
        Key::all().filter_map(|key| self.winner(key).map(|(value, _)| (key, value.clone()))).collect()
    }

    /// Whether the environment pins `key`, so that an edit is refused.
    pub fn is_pinned(&self, key: Key) -> bool {
        self.values
            .range((key, Level::BuiltIn)..=(key, Level::Worker))
            .any(|(_, (_, origin))| origin.source == Source::Environment)
    }
}

/// Resolves layers into one policy: which layer set which value.
pub fn resolve(layers: &[PolicyLayer]) -> (Policy, Provenance) {
    let mut stack = Stack::default();
    for layer in layers {
        stack.push(layer);
    }
    stack.finish()
}

/// Reads typed values out of a stack. A value of the wrong kind cannot be there: [`Value::read`] is the
/// only way in, and tests hold defaults to it; should it happen all the same, the built-in value counts.
struct Reader<'a>(&'a Stack);

impl Reader<'_> {
    fn value<T>(&self, key: Key, take: impl Fn(&Value) -> Option<T>) -> Option<T> {
        self.0
            .winner(key)
            .and_then(|(value, _)| take(value))
            .or_else(|| key.default().as_ref().and_then(take))
    }

    fn flag(&self, key: Key) -> bool {
        self.value(key, |value| if let Value::Flag(flag) = value { Some(*flag) } else { None })
            .unwrap_or(false)
    }

    fn count(&self, key: Key) -> u32 {
        self.value(key, |value| if let Value::Count(count) = value { Some(*count) } else { None })
            .unwrap_or(0)
    }

    /// The duration that was set, or `None` for "never" and for keys that follow another.
    fn duration(&self, key: Key) -> Option<Duration> {
        // "Never" is a value: it must not fall back to the default.
        self.value(key, |value| {
            if let Value::Duration(duration) = value {
                Some(Some(*duration))
            } else {
                (*value == Value::Never).then_some(None)
            }
        })
        .flatten()
    }

    fn sure_duration(&self, key: Key) -> Duration {
        self.duration(key).unwrap_or_default()
    }

    fn percents(&self, key: Key) -> Vec<f64> {
        self.value(key, |value| if let Value::Percents(parts) = value { Some(parts.clone()) } else { None })
            .unwrap_or_default()
    }

    fn command(&self, key: Key) -> Option<Vec<String>> {
        self.value(key, |value| if let Value::Command(words) = value { Some(words.clone()) } else { None })
    }

    fn threshold(&self, signal: Signal) -> f64 {
        self.value(Key::SignalAbove(signal), Value::as_threshold).unwrap_or(0.0)
    }

    fn policy(&self) -> Policy {
        let mut needs: PerSignal<Option<Need>> = [None; Signal::COUNT];
        let mut active_above: PerSignal<f64> = [0.0; Signal::COUNT];
        for signal in Signal::ALL {
            needs[signal as usize] = self.value(Key::SignalUse(signal), |value| {
                if let Value::Need(need) = value { Some(*need) } else { None }
            });
            active_above[signal as usize] = self.threshold(signal);
        }
        let idle_timeout = self.duration(Key::IdleTimeout);
        let window = self.count(Key::Window).max(1);
        let follow = Follow { idle_timeout, window };
        Policy {
            auto_pause: self.flag(Key::AutoPause),
            idle_timeout,
            window,
            check_interval: self
                .duration(Key::CheckInterval)
                .unwrap_or_else(|| follow.interval(LONGEST_CHECK)),
            telemetry_interval: self
                .duration(Key::TelemetryInterval)
                .unwrap_or_else(|| follow.interval(LONGEST_TELEMETRY)),
            activity_detection: self.flag(Key::ActivityDetection),
            snooze: self.duration(Key::Snooze).unwrap_or_else(|| follow.snooze()),
            snooze_after_thaw: self.sure_duration(Key::SnoozeAfterThaw),
            sleep: self.value(Key::Sleep, |value| {
                if let Value::Sleep(mode) = value { Some(*mode) } else { None::<SleepMode> }
            }),
            stop_after: self.duration(Key::StopAfter),
            terminate_after: self.duration(Key::TerminateAfter),
            grace: self.sure_duration(Key::Grace),
            max_runtime: self.duration(Key::MaxRuntime),
            runtime_extension_max: self.sure_duration(Key::RuntimeExtensionMax),
            warn_at: self.percents(Key::WarnAt),
            warn_runtime_at: self.percents(Key::WarnRuntimeAt),
            min_notice: self.duration(Key::MinNotice).unwrap_or(LONGEST_NOTICE),
            lease_ttl_max: self.sure_duration(Key::LeaseTtlMax),
            lease_ceiling: self.sure_duration(Key::LeaseCeiling),
            unknown_alert_after: self.sure_duration(Key::UnknownAlertAfter),
            heartbeat_interval: self.sure_duration(Key::HeartbeatInterval),
            stale_after: self.sure_duration(Key::StaleAfter),
            flap_guard: self.flag(Key::FlapGuard),
            startup_grace: self.sure_duration(Key::StartupGrace),
            protected: self.flag(Key::Protected),
            keep_alive_file: self
                .value(Key::KeepAliveFile, |value| {
                    if let Value::Text(text) = value { Some(text.clone()) } else { None }
                })
                .unwrap_or_default(),
            keep_alive_max_age: self.sure_duration(Key::KeepAliveMaxAge),
            schedule: self.value(Key::Schedule, |value| {
                if let Value::Schedule(schedule) = value {
                    Some(schedule.clone())
                } else {
                    None::<Box<Schedule>>
                }
            }),
            connection_idle: self.duration(Key::ConnectionIdle),
            idle_policy: self
                .value(Key::IdlePolicy, |value| {
                    if let Value::IdlePolicy(policy) = value { Some(*policy) } else { None::<IdlePolicy> }
                })
                .unwrap_or_default(),
            wake_from: self
                .value(
                    Key::WakeFrom,
                    |value| {
                        if let Value::Reasons(reasons) = value { Some(*reasons) } else { None }
                    },
                )
                .unwrap_or(PauseReasons::NONE),
            scale_down: self.flag(Key::ScaleDown),
            min_workers: self.count(Key::MinWorkers),
            scale_down_cooldown: self.sure_duration(Key::ScaleDownCooldown),
            drain_timeout: self.sure_duration(Key::DrainTimeout),
            recent_events: self.count(Key::RecentEvents),
            before_pause: self.command(Key::BeforePause),
            after_resume: self.command(Key::AfterResume),
            needs,
            active_above,
        }
    }
}

/// Five minutes: often enough that a countdown can be trusted, rare enough that ten thousand workers cost
/// nothing.
const LONGEST_CHECK: Duration = Duration::from_mins(5);
/// Half an hour: CML sends its whole history each time it is asked.
const LONGEST_TELEMETRY: Duration = Duration::from_mins(30);
/// Five minutes: time to get back to the desk.
const LONGEST_NOTICE: Duration = Duration::from_mins(5);
/// An hour, as both CML seeds have it.
const LONGEST_SNOOZE: Duration = Duration::from_hours(1);

/// What the values that follow `idle_timeout` follow.
struct Follow {
    idle_timeout: Option<Duration>,
    window: u32,
}

impl Follow {
    fn interval(&self, longest: Duration) -> Duration {
        self.idle_timeout.map_or(longest, |timeout| {
            let part = timeout.as_micros() / u128::from(self.window.saturating_add(1));
            // Whole microseconds, as instants have them: else a sum of intervals is not their multiple.
            let part = Duration::from_micros(u64::try_from(part).unwrap_or(u64::MAX));
            part.clamp(Duration::from_secs(1), longest)
        })
    }

    fn snooze(&self) -> Duration {
        self.idle_timeout.map_or(LONGEST_SNOOZE, |timeout| timeout.min(LONGEST_SNOOZE))
    }
}
