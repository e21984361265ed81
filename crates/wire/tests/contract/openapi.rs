//! The schemas, held against the golden files.

use std::collections::{BTreeMap, BTreeSet};

use drowse_wire::problem::Problem;
use drowse_wire::v1::{
    ActionAnswer, ActionRequest, Brake, ChangePolicy, CreateExemption, CreateToken, CreatedToken, EventPage,
    ExemptionList, Explanation, HoldList, IdleDetection, IdleDetectionResult, Lease, LoginLink, PatchWorker,
    PolicyChange, PolicyList, Readings, RegisterWorker, ReleaseBrake, SnoozeRequest, TakeLease, TokenList,
    WorkerActivity, WorkerIdleStatus, WorkerPage,
};
use serde_json::Value;
use utoipa::ToSchema;

use crate::golden::{OPEN, read};

/// The schema of a message, and of all that it refers to.
struct Described {
    name: String,
    all: BTreeMap<String, Value>,
}

fn describe<T: ToSchema>() -> Described {
    let mut schemas = Vec::new();
    T::schemas(&mut schemas);
    schemas.push((T::name().into_owned(), T::schema()));
    let all = schemas
        .into_iter()
        .map(|(name, schema)| (name, serde_json::to_value(schema).expect("a schema is JSON")))
        .collect();
    Described { name: T::name().into_owned(), all }
}

fn messages() -> Vec<Described> {
    vec![
        describe::<ActionAnswer>(),
        describe::<ActionRequest>(),
        describe::<Brake>(),
        describe::<ChangePolicy>(),
        describe::<CreateExemption>(),
        describe::<CreateToken>(),
        describe::<CreatedToken>(),
        describe::<LoginLink>(),
        describe::<EventPage>(),
        describe::<ExemptionList>(),
        describe::<Explanation>(),
        describe::<HoldList>(),
        describe::<IdleDetection>(),
        describe::<IdleDetectionResult>(),
        describe::<Lease>(),
        describe::<PatchWorker>(),
        describe::<PolicyChange>(),
        describe::<PolicyList>(),
        describe::<Problem>(),
        describe::<Readings>(),
        describe::<RegisterWorker>(),
        describe::<ReleaseBrake>(),
        describe::<SnoozeRequest>(),
        describe::<TakeLease>(),
        describe::<TokenList>(),
        describe::<WorkerActivity>(),
        describe::<WorkerIdleStatus>(),
        describe::<WorkerPage>(),
    ]
}

impl Described {
    /// Everything in `value` that the schema does not allow, as far as we use schemas.
    fn breaches(&self, schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
        if let Some(target) = schema["$ref"].as_str() {
            let name = target.rsplit('/').next().unwrap_or_default();
            match self.all.get(name) {
                Some(schema) => self.breaches(schema, value, path, found),
                None => found.push(format!("{path} refers to {name}, which is not there")),
            }
            return;
        }
        if let Some(choices) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            let fits = |choice: &Value| {
                let mut breaches = Vec::new();
                self.breaches(choice, value, path, &mut breaches);
                breaches.is_empty()
            };
            if !choices.iter().any(fits) {
                found.push(format!("{path}: {value} fits none of {choices:?}"));
            }
            return;
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.breaches(part, value, path, found);
        }
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_u64() || number.is_i64() => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let kinds: BTreeSet<&str> = match &schema["type"] {
            Value::String(kind) => [kind.as_str()].into(),
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => BTreeSet::new(),
        };
        let is_number = kind == "integer" && kinds.contains("number");
        if !kinds.is_empty() && !kinds.contains(kind) && !is_number {
            found.push(format!("{path}: {value} is none of {kinds:?}"));
        }
        if let Some(words) = schema["enum"].as_array()
            && !words.contains(value)
        {
            found.push(format!("{path}: {value} is none of {words:?}"));
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if value.is_object() && value.get(name).is_none() {
                found.push(format!("{path}.{name} is missing"));
            }
        }
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(value) = value.get(name) {
                self.breaches(schema, value, &format!("{path}.{name}"), found);
            }
        }
        if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
            for (index, value) in values.iter().enumerate() {
                self.breaches(items, value, &format!("{path}[{index}]"), found);
            }
        }
    }
}

#[test]
fn every_golden_message_fits_its_schema() {
    for message in messages() {
        let mut found = Vec::new();
        let golden = read(&message.name);
        message.breaches(&message.all[&message.name], &golden, &message.name, &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}

#[test]
fn every_field_of_a_golden_message_is_described() {
    for message in messages() {
        let schema = &message.all[&message.name];
        let mut properties = BTreeSet::new();
        // A message that is open to any member is described in parts.
        let parts = schema["allOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
        for part in &parts {
            properties
                .extend(part["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
        }
        let is_open = parts.iter().any(|part| part.get("additionalProperties").is_some());
        assert_eq!(is_open, OPEN.contains(&message.name.as_str()), "{}: {schema:#}", message.name);
        for name in read(&message.name).as_object().expect("an object").keys() {
            assert!(is_open || properties.contains(name), "{}.{name}", message.name);
        }
    }
}

#[test]
fn one_name_means_one_schema() {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    for (name, schema) in messages().into_iter().flat_map(|message| message.all) {
        let first = known.entry(name.clone()).or_insert_with(|| schema.clone());
        assert_eq!(*first, schema, "two schemas are called {name}");
    }
}
