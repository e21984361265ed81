//! `cargo xtask bench NAME`: runs a benchmark and refreshes its table in `docs/benchmarks/NAME.md`.
//!
//! Numbers in a document are believed for as long as it stands, so they are never typed: the table between
//! the two marks is written by the run itself, with what the machine was. The prose around it stays.

mod criterion;
mod page;

use std::path::Path;

use anyhow::{Context, bail};

use crate::workspace::{Workspace, must, stdout};

/// A benchmark that can be asked for by name, and the package that holds it.
const BENCHMARKS: &[(&str, &str)] = &[("core", "drowse-core")];

pub(crate) fn run(workspace: &Workspace, name: &str) -> anyhow::Result<()> {
    let Some((_, package)) = BENCHMARKS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<_> = BENCHMARKS.iter().map(|(name, _)| *name).collect();
        bail!("there is no benchmark `{name}`; there are: {}", names.join(", "));
    };
    // A folder of its own for each benchmark, or one table would show the rows of another.
    let home = workspace.target_dir()?.join("criterion").join(name);
    criterion::forget_latest(&home)?;
    must(workspace.cargo(["bench", "--package", package]).env("CRITERION_HOME", &home))?;
    let results = criterion::latest(&home)?;
    if results.is_empty() {
        bail!("{package} has no criterion benchmark: nothing was measured");
    }
    let rustc = stdout(std::process::Command::new("rustc").arg("--version"))?;
    write(workspace.root(), name, &page::section(&page::Machine::read(rustc.trim()), &results))
}

/// Puts the section into the benchmark's page.
fn write(root: &Path, name: &str, section: &str) -> anyhow::Result<()> {
    let relative = format!("docs/benchmarks/{name}.md");
    let path = root.join(&relative);
    std::fs::create_dir_all(path.parent().expect("the page lies in a folder"))
        .context("cannot create docs/benchmarks")?;
    let old = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => page::blank(name),
        Err(error) => return Err(error).with_context(|| format!("cannot read {relative}")),
    };
    let new = page::refresh(&old, section).with_context(|| relative.clone())?;
    std::fs::write(&path, new).with_context(|| format!("cannot write {relative}"))?;
    println!("\n{section}\nwrote {relative}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_created_once_and_then_keeps_its_prose() {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("docs/benchmarks/core.md");
        write(dir.path(), "core", "first numbers\n").unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains("first numbers"), "{text}");

        std::fs::write(&page, format!("{text}\nWhat this means.\n")).unwrap();
        write(dir.path(), "core", "second numbers\n").unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains("second numbers") && !text.contains("first numbers"), "{text}");
        assert!(text.ends_with("What this means.\n"), "{text}");
    }
}
