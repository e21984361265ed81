//! `schedule = { zone = …, windows = […] }` in a policy layer.
//!
//! Each part is read on its own, so that every mistake has its own place; whether the parts of a window go
//! together is decided by the core.

use std::ops::Range;

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use drowse_core::policy::Value;
use drowse_core::schedule::{Days, Hours, Schedule, ScheduleError, TimeOfDay, Window, Zone};

use super::problem::{Fault, Report};
use super::read;
use super::section::{Field, Node, Preset, Section, describe};

const SCHEDULE: &[Field] = &[
    Field {
        name: "zone",
        expected: "the name of a time zone such as \"Europe/Berlin\"",
        preset: Preset::Required,
        sample: "\"Europe/Berlin\"",
        describe: "The zone in whose local time the windows are written.",
    },
    Field {
        name: "windows",
        expected: "a list of windows",
        preset: Preset::Required,
        sample: "[{ days = \"mon-fri\", hours = \"08:00-18:00\", keep_awake = true }]",
        describe: "The windows; they may overlap.",
    },
];

/// The keys of a window, for the reference.
pub(super) const WINDOW: &[Field] = &[
    Field {
        name: "days",
        expected: "days such as \"mon-fri\", \"sat,sun\" or \"daily\"",
        preset: Preset::Required,
        sample: "\"mon-fri\"",
        describe: "The days on which it opens.",
    },
    Field {
        name: "from",
        expected: "a time such as \"08:00\"",
        preset: Preset::Absent("see hours"),
        sample: "\"08:00\"",
        describe: "When it opens.",
    },
    Field {
        name: "until",
        expected: "a time such as \"18:00\"",
        preset: Preset::Absent("see hours"),
        sample: "\"18:00\"",
        describe: "When it closes; a time that is not after `from` is on the next day.",
    },
    Field {
        name: "hours",
        expected: "hours such as \"22:00-06:00\"",
        preset: Preset::Absent("from and until"),
        sample: "\"22:00-06:00\"",
        describe: "Short for `from` and `until`.",
    },
    Field {
        name: "keep_awake",
        expected: "true or false",
        preset: Preset::Is("false"),
        sample: "true",
        describe: "Workers are not put to sleep while it is open.",
    },
    Field {
        name: "wake",
        expected: "true or false",
        preset: Preset::Is("false"),
        sample: "true",
        describe: "With `keep_awake`: what sleeps for a reason in `wake_from` is started when it opens.",
    },
    Field {
        name: "idle_timeout",
        expected: "a duration such as \"10m\"",
        preset: Preset::Absent("the policy's"),
        sample: "\"10m\"",
        describe: "A shorter idle timeout while it is open.",
    },
    Field {
        name: "sleep",
        expected: "true or false",
        preset: Preset::Is("false"),
        sample: "true",
        describe: "Workers are put to sleep when it opens.",
    },
    Field {
        name: "force",
        expected: "true or false",
        preset: Preset::Is("false"),
        sample: "true",
        describe: "With `sleep`: whatever they do and whoever holds them.",
    },
];

/// Reads a schedule; `None` if something in it is wrong, which is then reported.
pub(super) fn read(report: &mut Report<'_>, table: &DeTable<'_>, span: &Range<usize>) -> Option<Value> {
    let section = Section::new(table, span.clone(), &[SCHEDULE]);
    let zone = section.require(report, "zone", parsed::<Zone>);
    if !section.has("windows") {
        section.missing(report, "windows");
    }
    let windows = section.node("windows").and_then(|node| windows(report, node));
    section.finish(report);
    Some(Value::Schedule(Box::new(Schedule { zone: zone?, windows: windows? })))
}

fn windows(report: &mut Report<'_>, node: &Node<'_>) -> Option<Vec<Window>> {
    let DeValue::Array(items) = node.get_ref() else {
        let fault = Fault::expected("a list of windows", describe(node.get_ref()));
        report.add(&node.span(), "windows", fault);
        return None;
    };
    let read: Vec<Option<Window>> = items.iter().map(|item| window(report, item)).collect();
    read.into_iter().collect()
}

