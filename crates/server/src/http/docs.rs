//! `/docs`: the document of the API as a page, made from the document itself.

use std::fmt::Write as _;

use axum::response::IntoResponse;
use serde_json::Value;

use super::openapi::document;
use super::page::{escape, html};

/// Shows what the API can do.
pub(super) async fn page() -> impl IntoResponse {
    html("API · Drowse", "", &render(&serde_json::to_value(document()).unwrap_or_default()))
}

fn render(document: &Value) -> String {
    let mut text = format!(
        "<h1>API</h1><p>{} The whole document: <a href=\"/openapi.json\">/openapi.json</a></p>",
        escape(document["info"]["description"].as_str().unwrap_or_default())
    );
    let mut put = |part: String| text.write_str(&part).expect("a String takes all that is written to it");
    put("<table><thead><tr><th>Request</th><th>What it does</th><th>Answers</th></tr></thead><tbody>"
        .to_owned());
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            put(row(path, method, operation));
        }
    }
    put("</tbody></table><h2>Types</h2>".to_owned());
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        put(section(name, schema));
    }
    text
}

fn row(path: &str, method: &str, operation: &Value) -> String {
    let summary = operation["summary"].as_str().unwrap_or_default();
    let more = operation["description"].as_str().unwrap_or_default();
    let asked = operation["requestBody"]["content"]["application/json"]["schema"].to_string();
    let asked =
        named(&asked).map_or_else(String::new, |name| format!("<br><small>takes {}</small>", link(&name)));
    let answers =
        operation["responses"].as_object().into_iter().flatten().filter(|(code, _)| code.starts_with('2'));
    let answers: Vec<String> = answers
        .map(|(code, answer)| {
            let name = named(&answer["content"].to_string()).map_or_else(String::new, |name| link(&name));
            format!("{} {name}", escape(code))
        })
        .collect();
    format!(
        "<tr><td><code>{} {}</code>{asked}</td><td>{}<br><small>{}</small></td><td>{}</td></tr>",
        escape(&method.to_uppercase()),
        escape(path),
        escape(summary),
        escape(more),
        answers.join("<br>")
    )
}

/// The type that a schema refers to.
fn named(schema: &str) -> Option<String> {
    let (_, rest) = schema.split_once("#/components/schemas/")?;
    rest.split('"').next().map(str::to_owned)
}

fn link(name: &str) -> String {
    let name = escape(name);
    format!("<a href=\"#{name}\">{name}</a>")
}

fn section(name: &str, schema: &Value) -> String {
    let mut text = format!(
        "<h3 id=\"{0}\">{0}</h3><p>{1}</p>",
        escape(name),
        escape(schema["description"].as_str().unwrap_or_default())
    );
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let words: Vec<String> = words.map(|word| format!("<code>{}</code>", escape(word))).collect();
    text.push_str(&words.join(", "));
    let fields = schema["properties"].as_object().into_iter().flatten().map(|(field, inner)| {
        let kind = named(&inner.to_string()).map_or_else(|| escape(&kind_of(inner)), |name| link(&name));
        let optional = if required.contains(&field.as_str()) { "" } else { " <small>may be absent</small>" };
        let about = escape(inner["description"].as_str().unwrap_or_default());
        format!("<tr><td><code>{}</code>{optional}</td><td>{kind}</td><td>{about}</td></tr>", escape(field))
    });
    let fields: String = fields.collect();
    if !fields.is_empty() {
        text.extend(["<table><tbody>", &fields, "</tbody></table>"]);
    }
    text
}

fn kind_of(schema: &Value) -> String {
    match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
