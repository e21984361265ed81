//! `[policy]` and the tables below it: the layers of the file.
//!
//! ```toml
//! [policy]                      # the global layer
//! idle_timeout = "60m"
//! signals.cpu.active_above = "2%"
//!
//! [policy.group.student]        # a layer for one group; region, type and owner likewise
//! idle_timeout = "30m"
//! ```
//!
//! Which keys there are and what their values look like is decided by the core's table alone.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use drowse_core::policy::{Key, Kind, Level, Origin, PolicyLayer, Source as From, Value};

use super::problem::{Fault, Report};
use super::section::{Node, describe, written};
use super::suggest::nearest;
use super::{read, schedule};

/// The tables below `[policy]` that hold named layers.
pub(super) const NAMED: [(&str, Level); 4] =
    [("region", Level::Region), ("type", Level::Type), ("group", Level::Group), ("owner", Level::Owner)];

/// The layers of the file and where each of their values stands.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) layers: Vec<PolicyLayer>,
    places: BTreeMap<(Level, Option<String>, Key), Range<usize>>,
}

impl Layers {
    /// Where the file sets `key` in the layer that `origin` names.
    pub(super) fn place(&self, origin: &Origin, key: Key) -> Option<&Range<usize>> {
        if origin.source != From::File || origin.follows.is_some() {
            return None;
        }
        self.places.get(&(origin.level, origin.name.clone(), key))
    }

    /// All places, with the layer and the key.
    pub(super) fn places(&self) -> impl Iterator<Item = (&(Level, Option<String>, Key), &Range<usize>)> {
        self.places.iter()
    }

    /// Reads `[policy]`.
    pub(super) fn read(&mut self, report: &mut Report<'_>, node: &Node<'_>) {
        let DeValue::Table(table) = node.get_ref() else {
            report.add(&node.span(), "policy", not_a_table(node, "[policy]"));
            return;
        };
        self.read_layer(report, table, Level::Global, None);
        for (word, level) in NAMED {
            let Some(node) = table.get(word) else { continue };
            let header = format!("[policy.{word}.NAME]");
            let DeValue::Table(named) = node.get_ref() else {
                report.add(&node.span(), word, not_a_table(node, &header));
                continue;
            };
            for (name, node) in named {
                let key = format!("{word}.{}", written(name.get_ref()));
                match node.get_ref().as_table() {
                    Some(table) => self.read_layer(report, table, level, Some(name.get_ref())),
                    None => report.add(&node.span(), key, not_a_table(node, &header)),
                }
            }
        }
    }

    /// Sets a value of the global layer that stands elsewhere in the file.
    pub(super) fn set_global(
        &mut self,
        report: &mut Report<'_>,
        key: Key,
        value: Value,
        field: &'static str,
        span: Range<usize>,
    ) {
        let slot = (Level::Global, None, key);
        if let Some(first) = self.places.get(&slot) {
            let fault = Fault::rule(format!("the same as policy.{key}, which is set too"));
            report.add_with(&span, field, fault, Some((first, format!("{key} is set here"))));
            return;
        }
        self.places.insert(slot, span);
        match self.layers.iter_mut().find(|layer| layer.level == Level::Global) {
            Some(layer) => {
                layer.values.insert(key, value);
            }
            None => self.layers.push(PolicyLayer::new(Level::Global, None, From::File).with(key, value)),
        }
    }

    /// Reads one layer.
    pub(super) fn read_layer(
        &mut self,
        report: &mut Report<'_>,
        table: &DeTable<'_>,
        level: Level,
        name: Option<&str>,
    ) {
        let mut layer = PolicyLayer::new(level, name, From::File);
        self.walk(report, table, "", &mut layer);
        self.layers.push(layer);
    }

