//! `[[exemption]]`: who is spared what.
//!
//! One bad record is an error that names that record, and the others still count. It spares whom it names all the
//! same: nobody loses an exemption through a typo, another's or their own. One that names nobody is refused.

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
        let read = read(report, item);
        if read.is_empty() {
            report.condemn(index + 1);
        }
        exemptions.extend(read);
    }
    report.set_exemption(None);
    exemptions
}

fn read(report: &mut Report<'_>, node: &Node<'_>) -> Vec<Exemption> {
    let Some(section) = Section::of(report, node, "[[exemption]]", &[FIELDS]) else { return Vec::new() };
    // What was reported as wrong is not reported as missing as well.
    let mut unread = Vec::new();
    let mut text = |name| {
        let text = section.read(report, name, read::text);
        if text.is_none() && section.has(name) {
            unread.push(name);
        }
        text
    };
    let mut record = Record {
        owner: text("owner"),
        group: text("group"),
        worker: text("worker"),
        reason: text("reason"),
        approved_by: text("approved_by"),
        ..Record::default()
    };
    record.expires_on = section.read(report, "expires_on", instant);
    let from = section.read(report, "from", from);
    if record.expires_on.is_none() && section.has("expires_on") {
        unread.push("expires_on");
    }
    if from.is_none() && section.has("from") {
        unread.push("from");
    }
    record.from = from.unwrap_or_default();
    for error in record.errors() {
        let (of, field, span): (&[&str], _, _) = match &error {
            RecordError::Subject => (&["owner", "group", "worker"], "", section.span()),
            RecordError::FromWhat { .. } => (&["from"], "from", section.span_of("from")),
            RecordError::FromNothing => (&["from"], "", section.span()),
            RecordError::Missing { field } => (&[*field], "", section.span()),
            RecordError::BadExpiry { .. } => (&["expires_on"], "", section.span_of("expires_on")),
            RecordError::NoExpiry => (&["expires_on"], "", section.span()),
        };
        if !of.iter().any(|field| unread.contains(field)) {
            report.add(&span, field, error.clone().into());
        }
    }
    section.finish(report);
    match record.read() {
        Ok(exemption) if unread.is_empty() => vec![exemption],
        Ok(_) | Err(_) => record.salvage(),
    }
}

/// A list, or the one thing that would be in it.
fn from(value: &DeValue<'_>) -> Result<Vec<String>, Fault> {
    match value.as_str() {
        Some(one) => Ok(vec![one.to_owned()]),
        None => read::texts(FIELDS[3].expected)(value),
    }
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
    fn what_it_spares_may_be_one_word() {
        let exemptions = parse(&record(&[("from", "from = \"max_runtime\"")])).exemptions;
        assert_eq!(exemptions[0].from, [drowse_core::policy::exemption::From::MaxRuntime]);
    }

    #[test]
    fn all_mistakes_of_a_record_are_told_at_once() {
        let text = record(&[
            ("owner", "owner = 3"),
            ("from", "from = \"idle\""),
            ("reason", ""),
            ("expires_on", ""),
        ]);
        let found = errors(&text);
        let parts =
            ["owner: expected a text", "exempt from \"idle\"", "reason is missing", "expires_on is missing"];
        for part in parts {
            assert!(found.iter().any(|error| error.contains(part)), "{part}: {found:#?}");
        }
        assert_eq!(found.len(), parts.len(), "{found:#?}");
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
                ("from", "from = \"idle\""),
                "f:3:8: exemption 1: from: one cannot be exempt from \"idle\": expected \"idle_timeout\" or \"max_runtime\"",
            ),
            (
                ("from", "from = 3"),
                "f:3:8: exemption 1: from: expected [\"idle_timeout\", \"max_runtime\"] or one of the two, found the number 3",
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
        let owner = |name: &str| Subject::Owner(name.into());
        assert_eq!(subjects, [&owner("bob"), &owner("bob"), &owner("eve")]);
        assert_eq!(parsed.problems.len(), 1);
        assert_eq!(parsed.problems[0].exemption, Some(2));
        assert!(parsed.clone().lenient().is_ok(), "a server starts with the good ones");
        assert!(parsed.strict().is_err(), "check-config refuses the file");
    }

    #[test]
    fn a_record_that_is_wrong_spares_whom_it_names_and_one_that_names_nobody_is_refused() {
        for (line, from, expiry) in [
            (("from", "from = [\"idle\"]"), 2, None),
            (("from", "from = \"idle\""), 2, None),
            (("from", "from = [\"max_runtime\"]\nnote = 1"), 1, None),
            (("reason", ""), 2, None),
            (("approved_by", "approved_by = 3"), 2, None),
            (("expires_on", ""), 2, Some(Expiry::Never)),
            (("expires_on", "expires_on = \"soon\""), 2, Some(Expiry::Never)),
        ] {
            let parsed = parsed(&record(&[line]));
            let (config, problems) = parsed.lenient().unwrap_or_else(|_| panic!("{line:?}"));
            assert_eq!(problems.len(), 1, "{line:?}");
            let [spared] = &config.exemptions[..] else { panic!("{line:?}: {:?}", config.exemptions) };
            assert_eq!(
                (&spared.subject, spared.from.len()),
                (&Subject::Owner("bob".into()), from),
                "{line:?}"
            );
            assert_eq!(spared.expires_on, expiry.unwrap_or(parse(&record(&[])).exemptions[0].expires_on));
        }
        // Two names are a mistake, and neither of the two suffers for it.
        let both = parsed(&record(&[("group", "group = \"g\"")])).lenient().unwrap().0.exemptions;
        assert_eq!(both.len(), 2, "{both:?}");
        for line in [("owner", ""), ("owner", "owner = 3"), ("owner", "owner = \" \"")] {
            let problems = parsed(&record(&[line])).lenient().unwrap_err();
            assert!(problems[0].to_string().starts_with("f:"), "{line:?}");
            assert_eq!(problems[0].exemption, Some(1), "{line:?}");
        }
    }

    #[test]
    fn an_unknown_key_costs_nobody_an_exemption() {
        assert_eq!(parsed(&record(&[("note", "note = \"x\"")])).config.exemptions.len(), 1);
    }
}
