//! Where the repository is and how its commands are started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The checkout that `cargo xtask` was called in.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    /// The cargo that started us, so that every step uses the same toolchain.
    cargo: OsString,
}

impl Workspace {
    /// Asks cargo's environment instead of a path compiled in: a target folder may be shared by several
    /// checkouts, and then the compiled-in path is whichever was built last.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").context("start it as `cargo xtask …`")?;
        let root = Path::new(&manifest).parent().context("xtask lies in a folder of the workspace")?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Ok(Self { root: root.to_owned(), cargo })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A cargo command at the root of the workspace; nothing that we start may wait for a keyboard.
    pub(crate) fn cargo<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(&self.cargo);
        command.args(args).current_dir(&self.root).stdin(Stdio::null());
        command
    }

    /// The target folder, which the environment or a config file may have moved.
    pub(crate) fn target_dir(&self) -> anyhow::Result<PathBuf> {
        let text = stdout(&mut self.cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
        let metadata: serde_json::Value = serde_json::from_str(&text).context("cargo metadata")?;
        let dir = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
        Ok(PathBuf::from(dir))
    }
}

/// Announces a command, runs it with its output passed through, and fails when it does.
pub(crate) fn must(command: &mut Command) -> anyhow::Result<()> {
    println!("$ {}", line(command));
    let status = command.status().with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// What a command prints on stdout; its stderr is passed through.
pub(crate) fn stdout(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})", line(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no UTF-8", line(command)))
}

/// The command as a person would type it: without the folder of the program.
pub(crate) fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
