//! One `drowse up` with its workers, its database and its crash points, which lives several times.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use drowse_core::id::WorkerId;
use drowse_core::worker::Worker;
use drowse_store::{Epoch, EventFilter, Options, Store, StoreError, StoredEvent};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::cluster::{self, Cluster};
use super::truth;
use super::wait::until_or;
use crate::up::running::{Folder, Up};

/// On which engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

pub(crate) struct Stand {
    pub(crate) folder: Folder,
    /// Where Drowse sees the root of the file system, if it is not ours.
    pub(crate) root: Mutex<Option<PathBuf>>,
    host: Ipv4Addr,
    url: String,
    /// Of PostgreSQL: a server that goes on while Drowse is dead.
    kept: OnceLock<Store>,
    /// Kept while its database is in use.
    cluster: Option<Arc<Cluster>>,
}

/// Whoever waits this long waits in vain. More than any deadline of Drowse's own door.
const PATIENCE: Duration = Duration::from_mins(1);

/// Fixed, because each stand has an address of its own.
const DOORS: u16 = 8_000;
const TARGETS: u16 = 9_000;

impl Stand {
    /// Nothing runs yet, and there are no workers.
    pub(crate) fn new(engine: Engine) -> Self {
        let cluster = (engine == Engine::Postgres).then(cluster::running);
        let url = match &cluster {
            Some(cluster) => cluster.url(&cluster.database()),
            None => "sqlite://drowse.db".to_owned(),
        };
        let mut stand = Self::at(url);
        stand.cluster = cluster;
        stand
    }

    /// The same on a database that is somebody else's business.
    pub(crate) fn at(url: String) -> Self {
        let mut folder = Folder::new();
        let crash = folder.data().with_file_name("crash");
        fs::create_dir(&crash).unwrap();
        folder.args = vec!["--database".to_owned(), url.clone()];
        folder.variables = vec![("DROWSE_CRASH_DIR".to_owned(), crash.display().to_string())];
        Self { folder, root: Mutex::default(), host: own_host(), url, kept: OnceLock::new(), cluster: None }
    }

    /// Lists a worker, by its number, with these lines of policy.
    pub(crate) fn worker(&self, number: u16, policy: &str) {
        let (program, name) = (env!("CARGO_BIN_EXE_drowse"), name(number));
        let (door, target) = (self.door(number), self.target(number));
        self.folder.append(&format!(
            "[[worker]]\nid = \"{name}\"\ndriver = \"process\"\n\
             command = [\"{program}\", \"__demo-worker\", \"{name}\", \"{target}\"]\n\
             listen = \"{door}\"\ntarget = \"{target}\"\n{policy}\n"
        ));
    }

    pub(crate) fn door(&self, number: u16) -> SocketAddr {
        (self.host, DOORS + number).into()
    }

    pub(crate) fn target(&self, number: u16) -> SocketAddr {
        (self.host, TARGETS + number).into()
    }

    /// The data folder as it is seen from here.
    pub(crate) fn data(&self) -> PathBuf {
        let data = self.folder.data();
        match &*self.root.lock().unwrap() {
            Some(root) => root.join(data.strip_prefix("/").unwrap()),
            None => data,
        }
    }

    pub(crate) fn up(&self) -> Up {
        self.folder.up(&[])
    }

    /// Connects to a worker as anybody would, and reads its whole answer.
    pub(crate) fn ask(&self, number: u16) -> io::Result<String> {
        let answer = http(self.door(number), "GET / HTTP/1.1\r\nhost: web\r\nconnection: close\r\n\r\n")?;
        if answer.contains(&format!("hello from {}", name(number))) {
            return Ok(answer);
        }
        Err(io::Error::other(format!("no answer of the worker: {answer:?}")))
    }

    /// Where the API is, and what opens it.
    fn entrance(&self) -> io::Result<(SocketAddr, String)> {
        let read = |name: &str| fs::read_to_string(self.data().join(name));
        let (address, token) = (read("address")?, read("admin-token")?);
        let address = address.trim().strip_prefix("http://").and_then(|address| address.parse().ok());
        Ok((address.ok_or_else(|| io::Error::other("no address"))?, token.trim().to_owned()))
    }

    /// Asks the API; the status and the body.
    pub(crate) fn api(&self, method: &str, path: &str, body: &str) -> io::Result<(u16, Value)> {
        let (address, token) = self.entrance()?;
        let answer = http(
            address,
            &format!(
                "{method} {path} HTTP/1.1\r\nhost: drowse\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                token,
                body.len()
            ),
        )?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {answer:?}")))?;
        Ok((status, serde_json::from_str(body).unwrap_or_default()))
    }

