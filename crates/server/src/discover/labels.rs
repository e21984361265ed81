//! From what is written on a container to a worker.
//!
//! Labels are written as a `[[worker]]` and read by the parser of the configuration, so that there is one rule for what a
//! worker may look like and one sentence for each mistake.

use std::collections::BTreeMap;

use drowse_core::policy::Level;
use drowse_drivers::docker::Container as Found;
use drowse_drivers::{self as drivers, Spec};
use serde_json::{Map, Value};

use crate::config::{self, Input};
use crate::fleet::PolicyChange;
use crate::nested::nested;
use crate::spec::{Container, DriverSpec, NewWorker};

/// Whoever set a value by a label.
pub(super) const BY_LABEL: &str = "label";

/// Whether a value was set because of what is written on a container, and so goes when that does.
pub(crate) fn is_by_label(author: &str) -> bool {
    author == BY_LABEL || author == super::BY_UNKNOWN_GROUP
}

/// What our labels begin with.
pub(super) const OURS: &str = "drowse.";

/// What a label says beside a policy, after what all of them begin with.
const NAMES: [&str; 9] =
    ["enable", "group", "listen", "name", "owner", "port", "protected", "region", "type"];

/// A container as a worker, with the policy that its labels ask for.
pub(super) fn read(
    found: &drivers::Found,
    filter: &str,
) -> Result<(NewWorker, Vec<PolicyChange>), Vec<String>> {
    let Spec::Docker(docker) = &found.spec else { return Err(vec!["it is no container".to_owned()]) };
    let Found::Id(container) = &docker.container else { return Err(vec!["it has no id".to_owned()]) };
    let mut worker = Map::new();
    let mut policy = Map::new();
    let mut problems = Vec::new();
    worker.insert("id".to_owned(), found.name.clone().into());
    if let Some(kind) = kind_of(found) {
        worker.insert("type".to_owned(), kind.into());
    }
    let wanted = filter.split_once('=').map_or(filter, |(key, _)| key);
    for (label, text) in found.labels.iter().filter(|(label, _)| *label != wanted) {
        let Some(name) = label.strip_prefix(OURS) else { continue };
        let key = match name {
            "name" => "id",
            "group" | "owner" | "type" | "region" => name,
            "port" => {
                if text.parse::<u16>().is_ok_and(|port| port > 0) {
                    worker.insert("target".to_owned(), format!(":{text}").into());
                } else {
                    problems.push(format!("{label}: expected a port such as 8888, found {text:?}"));
                }
                continue;
            }
            "listen" if !found.labels.contains_key("drowse.port") => {
                problems.push(format!("{label}: needs drowse.port beside it, the port inside"));
                continue;
            }
            "listen" => {
                // A port alone is one of this machine's, and nobody else's.
                let is_port = text.parse::<u16>().is_ok();
                let address = if is_port { format!("127.0.0.1:{text}") } else { text.clone() };
                worker.insert("listen".to_owned(), address.into());
                continue;
            }
            "protected" => {
                policy.insert("protected".to_owned(), value(text));
                continue;
            }
            "enable" => continue,
            other => {
                if let Some(key) = other.strip_prefix("policy.") {
                    policy.insert(key.to_owned(), value(text));
                } else {
                    let meant = config::nearest(other, NAMES);
                    let meant =
                        meant.map_or_else(String::new, |near| format!("; did you mean {OURS}{near}?"));
                    problems.push(format!("{label}: there is no such label{meant}"));
                }
                continue;
            }
        };
        worker.insert(key.to_owned(), text.clone().into());
    }
    if !worker.contains_key("target") {
        // What is wrong with its port has been said.
        worker.remove("listen");
    }
    worker.insert("driver".to_owned(), "docker".into());
    worker.insert("container".to_owned(), container.clone().into());
    if !policy.is_empty() {
        worker.insert("policy".to_owned(), nested(policy).into());
    }
    let (mut new, policy) = match parse(worker, &found.labels) {
        Ok(parsed) if problems.is_empty() => parsed,
        Ok(_) => return Err(problems),
        Err(more) => return Err(problems.into_iter().chain(more).collect()),
    };
    new.spec.driver = DriverSpec::Docker { container: Container::Id(container.clone()) };
    new.spec.is_listed = false;
    new.spec.found_by = Some(filter.to_owned());
    Ok((new, policy))
}

fn parse(
    worker: Map<String, Value>,
    labels: &BTreeMap<String, String>,
) -> Result<(NewWorker, Vec<PolicyChange>), Vec<String>> {
    let file = Value::Object(Map::from_iter([("worker".to_owned(), Value::Array(vec![worker.into()]))]));
    let text = toml::to_string(&file).map_err(|error| vec![error.to_string()])?;
    let parsed = config::parse(&Input { file: "", text: &text, members: &[], variables: &[] });
    let config = parsed.strict().map_err(|problems| {
        let told = |problem: &config::Problem| match &problem.key {
            Some(key) => format!("{}: {}", label_of(key, labels), problem.fault),
            None => problem.fault.to_string(),
        };
        problems.iter().map(told).collect::<Vec<_>>()
    })?;
    let worker = config.workers.first().ok_or_else(|| vec!["it says nothing".to_owned()])?;
    let new = NewWorker::listed(worker).map_err(|error| vec![error.to_string()])?;
    let own = config.policy.layers().iter().filter(|layer| layer.level == Level::Worker);
    let policy = own.flat_map(|layer| &layer.values).map(|(key, value)| PolicyChange {
        level: Level::Worker,
        name: Some(new.id.to_string()),
        key: *key,
        value: Some(value.clone()),
        by: BY_LABEL.to_owned(),
    });
    let policy = policy.collect();
    Ok((new, policy))
}

