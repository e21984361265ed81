//! Keys with dots in them, as the API and labels write them, for a parser that reads tables.

use serde_json::{Map, Value};

/// The API writes `signals.cpu.active_above` as one key, where TOML has tables; and null, where TOML has `"never"`.
pub(crate) fn nested(flat: Map<String, Value>) -> Map<String, Value> {
    let mut root = Map::new();
    for (name, value) in flat {
        let value = match value {
            Value::Null => Value::from("never"),
            Value::Object(table) => Value::Object(nested(table)),
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => other,
        };
        put(&mut root, &name, value);
    }
    root
}

fn put(table: &mut Map<String, Value>, name: &str, value: Value) {
    let Some((first, rest)) = name.split_once('.') else {
        match (table.get_mut(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => old.extend(new),
            (_, value) => {
                table.insert(name.to_owned(), value);
            }
        }
        return;
    };
    let entry = table.entry(first).or_insert_with(|| Value::Object(Map::new()));
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    if let Value::Object(inner) = entry {
        put(inner, rest, value);
    }
}
