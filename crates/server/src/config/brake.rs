//! `[brake]`: when the fleet brake engages.

use toml::de::DeValue;

use drowse_core::brake::BrakeTerms;
use drowse_core::policy::{Kind, Value};

use super::problem::{Fault, Report};
use super::read;
use super::section::{Field, Node, Preset, Section, describe};

pub(super) const FIELDS: &[Field] = &[
    Field {
        name: "fraction",
        expected: "a percentage above 0% and up to 100% such as \"30%\"",
        preset: Preset::Is("\"30%\""),
        sample: "\"30%\"",
        describe: "The brake engages when more than this share of the fleet falls silent within one `stale_after`.",
    },
    Field {
        name: "min",
        expected: "a whole number from 1 to 1000000",
        preset: Preset::Is("10"),
        sample: "10",
        describe: "And at least so many workers; a smaller fleet has only the stall and clock brakes.",
    },
    Field {
        name: "max",
        expected: "a duration of at least 1s such as \"30m\"",
        preset: Preset::Is("\"30m\""),
        sample: "\"30m\"",
        describe: "After this time it lets go with an alert, even if the fleet is not calm.",
    },
];

/// Reads `[brake]` into terms whose `threshold` is still the built-in one.
pub(super) fn read(report: &mut Report<'_>, node: &Node<'_>) -> BrakeTerms {
    let mut terms = BrakeTerms::default();
    let Some(section) = Section::of(report, node, "[brake]", &[FIELDS]) else { return terms };
    if let Some(fraction) = section.read(report, "fraction", fraction) {
        terms.fraction_percent = fraction;
    }
    if let Some(min) = section.read(report, "min", read::count(1, 1_000_000)) {
        terms.min = min;
    }
    if let Some(max) = section.read(report, "max", read::interval) {
        terms.max = max;
    }
    section.finish(report);
    terms
}

fn fraction(value: &DeValue<'_>) -> Result<f64, Fault> {
    if let Value::Percent(percent) = read::value(Kind::Percent, value)?
        // Nothing at all would be an engaged brake for ever, and more than all can never be.
        && percent > 0.0
        && percent <= 100.0
    {
        return Ok(percent);
    }
    Err(Fault::expected(FIELDS[0].expected, describe(value)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{errors, parse};

    #[test]
    fn a_brake_is_read() {
        let brake = parse("[brake]\nfraction = \"12.5%\"\nmin = 3\nmax = \"1h\"").brake;
        assert_eq!((brake.fraction_percent.to_string().as_str(), brake.min), ("12.5", 3));
        assert_eq!((brake.max, brake.threshold), (Duration::from_hours(1), Duration::from_secs(90)));
    }

    #[test]
    fn its_threshold_is_the_fleet_s_stale_after() {
        assert_eq!(parse("policy.stale_after = \"2m\"").brake.threshold, Duration::from_mins(2));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let range = "expected a percentage above 0% and up to 100% such as \"30%\"";
        let table = [
            (
                "brake.fraction = 0.3",
                "f:1:18: fraction: a bare number has no unit: write \"0.3%\"".to_owned(),
            ),
            ("brake.fraction = \"0%\"", format!("f:1:18: fraction: {range}, found \"0%\"")),
            ("brake.fraction = \"101%\"", format!("f:1:18: fraction: {range}, found \"101%\"")),
            (
                "brake.min = 0",
                "f:1:13: min: expected a whole number from 1 to 1000000, found the number 0".to_owned(),
            ),
            (
                "brake.max = 30",
                "f:1:13: max: a bare number has no unit: write \"30s\", \"30m\" or \"30h\"".to_owned(),
            ),
            ("brake.treshold = 1", "f:1:7: treshold: unknown key".to_owned()),
        ];
        for (text, error) in table {
            assert_eq!(errors(text), [error], "{text}");
        }
    }
}
