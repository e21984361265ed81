//! Containers that ask to be looked after, by a label.
//!
//! The list tells most of it at once. What only an inspection tells never changes while a container exists, so each is
//! inspected once. One whose inspection fails or does not end is in the answer with that as its problem: it is there, and
//! the others do not wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::models::ContainerSummary;
use futures_util::{StreamExt as _, stream};

use super::inspected::Inspected;
use super::{Container, Inside, Spec, look};
use crate::driver::{self, Error, Found, bounded};

/// How long one inspection may take.
const INSPECTED_WITHIN: Duration = Duration::from_secs(3);

/// How many are under way at once: an engine has other things to do.
const AT_ONCE: usize = 16;

/// What does not change while a container exists.
#[derive(Clone, Copy, Debug, Default)]
struct Fixed {
    has_gpus: bool,
}

/// What is known of containers that were found before, by their ids.
#[derive(Debug, Default)]
pub(super) struct Seen(Mutex<HashMap<String, Fixed>>);

/// Everybody with this label, running or not, the oldest first.
pub(super) async fn discover(inside: &Arc<Inside>, label: &str) -> Result<Vec<Found>, Error> {
    let mut listed = inside.engine.list(label).await?;
    listed.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    let before = std::mem::take(&mut *inside.seen.0.lock().unwrap_or_else(PoisonError::into_inner));
    let mut known = HashMap::new();
    let inspections = listed.into_iter().filter_map(|one| {
        let id = one.id.clone()?;
        let known = before.get(&id).copied();
        Some(async move {
            let fixed = match known {
                Some(fixed) => Ok(fixed),
                None => bounded(INSPECTED_WITHIN, inside.engine.inspect(&id)).await.map(|one| fixed(&one)),
            };
            (one, id, fixed)
        })
    });
    let inspected: Vec<_> = stream::iter(inspections).buffered(AT_ONCE).collect().await;
    let mut found = Vec::new();
    for (one, id, fixed) in inspected {
        let problem = match &fixed {
            Ok(fixed) => {
                known.insert(id.clone(), *fixed);
                None
            }
            // It was removed since it was listed.
            Err(Error::Gone) => continue,
            Err(error) => Some(format!("it cannot be inspected: {error}")),
        };
        found.push(describe(&one, &id, fixed.unwrap_or_default(), problem));
    }
    *inside.seen.0.lock().unwrap_or_else(PoisonError::into_inner) = known;
    Ok(found)
}

fn describe(one: &ContainerSummary, id: &str, fixed: Fixed, problem: Option<String>) -> Found {
    let names = one.names.as_deref().unwrap_or_default();
    // Links of other containers are names too; they have a second slash.
    let name = names.iter().filter_map(|name| name.strip_prefix('/')).find(|name| !name.contains('/'));
    Found {
        name: name.unwrap_or(id).to_owned(),
        spec: driver::Spec::Docker(Spec { container: Container::Id(id.to_owned()) }),
        labels: one.labels.clone().unwrap_or_default().into_iter().collect(),
        has_gpus: fixed.has_gpus,
        problem,
    }
}

fn fixed(inspected: &Inspected) -> Fixed {
    Fixed { has_gpus: look::was_given_gpus(inspected) }
}
