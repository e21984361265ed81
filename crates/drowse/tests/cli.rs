//! The real binary on real files: what it prints, where, and how it ends.

#[path = "cli/client.rs"]
mod client;
#[path = "cli/containers.rs"]
mod containers;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/door.rs"]
mod door;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/server.rs"]
mod server;
#[path = "cli/survive.rs"]
mod survive;
#[path = "cli/up.rs"]
mod up;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A folder with a configuration, in which the binary is run.
struct Fleet {
    folder: TempDir,
}

impl Fleet {
    fn new(config: impl AsRef<[u8]>) -> Self {
        let fleet = Self { folder: tempfile::tempdir().expect("a folder for temporary files") };
        fleet.file("drowse.toml", config);
        fleet
    }

    fn file(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        let folder = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).expect("the folder is ours");
        fs::write(path, text).expect("the folder is ours");
    }

    fn drowse(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_drowse"))
            .args(args)
            .current_dir(self.folder.path())
            .env_clear()
            .envs(variables.iter().copied())
            .output()
            .expect("cargo has built the binary")
    }

    fn check(&self) -> Output {
        self.drowse(&["check-config", "drowse.toml"], &[])
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("Drowse prints UTF-8")
}

/// Asserts that a file is refused with exactly this on stderr, nothing on stdout and exit code 1.
#[track_caller]
fn assert_refused(config: impl AsRef<[u8]>, stderr: &str) {
    let output = Fleet::new(config).check();
    assert_eq!(text(&output.stderr), stderr);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
}

