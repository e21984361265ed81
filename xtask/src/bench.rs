//! `cargo xtask bench NAME`: runs a benchmark and refreshes its table in `docs/benchmarks/NAME.md`.
//!
//! Numbers in a document are believed for as long as it stands, so they are never typed: the table between
//! the two marks is written by the run itself, with what the machine was. The prose around it stays.

mod criterion;
mod neighbours;
mod page;
mod program;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::needs;
use crate::workspace::{Workspace, must, stdout};
use neighbours::Neighbours;

/// A benchmark that can be asked for by name.
struct Benchmark {
    name: &'static str,
    by: By,
}

/// What measures.
enum By {
    /// All criterion benchmarks of a package.
    Criterion { package: &'static str },
    /// Programs, one after the other, that print what they measured: see [`program`].
    Programs(&'static [Program]),
}

/// A bench target without a harness.
struct Program {
    package: &'static str,
    target: &'static str,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark {
        name: "containers",
        by: By::Programs(&[
            Program { package: "drowse-sensors", target: "containers" },
            Program { package: "drowse-drivers", target: "docker" },
            Program { package: "drowse", target: "checks" },
        ]),
    },
    Benchmark { name: "core", by: By::Criterion { package: "drowse-core" } },
    Benchmark {
        name: "fleet",
        by: By::Programs(&[
            Program { package: "drowse-server", target: "fleet" },
            Program { package: "drowse", target: "demo" },
        ]),
    },
    Benchmark { name: "restart", by: By::Programs(&[Program { package: "drowse", target: "restart" }]) },
    Benchmark { name: "router", by: By::Programs(&[Program { package: "drowse", target: "router" }]) },
    Benchmark { name: "wake", by: By::Programs(&[Program { package: "drowse", target: "wake" }]) },
];

/// Runs one. With `options` for its programs it is only shown: a page says what everybody gets who runs it.
pub(crate) fn run(workspace: &Workspace, name: &str, options: &[&str]) -> anyhow::Result<()> {
    let Some(benchmark) = BENCHMARKS.iter().find(|known| known.name == name) else {
        let names: Vec<_> = BENCHMARKS.iter().map(|known| known.name).collect();
        bail!("there is no benchmark `{name}`; there are: {}", names.join(", "));
    };
    let (results, neighbours) = match &benchmark.by {
        By::Criterion { .. } if !options.is_empty() => bail!("`{name}` takes no options"),
        By::Criterion { package } => by_criterion(workspace, name, package)?,
        By::Programs(programs) => {
            needs::install_for_bench(name)?;
            by_programs(workspace, programs, options)?
        }
    };
    let rustc = stdout(Command::new("rustc").arg("--version"))?;
    let machine = page::Machine::read(rustc.trim(), neighbours);
    let section = page::section(&machine, &results);
    if options.is_empty() {
        return write(workspace.root(), name, &section);
    }
    println!("\n{section}");
    Ok(())
}

fn by_criterion(
    workspace: &Workspace,
    name: &str,
    package: &str,
) -> anyhow::Result<(String, Option<Neighbours>)> {
    // A folder of its own for each benchmark, or one table would show the rows of another.
    let home = workspace.target_dir()?.join("criterion").join(name);
    criterion::forget_latest(&home)?;
    must(&mut workspace.cargo(["bench", "--package", package, "--no-run"]))?;
    let (outcome, neighbours) = Neighbours::during(|| {
        must(workspace.cargo(["bench", "--package", package]).env("CRITERION_HOME", &home))
    });
    outcome?;
    let results = criterion::latest(&home)?;
    if results.is_empty() {
        bail!("{package} has no criterion benchmark: nothing was measured");
    }
    Ok((criterion::table(&results), neighbours))
}

fn by_programs(
    workspace: &Workspace,
    programs: &[Program],
    options: &[&str],
) -> anyhow::Result<(String, Option<Neighbours>)> {
    let arguments = |program: &Program| ["bench", "--package", program.package, "--bench", program.target];
    for program in programs {
        must(workspace.cargo(arguments(program)).arg("--no-run"))?;
    }
    let (printed, neighbours) = Neighbours::during(|| {
        programs
            .iter()
            .map(|program| stdout(workspace.cargo(arguments(program)).arg("--").args(options)))
            .collect::<anyhow::Result<String>>()
    });
    let results = program::parse(&printed?)?;
    if results.groups.is_empty() {
        bail!("nothing was measured");
    }
    Ok((program::tables(&results), neighbours))
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
