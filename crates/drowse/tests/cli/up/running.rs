//! A real `drowse up` in a folder of its own, and what it tells. Waits are for states, with what was told last in
//! the message when they do not come.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

/// So long that only what never comes takes it.
const PATIENCE: Duration = Duration::from_secs(90);

/// A folder with a configuration. Ends the workers that are left when it goes.
pub(crate) struct Folder {
    place: TempDir,
    /// What every start in it is given beside its own arguments.
    pub(crate) args: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
    /// A program and its first arguments that become Drowse, if there is one.
    pub(crate) through: Vec<String>,
}

/// A worker's two ports.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) door: u16,
    pub(crate) target: u16,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().expect("a folder for temporary files");
        let folder = Self { place, args: Vec::new(), variables: Vec::new(), through: Vec::new() };
        folder.rewrite(|_| String::new());
        folder
    }

    /// Lists a worker in the configuration.
    pub(crate) fn worker(&self, name: &str, idle_timeout: &str) -> Ports {
        let ports = Ports { door: free_port(), target: free_port() };
        let program = env!("CARGO_BIN_EXE_drowse");
        let Ports { door, target } = ports;
        self.append(&format!(
            "[[worker]]\nid = \"{name}\"\ndriver = \"process\"\n\
             command = [\"{program}\", \"__demo-worker\", \"{name}\", \"127.0.0.1:{target}\"]\n\
             listen = \"127.0.0.1:{door}\"\ntarget = \"127.0.0.1:{target}\"\n\
             policy.idle_timeout = \"{idle_timeout}\"\n"
        ));
        ports
    }

    pub(crate) fn append(&self, more: &str) {
        self.rewrite(|old| format!("{old}{more}"));
    }

    pub(crate) fn rewrite(&self, change: impl FnOnce(String) -> String) {
        let file = self.place.path().join("drowse.toml");
        let old = fs::read_to_string(&file).unwrap_or_default();
        fs::write(file, change(old)).expect("the folder is ours");
    }

    /// Where a file of ours lies.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().expect("the folder is there").join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.file("data")
    }

    fn command(&self, args: &[&str]) -> Command {
        let words = self.through.iter().map(String::as_str).chain([env!("CARGO_BIN_EXE_drowse")]);
        let words: Vec<&str> = words.collect();
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .arg("up")
            .args(args)
            .args(&self.args)
            .current_dir(self.place.path())
            .env_clear();
        command.env("DROWSE_DATA", self.data()).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts Drowse and waits until it is up.
    pub(crate) fn up(&self, args: &[&str]) -> Up {
        let mut up = self.start(&[&["--listen", "127.0.0.1:0"], args].concat());
        up.wait_for("drowse: up at http://127.0.0.1:");
        up
    }

    pub(crate) fn start(&self, args: &[&str]) -> Up {
        let mut child =
            self.command(args).stderr(Stdio::piped()).spawn().expect("cargo has built the binary");
        let stderr = child.stderr.take().expect("it is piped");
        let (tell, told) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Up { child, lines: told, told: String::new() }
    }

    /// The API of the Drowse that is up here, with its own token.
    pub(crate) fn api(&self, _: &Up) -> Api {
        let read = |name| fs::read_to_string(self.data().join(name)).expect("it is up");
        let port = read("address").trim().rsplit(':').next().and_then(|port| port.parse().ok());
        Api { port: port.expect("an address"), token: read("admin-token").trim().to_owned() }
    }

    /// Expects that it does not come up, and says nothing on stdout.
    pub(crate) fn fails(&self, args: &[&str]) -> Output {
        let output = self.command(args).output().expect("cargo has built the binary");
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.is_empty());
        output
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // They are those of our own records, and of nobody else.
        for worker in fs::read_dir(self.data().join("process")).into_iter().flatten().flatten() {
            let record = fs::read_to_string(worker.path().join("state.json")).unwrap_or_default();
            let record: serde_json::Value = serde_json::from_str(&record).unwrap_or_default();
            if let Some(pid) = record["identity"]["pid"].as_i64() {
                signal("-KILL", &pid.to_string());
            }
        }
    }
}

/// Where it answers.
pub(crate) struct Api {
    port: u16,
    token: String,
}

impl Api {
    #[track_caller]
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> String {
        let headers = format!(
            "authorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
            self.token,
            body.len()
        );
        talk(self.port, method, path, &headers, body)
    }

    #[track_caller]
    pub(crate) fn wait_until_gone(&self, worker: &str) {
        let path = format!("/api/v1/workers/{worker}");
        until("it is off the books", || self.send("GET", &path, "").starts_with("HTTP/1.1 404 "));
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let (_stop, turns) = channel::<()>();
    for _ in 0..PATIENCE.as_secs() * 10 {
        if is_so() {
            return;
        }
        let _ = turns.recv_timeout(Duration::from_millis(100));
    }
    panic!("never: {what}");
}

/// A Drowse that is under way. It is ended when it goes, and so is thawed what it froze.
pub(crate) struct Up {
    child: Child,
    lines: Receiver<String>,
    told: String,
}

impl Up {
    /// Waits for the next line with this in it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("it did not say {part:?}; it said:\n{}", self.told);
            };
            let _ = writeln!(self.told, "{line}");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Waits until it has said this, perhaps long ago.
    #[track_caller]
    pub(crate) fn wait_for_all(&mut self, part: &str) {
        if !self.told.contains(part) {
            self.wait_for(part);
        }
    }

    pub(crate) fn told(&self) -> &str {
        &self.told
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// What it ended with, if it has and of itself.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.child.try_wait().expect("it is our child")?.code()
    }

    pub(crate) fn hang_up(&self) {
        self.signal("-HUP");
    }

    pub(crate) fn signal(&self, which: &str) {
        signal(which, &self.pid().to_string());
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is our child");
        self.child.wait().expect("it is our child");
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(&mut self) -> Option<i32> {
        signal("-TERM", &self.pid().to_string());
        let code = self.child.wait().expect("it is our child").code();
        for line in &self.lines {
            let _ = writeln!(self.told, "{line}");
        }
        code
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}

pub(crate) fn signal(which: &str, pid: &str) {
    // The shell's own: there is no other program that must be installed.
    let _ = Command::new("/bin/sh").args(["-c", "kill \"$0\" \"$1\" 2>/dev/null", which, pid]).status();
}

pub(crate) fn free_port() -> u16 {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.expect("a free port").port()
}

/// Asks a worker and reads its whole answer.
#[track_caller]
pub(crate) fn get(port: u16, path: &str) -> String {
    ask(port, path, "")
}

/// The same with headers, each with its end of line.
#[track_caller]
pub(crate) fn ask(port: u16, path: &str, headers: &str) -> String {
    talk(port, "GET", path, headers, "")
}

#[track_caller]
fn talk(port: u16, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the door is open");
    stream.set_read_timeout(Some(PATIENCE)).expect("patience is not zero");
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n{body}")
        .expect("the other side listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(!answer.is_empty(), "closed without an answer");
    answer
}

/// The process that answered.
#[track_caller]
pub(crate) fn pid_in(answer: &str) -> u32 {
    let rest = answer.split("pid ").nth(1).unwrap_or_else(|| panic!("no pid in {answer:?}"));
    let number = rest.split(',').next().and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no pid in {answer:?}"))
}
