//! Containers that ask to be looked after, by a label.
//!
//! The list tells most of it at once. What only an inspection tells never changes while a container exists, so each is
//! inspected once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bollard::models::{ContainerInspectResponse, ContainerSummary};

use super::{Container, Inside, Spec};
use crate::driver::{self, Error, Found};

/// What does not change while a container exists.
#[derive(Clone, Copy, Debug, Default)]
struct Fixed {
    has_gpus: bool,
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
            Some(fixed) => *fixed,
            None => match inside.engine.inspect(id).await {
                Ok(inspected) => fixed(&inspected),
                // It was removed since it was listed.
                Err(Error::Gone) => continue,
                Err(error) => return Err(error),
            },
        };
        known.insert(id.clone(), fixed);
        found.push(describe(one, id, fixed));
    }
    *inside.seen.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    Ok(found)
}

fn describe(one: &ContainerSummary, id: &str, fixed: Fixed) -> Found {
    let names = one.names.as_deref().unwrap_or_default();
    // Links of other containers are names too; they have a second slash.
    let name = names.iter().filter_map(|name| name.strip_prefix('/')).find(|name| !name.contains('/'));
    Found {
        name: name.unwrap_or(id).to_owned(),
        spec: driver::Spec::Docker(Spec { container: Container::Id(id.to_owned()) }),
        labels: one.labels.clone().unwrap_or_default().into_iter().collect(),
        has_gpus: fixed.has_gpus,
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
    Fixed { has_gpus: asks_for_gpus || host.runtime.as_deref() == Some("nvidia") }
}
