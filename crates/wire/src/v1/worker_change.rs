//! `POST workers` and `PATCH workers/{id}`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// A new worker. The names are those of `[[worker]]` in the configuration file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RegisterWorker {
    /// Its stable name: letters, digits, `.`, `_` and `-`.
    #[cfg_attr(
        feature = "openapi",
        schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9][A-Za-z0-9._-]*$")
    )]
    pub id: String,
    /// What observes and acts on it.
    #[cfg_attr(feature = "openapi", schema(value_type = crate::schema::Driver))]
    pub driver: String,
    /// What it is.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The router's port for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// Where it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Its own policy values; null means never.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub policy: Map<String, Value>,
    /// What its driver needs to know, such as `command` or `instance_id`, under the names of the file.
    #[serde(flatten)]
    pub settings: Map<String, Value>,
}

/// What to do with one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The field is absent: leave it.
    #[default]
    Keep,
    /// The field is null: it has no value from now on.
    Clear,
    /// The new value.
    Set(T),
}

impl<T> Patch<T> {
    pub const fn is_keep(&self) -> bool {
        matches!(self, Patch::Keep)
    }

    /// The field after the change.
    pub fn apply(self, old: Option<T>) -> Option<T> {
        match self {
            Patch::Keep => old,
            Patch::Clear => None,
            Patch::Set(new) => Some(new),
        }
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // `skip_serializing_if` keeps it from getting here; null would clear the field.
            Patch::Keep => Err(serde::ser::Error::custom("a field that is kept is not written")),
            Patch::Clear => serializer.serialize_none(),
            Patch::Set(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Patch::Clear, Patch::Set))
    }
}

/// A change to a worker's attributes. What is absent stays, what is null is taken away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PatchWorker {
    /// What it is.
    #[serde(rename = "type", default, skip_serializing_if = "Patch::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub kind: Patch<String>,
    /// Its group.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub group: Patch<String>,
    /// Whose it is.
    #[serde(default, skip_serializing_if = "Patch::is_keep")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub owner: Patch<String>,
    /// False: nothing wakes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_service: Option<bool>,
}
