//! A PostgreSQL server of our own, for as long as a test process needs it.
//!
//! `initdb` runs once; every cluster is a copy of its outcome, in a temporary folder and on a unix socket in
//! there. The server runs below a small shell that waits for the end of its standard input: when the test
//! process ends, however it ends, the pipe closes and the shell stops the server.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use postgres::{Client, NoTls};

/// Said when the server's programs are not there: nothing is skipped because something is missing.
const HOW_TO_INSTALL: &str =
    "PostgreSQL is missing. As root: apt-get install --no-install-recommends postgresql";

pub(crate) struct Cluster {
    folder: tempfile::TempDir,
    shell: Option<Child>,
    databases: Mutex<u32>,
}

static RUNNING: Mutex<Weak<Cluster>> = Mutex::new(Weak::new());

/// The server of this process. It stops when the last test that uses it is over.
pub(crate) fn running() -> Arc<Cluster> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cluster) = running.upgrade() {
        return cluster;
    }
    let cluster = Arc::new(Cluster::start());
    *running = Arc::downgrade(&cluster);
    cluster
}

impl Cluster {
    /// One that a test may stop and start as it likes.
    pub(crate) fn start() -> Self {
        // In memory where the machine has a place for that: a cluster is a thousand small files.
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = tempfile::tempdir_in(parent).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        run(Command::new("cp").arg("-r").arg(template()).arg(&data));
        if is_root() {
            run(Command::new("chown").arg("-R").arg("postgres").arg(folder.path()));
        }
        let mut cluster = Self { folder, shell: None, databases: Mutex::new(0) };
        cluster.up();
        cluster
    }

    pub(crate) fn up(&mut self) {
        let data = self.folder.path().join("data");
        let log = fs::File::create(self.folder.path().join("log")).unwrap();
        // `read` returns when the other end of the pipe is closed; then the server stops at once (SIGINT).
        let script = r#""$0" "$@" <&- & server=$!; read -r _; kill -INT $server; wait $server"#;
        let mut command = as_postgres("sh");
        command.args(["-c", script]).arg(programs().join("postgres")).arg("-D").arg(&data);
        command.arg("-k").arg(self.folder.path());
        for setting in [
            "listen_addresses=",
            "fsync=off",
            "full_page_writes=off",
            "max_connections=60",
            "shared_buffers=16MB",
            "autovacuum=off",
            "max_wal_size=64MB",
            "deadlock_timeout=100ms",
        ] {
            command.args(["-c", setting]);
        }
        command.stdin(Stdio::piped()).stdout(log.try_clone().unwrap()).stderr(log);
        self.shell = Some(command.spawn().expect(HOW_TO_INSTALL));
        self.wait_until_up();
    }

    fn wait_until_up(&mut self) {
        // About half a minute.
        for _ in 0..1_500 {
            let status = Command::new(programs().join("pg_isready"))
                .arg("-q")
                .arg("-h")
                .arg(self.folder.path())
                .status()
                .expect(HOW_TO_INSTALL);
            if status.success() {
                return;
            }
            let shell = self.shell.as_mut().unwrap();
            assert!(shell.try_wait().unwrap().is_none(), "the server did not start:\n{}", self.log());
            // Nobody unparks this thread: a short pause, in which the server gets on.
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
        panic!("the server did not come up:\n{}", self.log());
    }

    /// Stops the server, and every connection to it.
    pub(crate) fn down(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            drop(shell.stdin.take());
            shell.wait().unwrap();
        }
    }

    /// A new, empty database.
    pub(crate) fn database(&self) -> String {
        let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        *databases += 1;
        let name = format!("test{databases}");
        self.admin().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        name
    }

    pub(crate) fn url(&self, database: &str) -> String {
        let host = self.folder.path().to_str().unwrap().replace('/', "%2F");
        format!("postgres://postgres@{host}/{database}")
    }

    pub(crate) fn connect(&self, database: &str) -> Client {
        Client::connect(&self.url(database), NoTls).unwrap()
    }

    pub(crate) fn admin(&self) -> Client {
        self.connect("postgres")
    }

    fn log(&self) -> String {
        let mut text = String::new();
        fs::File::open(self.folder.path().join("log")).unwrap().read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.down();
    }
}

/// An initialised data folder to be copied, made once for the checkout.
pub(crate) fn template() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(folder).unwrap();
    let template = folder.join("postgres-template-2");
    // Tests run in processes of their own, several at a time.
    let lock = fs::File::create(folder.join("postgres-template.lock")).unwrap();
    lock.lock().unwrap();
    if !template.exists() {
        let made = tempfile::tempdir().unwrap();
        fs::set_permissions(made.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let data = made.path().join("data");
        let mut initdb = as_postgres(programs().join("initdb").to_str().unwrap());
        run(initdb
            .arg("-D")
            .arg(&data)
            .args([
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-sync",
                "--locale=C",
                "--wal-segsize=1",
            ])
            .stdout(Stdio::null()));
        let partial = folder.join(format!("postgres-template.{}", std::process::id()));
        run(Command::new("cp").arg("-r").arg(&data).arg(&partial));
        fs::rename(&partial, &template).unwrap();
    }
    template
}

/// PostgreSQL refuses to run as root.
pub(crate) fn as_postgres(program: &str) -> Command {
    if is_root() {
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--", program]);
        // Its own folder may be closed to that user.
        command.current_dir("/");
        command
    } else {
        Command::new(program)
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

/// Debian keeps the server's programs beside the path, by version.
pub(crate) fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .map(|entry| entry.path().join("bin"))
        .filter(|path| path.join("initdb").exists())
        .max_by_key(|path| {
            path.parent().and_then(|version| version.file_name()?.to_str()?.parse::<u32>().ok())
        });
    newest.expect(HOW_TO_INSTALL)
}

fn run(command: &mut Command) {
    let status = command.status().expect(HOW_TO_INSTALL);
    assert!(status.success(), "{command:?}: {status}");
}
