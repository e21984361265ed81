//! `[sensor.cml]`: how CML's telemetry is read.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use drowse_core::telemetry::{Categories, EXCLUDED_USERS, UserPattern};

use super::problem::{Fault, Report};
use super::read;
use super::section::{Field, Node, Preset, Section, describe};

/// `[sensor.cml]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cml {
    /// Who reads the telemetry.
    pub login: Option<Login>,
    /// Which events show that a person is there.
    pub categories: Categories,
}

/// An account of CML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub username: String,
    /// A file that holds its password.
    pub password_file: PathBuf,
}

pub(super) const TABLES: &[Field] = &[Field {
    name: "cml",
    expected: "a table [sensor.cml]",
    preset: Preset::Absent("telemetry is not read"),
    sample: "",
    describe: "Cisco Modeling Labs.",
}];

pub(super) const CML: &[Field] = &[
    Field {
        name: "username",
        expected: "a user of CML such as \"admin\"",
        preset: Preset::Absent("telemetry is not read"),
        sample: "\"admin\"",
        describe: "The account that reads the telemetry.",
    },
    Field {
        name: "password_file",
        expected: "the path of a file",
        preset: Preset::Absent("telemetry is not read"),
        sample: "\"cml.pw\"",
        describe: "A file that holds its password. A password in this file is refused.",
    },
    Field {
        name: "interval",
        expected: "a duration of at least 1s such as \"10m\"",
        preset: Preset::Absent("follows idle_timeout"),
        sample: "\"10m\"",
        describe: "How often telemetry is read; the same as policy.telemetry_interval.",
    },
    Field {
        name: "categories",
        expected: "a list of categories such as [\"start_lab\", \"user_activity\"]",
        preset: Preset::Absent("those that people cause"),
        sample: "[\"start_lab\", \"stop_lab\", \"user_activity\"]",
        describe: "The events that show that a person is there.",
    },
    Field {
        name: "excluded_users",
        expected: "a regular expression such as \"^00000000-0000-.*\"",
        preset: Preset::Is("\"^00000000-0000-.*\""),
        sample: "\"^00000000-0000-.*\"",
        describe: "The ids of users that are no people; it is matched from the beginning.",
    },
];

/// What `[sensor]` says, and the interval, which is a value of the global layer.
pub(super) type Sensors = (Cml, Option<(Duration, Range<usize>)>);

pub(super) fn read(report: &mut Report<'_>, node: &Node<'_>) -> Sensors {
    let Some(section) = Section::of(report, node, "[sensor.NAME]", &[TABLES]) else {
        return Sensors::default();
    };
    let cml = section.node("cml").map(|node| cml(report, node));
    section.finish(report);
    cml.unwrap_or_default()
}

fn cml(report: &mut Report<'_>, node: &Node<'_>) -> Sensors {
    let Some(section) = Section::of(report, node, "[sensor.cml]", &[CML]) else {
        return Sensors::default();
    };
    let username = section.read(report, "username", read::text);
    let password_file = section.read(report, "password_file", read::path);
    for (one, other) in [("username", "password_file"), ("password_file", "username")] {
        // `password` in its place has been refused with the same advice.
        if section.has(one) && !section.has(other) && !section.has("password") {
            report.add(&section.span_of(one), one, Fault::rule(format!("needs {other} beside it")));
        }
    }
    let interval = section.read(report, "interval", read::interval);
    let interval = interval.map(|interval| (interval, section.span_of("interval")));
    let names = section.read(report, "categories", read::texts(CML[3].expected));
    let users = section.read(report, "excluded_users", pattern).unwrap_or_default();
    section.finish(report);
    let names = names.unwrap_or_else(|| Categories::default().names().to_vec());
    let login =
        username.zip(password_file).map(|(username, password_file)| Login { username, password_file });
    (Cml { login, categories: Categories::new(names, users) }, interval)
}

fn pattern(value: &DeValue<'_>) -> Result<UserPattern, Fault> {
    value.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
        Fault::expected(format!("a regular expression such as {EXCLUDED_USERS:?}"), describe(value))
    })
}

#[cfg(test)]
mod tests {
    use drowse_core::policy::{Key, Value};

    use super::super::tests::{errors, parse};
    use super::*;

    #[test]
    fn the_sensor_is_read() {
        let cml = parse("[sensor.cml]\nusername = \"admin\"\npassword_file = \"cml.pw\"").cml;
        assert_eq!(cml.login, Some(Login { username: "admin".into(), password_file: "cml.pw".into() }));
        assert_eq!(cml.categories, Categories::default());
        let cml = parse("[sensor.cml]\ncategories = [\"start_lab\"]\nexcluded_users = \"^bot-\"").cml;
        assert_eq!(cml.categories.names(), ["start_lab"]);
        assert_ne!(cml.categories, Categories::new(["start_lab"], UserPattern::default()));
    }

    #[test]
    fn its_interval_is_a_value_of_the_global_layer() {
        for text in
            ["[sensor.cml]\ninterval = \"7m\"", "[policy]\nwindow = 1\n[sensor.cml]\ninterval = \"7m\""]
        {
            let config = parse(text);
            let global = &config.policy.layers()[0];
            let expected = Value::Duration(Duration::from_mins(7));
            assert_eq!(global.values.get(&Key::TelemetryInterval), Some(&expected), "{text}");
        }
        assert_eq!(
            errors("[policy]\ntelemetry_interval = \"5m\"\n[sensor.cml]\ninterval = \"7m\""),
            ["f:4:12: interval: the same as policy.telemetry_interval, which is set too"]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            (
                "username = \"admin\"\npassword = \"hunter2\"",
                "f:3:1: password: secrets do not stand in this file: put it into a file of its own that only Drowse can read, and write password_file = \"…\"",
            ),
            ("username = \"admin\"", "f:2:12: username: needs password_file beside it"),
            ("password_file = \"x\"", "f:2:17: password_file: needs username beside it"),
            (
                "interval = 600",
                "f:2:12: interval: a bare number has no unit: write \"600s\", \"600m\" or \"600h\"",
            ),
            (
                "excluded_users = \"(\"",
                "f:2:18: excluded_users: expected a regular expression such as \"^00000000-0000-.*\", found \"(\"",
            ),
            (
                "categories = [1]",
                "f:2:14: categories: expected a list of categories such as [\"start_lab\", \"user_activity\"], found the number 1",
            ),
            ("intervall = \"1m\"", "f:2:1: intervall: unknown key; did you mean \"interval\"?"),
        ];
        for (text, error) in table {
            assert_eq!(errors(&format!("[sensor.cml]\n{text}")), [error], "{text}");
        }
    }
}
