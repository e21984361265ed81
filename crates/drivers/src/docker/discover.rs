//! Containers that ask to be looked after, by a label.
//!
//! The list tells most of it at once. What only an inspection tells never changes while a container exists, so each is
//! inspected once.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use bollard::models::{
    ContainerInspectResponse, ContainerSummary, EndpointSettings, HostConfig, PortBinding,
};

use super::{Container, Inside, Spec};
use crate::driver::{self, Error, Found};

/// What does not change while a container exists.
#[derive(Clone, Debug, Default)]
struct Fixed {
    has_gpus: bool,
    /// Ports of the container that the engine publishes at a port of its own on this machine.
    published: BTreeMap<u16, SocketAddr>,
}

/// What is known of containers that were found before, by their ids.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<HashMap<String, Fixed>>);

/// Everybody with this label, running or not.
pub(super) async fn discover(inside: &Inside, label: &str) -> Result<Vec<Found>, Error> {
    let listed = inside.engine.list(label).await?;
    let before = std::mem::take(&mut *inside.seen.0.lock().unwrap_or_else(PoisonError::into_inner));
    let mut known = HashMap::new();
    let mut found = Vec::new();
    for one in &listed {
        let Some(id) = &one.id else { continue };
        let fixed = match before.get(id) {
            Some(fixed) => fixed.clone(),
            None => match inside.engine.inspect(id).await {
                Ok(inspected) => fixed(&inspected),
                // It was removed since it was listed.
                Err(Error::Gone) => continue,
                Err(error) => return Err(error),
            },
        };
        known.insert(id.clone(), fixed.clone());
        found.push(describe(one, id, fixed));
    }
    *inside.seen.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    Ok(found)
}

fn describe(one: &ContainerSummary, id: &str, fixed: Fixed) -> Found {
    let names = one.names.as_deref().unwrap_or_default();
    // Links of other containers are names too; they have a second slash.
    let name = names.iter().filter_map(|name| name.strip_prefix('/')).find(|name| !name.contains('/'));
    let networks = one.network_settings.as_ref().and_then(|settings| settings.networks.as_ref());
    Found {
        name: name.unwrap_or(id).to_owned(),
        spec: driver::Spec::Docker(Spec { container: Container::Id(id.to_owned()) }),
        labels: one.labels.clone().unwrap_or_default().into_iter().collect(),
        has_gpus: fixed.has_gpus,
        address: address_of(networks),
        published: fixed.published,
    }
}

fn fixed(inspected: &ContainerInspectResponse) -> Fixed {
    let Some(host) = &inspected.host_config else { return Fixed::default() };
    let requests = host.device_requests.as_deref().unwrap_or_default();
    let asks_for_gpus = requests.iter().any(|request| {
        let is_nvidia = request.driver.as_deref() == Some("nvidia");
        let capabilities = request.capabilities.iter().flatten().flatten();
        is_nvidia || capabilities.into_iter().any(|capability| capability == "gpu")
    });
    let published = published(Some(host));
    Fixed { has_gpus: asks_for_gpus || host.runtime.as_deref() == Some("nvidia"), published }
}

/// Of several networks the first by name, so that it is the same each time.
pub(super) fn address_of(networks: Option<&HashMap<String, EndpointSettings>>) -> Option<IpAddr> {
    let networks: BTreeMap<_, _> = networks.into_iter().flatten().collect();
    networks.values().find_map(|network| network.ip_address.as_deref()?.parse().ok())
}

pub(super) fn published(host: Option<&HostConfig>) -> BTreeMap<u16, SocketAddr> {
    let bindings = host.and_then(|host| host.port_bindings.as_ref()).into_iter().flatten();
    let ports = bindings.filter_map(|(port, bindings)| {
        let port = port.strip_suffix("/tcp")?.parse().ok()?;
        Some((port, bindings.iter().flatten().find_map(address)?))
    });
    ports.collect()
}

/// Without a port of its own it gets another one at each start.
fn address(binding: &PortBinding) -> Option<SocketAddr> {
    let port = binding.host_port.as_deref()?.parse().ok().filter(|port| *port != 0)?;
    let ip = binding.host_ip.as_deref().and_then(|ip| ip.parse::<IpAddr>().ok());
    let ip = ip.filter(|ip| !ip.is_unspecified()).unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Some(SocketAddr::new(ip, port))
}
