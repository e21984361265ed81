//! What criterion left behind: `**/new/benchmark.json` says what was measured, `**/new/estimates.json` what
//! came out.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::page::{big, time};

/// One measured benchmark.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    /// Criterion's full name, such as `judge/1000000`.
    pub(super) name: String,
    /// Nanoseconds of one iteration.
    pub(super) median: f64,
    /// The 95 % interval of the median, in nanoseconds.
    pub(super) between: (f64, f64),
    /// What one iteration works through, if the benchmark says.
    pub(super) work: Option<Work>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    Elements(f64),
    Bytes(f64),
}

/// Removes the results of the last run, so that a benchmark that is gone does not stay in the table.
///
/// Criterion's baselines lie beside `new` and are left alone: it still says what got faster or slower.
pub(super) fn forget_latest(home: &Path) -> anyhow::Result<()> {
    for folder in latest_folders(home)? {
        std::fs::remove_dir_all(&folder).context("cannot remove the results of the last run")?;
    }
    Ok(())
}

/// All results of the latest run, by name.
pub(super) fn latest(home: &Path) -> anyhow::Result<Vec<Measured>> {
    let mut results = latest_folders(home)?
        .iter()
        .map(|folder| {
            let read = |name: &str| {
                std::fs::read_to_string(folder.join(name))
                    .with_context(|| format!("criterion wrote no {name}"))
            };
            parse(&read("benchmark.json")?, &read("estimates.json")?)
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    results.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(results)
}

/// Every folder `new` below `home`; none if nothing has been measured yet.
fn latest_folders(home: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![home.to_owned()];
    while let Some(folder) = open.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&folder).context("cannot list criterion's results")? {
            let path = entry.context("cannot list criterion's results")?.path();
            if path.ends_with("new") && path.join("estimates.json").is_file() {
                found.push(path);
            } else {
                open.push(path);
            }
        }
    }
    Ok(found)
}

fn parse(benchmark: &str, estimates: &str) -> anyhow::Result<Measured> {
    let benchmark: Value = serde_json::from_str(benchmark).context("benchmark.json")?;
    let estimates: Value = serde_json::from_str(estimates).context("estimates.json")?;
    let name = benchmark["full_id"].as_str().context("benchmark.json: no `full_id`")?.to_owned();
    let median = &estimates["median"];
    let number = |value: &Value| value.as_f64().context("estimates.json: no median");
    Ok(Measured {
        name,
        median: number(&median["point_estimate"])?,
        between: (
            number(&median["confidence_interval"]["lower_bound"])?,
            number(&median["confidence_interval"]["upper_bound"])?,
        ),
        work: work(&benchmark["throughput"]),
    })
}

/// The throughput that a benchmark was given; elements first, because a decision or an event is what our
/// users count.
fn work(throughput: &Value) -> Option<Work> {
    let elements = [&throughput["Elements"], &throughput["ElementsAndBytes"]["elements"]];
    let bytes = [&throughput["Bytes"], &throughput["BytesDecimal"]];
    elements
        .into_iter()
        .find_map(Value::as_f64)
        .map(Work::Elements)
        .or_else(|| bytes.into_iter().find_map(Value::as_f64).map(Work::Bytes))
}

pub(super) fn table(results: &[Measured]) -> String {
    let mut text = String::from("| benchmark | median | 95 % of it between | per element | per second |\n");
    text += "| --- | ---: | ---: | ---: | ---: |\n";
    for Measured { name, median, between: (low, high), work } in results {
        let (each, rate) = match work {
            Some(Work::Elements(n)) => (time(median / n), format!("{} elements", big(n / median * 1e9))),
            Some(Work::Bytes(n)) => ("–".to_owned(), format!("{}B", big(n / median * 1e9))),
            None => ("–".to_owned(), "–".to_owned()),
        };
        let (median, low, high) = (time(*median), time(*low), time(*high));
        writeln!(text, "| `{name}` | {median} | {low} … {high} | {each} | {rate} |")
            .expect("writing to a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_one_element_costs() {
        let measured = |name: &str, median, work| Measured {
            name: name.to_owned(),
            median,
            between: (median * 0.9, median * 1.1),
            work,
        };
        let results = [
            measured("judge/1000000", 512e6, Some(Work::Elements(1e6))),
            measured("parse", 1e3, Some(Work::Bytes(2000.0))),
            measured("resolve", 250.0, None),
        ];
        assert_eq!(
            table(&results),
            "| benchmark | median | 95 % of it between | per element | per second |\n\
             | --- | ---: | ---: | ---: | ---: |\n\
             | `judge/1000000` | 512 ms | 461 ms … 563 ms | 512 ns | 1.95 M elements |\n\
             | `parse` | 1.00 µs | 900 ns … 1.10 µs | – | 2.00 GB |\n\
             | `resolve` | 250 ns | 225 ns … 275 ns | – | – |\n"
        );
    }

    const ESTIMATES: &str = r#"{
        "mean": {"point_estimate": 1.0},
        "median": {"confidence_interval": {"confidence_level": 0.95, "lower_bound": 900.5, "upper_bound": 1100.0},
                   "point_estimate": 1000.0, "standard_error": 2.0}}"#;

    fn benchmark(throughput: &str) -> String {
        format!(r#"{{"group_id": "g", "full_id": "g/filter", "title": "t", "throughput": {throughput}}}"#)
    }

    fn measure(home: &Path, folder: &str) {
        let new = home.join(folder).join("new");
        std::fs::create_dir_all(&new).unwrap();
        std::fs::write(new.join("benchmark.json"), benchmark("null")).unwrap();
        std::fs::write(new.join("estimates.json"), ESTIMATES).unwrap();
    }

    #[test]
    fn the_median_and_its_interval_are_read() {
        let measured = parse(&benchmark("null"), ESTIMATES).unwrap();
        assert_eq!(measured.name, "g/filter");
        assert_eq!((measured.median, measured.between), (1000.0, (900.5, 1100.0)));
        assert_eq!(measured.work, None);
    }

    #[test]
    fn every_kind_of_throughput_that_we_use_is_known() {
        for (throughput, work) in [
            (r#"{"Elements": 226}"#, Some(Work::Elements(226.0))),
            (r#"{"Bytes": 4096}"#, Some(Work::Bytes(4096.0))),
            (r#"{"BytesDecimal": 4000}"#, Some(Work::Bytes(4000.0))),
            (r#"{"ElementsAndBytes": {"elements": 3, "bytes": 9}}"#, Some(Work::Elements(3.0))),
            (r#"{"Bits": 8}"#, None),
        ] {
            assert_eq!(parse(&benchmark(throughput), ESTIMATES).unwrap().work, work, "{throughput}");
        }
    }

    #[test]
    fn results_without_a_median_are_an_error() {
        let error = parse(&benchmark("null"), r#"{"mean": {"point_estimate": 1.0}}"#).unwrap_err();
        assert_eq!(error.to_string(), "estimates.json: no median");
    }

    #[test]
    fn a_benchmark_that_is_gone_leaves_with_the_next_run() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(latest(dir.path()).unwrap(), []);
        measure(dir.path(), "judge/one");
        measure(dir.path(), "filter");
        assert_eq!(latest(dir.path()).unwrap().len(), 2);

        std::fs::create_dir_all(dir.path().join("filter/base")).unwrap();
        forget_latest(dir.path()).unwrap();
        measure(dir.path(), "judge/one");
        assert_eq!(latest(dir.path()).unwrap().len(), 1);
        assert!(dir.path().join("filter/base").exists(), "baselines stay");
    }
}