    fn walk(&mut self, report: &mut Report<'_>, table: &DeTable<'_>, prefix: &str, layer: &mut PolicyLayer) {
        for (name, node) in table {
            let path = format!("{prefix}{}", name.get_ref());
            let is_named_layers = layer.level == Level::Global && NAMED.iter().any(|(word, _)| *word == path);
            if is_named_layers {
                continue;
            }
            if let Some(key) = Key::from_name(&path) {
                let Some(value) = value(report, key, node) else { continue };
                self.places.insert((layer.level, layer.name.clone(), key), node.span());
                layer.values.insert(key, value);
            } else if holds_keys(&path) {
                match node.get_ref().as_table() {
                    Some(table) => self.walk(report, table, &format!("{path}."), layer),
                    None => report.add(&node.span(), path, not_a_table(node, "of keys")),
                }
            } else if report.has_room() {
                let shown = format!("{prefix}{}", written(name.get_ref()));
                report.add(&name.span(), shown, unknown(prefix, name.get_ref(), layer.level));
            }
        }
    }
}

fn value(report: &mut Report<'_>, key: Key, node: &Node<'_>) -> Option<Value> {
    if let (Kind::Schedule, DeValue::Table(table)) = (key.kind(), node.get_ref()) {
        return schedule::read(report, table, &node.span());
    }
    match read::value(key.kind(), node.get_ref()) {
        Ok(value) => Some(value),
        Err(fault) => {
            report.add(&node.span(), key.name(), fault);
            None
        }
    }
}

