//! `[[exemption]]`: who is spared what.
//!
//! One bad record is an error that names that record, and the others still count: nobody loses an
//! exemption through another's typo.

use toml::de::DeValue;

use drowse_core::policy::exemption::{Exemption, Record, RecordError};

use super::problem::{Fault, Report};
use super::read;
use super::section::{Field, Node, Preset, Section, describe};

pub(super) const FIELDS: &[Field] = &[
    Field {
        name: "owner",
        expected: "a name such as \"bob\"",
        preset: Preset::Absent("one of the three"),
        sample: "\"bob\"",
        describe: "Every worker of this owner. Exactly one of owner, group and worker.",
    },
    Field {
        name: "group",
        expected: "a name such as \"student\"",
        preset: Preset::Absent("one of the three"),
        sample: "\"student\"",
        describe: "Every worker of this group.",
    },
    Field {
        name: "worker",
        expected: "a worker's id such as \"web\"",
        preset: Preset::Absent("one of the three"),
        sample: "\"web\"",
        describe: "This worker.",
    },
    Field {
        name: "from",
        expected: "[\"idle_timeout\", \"max_runtime\"] or one of the two",
        preset: Preset::Required,
        sample: "[\"idle_timeout\", \"max_runtime\"]",
        describe: "What it is exempt from: being put to sleep when idle, being stopped after max_runtime, or both.",
    },
    Field {
        name: "reason",
        expected: "a text",
        preset: Preset::Required,
        sample: "\"grant deadline\"",
        describe: "Why.",
    },
    Field {
        name: "approved_by",
        expected: "a name such as \"carol\"",
        preset: Preset::Required,
        sample: "\"carol\"",
        describe: "Who said so.",
    },
    Field {
        name: "expires_on",
        expected: "an instant such as \"2026-12-01T00:00:00Z\", or \"never\"",
        preset: Preset::Required,
        sample: "\"2026-12-01T00:00:00Z\"",
        describe: "Until when; \"never\" for a permanent one.",
    },
];

pub(super) fn read_all(report: &mut Report<'_>, node: &Node<'_>) -> Vec<Exemption> {
    let DeValue::Array(items) = node.get_ref() else {
        report.add(&node.span(), "exemption", Fault::expected("[[exemption]]", describe(node.get_ref())));
        return Vec::new();
    };
    let mut exemptions = Vec::new();
    for (index, item) in items.iter().enumerate() {
        report.set_exemption(Some(index + 1));
        exemptions.extend(read(report, item));
    }
    report.set_exemption(None);
    exemptions
}

fn read(report: &mut Report<'_>, node: &Node<'_>) -> Option<Exemption> {
    let section = Section::of(report, node, "[[exemption]]", &[FIELDS])?;
    let mut text = |name| {
        let text = section.read(report, name, read::text);
        // What was reported as wrong is not reported as missing as well.
        (text.is_some() || !section.has(name)).then_some(text)
    };
    let owner = text("owner");
    let group = text("group");
    let worker = text("worker");
    let reason = text("reason");
    let approved_by = text("approved_by");
    let expires_on = section.read(report, "expires_on", instant);
    let from = section.read(report, "from", read::texts(FIELDS[3].expected));
    let is_read =
        (expires_on.is_some() || !section.has("expires_on")) && (from.is_some() || !section.has("from"));
    let record = is_read.then(|| {
        Some(Record {
            owner: owner?,
            group: group?,
            worker: worker?,
            from: from.unwrap_or_default(),
            reason: reason?,
            approved_by: approved_by?,
            expires_on,
        })
    });
    let exemption = record.flatten().and_then(|record| match record.read() {
        Ok(exemption) => Some(exemption),
        Err(error) => {
            let (field, span) = match &error {
                RecordError::FromWhat { .. } => ("from", section.span_of("from")),
                RecordError::BadExpiry { .. } => ("", section.span_of("expires_on")),
                RecordError::Subject
                | RecordError::FromNothing
                | RecordError::Missing { .. }
                | RecordError::NoExpiry => ("", section.span()),
            };
            report.add(&span, field, error.into());
            None
        }
    });
    section.finish(report);
    exemption
}

/// A text, or TOML's own kind of instant.
fn instant(value: &DeValue<'_>) -> Result<String, Fault> {
    if let DeValue::Datetime(instant) = value {
        return Ok(instant.to_string());
    }
    read::text(value).map_err(|_| Fault::expected(FIELDS[6].expected, describe(value)))
}

#[cfg(test)]
mod tests {
    use drowse_core::policy::exemption::{Expiry, Subject};

