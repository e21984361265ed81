//! The files of the checkout that is being tested.

use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in a folder of the workspace")
        .to_owned()
}

/// The text of a file, named from the root.
pub(crate) fn read(relative: &str) -> String {
    read_path(&root().join(relative))
}

pub(crate) fn read_path(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", relative(path)))
}

/// The path as it is written in the repository, for messages.
pub(crate) fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// What lies in a folder, sorted; nothing if there is no such folder.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("a folder that opens can be read").path()).collect();
    paths.sort();
    paths
}

/// The names of the folders in a folder that is named from the root.
pub(crate) fn folders(relative: &str) -> Vec<String> {
    entries(&root().join(relative))
        .iter()
        .filter(|path| path.is_dir())
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// All files below a folder that is named from the root, by their extension.
pub(crate) fn files(relative: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(relative)];
    while let Some(folder) = open.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
