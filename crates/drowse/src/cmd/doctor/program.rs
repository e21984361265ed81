//! Programs and libraries, looked for where they usually are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Check, State};

pub(super) fn qemu() -> Check {
    let name = format!("qemu-system-{}", std::env::consts::ARCH);
    let check = |state, found: String| Check::new("qemu", "workers that are microVMs", state, found);
    match find(&name, &path_folders()).and_then(|path| version(&path)) {
        Some(version) => check(State::Ok, version),
        None => check(State::Missing, format!("{name} is not there"))
            .advise("install QEMU (Debian: apt install qemu-system)"),
    }
}

pub(super) fn postgresql() -> Check {
    let used_for = "several replicas that share a database; SQLite is built in";
    let check = |state, found: String| Check::new("postgresql", used_for, state, found);
    let mut folders = path_folders();
    // Debian keeps the server's programs of each version apart.
    folders.extend(below(Path::new("/usr/lib/postgresql")).map(|version| version.join("bin")));
    match find("postgres", &folders).and_then(|path| version(&path)) {
        Some(version) => check(State::Ok, version),
        None => check(State::Missing, "no PostgreSQL server is installed here".to_owned())
            .advise("install one (Debian: apt install postgresql), or give the address of another: drowse up --database postgres://…"),
    }
}

/// Where the system keeps its libraries.
pub(super) fn library_folders() -> Vec<PathBuf> {
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&own).collect();
    folders.extend(["/usr/lib64", "/usr/lib", "/lib64", "/lib", "/usr/lib/wsl/lib"].map(PathBuf::from));
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    folders.extend(["/usr/lib", "/lib"].map(|folder| Path::new(folder).join(&multiarch)));
    folders
}

fn path_folders() -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect()
}

/// The newest first, as far as names tell.
fn below(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let mut found: Vec<PathBuf> =
        folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found.into_iter().rev()
}

fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The first line that `--version` prints; none if it cannot be run.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.lines().next().unwrap_or_default().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_one_that_can_be_run() {
        let dir = tempfile::tempdir().unwrap();
        let folders = [dir.path().to_path_buf()];
        assert_eq!(find("postgres", &folders), None);
        std::fs::write(dir.path().join("postgres"), "not a program").unwrap();
        let path = find("postgres", &folders).unwrap();
        assert_eq!(version(&path), None);
        let shell = find("sh", &path_folders()).unwrap();
        assert!(version(&shell).is_none_or(|version| !version.is_empty()));
    }
}
