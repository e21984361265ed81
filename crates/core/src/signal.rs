//! Signals and their three-valued readings.
//!
//! A reading is *active*, *quiet* or **unknown**, and unknown is never taken for quiet: every wrong pause
//! in the systems that Drowse replaces began with missing data that was counted as silence.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// One source of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// What CML tells about the people who use it.
    Telemetry,
    /// Connections through the front door.
    Connections,
    /// What the agent inside the worker tells.
    Activity,
    /// Established sockets of the worker itself, without loopback and routed ports.
    Tcp,
    /// Processor time of the whole worker over the check interval; 100 % is one core.
    Cpu,
    /// Load of the worker's share of the accelerators.
    Gpu,
    /// Bytes received and sent over the check interval.
    Network,
    /// How many processes it has.
    Processes,
    /// The answer to a Prometheus query.
    Prometheus,
}

impl Signal {
    pub const COUNT: usize = 9;

    pub const ALL: [Signal; Signal::COUNT] = [
        Signal::Telemetry,
        Signal::Connections,
        Signal::Activity,
        Signal::Tcp,
        Signal::Cpu,
        Signal::Gpu,
        Signal::Network,
        Signal::Processes,
        Signal::Prometheus,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            Signal::Telemetry => "telemetry",
            Signal::Connections => "connections",
            Signal::Activity => "activity",
            Signal::Tcp => "tcp",
            Signal::Cpu => "cpu",
            Signal::Gpu => "gpu",
            Signal::Network => "network",
            Signal::Processes => "processes",
            Signal::Prometheus => "prometheus",
        }
    }

    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.code() == code)
    }

    /// Whether Drowse goes and reads it in each check. The others are told to us: the router counts
    /// connections, the agent speaks on its own.
    pub const fn is_pulled(self) -> bool {
        match self {
            Signal::Connections | Signal::Activity => false,
            Signal::Telemetry
            | Signal::Tcp
            | Signal::Cpu
            | Signal::Gpu
            | Signal::Network
            | Signal::Processes
            | Signal::Prometheus => true,
        }
    }

    /// Whether a hook that runs in the worker shows in it, so that it says nothing while one runs.
    pub const fn is_stirred_by_hooks(self) -> bool {
        match self {
            Signal::Activity
            | Signal::Tcp
            | Signal::Cpu
            | Signal::Gpu
            | Signal::Network
            | Signal::Processes
            | Signal::Prometheus => true,
            Signal::Telemetry | Signal::Connections => false,
        }
    }

    /// The unit of its measured value, as it is shown.
    pub const fn unit(self) -> &'static str {
        match self {
            Signal::Cpu | Signal::Gpu => "%",
            Signal::Network => " bytes",
            Signal::Telemetry => " events",
            Signal::Connections => " connections",
            Signal::Tcp => " sockets",
            Signal::Processes => " processes",
            Signal::Activity | Signal::Prometheus => "",
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Why a signal could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownCause {
    /// It has never been read for this run of the worker.
    NeverRead,
    /// The probe failed, timed out or gave nonsense.
    ProbeFailed,
    /// Whoever looks after the worker does not answer: its engine is away or hangs.
    DriverSilent,
    /// Whoever looks after the worker was asked and said no.
    DriverRefused,
    /// Nobody counts it for this worker, or not where it can be seen from here.
    NotCounted,
    /// Drowse may not read it.
    NotPermitted,
    /// The worker shares it with the machine, so that it says nothing about the worker.
    NotItsOwn,
    /// Nobody can look into the worker, and there may be somebody in it who asked to be left alone.
    CannotLookInside,
    /// Reading it is switched off where it is required: CML's telemetry opt-in, or our own setting.
    SwitchedOff,
    /// It could be read before in this run of the worker and cannot now.
    Vanished,
    /// A counter went backwards, so what happened in between cannot be told.
    WentBackwards,
    /// There is one sample of a counter, and it takes two to tell a difference.
    FirstSample,
    /// It was not read in the check that decides.
    NotReadInThisCheck,
    /// The agent's channel is down.
    ChannelDown,
    /// The agent was asked and did not answer in time.
    NoAnswer,
    /// The router's session ran out, so it may hold connections that we do not see.
    RouterLost,
    /// The port at which it is to be found belongs to somebody else: whoever comes is not seen and wakes nobody.
    DoorShut,
}

impl UnknownCause {
    pub const fn code(self) -> &'static str {
        match self {
            UnknownCause::NeverRead => "never_read",
            UnknownCause::ProbeFailed => "probe_failed",
            UnknownCause::DriverSilent => "driver_silent",
            UnknownCause::DriverRefused => "driver_refused",
            UnknownCause::NotCounted => "not_counted",
            UnknownCause::NotPermitted => "not_permitted",
            UnknownCause::NotItsOwn => "not_its_own",
            UnknownCause::CannotLookInside => "cannot_look_inside",
            UnknownCause::SwitchedOff => "switched_off",
            UnknownCause::Vanished => "vanished",
            UnknownCause::WentBackwards => "went_backwards",
            UnknownCause::FirstSample => "first_sample",
            UnknownCause::NotReadInThisCheck => "not_read_in_this_check",
            UnknownCause::ChannelDown => "channel_down",
            UnknownCause::NoAnswer => "no_answer",
            UnknownCause::RouterLost => "router_lost",
            UnknownCause::DoorShut => "door_shut",
        }
    }

    pub const fn sentence(self) -> &'static str {
        match self {
            UnknownCause::NeverRead => "has never been read",
            UnknownCause::ProbeFailed => "could not be read",
            UnknownCause::DriverSilent => "could not be read: its driver does not answer",
            UnknownCause::DriverRefused => "could not be read: its driver refused",
            UnknownCause::NotCounted => "could not be read: nobody counts it for this worker",
            UnknownCause::NotPermitted => "could not be read: Drowse is not allowed to",
            UnknownCause::NotItsOwn => "cannot be told: the worker shares it with the machine",
            UnknownCause::CannotLookInside => {
                "does not count: nobody can look for a keep-alive file in the worker"
            }
            UnknownCause::SwitchedOff => "is switched off where it comes from",
            UnknownCause::Vanished => "could be read before and cannot now",
            UnknownCause::WentBackwards => "went backwards, so nothing can be said about the time between",
            UnknownCause::FirstSample => "has a first sample only, and it takes two to tell a difference",
            UnknownCause::NotReadInThisCheck => "was not read in this check",
            UnknownCause::ChannelDown => "cannot be told: the agent's channel is down",
            UnknownCause::NoAnswer => "cannot be told: the agent did not answer",
            UnknownCause::RouterLost => "cannot be told: the router's session ran out",
            UnknownCause::DoorShut => "cannot be told: its door does not open",
        }
    }

    /// What helps, where somebody can do something about it.
    pub const fn help(self) -> Option<&'static str> {
        match self {
            UnknownCause::DriverSilent => {
                Some("see whether the driver's engine runs and answers: drowse doctor")
            }
            UnknownCause::DriverRefused => Some("see what the driver says, and mend that"),
            UnknownCause::NotCounted => {
                Some("have the machine count it (a cgroup controller that is switched on and mounted here)")
            }
            UnknownCause::NotPermitted => Some("run Drowse as root"),
            // It has the name of the signal in it: see [`UnknownCause::help_for`].
            UnknownCause::NotItsOwn => Some("if the other signals suffice, drop this one"),
            UnknownCause::CannotLookInside => {
                Some("see to the worker's file systems, or set keep_alive_file = \"\" for it")
            }
            UnknownCause::DoorShut => {
                Some("free the port (it is tried again every few seconds), or have it listen at another")
            }
            UnknownCause::SwitchedOff => Some("switch it on where it comes from"),
            UnknownCause::NeverRead
            | UnknownCause::ProbeFailed
            | UnknownCause::Vanished
            | UnknownCause::WentBackwards
            | UnknownCause::FirstSample
            | UnknownCause::NotReadInThisCheck
            | UnknownCause::ChannelDown
            | UnknownCause::NoAnswer
            | UnknownCause::RouterLost => None,
        }
    }
}

