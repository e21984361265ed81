//! Does a Docker engine answer?

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Check, State};

const SOCKET: &str = "/var/run/docker.sock";

/// An engine on this machine answers a ping at once.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// `configured`: where the configuration says that it answers, which counts first.
pub(super) fn check(configured: Option<&Path>) -> Check {
    if let Some(socket) = configured {
        return at(socket);
    }
    match std::env::var("DOCKER_HOST").ok().filter(|host| !host.is_empty()) {
        Some(host) => match host.strip_prefix("unix://") {
            Some(path) => at(&PathBuf::from(path)),
            None => Check::new(
                "docker",
                USED_FOR,
                State::Limited,
                format!("DOCKER_HOST is {host}, which is not asked here"),
            )
            .advise("docker version asks it"),
        },
        None => at(Path::new(SOCKET)),
    }
}

const REQUEST: &[u8] = b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n";

const USED_FOR: &str = "workers that are containers";

fn at(socket: &Path) -> Check {
    let check = |state, found: String| Check::new("docker", USED_FOR, state, found);
    match ping(socket) {
        Ok(version) => {
            check(State::Ok, format!("the engine answers at {} (API {version})", socket.display()))
        }
        Err(error) => {
            let advice = if error.kind() == io::ErrorKind::NotFound && !is_installed() {
                "install Docker (Debian: apt install docker.io), or set DOCKER_HOST"
            } else if error.kind() == io::ErrorKind::NotFound {
                "start the engine: systemctl start docker; or say where it answers: socket of [driver.docker], or \
                 DOCKER_HOST"
            } else if error.kind() == io::ErrorKind::PermissionDenied {
                "add the user to the group docker: usermod -aG docker USER, then log in again"
            } else {
                "start the engine: systemctl start docker"
            };
            check(State::Missing, format!("no engine answers at {}: {error}", socket.display()))
                .advise(advice)
        }
    }
}

/// An engine that is merely down leaves no socket behind, but its programs.
fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/bin", "/usr/sbin", "/usr/local/bin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(usual).any(|folder| folder.join("dockerd").exists())
}

/// Asks for a ping; the API version of the answer.
fn ping(socket: &Path) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(REQUEST)?;
    let mut answer = Vec::new();
    stream.take(64 << 10).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    if !answer.lines().next().is_some_and(|line| line.contains(" 200")) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "something else answers there"));
    }
    let version = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("api-version").then(|| value.trim().to_owned())
    });
    Ok(version.unwrap_or_else(|| "unknown".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn answered(answer: &'static [u8]) -> Check {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // All of it: what is left unread when a socket is closed resets the connection.
            let mut asked = [0; REQUEST.len()];
            stream.read_exact(&mut asked).unwrap();
            stream.write_all(answer).unwrap();
        });
        let check = at(&socket);
        server.join().unwrap();
        check
    }

    #[test]
    fn an_engine_is_one_that_answers_a_ping() {
        let engine = answered(b"HTTP/1.0 200 OK\r\nApi-Version: 1.51\r\n\r\nOK");
        assert_eq!(engine.state, State::Ok);
        assert!(engine.found.ends_with("(API 1.51)"), "{}", engine.found);
        assert_eq!(answered(b"220 smtp ready\r\n").state, State::Missing);
    }

    #[test]
    fn no_socket_is_no_engine() {
        let dir = tempfile::tempdir().unwrap();
        let check = at(&dir.path().join("docker.sock"));
        assert_eq!(check.state, State::Missing);
        let expected = if is_installed() { "start the engine" } else { "install Docker" };
        assert!(check.advice.unwrap().starts_with(expected));
    }
}
