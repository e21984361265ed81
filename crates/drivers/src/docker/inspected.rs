//! What of the engine's answer about a container is read: a tenth of it, and every check asks.

use std::collections::HashMap;

use bollard::models::{ContainerStateStatusEnum, DeviceMapping, DeviceRequest, PortMap};
use serde::Deserialize;

/// A container, inspected.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Inspected {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) state: Option<State>,
    pub(super) config: Option<Config>,
    pub(super) host_config: Option<HostConfig>,
    pub(super) network_settings: Option<NetworkSettings>,
}

/// Its run, or its last one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct State {
    pub(super) status: Option<ContainerStateStatusEnum>,
    pub(super) pid: Option<i64>,
    pub(super) exit_code: Option<i64>,
    pub(super) started_at: Option<String>,
    pub(super) finished_at: Option<String>,
}

/// What it was made from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Config {
    pub(super) stop_signal: Option<String>,
    pub(super) labels: Option<HashMap<String, String>>,
}

/// What this machine gives it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct HostConfig {
    pub(super) network_mode: Option<String>,
    pub(super) runtime: Option<String>,
    pub(super) devices: Option<Vec<DeviceMapping>>,
    pub(super) device_requests: Option<Vec<DeviceRequest>>,
}

/// Where it is reached.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NetworkSettings {
    pub(super) networks: Option<HashMap<String, Endpoint>>,
    pub(super) ports: Option<PortMap>,
}

/// Its place in one network.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Endpoint {
    #[serde(rename = "IPAddress")]
    pub(super) ip_address: Option<String>,
    #[serde(rename = "GlobalIPv6Address")]
    pub(super) global_ipv6_address: Option<String>,
}
