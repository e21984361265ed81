//! What is printed: a JSON object per row, as `cargo xtask bench` reads it.

#![expect(clippy::print_stdout, reason = "a program whose output is its rows")]

use std::time::Duration;

use serde_json::json;

/// Rows under one heading.
pub(crate) struct Report {
    group: &'static str,
}

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    Seconds,
    PerSecond,
    Percent,
    Times,
    Count,
}

/// What the figure should be.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    AtMost(f64),
    AtLeast(f64),
    /// At most or at least 1; the value would be found within these bounds again.
    One {
        is_less_better: bool,
        spread: (f64, f64),
        /// It is enough if nobody can tell that it is not.
        or_even: bool,
    },
}

pub(crate) fn note(text: &str) {
    println!("{}", json!({ "note": text }));
}

impl Report {
    pub(crate) fn group(group: &'static str) -> Self {
        eprintln!("{group}");
        Self { group }
    }

    pub(crate) fn row(&self, name: &str, value: f64, unit: Unit, aim: Option<Aim>) {
        let unit = match unit {
            Unit::Seconds => "seconds",
            Unit::PerSecond => "per_second",
            Unit::Percent => "percent",
            Unit::Times => "times",
            Unit::Count => "count",
        };
        let mut row = json!({ "group": self.group, "name": name, "value": value, "unit": unit });
        match aim {
            Some(Aim::AtMost(most)) => row["at_most"] = json!(most),
            Some(Aim::AtLeast(least)) => row["at_least"] = json!(least),
            Some(Aim::One { is_less_better, spread: (low, high), or_even }) => {
                row[if is_less_better { "at_most" } else { "at_least" }] = json!(1.0);
                (row["spread"], row["or_even"]) = (json!([low, high]), json!(or_even));
            }
            None => {}
        }
        eprintln!("  {name}: {value:.6} {unit}");
        println!("{row}");
    }
}

/// The nearest-rank percentile, in seconds.
pub(crate) fn percentile(times: &[Duration], percent: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank between 1 and the number of times"
    )]
    let rank = (sorted.len() as f64 * percent / 100.0).ceil().max(1.0) as usize;
    sorted.get(rank - 1).map_or(f64::NAN, Duration::as_secs_f64)
}
