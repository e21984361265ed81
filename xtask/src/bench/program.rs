//! Benchmarks that are plain programs: what they print, and how it is shown.
//!
//! A program prints a JSON object per line on stdout and talks on stderr.
//!
//! ```text
//! {"note": "SQLite on ext4"}
//! {"group": "a burst", "name": "p99", "value": 0.0123, "unit": "seconds", "at_most": 0.1}
//! ```
//!
//! `unit` is one of `seconds`, `per_second`, `percent`, `times` and `count`; `at_most` and `at_least` are the
//! aim, in the same unit. With a `spread`, `[low, high]`, it is shown whether the value can be told from its aim at all:
//! one that meets it is `met, even` if it cannot. One that does not is `even` then if the row says `or_even`, which is for
//! aims of being no worse than somebody else.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use serde_json::Value;

use super::page::{big, three_digits, time};

/// Everything that was printed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Printed {
    notes: Vec<String>,
    pub(super) groups: Vec<(String, Vec<Row>)>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Row {
    name: String,
    value: f64,
    unit: Unit,
    aim: Option<Aim>,
    spread: Option<(f64, f64)>,
    or_even: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Seconds,
    PerSecond,
    Percent,
    Times,
    Count,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    AtMost(f64),
    AtLeast(f64),
}

impl Unit {
    fn parse(text: &str) -> anyhow::Result<Self> {
        Ok(match text {
            "seconds" => Unit::Seconds,
            "per_second" => Unit::PerSecond,
            "percent" => Unit::Percent,
            "times" => Unit::Times,
            "count" => Unit::Count,
            other => bail!("there is no unit `{other}`"),
        })
    }

    fn show(self, value: f64) -> String {
        match self {
            Unit::Seconds => time(value * 1e9),
            Unit::PerSecond => format!("{}/s", big(value)),
            Unit::Percent => format!("{} %", three_digits(value)),
            Unit::Times => format!("{} ×", three_digits(value)),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

impl Aim {
    fn is_met(self, value: f64) -> bool {
        match self {
            Aim::AtMost(most) => value <= most,
            Aim::AtLeast(least) => value >= least,
        }
    }

    fn verdict(self, value: f64, spread: Option<(f64, f64)>, or_even: bool) -> &'static str {
        // Values like this one would be found on both sides of it.
        let is_even = spread.is_some_and(|(low, high)| self.is_met(low) != self.is_met(high));
        match (self.is_met(value), is_even) {
            (true, false) => "met",
            (true, true) => "met, even",
            (false, true) if or_even => "even",
            (false, _) => "**missed**",
        }
    }
}

pub(super) fn parse(printed: &str) -> anyhow::Result<Printed> {
    let mut all = Printed::default();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        let said: Value = serde_json::from_str(line).with_context(|| format!("no JSON: `{line}`"))?;
        if let Some(note) = said["note"].as_str() {
            all.notes.push(note.to_owned());
            continue;
        }
        let row = row(&said).with_context(|| format!("not a row: `{line}`"))?;
        let group = said["group"].as_str().unwrap_or_default();
        match all.groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, rows)) => rows.push(row),
            None => all.groups.push((group.to_owned(), vec![row])),
        }
    }
    Ok(all)
}

fn row(said: &Value) -> anyhow::Result<Row> {
    let aim = match (said["at_most"].as_f64(), said["at_least"].as_f64()) {
        (Some(most), None) => Some(Aim::AtMost(most)),
        (None, Some(least)) => Some(Aim::AtLeast(least)),
        (None, None) => None,
        (Some(_), Some(_)) => bail!("two aims"),
    };
    let bound = |index: usize| said["spread"][index].as_f64();
    Ok(Row {
        name: said["name"].as_str().context("no `name`")?.to_owned(),
        value: said["value"].as_f64().context("no `value`")?,
        unit: Unit::parse(said["unit"].as_str().context("no `unit`")?)?,
        aim,
        spread: bound(0).zip(bound(1)),
        or_even: said["or_even"].as_bool().unwrap_or(false),
    })
}

