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
//! aim, in the same unit. With a `spread`, `[low, high]`, the aim is to be no worse than that as far as can be told: a
//! value beyond it whose spread is not is shown as `even`.

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

    fn verdict(self, value: f64, spread: Option<(f64, f64)>) -> &'static str {
        let may_be = |(low, high): (f64, f64)| self.is_met(low) || self.is_met(high);
        if self.is_met(value) {
            "met"
        } else if spread.is_some_and(may_be) {
            "even"
        } else {
            "**missed**"
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
        for Row { name, value, unit, aim, spread } in rows {
            let wanted = match aim {
                Some(Aim::AtMost(most)) => format!("≤ {}", unit.show(*most)),
                Some(Aim::AtLeast(least)) => format!("≥ {}", unit.show(*least)),
                None => String::new(),
            };
            let verdict = aim.map_or("", |aim| aim.verdict(*value, *spread));
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
    fn what_cannot_be_told_from_its_aim_is_neither_met_nor_missed() {
        let (most, least) = (Aim::AtMost(1.0), Aim::AtLeast(1.0));
        assert_eq!(most.verdict(1.01, Some((0.98, 1.04))), "even");
        assert_eq!(most.verdict(0.99, Some((0.98, 1.04))), "met");
        assert_eq!(most.verdict(1.03, Some((1.01, 1.04))), "**missed**");
        assert_eq!(most.verdict(1.01, None), "**missed**", "an aim without a spread is strict");
        assert_eq!(least.verdict(0.99, Some((0.97, 1.0))), "even");
        assert_eq!(least.verdict(0.98, Some((0.97, 0.99))), "**missed**");
    }

    #[test]
    fn what_is_no_row_is_an_error_that_shows_it() {
        for bad in ["hello", r#"{"name": "x"}"#, r#"{"name": "x", "value": 1, "unit": "miles"}"#] {
            let error = format!("{:#}", parse(bad).unwrap_err());
            assert!(error.contains(bad), "{error}");
        }
    }
}
