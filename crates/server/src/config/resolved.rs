//! What a worker of the file gets in the end, key by key, and who said so.

use drowse_core::policy::{Key, Origin, Policy, Value};
use drowse_core::worker::{Capabilities, Terms};

use super::Config;
use super::source::Place;
use super::worker::Worker;

/// One key of a worker's policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The key.
    pub key: Key,
    /// The value that counts; `None` where there is none, as for a schedule that nobody set.
    pub value: Option<Value>,
    /// Who set it.
    pub origin: Origin,
    /// Where the file sets it.
    pub place: Option<Place>,
    /// Somebody set it to something else than the built-in value.
    pub is_changed: bool,
}

impl Config {
    /// Every key of a worker's policy.
    pub fn resolved(&self, worker: &Worker) -> Vec<Resolved> {
        let stack = self.policy.stack_for(&worker.selectors);
        let set = stack.set_values();
        let (policy, mut provenance) = stack.finish();
        Key::all()
            .filter_map(|key| {
                let origin = provenance.remove(&key)?;
                let value = set.get(&key).cloned().or_else(|| unset(key, &policy, worker));
                let is_changed = set.contains_key(&key) && value != key.default();
                let place = self.place(&origin, key).cloned();
                Some(Resolved { key, value, origin, place, is_changed })
            })
            .collect()
    }
}

/// What counts for a key that nobody set: its built-in value, what it follows, or what the driver says.
fn unset(key: Key, policy: &Policy, worker: &Worker) -> Option<Value> {
    if let Some(value) = key.default() {
        return Some(value);
    }
    if let Key::SignalUse(signal) = key {
        return Some(Value::Need(policy.needs(worker.nature())[signal as usize]));
    }
    let duration = |(follower, duration)| (follower == key).then_some(Value::Duration(duration));
    let sleep = || Value::Sleep(Terms::of(policy, Capabilities::of(worker.driver.kind())).sleep);
    [
        (Key::CheckInterval, policy.check_interval),
        (Key::TelemetryInterval, policy.telemetry_interval),
        (Key::Snooze, policy.snooze),
        (Key::MinNotice, policy.min_notice),
    ]
    .into_iter()
    .find_map(duration)
    .or_else(|| (key == Key::Sleep).then(sleep))
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::*;

    #[test]
    fn every_key_has_its_value_and_its_layer() {
        let config = parse(
            "[policy]\nidle_timeout = \"10m\"\nwindow = 1\n[[worker]]\nid = \"w\"\ndriver = \"ec2\"\nregion = \"r\"\ninstance_id = \"i-01234567\"\npolicy.grace = \"5s\"",
        );
        let resolved = config.resolved(&config.workers[0]);
        assert_eq!(resolved.len(), Key::all().count());
        let shown = |name: &str| {
            let row = resolved.iter().find(|row| row.key.name() == name).unwrap();
            let value = row.value.as_ref().map(Value::to_toml).unwrap_or_default();
            let place = row.place.as_ref().map(ToString::to_string).unwrap_or_default();
            (value, row.origin.to_string(), place, row.is_changed)
        };
        for (name, value, origin, place, is_changed) in [
            ("idle_timeout", "\"10m\"", "global", "f:2:16", true),
            ("window", "1", "global", "f:3:10", false),
            ("grace", "\"5s\"", "worker w", "f:9:16", true),
            ("check_interval", "\"5m\"", "follows idle_timeout", "", false),
            ("sleep", "\"stop\"", "built-in", "", false),
            ("signals.activity.use", "\"required\"", "built-in", "", false),
            ("signals.cpu.use", "\"off\"", "built-in", "", false),
            ("schedule", "", "built-in", "", false),
        ] {
            assert_eq!(shown(name), (value.into(), origin.into(), place.into(), is_changed), "{name}");
        }
    }
}
