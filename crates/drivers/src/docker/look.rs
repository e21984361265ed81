//! What the engine says of a container, in our words.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr as _;

use bollard::models::{
    ContainerStateStatusEnum as Status, DeviceMapping, DeviceRequest, PortBinding, PortMap,
};
use drowse_core::Timestamp;
use drowse_core::id::BootId;
use drowse_core::worker::Power;

use super::inspected::{Endpoint, Inspected, State};
use crate::driver::Seen;

/// One look at a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) seen: Seen,
    /// The container's full id.
    pub(super) id: String,
    /// Its first process, as this machine numbers it; `None` unless it runs or is paused.
    pub(super) pid: Option<u32>,
    /// What asks it to end.
    pub(super) stop_signal: String,
    /// Whose network it is in.
    pub(super) network: Network,
    /// It was given graphics processors.
    pub(super) has_gpus: bool,
    /// What is written on it.
    pub(super) labels: BTreeMap<String, String>,
    /// Its own address, while it has one.
    pub(super) address: Option<IpAddr>,
    /// Where its ports are found on this machine, as the engine has really bound them for this run.
    pub(super) published: BTreeMap<u16, SocketAddr>,
}

/// Whose network a container is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// In none.
    None,
    /// The machine's.
    Machine,
    /// One that is not the machine's.
    Own,
}

impl Look {
    pub(super) fn gone(began_at: Timestamp) -> Self {
        let power = Power::Gone;
        Self {
            seen: Seen {
                power,
                began_at,
                boot: None,
                boot_started_at: None,
                dated_at: None,
                exit_code: None,
            },
            id: String::new(),
            pid: None,
            stop_signal: String::new(),
            network: Network::Own,
            has_gpus: false,
            labels: BTreeMap::new(),
            address: None,
            published: BTreeMap::new(),
        }
    }

    /// Where one of its ports is found.
    pub(super) fn at(&self, port: u16) -> Option<SocketAddr> {
        let own = self.address.map(|address| (address, port).into());
        self.published.get(&port).copied().or(own)
    }

    /// `None`: the engine's answer does not say what it must.
    pub(super) fn of(found: &Inspected, began_at: Timestamp) -> Option<Self> {
        let id = found.id.clone()?;
        let state = found.state.as_ref()?;
        let power = power(state)?;
        let started_at = state.started_at.as_deref().filter(|text| instant(text).is_some());
        let began = started_at.and_then(instant);
        let is_over = power == Power::Stopped;
        let finished_at = state.finished_at.as_deref().and_then(instant);
        let seen = Seen {
            power,
            began_at,
            boot: started_at.map(|at| BootId::new(format!("{id}@{at}"))),
            boot_started_at: began,
            dated_at: match power {
                Power::Running => began,
                // The engine has been seen to let a run end before it began, by milliseconds.
                Power::Stopped => finished_at.map(|at| at.max(began.unwrap_or(at))),
                // The engine does not tell.
                Power::Paused | Power::Gone => None,
            },
            // What never ran has the code 0 all the same.
            exit_code: state
                .exit_code
                .filter(|_| is_over && started_at.is_some() && finished_at.is_some())
                .and_then(|code| i32::try_from(code).ok()),
        };
        let config = found.config.as_ref();
        let signal = config.and_then(|config| config.stop_signal.clone()).filter(|signal| !signal.is_empty());
        let network = found.network_settings.as_ref();
        let mode = found.host_config.as_ref().and_then(|host| host.network_mode.as_deref());
        Some(Self {
            seen,
            id,
            pid: state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0 && !is_over),
            stop_signal: signal.unwrap_or_else(|| "SIGTERM".to_owned()),
            network: match mode {
                Some("none") => Network::None,
                Some("host") => Network::Machine,
                Some(_) | None => Network::Own,
            },
            has_gpus: was_given_gpus(found),
            labels: config.and_then(|config| config.labels.clone()).unwrap_or_default().into_iter().collect(),
            address: address_of(network.and_then(|settings| settings.networks.as_ref())),
            published: published(network.and_then(|settings| settings.ports.as_ref())),
        })
    }

    /// Whether the engine speaks of the same first process of the same run.
    pub(super) fn is_same_run(&self, other: &Self) -> bool {
        let run = |look: &Self| (look.seen.boot.clone(), look.pid);
        self.seen.boot.is_some() && self.pid.is_some() && run(self) == run(other)
    }
}

