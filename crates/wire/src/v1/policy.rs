//! Policy: `GET policies`, `PATCH policies/global` and `PATCH policies/{level}/{name}`.

use std::collections::BTreeMap;

use drowse_core::Timestamp;
use drowse_core::policy as core;
use drowse_core::policy::{Key, Policy, Provenance};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One setting of a worker with the layer that set it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Setting {
    /// Its key, such as `idle_timeout` or `signals.cpu.active_above`.
    pub key: String,
    /// Its value; null means never.
    pub value: Value,
    /// Who set it, in words.
    pub from: String,
    /// How specific the layer is that set it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::PolicyLevel))]
    pub level: String,
    /// Which region, type, group, owner or worker.
    pub name: Option<String>,
    /// `built-in`, `file`, `run-time` or `environment`; the last pins the key.
    pub source: String,
    /// Who made the run-time change, or which variable pins the key.
    pub author: Option<String>,
    /// The key that the value follows, when nobody set it.
    pub follows: Option<String>,
}

/// Every setting of a worker that has a value, in the order of the reference.
pub fn settings(policy: &Policy, set: &BTreeMap<Key, core::Value>, provenance: &Provenance) -> Vec<Setting> {
    Key::all()
        .filter_map(|key| {
            let value = set
                .get(&key)
                .cloned()
                .or_else(|| policy.followed(key).map(core::Value::Duration))
                .or_else(|| key.default())?;
            let origin = provenance.get(&key)?;
            Some(Setting {
                key: key.name(),
                value: json(&value),
                from: origin.to_string(),
                level: origin.level.code().to_owned(),
                name: origin.name.clone(),
                source: origin.source.code().to_owned(),
                author: origin.author.clone(),
                follows: origin.follows.map(Key::name),
            })
        })
        .collect()
}

fn json(value: &core::Value) -> Value {
    serde_json::to_value(value).expect("a policy value is made of texts, numbers and lists")
}

/// Some values from one source at one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyLayer {
    /// How specific it is.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::PolicyLevel))]
    pub level: String,
    /// Which region, type, group, owner or worker; null for built-in and global.
    pub name: Option<String>,
    /// `built-in`, `file`, `run-time` or `environment`.
    pub source: String,
    /// Who made the run-time change, or which variable pins the key.
    pub author: Option<String>,
    /// When the run-time change was made.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::schema::Instant>))]
    pub changed_at: Option<Timestamp>,
    /// What it sets, by dotted key; null means never. A key that is absent is inherited.
    pub values: Map<String, Value>,
}

impl PolicyLayer {
    pub fn of(layer: &core::PolicyLayer, changed_at: Option<Timestamp>) -> Self {
        Self {
            level: layer.level.code().to_owned(),
            name: layer.name.clone(),
            source: layer.source.code().to_owned(),
            author: layer.author.clone(),
            changed_at,
            values: layer.values.iter().map(|(key, value)| (key.name(), json(value))).collect(),
        }
    }
}

/// All layers, least specific first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyList {
    /// The layers.
    pub layers: Vec<PolicyLayer>,
}

/// A run-time change of one layer: all of it or nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangePolicy {
    /// New values, by dotted or nested key; null means never.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// Keys whose run-time change is undone, so that the file counts again.
    #[serde(default)]
    pub reset: Vec<String>,
    /// Why.
    #[serde(default)]
    pub message: String,
}

/// What a change came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PolicyChange {
    /// The run-time values of the layer as they are now.
    pub layer: PolicyLayer,
    /// How many workers the layer applies to.
    pub worker_count: u64,
}