/// The label that a key of the configuration came from.
fn label_of(key: &str, labels: &BTreeMap<String, String>) -> String {
    match key {
        "id" => "drowse.name".to_owned(),
        "target" => "drowse.port".to_owned(),
        "container" => "the container".to_owned(),
        other if NAMES.contains(&other) && labels.contains_key(&format!("{OURS}{other}")) => {
            format!("{OURS}{other}")
        }
        // All others are keys of a policy.
        other => format!("{OURS}policy.{other}"),
    }
}

/// Labels are text; what is a number, a truth or a list in the file is one here.
fn value(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        list if list.starts_with('[') => serde_json::from_str(list).unwrap_or_else(|_| Value::from(list)),
        text => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
    }
}

/// What it is, by what it asks for and what made it. Of several the one that says most: what was given graphics processors
/// is that before all, and a devcontainer may be made by compose.
fn kind_of(found: &drivers::Found) -> Option<&'static str> {
    let has = |prefix: &str| found.labels.keys().any(|label| label.starts_with(prefix));
    if found.has_gpus {
        Some("gpu")
    } else if has("devcontainer.") || has("vsch.") {
        Some("devcontainer")
    } else if has("com.docker.compose.") {
        Some("compose")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use drowse_core::policy::{Key, Value as Setting};

    use super::*;

    fn found(labels: &[(&str, &str)]) -> drivers::Found {
        drivers::Found {
            name: "jupyter".to_owned(),
            spec: Spec::Docker(drivers::docker::Spec { container: Found::Id("abc".to_owned()) }),
            labels: labels.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect(),
            has_gpus: false,
            problem: None,
        }
    }

    fn worker(labels: &[(&str, &str)]) -> (NewWorker, Vec<PolicyChange>) {
        read(&found(labels), "drowse.enable=true").expect("good labels")
    }

    #[test]
    fn labels_say_who_it_is_and_where_it_answers() {
        let (new, policy) = worker(&[
            ("drowse.enable", "true"),
            ("drowse.group", "student"),
            ("drowse.owner", "alice"),
            ("drowse.port", "8888"),
            ("drowse.listen", "8001"),
            ("maintainer", "somebody"),
        ]);
        assert_eq!(new.id.as_str(), "jupyter");
        assert_eq!(new.selectors.group.as_deref(), Some("student"));
        assert_eq!(new.selectors.owner.as_deref(), Some("alice"));
        assert_eq!(new.spec.listen, Some(([127, 0, 0, 1], 8001).into()));
        assert_eq!(new.spec.place(), Some(config::Target::Port(8888)));
        assert_eq!(new.spec.driver, DriverSpec::Docker { container: Container::Id("abc".to_owned()) });
        assert_eq!(policy, []);
    }

    #[test]
    fn the_type_is_given_or_detected() {
        let kind = |labels: &[(&str, &str)], has_gpus| {
            let found = drivers::Found { has_gpus, ..found(labels) };
            read(&found, "drowse.enable=true").expect("good labels").0.selectors.kind
        };
        let compose = ("com.docker.compose.project", "shop");
        let devcontainer = ("devcontainer.local_folder", "/home/alice/shop");
        assert_eq!(kind(&[], false), None);
        assert_eq!(kind(&[compose], false).as_deref(), Some("compose"));
        assert_eq!(kind(&[compose, devcontainer], false).as_deref(), Some("devcontainer"));
        assert_eq!(kind(&[compose, devcontainer], true).as_deref(), Some("gpu"));
        assert_eq!(kind(&[compose, ("drowse.type", "lab")], true).as_deref(), Some("lab"));
    }

    #[test]
    fn policy_by_label_is_the_worker_layer() {
        let (_, policy) =
            worker(&[("drowse.protected", "true"), ("drowse.policy.signals.cpu.active_above", "3%")]);
        assert_eq!(policy.len(), 2, "{policy:?}");
        assert!(policy.iter().all(|change| change.level == Level::Worker && change.by == BY_LABEL));
        let protected = policy.iter().find(|change| change.key == Key::Protected).expect("it was asked for");
        assert_eq!(protected.value, Some(Setting::Flag(true)));
    }

    #[test]
    fn a_mistake_is_named_by_its_label() {
        let problems = |labels: &[(&str, &str)]| read(&found(labels), "drowse.enable=true").unwrap_err();
        let table: [(&[(&str, &str)], &str); 9] = [
            (&[("drowse.policy.idle_timeout", "48")], "drowse.policy.idle_timeout: "),
            (&[("drowse.protected", "perhaps")], "drowse.protected: "),
            (
                &[("drowse.gruop", "student")],
                "drowse.gruop: there is no such label; did you mean drowse.group?",
            ),
            (&[("drowse.colour", "red")], "drowse.colour: there is no such label"),
            (&[("drowse.port", "http")], "drowse.port: expected a port such as 8888, found \"http\""),
            (
                &[("drowse.port", "http"), ("drowse.listen", "8001")],
                "drowse.port: expected a port such as 8888, found \"http\"",
            ),
            (&[("drowse.listen", "8001")], "drowse.listen: needs drowse.port beside it"),
            (&[("drowse.listen", "here"), ("drowse.port", "80")], "drowse.listen: "),
            (&[("drowse.name", "a b")], "drowse.name: "),
        ];
        for (labels, part) in table {
            let found = problems(labels);
            assert!(found.len() == 1 && found[0].starts_with(part), "{labels:?}: {found:?}");
        }
    }
}
