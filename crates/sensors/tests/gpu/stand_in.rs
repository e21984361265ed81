//! A stand-in for NVIDIA's library, built by the test that uses it. Used by the tests of other crates too.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What kind of library it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// As drivers have brought it for years.
    Usual,
    /// With the first version of the list of processes only.
    Old,
    /// Without utilisation.
    WithoutSamples,
}

/// A library of its own, and the script that it follows.
#[derive(Debug)]
pub(crate) struct StandIn {
    folder: TempDir,
}

impl StandIn {
    pub(crate) fn build(kind: Kind, script: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let stand_in = Self { folder };
        stand_in.follow(script);
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../sensors/tests/gpu/stand_in.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        compiler.arg(stand_in.library()).arg(source);
        compiler.arg(format!("-DSCRIPT=\"{}\"", stand_in.script().display()));
        match kind {
            Kind::Usual => compiler.arg("-DSAMPLES"),
            Kind::Old => compiler.args(["-DSAMPLES", "-DOLD"]),
            Kind::WithoutSamples => &mut compiler,
        };
        let built = compiler.output().expect("a C compiler, as for SQLite: apt-get install gcc");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        stand_in
    }

    pub(crate) fn library(&self) -> PathBuf {
        self.folder.path().join("libstand-in.so")
    }

    /// From now on. In one step, because the library may be reading.
    pub(crate) fn follow(&self, script: &str) {
        let new = self.folder.path().join("new");
        std::fs::write(&new, script).expect("room for a script");
        std::fs::rename(new, self.script()).expect("the same folder");
    }

    /// How often it was asked for samples.
    pub(crate) fn asked(&self) -> u64 {
        std::fs::metadata(self.folder().join("script.asked")).map_or(0, |found| found.len())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn script(&self) -> PathBuf {
        self.folder().join("script")
    }
}
