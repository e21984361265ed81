//! `drowse up`, the program itself, with a configuration, until it is ready; and its API.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use drowse_server::Clock;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const WITHIN: Duration = Duration::from_mins(1);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A Drowse that looks after the workers of a configuration.
pub(crate) struct Up {
    child: Child,
    api: SocketAddr,
    token: String,
    folder: TempDir,
    workers: usize,
}

impl Up {
    /// Starts it: `through` are a program and arguments that become Drowse, `config` is its file.
    pub(crate) fn start(through: &[&str], config: &str, database: Option<&str>) -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        fs::write(folder.path().join("drowse.toml"), config).expect("the folder is ours");
        let api = free_address();
        let words = [through, &[env!("CARGO_BIN_EXE_drowse"), "up", "--quiet"]].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args(["--listen", &api.to_string(), "--data"]).arg(folder.path());
        if let Some(database) = database {
            command.args(["--database", database]);
        }
        let log = fs::File::create(folder.path().join("log")).expect("the folder is ours");
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().expect("it starts");
        let workers = config.matches("[[worker]]").count();
        let mut up = Self { child, api, token: String::new(), folder, workers };
        up.until("it is ready", |up| matches!(up.ask("GET", "/readyz", ""), Ok((200, _))));
        let token = fs::read_to_string(up.folder.path().join("admin-token")).expect("it is up");
        token.trim().clone_into(&mut up.token);
        up.wait_for_all("running");
        up
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks the API; the status and the body.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> std::io::Result<(u16, Value)> {
        let (status, body) = self.text(method, path, body)?;
        Ok((status, serde_json::from_str(&body).unwrap_or_default()))
    }

    /// The same, as it was said.
    pub(crate) fn text(&self, method: &str, path: &str, body: &str) -> std::io::Result<(u16, String)> {
        let mut stream = TcpStream::connect(self.api)?;
        stream.set_read_timeout(Some(WITHIN))?;
        let (token, length) = (&self.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: drowse\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Ok((status, body.to_owned()))
    }

    /// Waits until all workers are of this status.
    pub(crate) fn wait_for_all(&mut self, status: &str) {
        let wanted = self.workers;
        self.until(&format!("all are {status}"), |up| {
            let Ok((200, page)) = up.ask("GET", &format!("/api/v1/workers?status={status}"), "") else {
                return false;
            };
            page["workers"].as_array().is_some_and(|workers| workers.len() == wanted)
        });
    }

    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let clock = Clock::system();
        let began_at = clock.now();
        while !is_so(self) {
            let is_over = clock.now() > began_at + WITHIN || self.child.try_wait().expect("ours").is_some();
            let workers = || self.ask("GET", "/api/v1/workers", "");
            assert!(!is_over, "never: {what}: {:?}; it said:\n{}", workers(), self.log());
            pause(LOOK_EVERY);
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Up {
    /// Ends it, and then its workers.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
        for pid in workers(self.folder.path()) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Those of our own records, and nobody else.
fn workers(data: &Path) -> Vec<Pid> {
    let folders = fs::read_dir(data.join("process")).into_iter().flatten().flatten();
    let records = folders.filter_map(|folder| fs::read_to_string(folder.path().join("state.json")).ok());
    records
        .filter_map(|record| serde_json::from_str::<Value>(&record).ok())
        .filter_map(|record| i32::try_from(record["identity"]["pid"].as_i64()?).ok())
        .filter_map(Pid::from_raw)
        .collect()
}

/// An address that nobody listens on just now.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

#[expect(clippy::disallowed_methods, reason = "asking all the time would be part of what is measured")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
