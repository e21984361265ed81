//! The same for programs: `{ok, errors, workers}`.

use std::path::Path;

use drowse_server::config::{Config, Parsed, Place, Problem, Resolved, Worker};
use serde_json::{Map, Value, json};

/// What was found. With `only`, one worker with every key; else all, with the keys that somebody changed.
pub(super) fn report(parsed: &Parsed, only: Option<&Worker>) -> String {
    let config = &parsed.config;
    let workers: Vec<Value> = match only {
        Some(worker) => vec![self::worker(config, worker, true)],
        None => config.workers.iter().map(|worker| self::worker(config, worker, false)).collect(),
    };
    let errors: Vec<Value> = parsed.problems.iter().map(problem).collect();
    text(&json!({ "ok": errors.is_empty(), "errors": errors, "workers": workers }))
}

/// A file that could not even be read.
pub(super) fn unreadable(file: &Path, message: &str) -> String {
    let error = json!({
        "file": file.to_string_lossy(),
        "line": null,
        "column": null,
        "key": null,
        "message": message,
        "suggestion": null,
    });
    text(&json!({ "ok": false, "errors": [error], "workers": [] }))
}

fn text(value: &Value) -> String {
    format!("{value:#}\n")
}

fn problem(problem: &Problem) -> Value {
    let place = problem.place.as_ref();
    let notes: Vec<Value> = problem
        .notes
        .iter()
        .map(|note| {
            let mut object = self::place(Some(&note.place));
            object.insert("message".to_owned(), note.message.clone().into());
            object.into()
        })
        .collect();
    let mut object = self::place(place);
    object.insert("key".to_owned(), problem.key.clone().into());
    object.insert("message".to_owned(), problem.message().into());
    object.insert("suggestion".to_owned(), problem.fault.suggestion().into());
    object.insert("exemption".to_owned(), problem.exemption.into());
    object.insert("notes".to_owned(), notes.into());
    object.into()
}

fn place(place: Option<&Place>) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("file".to_owned(), place.map(|place| place.file.clone()).into());
    object.insert("line".to_owned(), place.map(|place| place.line).into());
    object.insert("column".to_owned(), place.map(|place| place.column).into());
    object
}

fn worker(config: &Config, worker: &Worker, is_whole: bool) -> Value {
    let selectors = &worker.selectors;
    let policy: Map<String, Value> = config
        .resolved(worker)
        .iter()
        .filter(|row| is_whole || row.is_changed)
        .map(|row| (row.key.name(), setting(row)))
        .collect();
    json!({
        "id": worker.id.as_str(),
        "driver": worker.driver.kind().code(),
        "type": selectors.kind,
        "region": selectors.region,
        "group": selectors.group,
        "owner": selectors.owner,
        "policy": policy,
    })
}

fn setting(row: &Resolved) -> Value {
    let mut object = place(row.place.as_ref());
    // `null` is how "never" is written in JSON, so what has no value has no `value` either.
    if let Some(value) = &row.value {
        object.insert("value".to_owned(), serde_json::to_value(value).unwrap_or(Value::Null));
    }
    object.insert("set_by".to_owned(), row.origin.to_string().into());
    object.into()
}