/// Whether keys stand below `path`, as they do below `signals.cpu`.
fn holds_keys(path: &str) -> bool {
    Key::all().any(|key| key.name().strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
}

/// The fault of a key that is none, with the most similar of those that could stand in its place.
fn unknown(prefix: &str, name: &str, level: Level) -> Fault {
    let keys: Vec<String> = Key::all().map(Key::name).collect();
    let siblings = keys
        .iter()
        .filter_map(|key| key.strip_prefix(prefix))
        .map(|rest| rest.split('.').next().unwrap_or_default())
        .chain(
            NAMED.map(|(word, _)| word).into_iter().filter(|_| level == Level::Global && prefix.is_empty()),
        );
    Fault::UnknownKey { suggestion: nearest(name, siblings).map(|sibling| format!("{prefix}{sibling}")) }
}

fn not_a_table(node: &Node<'_>, header: &str) -> Fault {
    Fault::expected(format!("a table {header}"), describe(node.get_ref()))
}

#[cfg(test)]
mod tests {
    use drowse_core::policy::{PolicyBook, Selectors};

    use super::super::tests::{errors, parse};
    use super::*;

    #[test]
    fn a_layer_is_read_from_its_table() {
        // Text, the layer's name, the key, and the value as it is written.
        let table = [
            ("[policy]\nidle_timeout = \"60m\"", "global", "idle_timeout", "\"1h\""),
            ("[policy]\nidle_timeout = \"never\"", "global", "idle_timeout", "\"never\""),
            ("policy.idle_timeout = \"60m\"", "global", "idle_timeout", "\"1h\""),
            ("policy = { window = 0x3 }", "global", "window", "3"),
            ("[policy]\nsignals.cpu.active_above = \"3%\"", "global", "signals.cpu.active_above", "\"3%\""),
            ("[policy.signals.cpu]\nuse = \"off\"", "global", "signals.cpu.use", "\"off\""),
            (
                "[policy.signals]\nnetwork = { active_above = \"2MiB\" }",
                "global",
                "signals.network.active_above",
                "\"2MiB\"",
            ),
            ("[policy.group.student]\nwindow = 3", "group student", "window", "3"),
            ("[policy.type.devcontainer]\ngrace = \"30s\"", "type devcontainer", "grace", "\"30s\""),
            ("[policy.owner.\"a.b c\"]\nprotected = true", "owner a.b c", "protected", "true"),
            ("[policy.region.us-east-1]\nwarn_at = [\"50%\"]", "region us-east-1", "warn_at", "[\"50%\"]"),
            ("[policy]\nwake_from = [\"manual\"]", "global", "wake_from", "[\"manual\"]"),
            ("[policy]\nbefore_pause = [\"sync\"]", "global", "before_pause", "[\"sync\"]"),
        ];
        for (text, origin, key, value) in table {
            let config = parse(text);
            let layer = config.policy.layers().iter().find(|layer| layer.origin().to_string() == origin);
            let found = layer.expect(text).values.get(&Key::from_name(key).unwrap());
            assert_eq!(found.map(Value::to_toml).as_deref(), Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let table = [
            (
                "[policy]\nmax_runtime = 48",
                "f:2:15: max_runtime: a bare number has no unit: write \"48s\", \"48m\" or \"48h\"",
            ),
            (
                "[policy]\nmax_runtime = -48",
                "f:2:15: max_runtime: expected a duration of at least 1s such as \"30m\", or \"never\", found the number -48",
            ),
            (
                "[policy]\nidle_timout = \"5m\"",
                "f:2:1: idle_timout: unknown key; did you mean \"idle_timeout\"?",
            ),
            ("[policy]\ncolour = 1", "f:2:1: colour: unknown key"),
            ("[policy]\n\"a b\" = 1", "f:2:1: \"a b\": unknown key"),
            (
                "[policy]\nsignals.cpu.active_abve = \"2%\"",
                "f:2:13: signals.cpu.active_abve: unknown key; did you mean \"signals.cpu.active_above\"?",
            ),
            (
                "[policy]\nsignals.cup.active_above = \"2%\"",
                "f:2:9: signals.cup: unknown key; did you mean \"signals.cpu\"?",
            ),
            (
                "[policy]\nsignals.telemetry.active_above = 1",
                "f:2:19: signals.telemetry.active_above: unknown key",
            ),
            (
                "[policy]\nsignals.cpu.active_above = 2",
                "f:2:28: signals.cpu.active_above: a bare number has no unit: write \"2%\"",
            ),
            ("[policy]\nsignals = 3", "f:2:11: signals: expected a table of keys, found the number 3"),
            (
                "[policy]\nwindow = \"three\"",
                "f:2:10: window: expected a whole number from 1 to 1000, found \"three\"",
            ),
            (
                "[policy]\nwindow = { a = 1 }",
                "f:2:10: window: expected a whole number from 1 to 1000, found a table",
            ),
            (
                "[policy]\nidle_timeout = 1979-05-27",
                "f:2:16: idle_timeout: expected a duration such as \"30s\", \"90m\", \"1h30m\" or \"2d\", found \"1979-05-27\"",
            ),
            ("[policy]\ngroup = \"x\"", "f:2:9: group: expected a table [policy.group.NAME], found \"x\""),
            (
                "[policy.group]\nidle_timeout = \"5m\"",
                "f:2:16: group.idle_timeout: expected a table [policy.group.NAME], found \"5m\"",
            ),
            ("[policy.groups.x]\nwindow = 1", "f:1:9: groups: unknown key; did you mean \"group\"?"),
            ("[policy.group.x]\nowner.y.window = 1", "f:2:1: owner: unknown key"),
            ("policy = 3", "f:1:10: policy: expected a table [policy], found the number 3"),
            (
                "idle_timeout = \"5m\"",
                "f:1:1: idle_timeout: unknown key; did you mean \"policy.idle_timeout\"?",
            ),
        ];
        for (text, error) in table {
            assert_eq!(errors(text), [error], "{text}");
        }
    }

    #[test]
    fn an_override_of_one_key_keeps_the_others() {
        let config = parse(
            "[policy]\nsignals.cpu.active_above = \"3%\"\nwindow = 2\n[policy.group.g]\nsignals.gpu.active_above = \"9%\"",
        );
        let selectors = Selectors { group: Some("g".into()), ..Selectors::default() };
        let book: &PolicyBook = &config.policy;
        let (policy, _) = book.resolve_for(&selectors);
        assert_eq!(policy.window, 2);
        assert_eq!(policy.active_above[drowse_core::signal::Signal::Cpu as usize].to_string(), "3");
    }
}
