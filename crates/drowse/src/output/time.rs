//! Times as a person reads them in a table.

use std::time::Duration;

use drowse_core::Timestamp;
use drowse_core::units::Rough;

/// The two largest units, rounded down: `2d4h`, `5m12s`, `0s`. A table is no stopwatch.
pub(crate) fn coarse(duration: Duration) -> String {
    Rough(duration).to_string()
}

/// `5m12s ago`, or a dash.
pub(crate) fn ago(at: Option<Timestamp>, now: Timestamp) -> String {
    at.map_or_else(|| "-".to_owned(), |at| format!("{} ago", coarse(now.since(at))))
}

/// `in 5m12s`, or `now`.
pub(crate) fn until(at: Timestamp, now: Timestamp) -> String {
    if at <= now { "now".to_owned() } else { format!("in {}", coarse(at.since(now))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_are_enough() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (312, "5m12s"),
            (3_600, "1h"),
            (3_605, "1h"),
            (90_061, "1d1h"),
            (86_700, "1d"),
        ] {
            assert_eq!(coarse(Duration::from_secs(seconds)), text);
        }
    }
}
