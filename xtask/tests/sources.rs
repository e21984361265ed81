//! House rules that no lint knows: how long a file may be, how modules are named, what `core` may say, and
//! that documents point at things that exist.

use std::path::{Path, PathBuf};

use crate::checkout;

/// A file of this many lines is two files. CONTRIBUTING.md asks for 100 to 300.
const TOO_LONG: usize = 800;

#[test]
fn no_source_file_has_800_lines() {
    let long: Vec<String> = sources()
        .iter()
        .map(|path| (path, checkout::read_path(path).lines().count()))
        .filter(|(_, lines)| *lines >= TOO_LONG)
        .map(|(path, lines)| format!("{}: {lines} lines", checkout::relative(path)))
        .collect();
    assert!(long.is_empty(), "split these:\n{}", long.join("\n"));
}

#[test]
fn modules_are_named_after_themselves() {
    let nameless: Vec<String> = sources()
        .iter()
        .filter(|path| path.ends_with("mod.rs"))
        .map(|path| checkout::relative(path))
        .collect();
    assert!(nameless.is_empty(), "`foo/mod.rs` is written `foo.rs`:\n{}", nameless.join("\n"));
}

#[test]
fn core_does_not_mention_std() {
    let mentions: Vec<String> = checkout::files("crates/core/src", "rs")
        .iter()
        .filter(|path| !is_test_module(path))
        .flat_map(|path| {
            let text = checkout::read_path(path);
            let name = checkout::relative(path);
            mentions_of_std(&text).into_iter().map(move |line| format!("{name}:{line}")).collect::<Vec<_>>()
        })
        .collect();
    assert!(
        mentions.is_empty(),
        "`core` is no_std: use `core::` or `alloc::`, and take time and chance as arguments\n{}",
        mentions.join("\n")
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents = checkout::files("docs", "md");
    documents.extend(
        checkout::entries(&checkout::root())
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    let mut broken = Vec::new();
    for document in &documents {
        let folder = document.parent().expect("a document lies in a folder");
        for target in links(&checkout::read_path(document)) {
            if !folder.join(&target).exists() {
                broken.push(format!("{} → {target}", checkout::relative(document)));
            }
        }
    }
    assert!(!documents.is_empty());
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn a_mention_of_std_is_found_in_code_and_nowhere_else() {
    let text = "\
//! Not `std::time`.
use core::fmt;
use std::fmt;
use nostd::x; // as std::fmt does
fn f(x: ::std::string::String) {}
#[cfg(test)]
mod tests { use std::time::Instant; }
";
    assert_eq!(mentions_of_std(text), [3, 5]);
}

#[test]
fn links_are_paths_without_their_anchor() {
    let text = "[a](docs/a.md) [b](b.md#part) [c](https://example.org/x) [d](#here) `[e](no)` x[1](y.md)";
    assert_eq!(links(text), ["docs/a.md", "b.md", "y.md"]);
}

fn sources() -> Vec<PathBuf> {
    checkout::folders("crates")
        .iter()
        .flat_map(|name| checkout::files(&format!("crates/{name}/src"), "rs"))
        .collect()
}

/// A file that is only compiled for tests: `foo/tests.rs`, or anything below a folder `tests`.
fn is_test_module(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

/// Numbers of the lines before the first `#[cfg(test)]` whose code, not whose comment, says `std::`.
///
/// Text, not syntax: a test module comes last in our files, and nothing finer is needed to keep a habit.
fn mentions_of_std(text: &str) -> Vec<usize> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| !line.contains("#[cfg(test)]"))
        .filter(|(_, line)| {
            let code = line.split("//").next().unwrap_or_default();
            code.match_indices("std::").any(|(at, _)| {
                !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
            })
        })
        .map(|(index, _)| index + 1)
        .collect()
}

/// The files that a Markdown text links to, as written and without an anchor.
fn links(text: &str) -> Vec<String> {
    // What stands between back-ticks is an example. Odd parts of the split are code; a fence is three of
    // them and comes out even.
    let prose: String = text.split('`').step_by(2).collect();
    prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:"))
        .map(str::to_owned)
        .collect()
}