fn window(report: &mut Report<'_>, node: &Node<'_>) -> Option<Window> {
    let header = "such as { days = \"mon-fri\", hours = \"08:00-18:00\", keep_awake = true }";
    let section = Section::of(report, node, header, &[WINDOW])?;
    let days = section.require(report, "days", parsed::<Days>);
    let parts = [
        is_fine(&section, report, "from", |value| parsed::<TimeOfDay>(value).map(drop)),
        is_fine(&section, report, "until", |value| parsed::<TimeOfDay>(value).map(drop)),
        is_fine(&section, report, "hours", |value| parsed::<Hours>(value).map(drop)),
        is_fine(&section, report, "idle_timeout", |value| read::interval(value).map(drop)),
        is_fine(&section, report, "keep_awake", |value| read::flag(value).map(drop)),
        is_fine(&section, report, "wake", |value| read::flag(value).map(drop)),
        is_fine(&section, report, "sleep", |value| read::flag(value).map(drop)),
        is_fine(&section, report, "force", |value| read::flag(value).map(drop)),
    ];
    section.finish(report);
    if days.is_none() || parts.contains(&false) {
        return None;
    }
    match Window::deserialize(ValueDeserializer::from(node.clone())) {
        Ok(window) => Some(window),
        Err(error) => {
            // Unknown keys were reported one by one, with a suggestion.
            if !error.message().starts_with("unknown field") {
                report.add(&node.span(), "windows", Fault::rule(error.message()));
            }
            None
        }
    }
}

fn is_fine(
    section: &Section<'_>,
    report: &mut Report<'_>,
    name: &'static str,
    read: impl FnOnce(&DeValue<'_>) -> Result<(), Fault>,
) -> bool {
    section.read(report, name, |value| read(value)).is_some() || !section.has(name)
}

fn parsed<T: std::str::FromStr<Err = ScheduleError>>(value: &DeValue<'_>) -> Result<T, Fault> {
    Ok(read::text(value)?.parse()?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, parse};

    #[test]
    fn a_schedule_is_read_in_every_form_of_toml() {
        let inline = "[policy]\nschedule = { zone = \"europe/berlin\", windows = [\n  { days = \"mon-fri\", hours = \"08:00-18:00\", keep_awake = true, wake = true },\n  { days = \"daily\", from = \"22:00\", until = \"06:00\", idle_timeout = \"10m\" },\n] }";
        let tables = "[policy.schedule]\nzone = \"Europe/Berlin\"\n[[policy.schedule.windows]]\ndays = \"mon-fri\"\nfrom = \"08:00\"\nuntil = \"18:00\"\nkeep_awake = true\nwake = true\n[[policy.schedule.windows]]\ndays = \"daily\"\nhours = \"22:00-06:00\"\nidle_timeout = \"10m\"";
        assert_eq!(parse(inline).policy, parse(tables).policy);
        let schedule = parse(inline).policy.layers()[0].values.values().next().unwrap().to_toml();
        assert!(schedule.contains("mon-fri 08:00-18:00 keep awake, wake"), "{schedule}");
    }

    #[test]
    fn every_part_has_its_own_place() {
        let table = [
            (
                "{ windows = [] }",
                vec!["f:2:12: zone is missing: expected the name of a time zone such as \"Europe/Berlin\""],
            ),
            (
                "{ zone = \"Europe/Berln\", windows = [] }",
                vec![
                    "f:2:21: zone: expected the name of a time zone such as \"Europe/Berlin\" or \"UTC\", found \"Europe/Berln\"; did you mean \"Europe/Berlin\"?",
                ],
            ),
            (
                "{ zone = \"UTC\", windows = 3 }",
                vec!["f:2:38: windows: expected a list of windows, found the number 3"],
            ),
            (
                "{ zone = \"UTC\", windows = [3] }",
                vec![
                    "f:2:39: expected a table such as { days = \"mon-fri\", hours = \"08:00-18:00\", keep_awake = true }, found the number 3",
                ],
            ),
            (
                "{ zone = \"UTC\", windows = [{ days = \"mo\", hours = \"8-18\", keep_awake = 1 }] }",
                vec![
                    "f:2:48: days: expected days such as \"mon-fri\", \"sat,sun\" or \"daily\", found \"mo\"",
                    "f:2:62: hours: expected hours such as \"08:00-18:30\", found \"8-18\"",
                    "f:2:83: keep_awake: expected true or false, found the number 1",
                ],
            ),
            (
                "{ zone = \"UTC\", windows = [{ days = \"mon\", hours = \"08:00-18:00\", idle_timeout = 10 }] }",
                vec!["f:2:93: idle_timeout: a bare number has no unit: write \"10s\", \"10m\" or \"10h\""],
            ),
            (
                "{ zone = \"UTC\", windows = [{ days = \"mon\", hours = \"08:00-18:00\", keep_awak = true }] }",
                vec!["f:2:78: keep_awak: unknown key; did you mean \"keep_awake\"?"],
            ),
            (
                "{ zone = \"UTC\", windows = [{ days = \"mon\", hours = \"08:00-18:00\", wake = true }] }",
                vec!["f:2:39: windows: wake = true needs keep_awake = true"],
            ),
            ("\"daily\"", vec!["f:2:12: schedule: expected a table with zone and windows, found \"daily\""]),
        ];
        for (schedule, expected) in table {
            assert_eq!(errors(&format!("[policy]\nschedule = {schedule}")), expected, "{schedule}");
        }
    }
}
