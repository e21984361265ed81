//! The help of every command is a text that somebody has read: exact files in `tests/help`.
//!
//! `DROWSE_HELP=write` writes them anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help")
}

fn help(command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_drowse"))
        .args(command)
        .arg("--help")
        .env_clear()
        .output()
        .expect("cargo has built the binary");
    assert_eq!(output.status.code(), Some(0), "{command:?}");
    assert!(output.stderr.is_empty(), "help is data");
    String::from_utf8(output.stdout).expect("Drowse prints UTF-8")
}

/// The names below "Commands:".
fn commands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // Descriptions that go on in the next line are further to the right.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

/// Every command with its help, those below others too.
fn all() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![Vec::new()];
    while let Some(command) = left.pop() {
        let text = help(&command);
        for name in commands(&text) {
            left.push(command.iter().cloned().chain([name]).collect());
        }
        let name = if command.is_empty() { "drowse".to_owned() } else { command.join("-") };
        found.push((name, text));
    }
    found
}

#[test]
fn the_help_of_every_command_is_the_one_on_file() {
    let is_write = std::env::var_os("DROWSE_HELP").is_some_and(|value| value == "write");
    let all = all();
    assert!(all.len() > 30, "commands were not found: {}", all.len());
    let mut wrong = Vec::new();
    for (name, text) in &all {
        let file = folder().join(format!("{name}.txt"));
        if is_write {
            std::fs::write(&file, text).expect("the help files can be written");
        }
        let on_file = std::fs::read_to_string(&file).unwrap_or_default();
        if on_file != *text {
            let line = on_file.lines().zip(text.lines()).take_while(|(a, b)| a == b).count() + 1;
            wrong.push(format!("{name}.txt differs from line {line}"));
        }
    }
    assert!(wrong.is_empty(), "if this is meant, DROWSE_HELP=write:\n{}", wrong.join("\n"));

    let known: BTreeSet<String> = all.iter().map(|(name, _)| format!("{name}.txt")).collect();
    let orphans: Vec<String> = std::fs::read_dir(folder())
        .expect("there are help files")
        .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
        .filter(|name| !known.contains(name))
        .collect();
    assert!(orphans.is_empty(), "no command has this help: {orphans:?}");
}

#[test]
fn every_command_that_does_something_has_examples_that_begin_with_it() {
    for (name, text) in all() {
        if !commands(&text).is_empty() {
            continue;
        }
        let words = name.replace("check-config", "check\u{0}config").replace('-', " ").replace('\0', "-");
        let example = format!("drowse {words}");
        assert!(text.contains("\nExamples:\n"), "{name} has no examples");
        assert!(text.split("\nExamples:\n").nth(1).unwrap_or_default().contains(&example), "{name}");
    }
}

#[test]
fn every_shell_and_every_manual_page_can_be_written() {
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_drowse")).args(args).output().expect("it runs");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("Drowse prints UTF-8")
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(run(&["completions", shell]).contains("explain"), "{shell}");
    }
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    let folder = dir.path().join("man1");
    assert_eq!(run(&["man", &folder.to_string_lossy()]), "", "nothing goes to stdout");
    for page in ["drowse.1", "drowse-explain.1", "drowse-policy-set.1"] {
        let text = std::fs::read_to_string(folder.join(page)).expect(page);
        assert!(text.contains(".TH"), "{page}");
    }
    assert!(!folder.join("drowse-__reference.1").exists(), "what is hidden has no page");
}
