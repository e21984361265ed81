//! Policy values out of any self-describing format: a TOML table, a JSON patch.
//!
//! Nested tables are the dots of a key, so `signals = { cpu = { use = "off" } }` is
//! `signals.cpu.use = "off"`. The configuration file has a reader of its own, which keeps positions.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::key::Key;
use super::value::{Raw, Value};
use crate::schedule::Schedule;
use crate::signal::Signal;

/// Some policy values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(pub BTreeMap<Key, Value>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut values = BTreeMap::new();
        deserializer.deserialize_map(Table { prefix: String::new(), into: &mut values })?;
        Ok(Values(values))
    }
}

/// Reads one table, whose keys continue `prefix`.
struct Table<'a> {
    prefix: String,
    into: &'a mut BTreeMap<Key, Value>,
}

impl<'de> Visitor<'de> for Table<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of policy values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let path =
                if self.prefix.is_empty() { name.to_string() } else { format!("{}.{name}", self.prefix) };
            match Key::from_name(&path) {
                Some(Key::Schedule) => {
                    let schedule = map.next_value::<Box<Schedule>>()?;
                    self.into.insert(Key::Schedule, Value::Schedule(schedule));
                }
                Some(key) => {
                    let raw = map.next_value::<AnyRaw>()?.0;
                    let value = Value::read(key.kind(), &raw)
                        .map_err(|error| A::Error::custom(format!("{path}: {error}")))?;
                    self.into.insert(key, value);
                }
                // A signal's keys are two levels down; what is deeper is none of them.
                None if path == "signals" || is_signal(&path) => {
                    map.next_value_seed(Table { prefix: path, into: self.into })?;
                }
                None => return Err(A::Error::custom(format!("unknown policy key {path:?}"))),
            }
        }
        Ok(())
    }
}

/// `signals.NAME`.
fn is_signal(path: &str) -> bool {
    path.strip_prefix("signals.").is_some_and(|name| Signal::ALL.iter().any(|signal| signal.code() == name))
}

impl<'de> DeserializeSeed<'de> for Table<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// Any plain value.
struct AnyRaw(Raw);

impl<'de> Deserialize<'de> for AnyRaw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyRawVisitor).map(AnyRaw)
    }
}

struct AnyRawVisitor;

impl<'de> Visitor<'de> for AnyRawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a policy value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Raw, E> {
        Ok(Raw::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Raw, E> {
        Ok(i64::try_from(number).map_or(Raw::Float(f64::MAX), Raw::Integer))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Raw, E> {
        Ok(Raw::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(AnyRaw(item)) = seq.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
        Ok(Raw::Table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_tables_are_the_dots_of_a_key() {
        let values: Values = toml::from_str(
            "idle_timeout = \"10s\"\nsignals.cpu.use = \"off\"\n[signals.network]\nactive_above = \"1KiB\"",
        )
        .unwrap();
        let names: Vec<String> = values.0.keys().map(|key| key.name()).collect();
        assert_eq!(names, ["idle_timeout", "signals.cpu.use", "signals.network.active_above"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("max_runtime = 48", "max_runtime: a bare number has no unit"),
            ("idle_timeuot = \"10s\"", "unknown policy key \"idle_timeuot\""),
            ("signals.cpu.uses = \"off\"", "unknown policy key \"signals.cpu.uses\""),
            ("signals.tpc.use = \"off\"", "unknown policy key \"signals.tpc\""),
            ("window = { a = 1 }", "found a table"),
        ] {
            let error = toml::from_str::<Values>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn null_is_never_in_json() {
        let values: Values = serde_json::from_str("{\"idle_timeout\": null}").unwrap();
        assert_eq!(values.0[&Key::IdleTimeout], Value::Never);
    }
}
