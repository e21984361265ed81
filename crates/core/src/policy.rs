//! Policy: the settings that apply to a worker, each value with the layer that set it.

mod book;
mod environment;
pub mod exemption;
mod key;
mod layer;
mod resolve;
mod validate;
mod value;
mod values;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

pub use book::{PolicyBook, Selectors};
pub use environment::{EnvError, environment_layer, environment_variables};
pub use key::Key;
pub use layer::{Level, Origin, PolicyLayer, Source};
pub use resolve::{Provenance, Stack, resolve};
pub use validate::{Conflict, conflicts};
pub use value::{Kind, Raw, Value, ValueError};
pub use values::Values;

use crate::reason::{IdlePolicy, PauseReasons, SleepMode};
use crate::schedule::Schedule;
use crate::signal::{Nature, Need, PerSignal, Signal, default_needs};

/// The resolved settings of one worker. Each field is the key of the same name; see [`Key::describe`].
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own; no two go together")]
pub struct Policy {
    pub auto_pause: bool,
    /// `None`: never.
    pub idle_timeout: Option<Duration>,
    pub window: u32,
    pub check_interval: Duration,
    pub telemetry_interval: Duration,
    pub activity_detection: bool,
    pub snooze: Duration,
    pub snooze_after_thaw: Duration,
    /// `None`: freeze where the driver can, else stop.
    pub sleep: Option<SleepMode>,
    /// `None`: never.
    pub stop_after: Option<Duration>,
    /// `None`: never.
    pub terminate_after: Option<Duration>,
    pub grace: Duration,
    /// `None`: no limit.
    pub max_runtime: Option<Duration>,
    pub runtime_extension_max: Duration,
    pub warn_at: Vec<f64>,
    pub warn_runtime_at: Vec<f64>,
    pub min_notice: Duration,
    pub lease_ttl_max: Duration,
    pub lease_ceiling: Duration,
    pub unknown_alert_after: Duration,
    pub heartbeat_interval: Duration,
    pub stale_after: Duration,
    pub flap_guard: bool,
    pub startup_grace: Duration,
    pub protected: bool,
    pub keep_alive_file: String,
    pub keep_alive_max_age: Duration,
    pub schedule: Option<Box<Schedule>>,
    /// `None`: a connection counts while it is open.
    pub connection_idle: Option<Duration>,
    pub idle_policy: IdlePolicy,
    pub wake_from: PauseReasons,
    pub scale_down: bool,
    pub min_workers: u32,
    pub scale_down_cooldown: Duration,
    pub drain_timeout: Duration,
    pub recent_events: u32,
    pub before_pause: Option<Vec<String>>,
    pub after_resume: Option<Vec<String>>,
    /// What a layer said about a signal; `None`: as the driver's table says.
    pub needs: PerSignal<Option<Need>>,
    /// The threshold of each signal, in its own unit.
    pub active_above: PerSignal<f64>,
}

impl Default for Policy {
    fn default() -> Self {
        resolve(&[]).0
    }
}

/// The threshold for network bytes is given for this long.
const NETWORK_PERIOD: Duration = Duration::from_mins(5);
/// Below this, background chatter (ARP, keepalives) would count as use however short the interval.
const NETWORK_FLOOR_BYTES: f64 = 512.0;

impl Policy {
    /// Which signals a worker of this nature needs.
    pub fn needs(&self, nature: Nature) -> PerSignal<Need> {
        let mut needs = default_needs(nature);
        for signal in Signal::ALL {
            if let Some(need) = self.needs[signal as usize] {
                needs[signal as usize] = need;
            }
        }
        needs
    }

    /// How often a worker with these needs is looked at.
    pub fn interval(&self, needs: &PerSignal<Need>) -> Duration {
        if needs[Signal::Telemetry as usize] == Need::Required {
            self.telemetry_interval
        } else {
            self.check_interval
        }
    }

    /// The threshold of a signal that was measured over `interval`.
    pub fn threshold(&self, signal: Signal, interval: Duration) -> f64 {
        let base = self.active_above[signal as usize];
        match signal {
            Signal::Network => {
                (base * interval.as_secs_f64() / NETWORK_PERIOD.as_secs_f64()).max(NETWORK_FLOOR_BYTES)
            }
            Signal::Telemetry
            | Signal::Connections
            | Signal::Activity
            | Signal::Tcp
            | Signal::Cpu
            | Signal::Gpu
            | Signal::Processes
            | Signal::Prometheus => base,
        }
    }

    /// The value of a key that follows `idle_timeout` and was not set.
    pub fn followed(&self, key: Key) -> Option<Duration> {
        let notice = self.idle_timeout.map_or(self.min_notice, |timeout| self.notice(timeout));
        [
            (Key::CheckInterval, self.check_interval),
            (Key::TelemetryInterval, self.telemetry_interval),
            (Key::Snooze, self.snooze),
            (Key::MinNotice, notice),
        ]
        .into_iter()
        .find_map(|(follower, value)| (follower == key).then_some(value))
    }

    /// The least time between a warning and what it warns of, for a limit of `timeout`.
    pub fn notice(&self, timeout: Duration) -> Duration {
        self.min_notice.min(timeout / 5)
    }
}
