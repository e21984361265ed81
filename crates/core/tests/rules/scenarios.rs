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