impl UnknownCause {
    /// The same for signals that are unknown for this cause.
    pub fn help_for(self, signals: &[Signal]) -> Option<String> {
        let help = self.help()?;
        if self != UnknownCause::NotItsOwn || signals.is_empty() {
            return Some(help.to_string());
        }
        let off: Vec<String> =
            signals.iter().map(|signal| format!("signals.{signal}.use = \"off\"")).collect();
        Some(format!("{help}: {}", off.join(" and ")))
    }
}

/// What a signal says now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Reading {
    /// There was use, at this time.
    Active { at: Timestamp },
    /// It was looked at and there was no use.
    Quiet,
    /// It cannot be told, and that is never quiet.
    Unknown { cause: UnknownCause },
}

impl Reading {
    pub const fn unknown(cause: UnknownCause) -> Self {
        Reading::Unknown { cause }
    }

    pub const fn code(self) -> &'static str {
        match self {
            Reading::Active { .. } => "active",
            Reading::Quiet => "quiet",
            Reading::Unknown { .. } => "unknown",
        }
    }
}

/// A measured value beside the threshold that it was held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// In the unit of the signal.
    pub value: f64,
    /// Active means strictly greater; equal is quiet.
    pub active_above: f64,
}

impl Measured {
    /// The one comparison of a value with a threshold.
    pub fn reading(self, at: Timestamp) -> Reading {
        if self.value.is_nan() || self.active_above.is_nan() {
            Reading::unknown(UnknownCause::ProbeFailed)
        } else if self.value > self.active_above {
            Reading::Active { at }
        } else {
            Reading::Quiet
        }
    }
}

/// The latest reading of one signal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What it says.
    pub reading: Reading,
    /// Up to when it says so: when it was read, or up to when the agent asserted it.
    pub read_at: Timestamp,
    /// Since when it could be read without a break; `None` while it cannot.
    pub covered_since: Option<Timestamp>,
    /// The number behind the reading, where there is one.
    pub measured: Option<Measured>,
}

