//! Reads the files. Everything else about the configuration is decided from their text.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::group::MembersFile;
use super::{Input, Parsed, parse};

/// A configuration of ten thousand workers is this large; a disk image given by mistake is larger.
const LARGEST: u64 = 1 << 20;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is none.
    #[error("{}: no such file", file.display())]
    Missing { file: PathBuf },
    /// It is a folder.
    #[error("{}: expected a file, found a folder", file.display())]
    Folder { file: PathBuf },
    /// It is no configuration.
    #[error("{}: larger than 1 MiB, which no configuration is", file.display())]
    TooLarge { file: PathBuf },
    /// It is no text.
    #[error("{}:{line}: not UTF-8", file.display())]
    NotUtf8 { file: PathBuf, line: usize },
    /// Anything else.
    #[error("{}: cannot be read", file.display())]
    Unreadable {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Reads and parses a configuration file, the members of its groups beside it, and the environment.
pub fn load(file: &Path, variables: &[(String, String)]) -> Result<Parsed, LoadError> {
    let text = read(file)?;
    let members = members(&file.parent().unwrap_or(Path::new("")).join("groups"))?;
    let shown = file.display().to_string();
    Ok(parse(&Input { file: &shown, text: &text, members: &members, variables }))
}

fn read(file: &Path) -> Result<String, LoadError> {
    let named = || file.to_owned();
    let fail = |source: io::Error| {
        if source.kind() == io::ErrorKind::NotFound {
            LoadError::Missing { file: named() }
        } else if source.kind() == io::ErrorKind::IsADirectory {
            LoadError::Folder { file: named() }
        } else {
            LoadError::Unreadable { file: named(), source }
        }
    };
    let mut bytes = Vec::new();
    // One byte more than allowed tells whether there was more, even of a file without end.
    File::open(file).map_err(fail)?.take(LARGEST + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > LARGEST {
        return Err(LoadError::TooLarge { file: named() });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.split(|byte| *byte == b'\n').count();
        LoadError::NotUtf8 { file: named(), line }
    })
}

/// The members files of a folder, by name. No folder, no members.
fn members(folder: &Path) -> Result<Vec<MembersFile>, LoadError> {
    let fail = |source| LoadError::Unreadable { file: folder.to_owned(), source };
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fail(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(fail)?.path();
        let group = path.file_stem().and_then(|stem| stem.to_str());
        if let (Some(group), Some("members")) = (group, path.extension().and_then(|it| it.to_str())) {
            let text = read(&path)?;
            files.push(MembersFile { group: group.to_owned(), file: path.display().to_string(), text });
        }
    }
    files.sort_by(|a, b| a.group.cmp(&b.group));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn members_are_found_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("drowse.toml");
        fs::write(&file, "").unwrap();
        assert!(load(&file, &[]).unwrap().config.groups.sizes().is_empty());

        fs::create_dir(folder.path().join("groups")).unwrap();
        fs::write(folder.path().join("groups/student.members"), "alice\nbob\n").unwrap();
        fs::write(folder.path().join("groups/README"), "alice in wonderland").unwrap();
        let config = load(&file, &[]).unwrap().strict().unwrap();
        assert_eq!(config.groups.of("bob"), Some("student"));
        assert_eq!(config.groups.sizes().into_iter().collect::<Vec<_>>(), [("student", 2)]);
    }

    #[test]
    fn what_cannot_be_read_is_said_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("bytes"), b"a = 1\n\xff\n").unwrap();
        fs::write(at("large"), vec![b'#'; (1 << 20) + 1]).unwrap();
        fs::write(at("largest"), vec![b'#'; 1 << 20]).unwrap();
        for (name, error) in [
            ("gone", ": no such file"),
            ("", ": expected a file, found a folder"),
            ("bytes", ":2: not UTF-8"),
            ("large", ": larger than 1 MiB, which no configuration is"),
        ] {
            let file = at(name);
            let found = load(&file, &[]).unwrap_err().to_string();
            assert_eq!(found, format!("{}{error}", file.display()));
        }
        assert!(load(&at("largest"), &[]).is_ok());
    }

    #[test]
    fn a_members_file_that_cannot_be_read_is_no_empty_group() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("drowse.toml"), "").unwrap();
        fs::create_dir_all(folder.path().join("groups/student.members")).unwrap();
        let error = load(&folder.path().join("drowse.toml"), &[]).unwrap_err();
        assert!(matches!(error, LoadError::Folder { .. }), "{error}");
    }
}
