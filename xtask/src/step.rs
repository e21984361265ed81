//! Named steps, each with how long it took.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
}

/// A step that has been run.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) outcome: Outcome,
}

/// Runs `work` and says how long it took.
#[expect(
    clippy::disallowed_methods,
    reason = "a duration for a person to read; nothing is decided by it, so there is no clock to inject"
)]
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Seconds with one decimal; minutes from one minute on, because a step of 1312.4 s says little.
pub(crate) fn duration(took: Duration) -> String {
    // Rounded before it is split, or 59.96 s would be shown as "60.0 s".
    let tenths = (took.as_millis() + 50) / 100;
    let (seconds, tenth) = (tenths / 10, tenths % 10);
    if seconds < 60 {
        format!("{seconds}.{tenth} s")
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

/// The steps as an aligned table, the total last.
pub(crate) fn table(steps: &[Step]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, took: Duration, outcome: &str| {
        writeln!(text, "{name:<18} {:>12}  {outcome}", duration(took)).expect("writing to a string");
    };
    for step in steps {
        let outcome = match step.outcome {
            Outcome::Passed => "passed",
            Outcome::Failed => "FAILED",
        };
        line(step.name, step.took, outcome);
    }
    line("total", steps.iter().map(|step| step.took).sum(), "");
    text.lines().map(str::trim_end).fold(String::new(), |all, line| all + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_before_they_are_split() {
        for (millis, text) in [
            (0, "0.0 s"),
            (1_249, "1.2 s"),
            (1_250, "1.3 s"),
            (59_949, "59.9 s"),
            (59_950, "1 min 00 s"),
            (754_000, "12 min 34 s"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text, "{millis} ms");
        }
    }

    #[test]
    fn the_table_shows_each_step_and_the_total() {
        let steps = [
            Step { name: "format", took: Duration::from_millis(800), outcome: Outcome::Passed },
            Step { name: "lints", took: Duration::from_secs(62), outcome: Outcome::Failed },
        ];
        assert_eq!(
            table(&steps),
            "format                    0.8 s  passed\n\
             lints                1 min 02 s  FAILED\n\
             total                1 min 02 s\n"
        );
    }
}
