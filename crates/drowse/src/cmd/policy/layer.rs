//! Layers and values as they are written on the command line.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// A layer that can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) level: String,
    pub(super) name: Option<String>,
}

/// The levels that carry a name.
const NAMED: [&str; 5] = ["region", "type", "group", "owner", "worker"];

impl FromStr for Layer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            None if text == "global" => Ok(Self { level: text.to_owned(), name: None }),
            Some((level, name)) if NAMED.contains(&level) && !name.is_empty() => {
                Ok(Self { level: level.to_owned(), name: Some(name.to_owned()) })
            }
            _ => {
                Err("expected global, region/NAME, type/NAME, group/NAME, owner/NAME or worker/ID".to_owned())
            }
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.level)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, "/{name}"))
    }
}

/// `KEY=VALUE`. What is a value in the configuration file is one here too; all else is a text, so that nobody has
/// to quote `30m` for the shell and for us.
pub(super) fn assignment(text: &str) -> Result<(String, Value), String> {
    let (key, value) =
        text.split_once('=').ok_or_else(|| "expected KEY=VALUE such as idle_timeout=30m".to_owned())?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || value.is_empty() {
        return Err("expected KEY=VALUE such as idle_timeout=30m".to_owned());
    }
    let read = toml::from_str::<toml::Table>(&format!("value = {value}"))
        .ok()
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("value"))
        // A date is a text of ours too.
        .filter(|value| !value.is_datetime())
        .and_then(|value| serde_json::to_value(value).ok());
    Ok((key.to_owned(), read.unwrap_or_else(|| Value::from(value))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_those_of_the_file_without_its_quotes() {
        for (text, value) in [
            ("idle_timeout=30m", json!("30m")),
            ("idle_timeout=never", json!("never")),
            ("idle_timeout=\"30m\"", json!("30m")),
            ("window=3", json!(3)),
            ("auto_pause=false", json!(false)),
            ("signals.cpu.active_above=2%", json!("2%")),
            ("warn_at=[\"80%\", \"95%\"]", json!(["80%", "95%"])),
            ("keep_alive_file=/a=b", json!("/a=b")),
            ("schedule={ zone = \"UTC\", windows = [] }", json!({ "zone": "UTC", "windows": [] })),
        ] {
            assert_eq!(assignment(text).unwrap().1, value, "{text}");
        }
        for bad in ["idle_timeout", "=30m", "idle_timeout="] {
            assert!(assignment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn layers_are_written_as_paths() {
        for good in ["global", "group/student", "worker/web"] {
            assert_eq!(good.parse::<Layer>().unwrap().to_string(), good);
        }
        for bad in ["", "student", "group", "group/", "global/x", "built-in", "planet/earth"] {
            assert!(bad.parse::<Layer>().is_err(), "{bad}");
        }
    }
}