/// A table for each group.
pub(super) fn tables(printed: &Printed) -> String {
    let mut text = String::new();
    for note in &printed.notes {
        let _ = writeln!(text, "{note}");
    }
    for (group, rows) in &printed.groups {
        let _ = write!(text, "\n| {group} | measured | aim | |\n| --- | ---: | ---: | --- |\n");
        for Row { name, value, unit, aim, spread, or_even } in rows {
            let wanted = match aim {
                Some(Aim::AtMost(most)) => format!("≤ {}", unit.show(*most)),
                Some(Aim::AtLeast(least)) => format!("≥ {}", unit.show(*least)),
                None => String::new(),
            };
            let verdict = aim.map_or("", |aim| aim.verdict(*value, *spread, *or_even));
            let _ = writeln!(text, "| {name} | {} | {wanted} | {verdict} |", unit.show(*value));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = r#"
{"note": "On a disk."}
{"group": "burst", "name": "p99", "value": 0.0123, "unit": "seconds", "at_most": 0.1}
{"group": "idle", "name": "processor", "value": 1.5, "unit": "percent", "at_most": 1}
{"group": "burst", "name": "drained", "value": 2500, "unit": "per_second", "at_least": 2000}
{"group": "burst", "name": "against bare commits", "value": 0.25, "unit": "times"}
"#;

    #[test]
    fn rows_are_gathered_by_group_and_compared_with_their_aim() {
        assert_eq!(
            tables(&parse(PRINTED).unwrap()),
            "On a disk.\n\
             \n| burst | measured | aim | |\n| --- | ---: | ---: | --- |\n\
             | p99 | 12.3 ms | ≤ 100 ms | met |\n\
             | drained | 2.50 k/s | ≥ 2.00 k/s | met |\n\
             | against bare commits | 0.25 × |  |  |\n\
             \n| idle | measured | aim | |\n| --- | ---: | ---: | --- |\n\
             | processor | 1.50 % | ≤ 1.00 % | **missed** |\n"
        );
    }

    #[test]
    fn an_aim_is_met_at_its_very_edge() {
        assert!(Aim::AtMost(1.0).is_met(1.0) && !Aim::AtMost(1.0).is_met(1.0_f64.next_up()));
        assert!(Aim::AtLeast(1.0).is_met(1.0) && !Aim::AtLeast(1.0).is_met(1.0_f64.next_down()));
    }

    #[test]
    fn what_cannot_be_told_from_its_aim_is_even() {
        let (most, least) = (Aim::AtMost(1.0), Aim::AtLeast(1.0));
        assert_eq!(most.verdict(0.99, Some((0.97, 1.0)), true), "met");
        assert_eq!(most.verdict(0.99, Some((0.98, 1.04)), true), "met, even");
        assert_eq!(most.verdict(0.99, Some((0.98, 1.04)), false), "met, even");
        assert_eq!(most.verdict(1.01, Some((0.98, 1.04)), true), "even");
        assert_eq!(most.verdict(1.01, Some((0.98, 1.04)), false), "**missed**");
        assert_eq!(most.verdict(1.03, Some((1.01, 1.04)), true), "**missed**");
        assert_eq!(most.verdict(1.01, None, true), "**missed**", "nobody knows how sure that is");
        assert_eq!(least.verdict(0.99, Some((0.97, 1.0)), true), "even");
        assert_eq!(least.verdict(0.98, Some((0.97, 0.99)), true), "**missed**");
    }

    #[test]
    fn what_is_no_row_is_an_error_that_shows_it() {
        for bad in ["hello", r#"{"name": "x"}"#, r#"{"name": "x", "value": 1, "unit": "miles"}"#] {
            let error = format!("{:#}", parse(bad).unwrap_err());
            assert!(error.contains(bad), "{error}");
        }
    }
}