/// Whether graphics processors by NVIDIA were asked for, in any of the ways there are.
pub(super) fn was_given_gpus(found: &Inspected) -> bool {
    let Some(host) = &found.host_config else { return false };
    let is_gpu = |request: &DeviceRequest| {
        let ids = request.device_ids.iter().flatten();
        let capabilities = request.capabilities.iter().flatten().flatten();
        request.driver.as_deref() == Some("nvidia")
            || ids.into_iter().any(|id| id.starts_with("nvidia.com/"))
            || capabilities.into_iter().any(|capability| capability == "gpu")
    };
    let is_node = |device: &DeviceMapping| {
        device.path_on_host.as_deref().is_some_and(|path| path.starts_with("/dev/nvidia"))
    };
    host.device_requests.iter().flatten().any(is_gpu)
        || host.devices.iter().flatten().any(is_node)
        || host.runtime.as_deref() == Some("nvidia")
}

/// Of several networks the first by name, so that it is the same each time.
fn address_of(networks: Option<&HashMap<String, Endpoint>>) -> Option<IpAddr> {
    let networks: BTreeMap<_, _> = networks.into_iter().flatten().collect();
    let parse = |address: &Option<String>| address.as_deref()?.parse::<IpAddr>().ok();
    let v4 = networks.values().find_map(|network| parse(&network.ip_address));
    v4.or_else(|| networks.values().find_map(|network| parse(&network.global_ipv6_address)))
}

/// What was asked for is not what is there: only what the engine has bound is a way in.
fn published(ports: Option<&PortMap>) -> BTreeMap<u16, SocketAddr> {
    let ports = ports.into_iter().flatten().filter_map(|(port, bindings)| {
        let port = port.strip_suffix("/tcp")?.parse().ok()?;
        let bound: Vec<SocketAddr> = bindings.iter().flatten().filter_map(bound).collect();
        Some((port, *bound.iter().find(|address| address.is_ipv4()).or(bound.first())?))
    });
    ports.collect()
}

fn bound(binding: &PortBinding) -> Option<SocketAddr> {
    let port = binding.host_port.as_deref()?.parse().ok().filter(|port| *port != 0)?;
    let ip = match binding.host_ip.as_deref() {
        // Everywhere, and so here.
        None | Some("" | "0.0.0.0") => Ipv4Addr::LOCALHOST.into(),
        Some("::") => Ipv6Addr::LOCALHOST.into(),
        Some(ip) => ip.parse().ok()?,
    };
    Some(SocketAddr::new(ip, port))
}

fn power(state: &State) -> Option<Power> {
    Some(match state.status? {
        // Its policy restarts it: the engine takes it for running, and so does whoever uses it.
        Status::RUNNING | Status::RESTARTING | Status::STOPPING => Power::Running,
        Status::PAUSED => Power::Paused,
        Status::CREATED | Status::EXITED | Status::DEAD | Status::REMOVING => Power::Stopped,
        Status::EMPTY => return None,
    })
}

/// The engine writes the year 1 for never.
fn instant(text: &str) -> Option<Timestamp> {
    if text.starts_with("0001-") {
        return None;
    }
    Timestamp::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn graphics_processors_are_given_in_several_ways() {
        let table = [
            (json!({}), false),
            (json!({ "DeviceRequests": [{ "Driver": "", "Capabilities": [["gpu"]] }] }), true),
            (json!({ "DeviceRequests": [{ "Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"] }] }), true),
            (json!({ "DeviceRequests": [{ "Driver": "cdi", "DeviceIDs": ["example.com/dsp=0"] }] }), false),
            (json!({ "Devices": [{ "PathOnHost": "/dev/nvidia0" }] }), true),
            (json!({ "Devices": [{ "PathOnHost": "/dev/fuse" }] }), false),
            (json!({ "Runtime": "nvidia" }), true),
            (json!({ "Runtime": "runc" }), false),
        ];
        for (host, expected) in table {
            let found = serde_json::from_value(json!({ "HostConfig": host })).expect("an answer");
            assert_eq!(was_given_gpus(&found), expected, "{host}");
        }
    }
}
