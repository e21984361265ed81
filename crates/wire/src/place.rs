//! Where Drowse answers, and with which token to ask.
//!
//! On the machine where it runs nobody has to say either: `drowse up` leaves both in its data folder. A token from
//! there is only ever sent to the address from there.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The data folder unless `--data` or `DROWSE_DATA` says otherwise.
pub const DATA_FOLDER: &str = "drowse-data";
/// The folder in it where a demo keeps everything.
pub const DEMO_FOLDER: &str = "demo";
/// The file in it that holds the address of the API, such as `127.0.0.1:7070`.
pub const ADDRESS_FILE: &str = "address";
/// The file in it that holds a token with the role admin; mode 0600.
pub const TOKEN_FILE: &str = "admin-token";
/// Where `drowse up` listens unless it is told otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7070";

/// What a person gave on the command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// The address of the API.
    pub url: Option<&'a str>,
    /// The data folder.
    pub data: Option<&'a Path>,
}

/// Where to ask, and as whom.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    /// The address without a slash at its end.
    pub url: String,
    /// The token, if there is one.
    pub token: Option<String>,
}

/// A token is a secret and does not belong into a log.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Why it is not clear where to ask.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Something that is no address.
    #[error("{from}: expected an address such as {DEFAULT_URL}, found {found:?}")]
    NotAnAddress {
        /// Where it was given.
        from: String,
        /// What it was.
        found: String,
    },
    /// TLS, which this build does not speak.
    #[error("{from}: https is not supported yet; use http on the same machine, or a tunnel such as ssh -L")]
    NoTls {
        /// Where it was given.
        from: String,
    },
    /// A folder that was named and is not there.
    #[error("--data {}: there is no such folder", folder.display())]
    NobodyThere {
        /// Which.
        folder: PathBuf,
    },
    /// A file of the data folder that is there and cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Place {
    /// The flag, then `DROWSE_URL` with `DROWSE_TOKEN`, then the data folder, then the default address.
    pub fn find(given: Given<'_>, variable: impl Fn(&str) -> Option<String>) -> Result<Self, PlaceError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let token = variable("DROWSE_TOKEN");
        if let Some(url) = given.url {
            return Ok(Self { url: address(url, "--url")?, token });
        }
        // A folder that somebody names is meant, whatever else is set.
        if given.data.is_none()
            && let Some(url) = variable("DROWSE_URL")
        {
            return Ok(Self { url: address(&url, "DROWSE_URL")?, token });
        }
        let folder = given
            .data
            .map(Path::to_path_buf)
            .or_else(|| variable("DROWSE_DATA").map(PathBuf::from))
            .unwrap_or_else(|| PathBuf::from(DATA_FOLDER));
        // Who runs only a demo means the demo.
        let demo = folder.join(DEMO_FOLDER);
        let is_demo = !folder.join(ADDRESS_FILE).exists() && demo.join(ADDRESS_FILE).exists();
        let folder = if is_demo { demo } else { folder };
        let file = folder.join(ADDRESS_FILE);
        let Some(found) = read(&file)? else {
            // Somebody who names a folder does not mean whoever answers at the usual address.
            return match given.data {
                Some(_) if !folder.exists() => Err(PlaceError::NobodyThere { folder }),
                Some(_) | None => Ok(Self { url: DEFAULT_URL.to_owned(), token }),
            };
        };
        let url = address(&found, &file.display().to_string())?;
        let token = match token {
            Some(token) => Some(token),
            None => read(&folder.join(TOKEN_FILE))?,
        };
        Ok(Self { url, token })
    }
}

