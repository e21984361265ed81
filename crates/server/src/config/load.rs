//! Reads the files. Everything else about the configuration is decided from their text.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use drowse_core::policy::Level;

use super::group::{Groups, MembersFile, parse_members};
use super::problem::Problem;
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
    load_with(file, variables, None)
}

/// The same, with the members files that [`remember`] has kept: one that is missing now takes nobody out of its group.
pub fn load_with(
    file: &Path,
    variables: &[(String, String)],
    kept: Option<&Path>,
) -> Result<Parsed, LoadError> {
    let text = read(file)?;
    let folder = file.parent().unwrap_or(Path::new("")).join("groups");
    let mut members = members(&folder)?;
    let shown = file.display().to_string();
    let parsed = parse(&Input { file: &shown, text: &text, members: &members, variables });
    let missing = match kept {
        Some(kept) => missing(&parsed, &members, kept)?,
        None => Vec::new(),
    };
    if missing.is_empty() {
        return Ok(parsed);
    }
    let problems = missing.iter().map(|file| Problem::missing_members(&folder, &file.group));
    let problems: Vec<Problem> = problems.collect();
    members.extend(missing);
    let mut parsed = parse(&Input { file: &shown, text: &text, members: &members, variables });
    parsed.problems.extend(problems);
    Ok(parsed)
}

/// The files of groups that have settings and had members, and whose file is not there now. An empty one says that there
/// are no members; none says nothing.
fn missing(parsed: &Parsed, members: &[MembersFile], kept: &Path) -> Result<Vec<MembersFile>, LoadError> {
    let is_there = |group: &str| members.iter().any(|file| file.group == group);
    // Who is named elsewhere by now has moved.
    let is_named = |name: &str| parsed.config.groups.of(name).is_some();
    let layers = parsed.config.policy.layers().iter().filter(|layer| layer.level == Level::Group);
    let mut missing = Vec::new();
    let is_plain = |group: &str| !group.contains('/');
    let groups = layers.filter_map(|layer| layer.name.as_deref());
    for group in groups.filter(|group| is_plain(group) && !is_there(group)) {
        let file = kept.join(format!("{group}.members"));
        let text = match read(&file) {
            Ok(text) => text,
            Err(LoadError::Missing { .. }) => continue,
            Err(other) => return Err(other),
        };
        let names: Vec<&str> =
            parse_members(&text).map(|(name, _)| name).filter(|name| !is_named(name)).collect();
        if !names.is_empty() && !missing.iter().any(|known: &MembersFile| known.group == group) {
            let text = names.join("\n");
            missing.push(MembersFile { group: group.to_owned(), file: file.display().to_string(), text });
        }
    }
    Ok(missing)
}

/// Keeps what the members files say, for when one of them is missing.
pub fn remember(groups: &Groups, kept: &Path) -> io::Result<()> {
    for (group, text) in groups.files() {
        let file = kept.join(format!("{group}.members"));
        if std::fs::read_to_string(&file).is_ok_and(|known| known == *text) {
            continue;
        }
        std::fs::create_dir_all(kept)?;
        // In one step: half a file is another group.
        let new = kept.join(format!(".{group}.new"));
        std::fs::write(&new, text)?;
        std::fs::rename(new, file)?;
    }
    Ok(())
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
    fn a_members_file_that_is_missing_takes_nobody_out_of_the_group() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (file, kept) = (at("drowse.toml"), at("kept"));
        let text = "[policy.group.student]\n[policy.group.faculty]\n[[worker]]\nid = \"a\"\ndriver = \"sim\"\nowner = \"alice\"\n";
        fs::write(&file, text).unwrap();
        fs::create_dir(at("groups")).unwrap();
        fs::write(at("groups/student.members"), "alice\nbob # here\n").unwrap();
        let read = || load_with(&file, &[], Some(&kept)).unwrap().lenient().unwrap();
        let (config, problems) = read();
        assert_eq!(problems, []);
        remember(&config.groups, &kept).unwrap();
        // Gone: everybody stays, also those who have no worker yet, and that is told.
        fs::remove_file(at("groups/student.members")).unwrap();
        let (config, problems) = read();
        assert_eq!(config.workers[0].selectors.group.as_deref(), Some("student"));
        assert_eq!(config.groups.of("bob"), Some("student"));
        let told = problems[0].to_string();
        assert!(told.contains("groups/student.members is missing"), "{told}");
        // Who is named by another file has moved; an empty file says that nobody is left; so does no such group.
        fs::write(at("groups/faculty.members"), "bob").unwrap();
        assert_eq!(read().0.groups.of("bob"), Some("faculty"));
        fs::write(at("groups/student.members"), "").unwrap();
        let (config, problems) = read();
        assert_eq!((config.groups.of("alice"), problems.len()), (None, 0));
        fs::remove_file(at("groups/student.members")).unwrap();
        fs::write(&file, "[policy.group.faculty]\n").unwrap();
        assert_eq!(read().0.groups.of("alice"), None);
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
