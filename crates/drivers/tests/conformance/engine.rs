//! A real Docker engine for one test: its own daemon, containerd, data and socket, in a temporary folder.
//!
//! It touches nothing of an engine that the machine may have: no default bridge, no firewall rules, no forwarding.
//! Used by the tests of other crates too, which include this file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// More than anything takes on a slow machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The only image: a static busybox, made here because there is no registry.
pub(crate) const IMAGE: &str = "drowse-test";

const HOW: &str = "install what the docker tests need: apt-get install docker.io iptables busybox-static";

/// By their full names: others on the path may only look like them.
const DOCKER: &str = "/usr/bin/docker";
const DOCKERD: &str = "/usr/sbin/dockerd";
const CONTAINERD: &str = "/usr/bin/containerd";

/// A running engine.
#[derive(Debug)]
pub(crate) struct Engine {
    folder: TempDir,
    containerd: Child,
    dockerd: Option<Child>,
    /// What keeps others from its networks.
    locks: Mutex<Vec<File>>,
}

impl Engine {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("there is room for a temporary folder");
        let path = |name: &str| folder.path().join(name);
        let address = path("containerd.sock");
        let mut containerd = program(CONTAINERD, &path("containerd.log"));
        containerd.arg("--root").arg(path("containerd")).arg("--state").arg(path("containerd-run"));
        containerd.arg("--address").arg(&address);
        let containerd = containerd.spawn().unwrap_or_else(|error| panic!("{CONTAINERD}: {error}; {HOW}"));
        let mut engine = Self { folder, containerd, dockerd: None, locks: Mutex::default() };
        engine.eventually("containerd answers", || address.exists());
        engine.start_daemon();
        engine.import();
        engine
    }

    /// Where it answers.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    /// Starts the daemon, with the containers that it left.
    pub(crate) fn start_daemon(&mut self) {
        let path = |name: &str| self.folder.path().join(name);
        let _ = fs::remove_file(path("docker.pid"));
        let mut dockerd = program(DOCKERD, &path("dockerd.log"));
        dockerd.arg("--containerd").arg(path("containerd.sock"));
        dockerd.arg("--data-root").arg(path("data")).arg("--exec-root").arg(path("exec"));
        dockerd.arg("--pidfile").arg(path("docker.pid"));
        dockerd.arg("--host").arg(format!("unix://{}", self.socket().display()));
        dockerd.args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]);
        dockerd.args(["--ip-masq=false", "--userland-proxy=false", "--live-restore"]);
        let dockerd = dockerd.spawn().unwrap_or_else(|error| panic!("{DOCKERD}: {error}; {HOW}"));
        self.dockerd = Some(dockerd);
        self.eventually("dockerd answers", || self.try_docker(&["version"]).is_ok());
    }

    /// Kills the daemon where it stands. Containers go on.
    pub(crate) fn kill_daemon(&mut self) {
        if let Some(mut dockerd) = self.dockerd.take() {
            let _ = dockerd.kill();
            let _ = dockerd.wait();
        }
    }

    /// Lets the daemon hang, or go on.
    pub(crate) fn hang_daemon(&self, hangs: bool) {
        let pid = self.dockerd.as_ref().expect("it runs").id();
        let signal = if hangs { "-STOP" } else { "-CONT" };
        let status = Command::new("kill").args([signal, &pid.to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "dockerd cannot be signalled");
        if hangs {
            // The signal stops one thread after the other, and those that it has not reached yet still answer.
            self.eventually("dockerd hangs", || {
                let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
                let mut each =
                    threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
                each.all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
            });
        }
    }

    /// Runs the engine's own client; what it printed.
    #[track_caller]
    pub(crate) fn docker(&self, args: &[&str]) -> String {
        match self.try_docker(args) {
            Ok(said) => said,
            Err(said) => panic!("docker {args:?}: {said}"),
        }
    }

    pub(crate) fn try_docker(&self, args: &[&str]) -> Result<String, String> {
        let output = self.client().args(args).stdin(Stdio::null()).output().expect(HOW);
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
    }

    /// A network of its own that reaches this machine and nothing else; its name.
    pub(crate) fn network(&self) -> &'static str {
        // Several engines may run at once, and their bridges are all on this machine: whoever has the lock has the number,
        // until it ends in whatever way.
        let taken = (0..250).find_map(|number| {
            let file = std::env::temp_dir().join(format!("drowse-test-network-{number}.lock"));
            let file =
                File::options().create(true).append(true).open(file).expect("there is room for a lock");
            file.try_lock().is_ok().then_some((number, file))
        });
        let (number, lock) = taken.expect("fewer than 250 engines run at once");
        let name = format!("drw{number}");
        if Path::new("/sys/class/net").join(&name).exists() {
            // Of one that was killed.
            let _ = Command::new("ip").args(["link", "delete", &name]).status();
        }
        self.locks.lock().expect("nobody panicked").push(lock);
        let subnet = format!("10.217.{number}.0/24");
        let bridge = format!("com.docker.network.bridge.name={name}");
        self.docker(&["network", "create", "--subnet", &subnet, "--opt", &bridge, "wire"]);
        "wire"
    }

    fn client(&self) -> Command {
        let mut docker = Command::new(DOCKER);
        docker.arg("--host").arg(format!("unix://{}", self.socket().display()));
        docker.env("DOCKER_CONFIG", self.folder.path().join("client"));
        docker
    }

    fn import(&self) {
        let root = self.folder.path().join("image");
        let bin = root.join("bin");
        fs::create_dir_all(&bin).expect("there is room for an image");
        for folder in ["tmp", "workspace", "proc", "sys", "dev", "run"] {
            fs::create_dir_all(root.join(folder)).expect("there is room for an image");
        }
        fs::copy("/bin/busybox", bin.join("busybox"))
            .unwrap_or_else(|error| panic!("busybox: {error}; {HOW}"));
        let applets = Command::new("/bin/busybox").arg("--list").output().expect(HOW).stdout;
        for applet in String::from_utf8_lossy(&applets).lines().filter(|applet| *applet != "busybox") {
            let _ = std::os::unix::fs::symlink("busybox", bin.join(applet));
        }
        let tar = self.folder.path().join("image.tar");
        let made = Command::new("tar").arg("cf").arg(&tar).arg("-C").arg(&root).arg(".").status();
        assert!(made.is_ok_and(|status| status.success()), "tar cannot make the image");
        self.docker(&["import", &tar.display().to_string(), IMAGE]);
    }

    fn eventually(&self, what: &str, is_so: impl Fn() -> bool) {
        #[expect(clippy::disallowed_methods, reason = "a test waits for a real daemon")]
        let patience = Instant::now() + PATIENCE;
        while !is_so() {
            #[expect(clippy::disallowed_methods, reason = "a test waits for a real daemon")]
            let now = Instant::now();
            let log = || fs::read_to_string(self.folder.path().join("dockerd.log")).unwrap_or_default();
            assert!(now < patience, "{what}: not so\n{}", log());
            #[expect(clippy::disallowed_methods, reason = "there is nothing to be told by")]
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A program whose words go to a file, and that does not outlive us.
fn program(name: &str, log: &Path) -> Command {
    let log = File::create(log).expect("there is room for a log");
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", name]).stdin(Stdio::null());
    command.stdout(log.try_clone().expect("a file can be had twice")).stderr(log);
    command
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(dockerd) = &self.dockerd {
            // If it hangs.
            let _ = Command::new("kill").args(["-CONT", &dockerd.id().to_string()]).status();
        } else if !std::thread::panicking() {
            self.start_daemon();
        }
        if let Ok(all) = self.try_docker(&["ps", "--all", "--quiet"]) {
            let mut remove = vec!["rm", "--force", "--volumes"];
            remove.extend(all.lines());
            if remove.len() > 3 {
                let _ = self.try_docker(&remove);
            }
        }
        if let Ok(networks) = self.try_docker(&["network", "ls", "--quiet", "--filter", "type=custom"]) {
            for network in networks.lines() {
                let _ = self.try_docker(&["network", "rm", network]);
            }
        }
        if let Some(mut dockerd) = self.dockerd.take() {
            let _ = Command::new("kill").arg(dockerd.id().to_string()).status();
            let _ = dockerd.wait();
        }
        let _ = self.containerd.kill();
        let _ = self.containerd.wait();
    }
}
