//! Commands that need no server.

use serde_json::Value;

use crate::server::drowse;

#[test]
fn doctor_tells_the_same_things_on_every_machine() {
    let output = drowse(&["doctor", "--json"], &[("PATH", "/usr/bin:/bin")]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let fields: Vec<&String> = report.as_object().expect("an object").keys().collect();
    assert_eq!(fields, ["arch", "checks", "os", "version"]);
    let checks = report["checks"].as_array().expect("a list");
    let names: Vec<&str> = checks.iter().filter_map(|check| check["name"].as_str()).collect();
    assert_eq!(names, ["freezer", "docker", "qemu", "kvm", "gpu", "postgresql"]);
    for check in checks {
        let fields: Vec<&String> = check.as_object().expect("an object").keys().collect();
        assert_eq!(fields, ["advice", "found", "name", "state", "used_for"]);
        let state = check["state"].as_str().expect("a word");
        assert!(["ok", "limited", "missing"].contains(&state), "{check}");
        assert_eq!(check["advice"].is_null(), state == "ok", "what is not well says what to do: {check}");
    }
}

#[test]
fn doctor_asks_the_engine_that_the_configuration_names() {
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    let (file, socket) = (dir.path().join("drowse.toml"), dir.path().join("nosuch.sock"));
    std::fs::write(&file, format!("[driver.docker]\nsocket = {:?}\n", socket.display().to_string())).unwrap();
    let output = drowse(&["doctor", "--json", "--config", &file.to_string_lossy()], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let docker = &report["checks"][1];
    assert_eq!(docker["state"], "missing", "{docker}");
    assert!(docker["found"].as_str().unwrap().contains("nosuch.sock"), "{docker}");
}

#[test]
fn thaw_finds_nothing_where_nothing_was_frozen() {
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    let folder = dir.path().to_string_lossy();
    let output = drowse(&["thaw", "--all", "--json", "--data", &folder], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[]\n");
    assert_eq!(drowse(&["thaw"], &[]).status.code(), Some(2), "--all has to be said");
}
