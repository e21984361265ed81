//! `cargo xtask gen`: files that the program writes about itself.
//!
//! A reference that a person has to keep in step with the code is wrong after the next change. So each one
//! is printed by the code that it describes, kept in the repository for readers, and `--check` fails when
//! the two differ.
//!
//! **To add one, add a line to [`REGISTRY`].**

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, bail};

use crate::workspace::{Workspace, stdout};

/// A generated file.
#[derive(Debug)]
pub(crate) struct Generated {
    /// From the root of the workspace, with `/`.
    path: &'static str,
    /// Arguments to the `drowse` binary, which prints the file's text.
    args: &'static [&'static str],
}

/// Every generated file.
const REGISTRY: &[Generated] = &[
    Generated { path: "docs/reference/cli.md", args: &["__reference", "cli"] },
    Generated { path: "docs/reference/config.md", args: &["__reference", "config"] },
    Generated { path: "docs/reference/metrics.md", args: &["__reference", "metrics"] },
    Generated { path: "docs/reference/openapi.json", args: &["__reference", "openapi"] },
    Generated { path: "drowse.example.toml", args: &["__reference", "example"] },
];

/// Every file in here is generated.
const FOLDER: &str = "docs/reference";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    /// Touches nothing and fails when a file is not what would be written.
    Check,
}

pub(crate) fn run(workspace: &Workspace, mode: Mode) -> anyhow::Result<()> {
    let produce = |file: &Generated| {
        let mut command = workspace.cargo(["run", "--quiet", "--package", "drowse", "--"]);
        stdout(command.args(file.args))
    };
    let changed = sync(workspace.root(), REGISTRY, mode, produce)?;
    for line in &changed {
        println!("{line}");
    }
    match mode {
        Mode::Check if !changed.is_empty() => bail!("generated files are stale; run `cargo xtask gen`"),
        Mode::Check => println!("{} generated files are fresh", REGISTRY.len()),
        Mode::Write => println!("{} of {} generated files changed", changed.len(), REGISTRY.len()),
    }
    Ok(())
}

/// Brings the files in step, or finds out which are not; one line for each that was not.
fn sync(
    root: &Path,
    registry: &[Generated],
    mode: Mode,
    produce: impl Fn(&Generated) -> anyhow::Result<String>,
) -> anyhow::Result<Vec<String>> {
    let mut changed = Vec::new();
    for file in registry {
        let wanted = produce(file).with_context(|| format!("cannot generate {}", file.path))?;
        let path = root.join(file.path);
        let found = std::fs::read_to_string(&path).ok();
        let Some(line) = difference(found.as_deref(), &wanted) else {
            continue;
        };
        changed.push(format!("{}: {line}", file.path));
        if mode == Mode::Write {
            let folder = path.parent().expect("a file below the root has a folder");
            std::fs::create_dir_all(folder).with_context(|| format!("cannot create {FOLDER}"))?;
            std::fs::write(&path, wanted).with_context(|| format!("cannot write {}", file.path))?;
        }
    }
    // Never removed by us: it may be a page that somebody wrote into the wrong folder.
    let orphans = orphans(root, registry)?;
    if !orphans.is_empty() {
        bail!("{FOLDER} holds only generated files, and nothing generates {}", orphans.join(", "));
    }
    Ok(changed)
}

/// Where a file first differs from what it should be, in words.
fn difference(found: Option<&str>, wanted: &str) -> Option<String> {
    let Some(found) = found else {
        return Some("missing".to_owned());
    };
    if found == wanted {
        return None;
    }
    let same = found.lines().zip(wanted.lines()).take_while(|(found, wanted)| found == wanted).count();
    Some(format!("differs from line {}", same + 1))
}

/// Files of the folder that the registry does not know, such as the page of a command that is gone.
fn orphans(root: &Path, registry: &[Generated]) -> anyhow::Result<Vec<String>> {
    let known: BTreeSet<&str> = registry.iter().map(|file| file.path).collect();
    let Ok(entries) = std::fs::read_dir(root.join(FOLDER)) else {
        return Ok(Vec::new());
    };
    let mut orphans = Vec::new();
    for entry in entries {
        let name = entry.with_context(|| format!("cannot list {FOLDER}"))?.file_name();
        let path = format!("{FOLDER}/{}", name.to_string_lossy());
        if !known.contains(path.as_str()) {
            orphans.push(path);
        }
    }
    orphans.sort();
    Ok(orphans)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "docs/reference/config.md";
    const FILES: &[Generated] = &[Generated { path: CONFIG, args: &["__reference", "config"] }];

    fn fake(file: &Generated) -> anyhow::Result<String> {
        match file.args {
            ["__reference", what] => Ok(format!("# Reference\n\nof {what}\n")),
            other => bail!("no such reference: {}", other.join(" ")),
        }
    }

    #[test]
    fn a_missing_file_is_stale_until_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let sync = |mode| sync(dir.path(), FILES, mode, fake).unwrap();

        assert_eq!(sync(Mode::Check), ["docs/reference/config.md: missing"]);
        assert!(!dir.path().join(CONFIG).exists(), "a check touches nothing");
        assert_eq!(sync(Mode::Write), ["docs/reference/config.md: missing"]);
        assert_eq!(sync(Mode::Check), [""; 0]);
        assert_eq!(sync(Mode::Write), [""; 0]);
        let text = std::fs::read_to_string(dir.path().join(CONFIG)).unwrap();
        assert_eq!(text, "# Reference\n\nof config\n");
    }

    #[test]
    fn an_edited_file_is_stale_from_the_edited_line_on() {
        let dir = tempfile::tempdir().unwrap();
        sync(dir.path(), FILES, Mode::Write, fake).unwrap();
        std::fs::write(dir.path().join(CONFIG), "# Reference\n\nby hand\n").unwrap();

        let stale = sync(dir.path(), FILES, Mode::Check, fake).unwrap();
        assert_eq!(stale, ["docs/reference/config.md: differs from line 3"]);
    }

    #[test]
    fn a_file_that_nothing_generates_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        sync(dir.path(), FILES, Mode::Write, fake).unwrap();
        let page = dir.path().join(FOLDER).join("gone.md");
        std::fs::write(&page, "a command that is gone").unwrap();

        for mode in [Mode::Check, Mode::Write] {
            let error = sync(dir.path(), FILES, mode, fake).unwrap_err().to_string();
            assert!(error.ends_with("nothing generates docs/reference/gone.md"), "{error}");
            assert!(page.exists());
        }
    }

    #[test]
    fn a_generator_that_fails_is_named_and_writes_nothing() {
        let files = &[Generated { path: CONFIG, args: &["gone"] }];
        let dir = tempfile::tempdir().unwrap();
        let error = sync(dir.path(), files, Mode::Write, fake).unwrap_err();
        assert_eq!(format!("{error:#}"), "cannot generate docs/reference/config.md: no such reference: gone");
        assert!(!dir.path().join(CONFIG).exists());
    }

    #[test]
    fn a_missing_last_line_break_is_a_difference() {
        assert_eq!(difference(Some("a\nb"), "a\nb\n"), Some("differs from line 3".to_owned()));
        assert_eq!(difference(Some("a\nb\n"), "a\nb\n"), None);
    }
}
