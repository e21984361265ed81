//! The seeds' environment variables, as the strongest source of the global layer.
//!
//! Their names carry the unit (`…_MINUTES`, an interval in seconds), which is why these, and only these,
//! take bare numbers.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::key::Key;
use super::layer::{Level, PolicyLayer, Source};
use super::value::{Kind, Value};

/// How the text of a variable is read.
#[derive(Clone, Copy)]
enum Form {
    Flag,
    Minutes,
    Seconds,
}

impl Form {
    const fn expected(self) -> &'static str {
        match self {
            Form::Flag => "true or false",
            Form::Minutes => "a whole number of minutes",
            Form::Seconds => "a whole number of seconds",
        }
    }
}

/// Every variable that the seeds define.
const VARIABLES: [(&str, Key, Form); 7] = [
    ("WORKER_IDLE_TIMEOUT_MINUTES", Key::IdleTimeout, Form::Minutes),
    ("WORKER_AUTO_PAUSE_ENABLED", Key::AutoPause, Form::Flag),
    ("WORKER_AUTO_PAUSE_SNOOZE_MINUTES", Key::Snooze, Form::Minutes),
    ("WORKER_ACTIVITY_DETECTION_ENABLED", Key::ActivityDetection, Form::Flag),
    ("WORKER_ACTIVITY_DETECTION_INTERVAL", Key::TelemetryInterval, Form::Seconds),
    ("IDLE_DETECTION_INTERVAL", Key::CheckInterval, Form::Seconds),
    ("SCALE_DOWN_ENABLED", Key::ScaleDown, Form::Flag),
];

/// Every variable with the key that it pins and what its text looks like, for the reference.
pub fn environment_variables() -> impl Iterator<Item = (&'static str, Key, &'static str)> {
    VARIABLES.into_iter().map(|(name, key, form)| (name, key, form.expected()))
}

/// A variable whose text is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {variable}: expected {expected}, found {found:?}")]
pub struct EnvError {
    variable: &'static str,
    expected: &'static str,
    found: String,
}

/// The layers that the environment makes: one for each variable that is set, so that each names itself.
pub fn environment_layer<'a>(
    variables: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<PolicyLayer>, Vec<EnvError>> {
    let mut layers = Vec::new();
    let mut errors = Vec::new();
    for (name, text) in variables {
        let Some((variable, key, form)) = VARIABLES.iter().find(|(known, _, _)| *known == name) else {
            continue;
        };
        match read(*key, *form, text.trim()) {
            Ok(value) => {
                let mut layer = PolicyLayer::new(Level::Global, None, Source::Environment).with(*key, value);
                layer.author = Some((*variable).to_string());
                layers.push(layer);
            }
            Err(expected) => errors.push(EnvError { variable, expected, found: text.to_string() }),
        }
    }
    if errors.is_empty() { Ok(layers) } else { Err(errors) }
}

fn read(key: Key, form: Form, text: &str) -> Result<Value, &'static str> {
    // No snooze at all is a wish; a timeout or an interval of nothing is a slip.
    let least = u32::from(key.kind() != Kind::Duration);
    let number = || match text.parse::<u32>() {
        Ok(number) if number >= least => Ok(u64::from(number)),
        _ => Err(form.expected()),
    };
    match form {
        // Python's settings accept these spellings, and the seeds' deployments use them.
        Form::Flag => match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Value::Flag(true)),
            "false" | "0" | "no" | "off" => Ok(Value::Flag(false)),
            _ => Err(form.expected()),
        },
        Form::Minutes => number().map(|n| Value::Duration(Duration::from_secs(n * 60))),
        Form::Seconds => number().map(|n| Value::Duration(Duration::from_secs(n))),
    }
}
