//! All layers of a fleet, and the ones that apply to a worker.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Policy;
use super::layer::{Level, PolicyLayer};
use super::resolve::{Provenance, Stack};

/// The attributes of a worker that select policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selectors {
    /// Its own id.
    pub worker: String,
    /// Where it runs.
    pub region: Option<String>,
    /// What it is: `cml`, `gpu`, `devcontainer`, `compose`, `microvm`, or a name of one's own.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The group of its owner.
    pub group: Option<String>,
    /// Whose it is.
    pub owner: Option<String>,
}

impl Selectors {
    fn name_at(&self, level: Level) -> Option<&str> {
        match level {
            Level::BuiltIn | Level::Global => None,
            Level::Region => self.region.as_deref(),
            Level::Type => self.kind.as_deref(),
            Level::Group => self.group.as_deref(),
            Level::Owner => self.owner.as_deref(),
            Level::Worker => Some(&self.worker),
        }
    }

    /// Whether a layer applies to the worker with these attributes.
    pub fn select(&self, layer: &PolicyLayer) -> bool {
        match layer.level {
            Level::BuiltIn | Level::Global => true,
            Level::Region | Level::Type | Level::Group | Level::Owner | Level::Worker => {
                layer.name.as_deref().is_some_and(|name| self.name_at(layer.level) == Some(name))
            }
        }
    }
}

/// Every layer there is, from the file, the run time and the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyBook {
    layers: Vec<PolicyLayer>,
    /// The layers of each level and name, so that a worker among ten thousand finds its own at once.
    index: BTreeMap<(Level, Option<String>), Vec<usize>>,
}

impl PolicyBook {
    pub fn new(layers: Vec<PolicyLayer>) -> Self {
        let mut book = Self::default();
        for layer in layers {
            book.push(layer);
        }
        book
    }

    pub fn push(&mut self, layer: PolicyLayer) {
        self.index.entry((layer.level, layer.name.clone())).or_default().push(self.layers.len());
        self.layers.push(layer);
    }

    pub fn layers(&self) -> &[PolicyLayer] {
        &self.layers
    }

    /// The layers that apply to a worker, its type's built-in values among them.
    pub fn stack_for(&self, selectors: &Selectors) -> Stack {
        let mut stack = Stack::default();
        if let Some(built_in) = selectors.kind.as_deref().and_then(PolicyLayer::built_in_type) {
            stack.push(&built_in);
        }
        for level in Level::ALL {
            let slot = (level, selectors.name_at(level).map(ToString::to_string));
            for at in self.index.get(&slot).into_iter().flatten() {
                if selectors.select(&self.layers[*at]) {
                    stack.push(&self.layers[*at]);
                }
            }
        }
        stack
    }

    pub fn resolve_for(&self, selectors: &Selectors) -> (Policy, Provenance) {
        self.stack_for(selectors).finish()
    }
}