    use super::super::tests::{errors, parse, parsed};

    /// The exemption of the specification, with other lines instead of its own.
    fn record(replaced: &[(&str, &str)]) -> String {
        let mut lines = vec![
            ("owner", "owner = \"bob\""),
            ("from", "from = [\"idle_timeout\", \"max_runtime\"]"),
            ("reason", "reason = \"grant deadline\""),
            ("approved_by", "approved_by = \"carol\""),
            ("expires_on", "expires_on = \"2026-12-01T00:00:00Z\""),
        ];
        for (key, line) in replaced {
            match lines.iter_mut().find(|(known, _)| known == key) {
                Some(slot) => slot.1 = line,
                None => lines.push((key, line)),
            }
        }
        let lines: Vec<&str> = lines.iter().map(|(_, line)| *line).filter(|line| !line.is_empty()).collect();
        format!("[[exemption]]\n{}\n", lines.join("\n"))
    }

    #[test]
    fn exemptions_are_read() {
        let exemptions = parse(&record(&[])).exemptions;
        assert_eq!(exemptions[0].subject, Subject::Owner("bob".into()));
        assert_eq!(exemptions[0].from.len(), 2);
        for (line, expiry) in [
            ("expires_on = \"never\"", Expiry::Never),
            ("expires_on = 2026-12-01T00:00:00Z", exemptions[0].expires_on),
            ("expires_on = 2026-12-01 01:00:00+01:00", exemptions[0].expires_on),
        ] {
            assert_eq!(parse(&record(&[("expires_on", line)])).exemptions[0].expires_on, expiry, "{line}");
        }
    }

    #[test]
    fn a_bad_record_is_named() {
        let table = [
            (("owner", ""), "f:1:1: exemption 1: expected exactly one of owner, group or worker"),
            (
                ("group", "group = \"g\""),
                "f:1:1: exemption 1: expected exactly one of owner, group or worker",
            ),
            (("owner", "owner = 3"), "f:2:9: exemption 1: owner: expected a text, found the number 3"),
            (
                ("from", ""),
                "f:1:1: exemption 1: expected from = [\"idle_timeout\", \"max_runtime\"] or one of the two",
            ),
            (
                ("from", "from = \"idle_timeout\""),
                "f:3:8: exemption 1: from: expected [\"idle_timeout\", \"max_runtime\"] or one of the two, found \"idle_timeout\"",
            ),
            (
                ("from", "from = [\"idle\"]"),
                "f:3:8: exemption 1: from: one cannot be exempt from \"idle\": expected \"idle_timeout\" or \"max_runtime\"",
            ),
            (
                ("reason", ""),
                "f:1:1: exemption 1: reason is missing: an exemption says why and who approved it",
            ),
            (
                ("expires_on", ""),
                "f:1:1: exemption 1: expires_on is missing: write an instant such as \"2026-12-01T00:00:00Z\", or \"never\" for a permanent one",
            ),
            (
                ("expires_on", "expires_on = 2026-12-01"),
                "f:6:14: exemption 1: expires_on: expected an instant such as \"2026-12-01T00:00:00Z\" or \"never\", found \"2026-12-01\"",
            ),
            (("reson", "reson = \"x\""), "f:7:1: exemption 1: reson: unknown key; did you mean \"reason\"?"),
        ];
        for (line, error) in table {
            assert_eq!(errors(&record(&[line])), [error], "{line:?}");
        }
        assert_eq!(
            errors("exemption = 1"),
            ["f:1:13: exemption: expected [[exemption]], found the number 1"]
        );
    }

    #[test]
    fn a_bad_record_never_drops_the_others() {
        let text = record(&[]) + &record(&[("expires_on", "")]) + &record(&[("owner", "owner = \"eve\"")]);
        let parsed = parsed(&text);
        let subjects: Vec<&Subject> = parsed.config.exemptions.iter().map(|it| &it.subject).collect();
        assert_eq!(subjects, [&Subject::Owner("bob".into()), &Subject::Owner("eve".into())]);
        assert_eq!(parsed.problems.len(), 1);
        assert_eq!(parsed.problems[0].exemption, Some(2));
        assert!(parsed.clone().lenient().is_ok(), "a server starts with the good ones");
        assert!(parsed.strict().is_err(), "check-config refuses the file");
    }

    #[test]
    fn an_unknown_key_costs_nobody_an_exemption() {
        assert_eq!(parsed(&record(&[("note", "note = \"x\"")])).config.exemptions.len(), 1);
    }
}