    /// What `/readyz` says.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.api("GET", "/readyz", ""), Ok((200, _)))
    }

    /// A person's order, over whatever holds the worker.
    pub(crate) fn order(&self, number: u16, what: &str) -> io::Result<(u16, Value)> {
        self.api("POST", &format!("/api/v1/workers/{}/{what}", name(number)), r#"{"force":true}"#)
    }

    /// Takes a lease, as a program in the worker would.
    pub(crate) fn lease(&self, number: u16, ttl: &str) {
        let path = format!("/api/v1/workers/{}/leases/build", name(number));
        let taken = self.api("PUT", &path, &format!(r#"{{"ttl":"{ttl}","reason":"work"}}"#)).unwrap();
        assert_eq!(taken.0, 200, "{}", taken.1);
    }

    pub(crate) fn is_leased(&self, number: u16) -> bool {
        let (_, holds) = self.api("GET", &format!("/api/v1/workers/{}/holds", name(number)), "").unwrap();
        holds.to_string().contains("lease")
    }

    /// What Drowse says that a worker is doing.
    pub(crate) fn status(&self, number: u16) -> io::Result<String> {
        let (code, body) = self.api("GET", &format!("/api/v1/workers/{}", name(number)), "")?;
        match body["status"].as_str() {
            Some(status) if code == 200 => Ok(status.to_owned()),
            _ => Err(io::Error::other(format!("{code}: {body}"))),
        }
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, number: u16, wanted: &str) {
        let look = || match self.status(number) {
            Ok(status) if status == wanted => Ok(()),
            other => Err(format!("{other:?}")),
        };
        until_or(&format!("{} is {wanted}", name(number)), look, || self.story(number));
    }

    /// A worker and its journal, at one instant.
    pub(crate) fn books(&self, number: u16) -> Result<(Worker, Vec<StoredEvent>), StoreError> {
        let store = match self.kept.get() {
            Some(store) => store.clone(),
            None => self.open()?,
        };
        let id = WorkerId::new(&name(number)).unwrap();
        store.read(|view| {
            let record = view.worker(&id)?.ok_or_else(|| StoreError::NoWorker(id.clone()))?;
            let filter = EventFilter { worker: Some(&id), kind: None };
            Ok((record.without_terms().clone(), view.events_after(0, 100_000, &filter)?))
        })
    }

    /// A file is opened anew each time, and only while Drowse runs: whoever opens one that was left behind recovers
    /// it, and that is what Drowse shall do.
    fn open(&self) -> Result<Store, StoreError> {
        let options = Options { connections: 1, create: false, ..Options::new(Epoch(0)) };
        if self.root.lock().unwrap().is_some() {
            return Store::open("sqlite://copy.db", self.copy().unwrap().path(), &options);
        }
        let store = Store::open(&self.url, &self.data(), &options)?;
        if self.cluster.is_some() {
            let _ = self.kept.set(store.clone());
        }
        Ok(store)
    }

    /// A copy of the database, as Drowse gives it out: SQLite goes by names, and does not find what only Drowse sees.
    pub(crate) fn copy(&self) -> io::Result<TempDir> {
        let folder = tempfile::tempdir()?;
        let copy = folder.path().join("copy.db");
        let (address, token) = self.entrance()?;
        let output = Command::new(env!("CARGO_BIN_EXE_drowse"))
            .args(["backup", &copy.display().to_string()])
            .env("DROWSE_URL", format!("http://{address}"))
            .env("DROWSE_TOKEN", token)
            .output()?;
        if output.status.success() { Ok(folder) } else { Err(io::Error::other(format!("{output:?}"))) }
    }

    /// The journal of a worker, for messages.
    pub(crate) fn story(&self, number: u16) -> String {
        let books = self.books(number);
        let Ok((worker, journal)) = books else { return format!("{books:?}") };
        let line = |stored: &StoredEvent| {
            let event = &stored.event;
            format!("\n  {} {} {} {}", stored.seq, event.at, event.kind, event.doc)
        };
        format!("{:?}{}", worker.status, journal.iter().map(line).collect::<String>())
    }

    /// How often something of this type was journalled about a worker.
    pub(crate) fn count(&self, number: u16, kind: &str) -> usize {
        let (_, journal) = self.books(number).unwrap();
        journal.iter().filter(|stored| stored.event.kind == kind).count()
    }

    fn crash(&self, file: &str) -> PathBuf {
        self.folder.data().with_file_name("crash").join(file)
    }

    /// Lets it die the `nth` time that it passes a point from now on.
    pub(crate) fn arm(&self, point: &str, nth: usize) {
        self.write_die_at(&format!("{point} {nth}\n"));
    }

    /// Does something, lets it stand still at the next passing of a point, and waits until it does.
    pub(crate) fn stop_at(&self, up: &Up, point: &str, act: impl FnOnce()) {
        self.write_die_at(&format!("{point} 1 stop\n"));
        act();
        until_or(
            &format!("it stands still at {point}"),
            || if truth::is_stopped(up.pid()) { Ok(()) } else { Err(String::new()) },
            || self.story(0),
        );
        self.disarm();
    }

    fn write_die_at(&self, line: &str) {
        let new = self.crash("die-at.new");
        fs::write(&new, line).unwrap();
        fs::rename(new, self.crash("die-at")).unwrap();
    }

    pub(crate) fn disarm(&self) {
        let _ = fs::remove_file(self.crash("die-at"));
    }

    /// The crash points that were passed since the file had this length; all, from 0 on.
    pub(crate) fn passed(&self, since: usize) -> Vec<String> {
        let text = fs::read_to_string(self.crash("passed")).unwrap_or_default();
        text.get(since..).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) fn passed_length(&self) -> usize {
        fs::metadata(self.crash("passed")).map_or(0, |file| usize::try_from(file.len()).unwrap())
    }
}

impl Drop for Stand {
    /// Ends the workers, wherever their records are.
    fn drop(&mut self) {
        for pid in truth::workers_at(self.host) {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}

pub(crate) fn name(number: u16) -> String {
    format!("w{number}")
}

/// A loopback address that no other stand of any test has: ports need not be looked for, and none is taken by
/// somebody's outgoing connection while Drowse is away.
fn own_host() -> Ipv4Addr {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, NEXT.fetch_add(1, Ordering::Relaxed), high, low)
}

fn http(address: SocketAddr, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
