//! One golden file for each message: what is in it never changes its meaning.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::registry::messages;

/// Exported by `v1` and no message of their own.
const NO_MESSAGES: &[(&str, &str)] = &[
    ("BACKUP_TYPE", "a content type"),
    ("Patch", "a field of PatchWorker"),
    ("WorkerView", "what a Worker is made of"),
    ("settings", "a function"),
];

/// Messages that keep every field, known or not, on purpose.
const OPEN: &[&str] = &["Problem", "RegisterWorker"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// `WorkerIdleStatus` is in `worker_idle_status.json`.
pub(crate) fn file_of(name: &str) -> PathBuf {
    let mut file = String::new();
    for (index, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && index > 0 {
            file.push('_');
        }
        file.push(c.to_ascii_lowercase());
    }
    folder().join(format!("{file}.json"))
}

pub(crate) fn read(name: &str) -> Value {
    let path = file_of(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{name} needs a golden file {}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_message_comes_back_as_it_was() {
    for message in messages() {
        let golden = read(message.name);
        assert_eq!((message.round_trip)(golden.clone()), Ok(golden), "{}", message.name);
    }
}

#[test]
fn a_field_of_the_future_is_ignored() {
    for message in messages() {
        let golden = read(message.name);
        if !golden.is_object() || OPEN.contains(&message.name) {
            continue;
        }
        let mut newer = golden.clone();
        add_fields(&mut newer, &free_form(&golden));
        assert_eq!((message.round_trip)(newer), Ok(golden), "{}", message.name);
    }
}

/// The only fields whose content is anybody's: there a new key is content, not a new field.
const FREE: &[&str] = &["data", "set", "values", "policy", "value"];

fn free_form(golden: &Value) -> BTreeSet<&'static str> {
    // `policy` is free in a registration and a list of settings in an explanation.
    FREE.iter().copied().filter(|name| !golden[name].is_array()).collect()
}

fn add_fields(value: &mut Value, free: &BTreeSet<&'static str>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if !free.contains(name.as_str()) {
                    add_fields(field, free);
                }
            }
            fields.insert("a_field_of_the_future".to_owned(), serde_json::json!([{ "x": 1 }]));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| add_fields(item, free)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_message_is_known_here() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/v1.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let known: BTreeSet<&str> = messages()
        .iter()
        .map(|message| message.name)
        .chain(NO_MESSAGES.iter().map(|(name, _)| *name))
        .collect();
    let exported: BTreeSet<&str> = source
        .split("pub use ")
        .skip(1)
        .filter_map(|rest| rest.split(';').next()?.split_once("::"))
        .flat_map(|(_, names)| names.trim_matches(['{', '}']).split(','))
        .map(|name| name.trim().trim_matches(['{', '}']))
        .filter(|name| !name.is_empty())
        .collect();
    assert!(exported.len() > 30, "the exports of v1 were not found: {exported:?}");
    let unknown: Vec<_> = exported.difference(&known).collect();
    assert!(unknown.is_empty(), "add {unknown:?} to registry.rs and give each a golden file");
}

#[test]
fn every_golden_file_is_some_messages() {
    let known: BTreeSet<PathBuf> = messages().iter().map(|message| file_of(message.name)).collect();
    let found = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let orphans: Vec<_> = found.filter(|path| !known.contains(path)).collect();
    assert!(orphans.is_empty(), "nothing reads {orphans:?}");
}
