//! `[server]`: where Drowse answers and where it remembers.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use toml::de::DeValue;

use super::problem::{Fault, Report};
use super::read;
use super::section::{Field, Node, Preset, Section, describe};

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where the API and the pages answer.
    pub listen: SocketAddr,
    /// Where everything is kept.
    pub database: Database,
}

/// Where everything is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A file, relative to the data folder.
    Sqlite {
        /// Its path.
        file: PathBuf,
    },
    /// A `PostgreSQL` server.
    Postgres {
        /// Its address, without a password.
        url: String,
        /// A file that holds the password.
        password_file: Option<PathBuf>,
    },
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 7070).into(),
            database: Database::Sqlite { file: "drowse.db".into() },
        }
    }
}

pub(super) const FIELDS: &[Field] = &[
    Field {
        name: "listen",
        expected: "an address and a port such as \"127.0.0.1:7070\"",
        preset: Preset::Is("\"127.0.0.1:7070\""),
        sample: "\"127.0.0.1:7070\"",
        describe: "Where the API and the pages answer.",
    },
    Field {
        name: "database",
        expected: "\"sqlite://FILE\" or \"postgres://USER@HOST/NAME\"",
        preset: Preset::Is("\"sqlite://drowse.db\""),
        sample: "\"postgres://drowse@db.example/drowse\"",
        describe: "Where everything is kept: a file relative to the data folder, or a PostgreSQL server.",
    },
    Field {
        name: "password_file",
        expected: "the path of a file",
        preset: Preset::Absent("no password"),
        sample: "\"database.pw\"",
        describe: "A file that holds the password of the PostgreSQL user. A password in the URL is refused.",
    },
];

pub(super) fn read(report: &mut Report<'_>, node: &Node<'_>) -> Server {
    let mut server = Server::default();
    let Some(section) = Section::of(report, node, "[server]", &[FIELDS]) else { return server };
    if let Some(listen) = section.read(report, "listen", read::address) {
        server.listen = listen;
    }
    if let Some(found) = section.read(report, "database", database) {
        server.database = found;
    }
    if let Some(file) = section.read(report, "password_file", read::path) {
        match &mut server.database {
            Database::Postgres { password_file, .. } => *password_file = Some(file),
            Database::Sqlite { .. } => report.add(
                &section.span_of("password_file"),
                "password_file",
                Fault::rule("only a postgres:// database has a password"),
            ),
        }
    }
    section.finish(report);
    server
}

fn database(value: &DeValue<'_>) -> Result<Database, Fault> {
    let expected = || Fault::expected("\"sqlite://FILE\" or \"postgres://USER@HOST/NAME\"", describe(value));
    let text = value.as_str().ok_or_else(expected)?;
    if let Some(file) = text.strip_prefix("sqlite://") {
        return if file.is_empty() { Err(expected()) } else { Ok(Database::Sqlite { file: file.into() }) };
    }
    let rest = text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"));
    let rest = rest.filter(|rest| !rest.is_empty()).ok_or_else(expected)?;
    let user = rest.split('/').next().and_then(|host| host.rsplit_once('@')).map(|(user, _)| user);
    let has_password = user.is_some_and(|user| user.contains(':')) || rest.contains("password=");
    if has_password {
        return Err(Fault::Secret { instead: "password_file = \"…\"" });
    }
    Ok(Database::Postgres { url: text.to_owned(), password_file: None })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, parse};
    use super::*;

    #[test]
    fn a_server_is_read() {
        let sqlite = |file: &str| Database::Sqlite { file: file.into() };
        let postgres = |url: &str, password: Option<&str>| Database::Postgres {
            url: url.to_owned(),
            password_file: password.map(Into::into),
        };
        let table = [
            ("", "127.0.0.1:7070", sqlite("drowse.db")),
            ("[server]", "127.0.0.1:7070", sqlite("drowse.db")),
            ("[server]\nlisten = \"[::]:0\"", "[::]:0", sqlite("drowse.db")),
            ("server.database = \"sqlite:///var/x.db\"", "127.0.0.1:7070", sqlite("/var/x.db")),
            ("server.database = \"postgres://a@h/d\"", "127.0.0.1:7070", postgres("postgres://a@h/d", None)),
            (
                "[server]\ndatabase = \"postgresql://h\"\npassword_file = \"pw\"",
                "127.0.0.1:7070",
                postgres("postgresql://h", Some("pw")),
            ),
        ];
        for (text, listen, database) in table {
            assert_eq!(parse(text).server, Server { listen: listen.parse().unwrap(), database }, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let secret = "secrets do not stand in this file: put it into a file of its own that only Drowse can read, and write password_file = \"…\"";
        let table = [
            ("server = 3".to_owned(), "f:1:10: expected a table [server], found the number 3".to_owned()),
            (
                "server.listen = 7070".to_owned(),
                "f:1:17: listen: expected an address and a port such as \"127.0.0.1:8001\", found the number 7070".to_owned(),
            ),
            (
                "server.lisen = \"127.0.0.1:1\"".to_owned(),
                "f:1:8: lisen: unknown key; did you mean \"listen\"?".to_owned(),
            ),
            (
                "server.database = \"mysql://x\"".to_owned(),
                "f:1:19: database: expected \"sqlite://FILE\" or \"postgres://USER@HOST/NAME\", found \"mysql://x\"".to_owned(),
            ),
            ("server.database = \"postgres://a:b@h/d\"".to_owned(), format!("f:1:19: database: {secret}")),
            ("server.database = \"postgres://h/d?password=b\"".to_owned(), format!("f:1:19: database: {secret}")),
            ("server.password = \"b\"".to_owned(), format!("f:1:8: password: {secret}")),
            (
                "server.password_file = \"x\"".to_owned(),
                "f:1:24: password_file: only a postgres:// database has a password".to_owned(),
            ),
        ];
        for (text, error) in table {
            assert_eq!(errors(&text), [error], "{text}");
        }
    }
}