/// The first line of a file without spaces around it; none if there is no such file.
fn read(path: &Path) -> Result<Option<String>, PlaceError> {
    match std::fs::read_to_string(path) {
        Ok(text) => {
            Ok(text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PlaceError::Unreadable { path: path.to_path_buf(), source }),
    }
}

/// An address with its scheme and without a slash at its end.
fn address(text: &str, from: &str) -> Result<String, PlaceError> {
    let text = text.trim();
    let lower = text.to_ascii_lowercase();
    if lower.starts_with("https://") {
        return Err(PlaceError::NoTls { from: from.to_owned() });
    }
    let rest = if lower.starts_with("http://") { &text["http://".len()..] } else { text };
    let rest = rest.trim_end_matches('/');
    let is_one = !rest.is_empty() && !rest.contains("://") && !rest.contains(['@', '?', '#', ' ']);
    if is_one {
        Ok(format!("http://{rest}"))
    } else {
        // What stands before an @ may be a secret.
        let found =
            if text.contains('@') { "an address with a user name".to_owned() } else { text.to_owned() };
        Err(PlaceError::NotAnAddress { from: from.to_owned(), found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(given: Given<'_>, variables: &[(&str, &str)]) -> Result<Place, PlaceError> {
        Place::find(given, |name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(ADDRESS_FILE), "127.0.0.1:7171\n").unwrap();
        std::fs::write(dir.path().join(TOKEN_FILE), "local\n").unwrap();
        dir
    }

    #[test]
    fn the_data_folder_is_enough_on_the_same_machine() {
        let dir = folder();
        let place = find(Given { data: Some(dir.path()), url: None }, &[]).unwrap();
        assert_eq!((place.url.as_str(), place.token.as_deref()), ("http://127.0.0.1:7171", Some("local")));
        let variables = [("DROWSE_DATA", dir.path().to_str().unwrap())];
        assert_eq!(find(Given::default(), &variables).unwrap(), place);
    }

    #[test]
    fn a_demo_is_found_where_there_is_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let demo = dir.path().join(DEMO_FOLDER);
        std::fs::create_dir(&demo).unwrap();
        std::fs::write(demo.join(ADDRESS_FILE), "127.0.0.1:7272\n").unwrap();
        let given = Given { data: Some(dir.path()), url: None };
        assert_eq!(find(given, &[]).unwrap().url, "http://127.0.0.1:7272");
        std::fs::write(dir.path().join(ADDRESS_FILE), "127.0.0.1:7171\n").unwrap();
        assert_eq!(find(given, &[]).unwrap().url, "http://127.0.0.1:7171");
    }

    #[test]
    fn the_token_of_the_data_folder_is_not_sent_elsewhere() {
        let dir = folder();
        let data = dir.path().to_str().unwrap();
        let variables = [("DROWSE_DATA", data), ("DROWSE_URL", "http://elsewhere:1/")];
        let place = find(Given::default(), &variables).unwrap();
        assert_eq!((place.url.as_str(), place.token), ("http://elsewhere:1", None));
        let given = Given { url: Some("elsewhere:2"), data: Some(dir.path()) };
        assert_eq!(find(given, &[]).unwrap().token, None);
    }

    #[test]
    fn without_anything_the_default_address_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let given = Given { data: Some(dir.path()), url: None };
        let place = find(given, &[("DROWSE_TOKEN", "t")]).unwrap();
        assert_eq!((place.url.as_str(), place.token.as_deref()), (DEFAULT_URL, Some("t")));
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("nowhere");
        let error = find(Given { data: Some(&missing), url: None }, &[]).unwrap_err().to_string();
        assert_eq!(error, format!("--data {}: there is no such folder", missing.display()));
    }

    #[test]
    fn what_is_no_address_is_said_so_without_its_secrets() {
        for bad in ["", "ftp://x", "http://", "a b", "http://user:secret@host"] {
            let error = find(Given { url: Some(bad), data: None }, &[]).unwrap_err().to_string();
            assert!(error.starts_with("--url: expected an address"), "{bad:?}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let error = find(Given { url: Some("https://x"), data: None }, &[]).unwrap_err().to_string();
        assert!(error.contains("https is not supported yet"), "{error}");
    }
}