#[test]
fn a_right_file_is_summed_up() {
    let fleet = Fleet::new(
        r#"[policy]
idle_timeout = "20m"
[policy.group.student]
window = 3
[[worker]]
id = "web"
driver = "process"
command = ["true"]
owner = "alice"
policy.grace = "5s"
[[exemption]]
owner = "bob"
from = ["max_runtime"]
reason = "grant deadline"
approved_by = "carol"
expires_on = "never"
"#,
    );
    fleet.file("groups/student.members", "# first years\nalice\nbob\n");
    let output = fleet.check();
    assert_eq!(
        text(&output.stdout),
        r#"drowse.toml is right

layers
  global         1 key
  group student  1 key
  worker web     1 key

groups
  student  2 members

workers
  web (process, group student, owner alice)
    idle_timeout  "20m"  global, drowse.toml:2:16
    window        3      group student, drowse.toml:4:10
    grace         "5s"   worker web, drowse.toml:10:16

exemptions
  owner bob from max_runtime for ever: grant deadline (approved by carol)
"#
    );
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn every_setting_of_a_worker_can_be_seen() {
    let fleet = Fleet::new("[[worker]]\nid = \"web\"\ndriver = \"sim\"\npolicy.idle_timeout = \"10s\"\n");
    let output = fleet.drowse(&["check-config", "drowse.toml", "--worker", "web"], &[]);
    let shown = text(&output.stdout);
    assert!(shown.starts_with("web (sim)\n  auto_pause"), "{shown}");
    let line = |key: &str| {
        let line = shown.lines().find(|line| line.split_whitespace().next() == Some(key));
        line.unwrap_or_default().split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("idle_timeout"), "\"10s\" worker web, drowse.toml:4:23");
    assert_eq!(line("check_interval"), "\"5s\" follows idle_timeout");
    assert_eq!(line("signals.cpu.use"), "\"required\" built-in");
    assert_eq!(line("schedule"), "- built-in");

    let output = fleet.drowse(&["check-config", "drowse.toml", "--worker", "wbe"], &[]);
    assert_eq!(text(&output.stderr), "drowse: the file lists no worker \"wbe\"; did you mean \"web\"?\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_file_that_the_file_names_is_checked_too() {
    let fleet = Fleet::new("[router]\nwake_token_file = \"wake.token\"\n");
    let refused = |why: &str| {
        let output = fleet.check();
        assert_eq!(text(&output.stderr), format!("drowse.toml: wake_token_file wake.token: {why}\n"));
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    };
    refused("No such file or directory (os error 2)");
    fleet.file("wake.token", "too short");
    refused("expected one word of at least 16 letters and digits");
    fleet.file("wake.token", "0123456789abcdef\n");
    assert_eq!(fleet.check().status.code(), Some(0));
}

#[test]
fn a_bare_number_is_refused() {
    assert_refused(
        "[policy]\nmax_runtime = 48\n",
        r#"drowse.toml:2:15: max_runtime: a bare number has no unit: write "48s", "48m" or "48h"
  2 | max_runtime = 48
    |               ^^
drowse.toml: 1 problem
"#,
    );
}

#[test]
fn a_misspelt_key_is_refused_with_the_right_one() {
    assert_refused(
        "[policy.group.student]\nidle_timout = \"5m\"\n",
        r#"drowse.toml:2:1: idle_timout: unknown key; did you mean "idle_timeout"?
  2 | idle_timout = "5m"
    | ^^^^^^^^^^^
drowse.toml: 1 problem
"#,
    );
}

#[test]
fn an_unknown_key_is_refused_without_a_guess() {
    assert_refused(
        "[policy]\nfavourite_colour = \"blue\"\n",
        r#"drowse.toml:2:1: favourite_colour: unknown key
  2 | favourite_colour = "blue"
    | ^^^^^^^^^^^^^^^^
drowse.toml: 1 problem
"#,
    );
}

#[test]
fn several_mistakes_are_told_at_once() {
    assert_refused(
        "[policy]\nwindow = \"three\"\n[server]\nlisten = 7070\n",
        r#"drowse.toml:2:10: window: expected a whole number from 1 to 1000, found "three"
  2 | window = "three"
    |          ^^^^^^^
drowse.toml:4:10: listen: expected an address and a port such as "127.0.0.1:8001", found the number 7070
  4 | listen = 7070
    |          ^^^^
drowse.toml: 2 problems
"#,
    );
}

#[test]
fn a_bad_exemption_among_good_ones_is_named() {
    let record = |who: &str, expires: &str| {
        format!(
            "[[exemption]]\nowner = \"{who}\"\nfrom = [\"idle_timeout\"]\nreason = \"x\"\napproved_by = \"carol\"\n{expires}\n"
        )
    };
    let never = "expires_on = \"never\"";
    assert_refused(
        record("ann", never) + &record("bob", "expires_on = \"soon\"") + &record("eve", never),
        r#"drowse.toml:12:14: exemption 2: expires_on: expected an instant such as "2026-12-01T00:00:00Z" or "never", found "soon"
  12 | expires_on = "soon"
     |              ^^^^^^
drowse.toml: 1 problem
"#,
    );
}

#[test]
fn two_layers_that_do_not_go_together_are_refused_with_both_places() {
    assert_refused(
        r#"[policy]
heartbeat_interval = "45s"

[policy.owner.alice]
stale_after = "90s"

[[worker]]
id = "web"
driver = "sim"
owner = "alice"
"#,
        r#"drowse.toml:5:15: stale_after 1m30s must be more than two heartbeat intervals (45s each), or one late beat takes a healthy worker offline (stale_after is set by: owner alice; heartbeat_interval by: global), for worker web
  5 | stale_after = "90s"
    |               ^^^^^
drowse.toml:2:22: heartbeat_interval is set here
  2 | heartbeat_interval = "45s"
    |                      ^^^^^
drowse.toml: 1 problem
"#,
    );
}

#[test]
fn a_worker_s_id_is_used_once() {
    assert_refused(
        "[[worker]]\nid = \"web\"\ndriver = \"sim\"\n[[worker]]\nid = \"web\"\ndriver = \"sim\"\n",
        r#"drowse.toml:5:6: id: "web" is already used by worker web
  5 | id = "web"
    |      ^^^^^
drowse.toml:2:6: first used here
  2 | id = "web"
    |      ^^^^^
drowse.toml: 1 problem
"#,
    );
}

#[test]
fn what_is_no_toml_is_refused() {
    assert_refused(
        "[policy]\nidle_timeout = 5m\n[policy\n",
        r#"drowse.toml:2:16: expected a value: texts, durations and sizes stand in quotes, such as "5m"
  2 | idle_timeout = 5m
    |                ^^
drowse.toml:3:8: unclosed table, expected `]`
  3 | [policy
    |        ^
drowse.toml: 2 problems
"#,
    );
}

#[test]
fn an_unknown_zone_is_refused_with_the_right_one() {
    assert_refused(
        "[policy.schedule]\nzone = \"Europe/Berln\"\nwindows = []\n",
        r#"drowse.toml:2:8: zone: expected the name of a time zone such as "Europe/Berlin" or "UTC", found "Europe/Berln"; did you mean "Europe/Berlin"?
  2 | zone = "Europe/Berln"
    |        ^^^^^^^^^^^^^^
drowse.toml: 1 problem
"#,
    );
}

#[test]
fn a_secret_is_refused_and_not_repeated() {
    assert_refused(
        "[sensor.cml]\nusername = \"admin\"\npassword = \"hunter2\"\n",
        "drowse.toml:3:1: password: secrets do not stand in this file: put it into a file of its own that only Drowse can read, and write password_file = \"…\"\ndrowse.toml: 1 problem\n",
    );
}

#[test]
fn a_variable_counts_and_a_wrong_one_is_named() {
    let fleet = Fleet::new("");
    let check =
        |minutes| fleet.drowse(&["check-config", "drowse.toml"], &[("WORKER_IDLE_TIMEOUT_MINUTES", minutes)]);
    let output = check("45");
    assert_eq!(
        text(&output.stdout),
        "drowse.toml is right\n\nlayers\n  global (environment, WORKER_IDLE_TIMEOUT_MINUTES)  1 key\n"
    );
    let output = check("soon");
    assert_eq!(
        text(&output.stderr),
        "environment variable WORKER_IDLE_TIMEOUT_MINUTES: expected a whole number of minutes, found \"soon\"\ndrowse.toml: 1 problem\n"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_file_that_cannot_be_read_is_one_clear_line() {
    let fleet = Fleet::new("");
    fleet.file("bytes.toml", b"[policy]\n# \xff\n");
    fleet.file("huge.toml", vec![b'#'; (1 << 20) + 1]);
    for (file, stderr) in [
        ("gone.toml", "gone.toml: no such file\n"),
        (".", ".: expected a file, found a folder\n"),
        ("bytes.toml", "bytes.toml:2: not UTF-8\n"),
        ("huge.toml", "huge.toml: larger than 1 MiB, which no configuration is\n"),
        ("drowse.toml/x", "drowse.toml/x: cannot be read: Not a directory (os error 20)\n"),
    ] {
        let output = fleet.drowse(&["check-config", file], &[]);
        assert_eq!(text(&output.stderr), stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()), "{file}");
    }
}

#[test]
fn an_owner_in_two_groups_is_refused() {
    let fleet = Fleet::new("");
    fleet.file("groups/faculty.members", "alice\n");
    fleet.file("groups/student.members", "alice\n");
    assert_eq!(
        text(&fleet.check().stderr),
        r#"groups/student.members:1:1: "alice" belongs to two groups, "faculty" and "student": which one's policy should count?
  1 | alice
    | ^^^^^
groups/faculty.members:1:1: first named here
drowse.toml: 1 problem
"#
    );
}

#[test]
fn programs_get_json() {
    let json = |fleet: &Fleet, args: &[&str]| -> (serde_json::Value, Option<i32>) {
        let output = fleet.drowse(&[&["check-config", "drowse.toml", "--json"], args].concat(), &[]);
        assert_eq!(text(&output.stderr), "");
        (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
    };
    let fleet = Fleet::new("[[worker]]\nid = \"web\"\ndriver = \"sim\"\npolicy.idle_timeout = \"never\"\n");
    let (found, code) = json(&fleet, &[]);
    let expected = serde_json::json!({
        "ok": true,
        "errors": [],
        "workers": [{
            "id": "web", "driver": "sim", "type": null, "region": null, "group": null, "owner": null,
            "policy": { "idle_timeout": {
                "value": null, "set_by": "worker web", "file": "drowse.toml", "line": 4, "column": 23,
            } },
        }],
    });
    assert_eq!((found, code), (expected, Some(0)));
    let (found, _) = json(&fleet, &["--worker", "web"]);
    assert_eq!(found["workers"][0]["policy"]["window"]["value"], 1);

    let (found, code) = json(&Fleet::new("[policy]\nidle_timout = \"5m\"\n"), &[]);
    let expected = serde_json::json!({
        "ok": false,
        "errors": [{
            "file": "drowse.toml", "line": 2, "column": 1, "key": "idle_timout", "exemption": null, "notes": [],
            "message": "unknown key; did you mean \"idle_timeout\"?", "suggestion": "idle_timeout",
        }],
        "workers": [],
    });
    assert_eq!((found, code), (expected, Some(1)));

    let fleet = Fleet::new("");
    fs::remove_file(fleet.folder.path().join("drowse.toml")).unwrap();
    let (found, code) = json(&fleet, &[]);
    assert_eq!(
        (&found["ok"], &found["errors"][0]["message"], code),
        (&false.into(), &"drowse.toml: no such file".into(), Some(1))
    );
}

#[test]
fn wrong_usage_ends_with_two() {
    let fleet = Fleet::new("");
    for args in [&["check-config"][..], &["chek-config"], &[], &["check-config", "drowse.toml", "--jsn"]] {
        let output = fleet.drowse(args, &[]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()), "{args:?}");
    }
    let help = fleet.drowse(&["check-config", "--help"], &[]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Examples:\n  drowse check-config drowse.toml\n"));
    assert!(!text(&fleet.drowse(&["--help"], &[]).stdout).contains("__reference"));
}

#[test]
fn the_generated_files_are_fresh_and_the_example_is_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fleet = Fleet::new("");
    for (what, file) in [("config", "docs/reference/config.md"), ("example", "drowse.example.toml")] {
        let printed = text(&fleet.drowse(&["__reference", what], &[]).stdout);
        let kept = fs::read_to_string(root.join(file)).unwrap();
        assert!(printed == kept, "{file} is stale; run `cargo xtask gen`");
        if what == "example" {
            fleet.file("drowse.toml", printed);
        }
    }
    let output = fleet.check();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}
