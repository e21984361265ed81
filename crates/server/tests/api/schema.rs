//! Holds answers against the document. Only the part of JSON Schema that the document uses; what it does not know
//! it refuses, so that nothing passes because nobody looked.

use std::sync::OnceLock;

use serde_json::Value;

use crate::rig::Answer;

pub(crate) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::to_value(drowse_server::http::document()).unwrap())
}

/// Checks an answer to a route of the document.
#[track_caller]
pub(crate) fn check(method: &str, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap();
    let Some(operation) = operation(method, path) else { return };
    let status = answer.status.to_string();
    let Some(response) = operation["responses"].get(&status) else {
        // A wrong method is no operation of the document.
        assert_eq!(
            answer.status, 405,
            "{method} {path} answers {status}, which is not documented: {answer:?}"
        );
        return;
    };
    let response = response["$ref"].as_str().map_or(response, resolve);
    let kind = answer.header("content-type").split(';').next().unwrap();
    let Some(content) = response["content"].as_object() else {
        assert_eq!(answer.text, "", "{method} {path}: a body that is not documented");
        return;
    };
    let content =
        content.get(kind).unwrap_or_else(|| panic!("{method} {path} {status}: {kind:?} is not documented"));
    if kind.ends_with("json")
        && let Err(error) = validate(&content["schema"], &answer.json(), "$")
    {
        panic!("{method} {path} {status}: {error}: {}", answer.text);
    }
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let matches = |template: &str| {
        let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        template.len() == path.len()
            && template.iter().zip(&path).all(|(wanted, found)| wanted.starts_with('{') || wanted == found)
    };
    let paths = document()["paths"].as_object().unwrap();
    let found = paths
        .get(path)
        .or_else(|| paths.iter().find(|(template, _)| matches(template)).map(|(_, item)| item));
    found?.get(method.to_lowercase())
}

/// Keywords that say nothing about a value, or that an answer of ours cannot break in a way that matters here.
const SILENT: [&str; 12] = [
    "description",
    "examples",
    "example",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "propertyNames",
    "default",
    "title",
    "contentMediaType",
];

fn validate(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(schema) = schema.as_object() else { return Ok(()) };
    for (keyword, rule) in schema {
        match keyword.as_str() {
            "$ref" => validate(resolve(rule.as_str().unwrap()), value, at)?,
            "type" => check_type(rule, value, at)?,
            "enum" => {
                if !rule.as_array().unwrap().contains(value) {
                    return Err(format!("{at}: {value} is none of {rule}"));
                }
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        return Err(format!("{at}: {name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, inner) in rule.as_object().unwrap() {
                    if let Some(found) = value.get(name) {
                        validate(inner, found, &format!("{at}.{name}"))?;
                    }
                }
            }
            "additionalProperties" | "items" => {
                let known = schema.get("properties").and_then(Value::as_object);
                let inner: Vec<&Value> = match value {
                    Value::Array(items) if keyword == "items" => items.iter().collect(),
                    Value::Object(fields) if keyword != "items" => fields
                        .iter()
                        .filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)))
                        .map(|(_, value)| value)
                        .collect(),
                    Value::Null
                    | Value::Bool(_)
                    | Value::Number(_)
                    | Value::String(_)
                    | Value::Array(_)
                    | Value::Object(_) => Vec::new(),
                };
                if rule == &Value::Bool(false) && !inner.is_empty() {
                    return Err(format!("{at}: a member that is not documented"));
                }
                inner.into_iter().try_for_each(|found| validate(rule, found, &format!("{at}[]")))?;
            }
            "oneOf" | "anyOf" => {
                let tried: Vec<_> =
                    rule.as_array().unwrap().iter().map(|one| validate(one, value, at)).collect();
                let fits = tried.iter().filter(|tried| tried.is_ok()).count();
                if fits == 0 || (keyword == "oneOf" && fits > 1) {
                    return Err(format!("{at}: {value} fits {fits} of {rule}: {tried:?}"));
                }
            }
            "allOf" => rule.as_array().unwrap().iter().try_for_each(|one| validate(one, value, at))?,
            "minimum" => {
                if value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()) {
                    return Err(format!("{at}: {value} is below {rule}"));
                }
            }
            "maximum" => {
                if value.as_f64().is_some_and(|number| number > rule.as_f64().unwrap()) {
                    return Err(format!("{at}: {value} is above {rule}"));
                }
            }
            silent if SILENT.contains(&silent) => {}
            other => return Err(format!("{at}: the test does not know the keyword {other}")),
        }
    }
    Ok(())
}

pub(crate) fn resolve(reference: &str) -> &'static Value {
    let pointer = reference.strip_prefix('#').unwrap();
    document().pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

fn check_type(rule: &Value, value: &Value, at: &str) -> Result<(), String> {
    let is = |kind: &Value| match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no such type: {other}"),
    };
    let fits = rule.as_array().map_or_else(|| is(rule), |kinds| kinds.iter().any(is));
    if fits { Ok(()) } else { Err(format!("{at}: {value} is no {rule}")) }
}