/// How much a signal matters to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Neither read nor counted.
    Off,
    /// Active keeps the worker awake; unknown is judged by the others.
    Counted,
    /// Active keeps the worker awake, and so does unknown.
    Required,
}

impl Need {
    pub const ALL: [Need; 3] = [Need::Off, Need::Counted, Need::Required];

    pub const fn code(self) -> &'static str {
        match self {
            Need::Off => "off",
            Need::Counted => "counted",
            Need::Required => "required",
        }
    }
}

/// What observes and acts on a kind of worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// Plain processes.
    Process,
    /// Containers.
    Docker,
    /// `MicroVMs`.
    Qemu,
    /// Cloud VMs.
    Ec2,
    /// The simulated driver of the tests.
    Sim,
}

impl DriverKind {
    pub const ALL: [DriverKind; 5] =
        [DriverKind::Process, DriverKind::Docker, DriverKind::Qemu, DriverKind::Ec2, DriverKind::Sim];

    pub const fn code(self) -> &'static str {
        match self {
            DriverKind::Process => "process",
            DriverKind::Docker => "docker",
            DriverKind::Qemu => "qemu",
            DriverKind::Ec2 => "ec2",
            DriverKind::Sim => "sim",
        }
    }
}

impl fmt::Display for DriverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// One entry for each signal.
pub type PerSignal<T> = [T; Signal::COUNT];

/// What about a worker decides which signals it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// Who looks after it.
    pub driver: DriverKind,
    /// It is a CML controller, whose use shows in its telemetry.
    pub is_cml: bool,
    /// The front door has a port for it.
    pub is_routed: bool,
    /// Its GPU has been read in this run; from then on it must stay readable.
    pub gpu_was_read: bool,
}

/// The table of SPEC section 3: which signals a worker needs unless its policy says otherwise.
///
/// `sim` stands for any kind of worker in tests, so it is judged like a process.
pub fn default_needs(nature: Nature) -> PerSignal<Need> {
    let mut needs = [Need::Off; Signal::COUNT];
    let mut set = |signal: Signal, need: Need| needs[signal as usize] = need;
    if nature.is_routed {
        set(Signal::Connections, Need::Required);
    }
    match nature.driver {
        DriverKind::Process | DriverKind::Sim => {
            set(Signal::Cpu, Need::Required);
            set(Signal::Tcp, Need::Counted);
            set(Signal::Network, Need::Counted);
        }
        DriverKind::Docker => {
            set(Signal::Cpu, Need::Required);
            set(Signal::Network, Need::Required);
            // A GPU that could never be read (MIG, no NVML) is judged by the others, as seed 004 says;
            // one that vanished is unknown.
            set(Signal::Gpu, if nature.gpu_was_read { Need::Required } else { Need::Counted });
            set(Signal::Activity, Need::Counted);
        }
        DriverKind::Qemu => set(Signal::Activity, Need::Required),
        DriverKind::Ec2 if nature.is_cml => set(Signal::Telemetry, Need::Required),
        DriverKind::Ec2 => {
            set(Signal::Activity, Need::Required);
            set(Signal::Prometheus, Need::Counted);
        }
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_to_the_threshold_is_quiet() {
        let at = Timestamp::from_secs(1);
        let reading = |value| Measured { value, active_above: 2.0 }.reading(at);
        assert_eq!(reading(2.0_f64.next_down()), Reading::Quiet);
        assert_eq!(reading(2.0), Reading::Quiet);
        assert_eq!(reading(2.0_f64.next_up()), Reading::Active { at });
        assert_eq!(reading(f64::NAN), Reading::unknown(UnknownCause::ProbeFailed));
    }

    #[test]
    fn each_driver_needs_what_the_table_says() {
        use Need::{Counted, Off, Required};
        let needs = |driver, is_cml, is_routed, gpu_was_read| {
            default_needs(Nature { driver, is_cml, is_routed, gpu_was_read })
        };
        // telemetry, connections, activity, tcp, cpu, gpu, network, processes, prometheus
        let table = [
            (
                needs(DriverKind::Process, false, true, false),
                [Off, Required, Off, Counted, Required, Off, Counted, Off, Off],
            ),
            (
                needs(DriverKind::Process, false, false, false),
                [Off, Off, Off, Counted, Required, Off, Counted, Off, Off],
            ),
            (
                needs(DriverKind::Docker, false, false, false),
                [Off, Off, Counted, Off, Required, Counted, Required, Off, Off],
            ),
            (
                needs(DriverKind::Docker, false, true, true),
                [Off, Required, Counted, Off, Required, Required, Required, Off, Off],
            ),
            (
                needs(DriverKind::Qemu, false, true, false),
                [Off, Required, Required, Off, Off, Off, Off, Off, Off],
            ),
            (needs(DriverKind::Ec2, true, false, false), [Required, Off, Off, Off, Off, Off, Off, Off, Off]),
            (
                needs(DriverKind::Ec2, false, true, false),
                [Off, Required, Required, Off, Off, Off, Off, Off, Counted],
            ),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
    }
}
