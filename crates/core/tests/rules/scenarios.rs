//! Every file in `scenarios/` is a test: its trace, run against its policy, gives just its timeline.

use std::path::{Path, PathBuf};

use drowse_core::replay::Scenario;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn scenarios() -> Vec<(String, Scenario)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the scenarios folder is part of the repository")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a scenario can be read");
            let scenario =
                toml::from_str(&text).unwrap_or_else(|error| panic!("scenarios/{name}.toml: {error}"));
            (name, scenario)
        })
        .collect()
}

#[test]
fn every_scenario_gives_the_timeline_it_expects() {
    let mut wrong = Vec::new();
    for (name, scenario) in scenarios() {
        let timeline = scenario.run().unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = scenario.lines(&timeline);
        if found != scenario.expect {
            wrong.push(format!("{name}\n  expected {:#?}\n  found {found:#?}", scenario.expect));
        }
    }
    assert!(wrong.is_empty(), "{} scenarios differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn there_are_enough_scenarios_and_each_says_what_it_shows() {
    let all = scenarios();
    assert!(all.len() >= 30, "{} scenarios", all.len());
    for (name, scenario) in all {
        assert!(!scenario.title.is_empty() && !scenario.why.is_empty(), "{name} does not say what it is for");
        assert!(!scenario.expect.is_empty(), "{name} expects nothing");
    }
}

/// A scenario with one line, length and start.
fn one_line(start: &str, length: &str, policy: &str, line: &str) -> Result<Vec<String>, String> {
    let text = format!(
        "title = \"t\"\nstart = {start:?}\nlength = {length:?}\nworker = {{ driver = \"process\" }}\n\
         policy = {{ {policy} }}\nhappens = [{line:?}]\n"
    );
    let scenario: Scenario = toml::from_str(&text).map_err(|error| error.to_string())?;
    let timeline = scenario.run().map_err(|error| error.to_string())?;
    Ok(scenario.lines(&timeline))
}

#[test]
fn what_cannot_be_run_is_refused_and_says_why() {
    let start = "2026-03-02T08:00:00Z";
    for (start, length, policy, line, expected) in [
        (start, "1h", "", "99999999999999999:00 cpu quiet", "expected a time from the start"),
        (start, "1h", "", "+1:00 cpu quiet", "expected a time from the start"),
        (start, "1h", "", "0:00 cpu dancing", "cpu can be active, quiet, unknown"),
        (start, "10000d", "check_interval = \"1s\"", "0:00 cpu quiet", "more than 1000000 looks"),
        ("9999-12-30T21:00:00Z", "2h", "", "0:00 cpu quiet", "between 1970 and 9999"),
        ("1900-01-01T00:00:00Z", "2h", "", "0:00 cpu quiet", "between 1970 and 9999"),
        (start, "1h", "check_interval = \"1h\", window = 5", "0:00 cpu quiet", "could not fill in time"),
        (start, "1h", "idle_timeout = 30", "0:00 cpu quiet", "a bare number has no unit"),
    ] {
        let error = one_line(start, length, policy, line).expect_err(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn whoever_was_refused_at_the_door_leaves_no_trace() {
    let lines = one_line(
        "2026-03-02T08:00:00Z",
        "20m",
        "idle_timeout = \"10m\", stop_after = \"never\"",
        "0:05 disconnect",
    );
    assert_eq!(lines.expect("it runs"), ["0:00 running started", "0:15 alert unknown"]);
}

proptest::proptest! {
    #[test]
    fn no_line_panics(line in ".{0,40}") {
        let _ = line.parse::<drowse_core::replay::Timed>();
    }

    #[test]
    fn no_time_panics(hours in 0u64.., minutes in 0u64..100) {
        let _ = format!("{hours}:{minutes:02} cpu quiet").parse::<drowse_core::replay::Timed>();
    }
}
