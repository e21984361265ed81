//! Programs that run for as long as something is measured, on a core of their own.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use drowse_server::Clock;

use crate::up::pause;

const WITHIN: Duration = Duration::from_secs(10);

/// Where proxies run.
pub(crate) const PROXY_CORE: &str = "1";
/// Where clients and backends run.
pub(crate) const OTHER_CORE: &str = "0";

/// Ended when it goes.
pub(crate) struct Running(Child);

impl Running {
    /// Starts a program on a core and waits until it listens everywhere.
    pub(crate) fn start(core: &str, command: &mut Command, log: &Path, listens: &[SocketAddr]) -> Self {
        let mut pinned = Command::new("taskset");
        pinned.args(["-c", core]).arg(command.get_program()).args(command.get_args());
        Self::start_pinned(pinned.stdin(Stdio::null()), log, listens)
    }

    /// The same of a program that sees to its core and its standard input by itself.
    pub(crate) fn start_pinned(command: &mut Command, log: &Path, listens: &[SocketAddr]) -> Self {
        let out = File::create(log).expect("the folder is ours");
        command.stdout(out.try_clone().expect("a file")).stderr(out);
        let mut running = Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")));
        let clock = Clock::system();
        let until = clock.now() + WITHIN;
        for address in listens {
            while TcpStream::connect(address).is_err() {
                let is_over = clock.now() > until || running.0.try_wait().expect("ours").is_some();
                assert!(!is_over, "{command:?}: {}", fs::read_to_string(log).unwrap_or_default());
                pause(Duration::from_millis(10));
            }
        }
        running
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The servers that all proxies lead to.
pub(crate) struct Backends {
    pub(crate) web: SocketAddr,
    pub(crate) bulk: SocketAddr,
    _running: [Running; 2],
}

impl Backends {
    pub(crate) fn start(folder: &Path, [web, bulk]: [SocketAddr; 2]) -> Self {
        let conf = folder.join("backend.conf");
        let temporary = folder.display();
        // A kilobyte, from memory: the proxies are to work, not the disk.
        let body = "x".repeat(1024);
        let text = format!(
            "daemon off;\nmaster_process off;\npid {temporary}/backend.pid;\nerror_log stderr error;\n\
             events {{ worker_connections 8192; }}\nhttp {{\naccess_log off;\nkeepalive_requests 1000000000;\n\
             client_body_temp_path {temporary};\nproxy_temp_path {temporary};\nfastcgi_temp_path {temporary};\n\
             uwsgi_temp_path {temporary};\nscgi_temp_path {temporary};\n\
             server {{ listen {web} backlog=4096; location / {{ return 200 \"{body}\"; }} }}\n}}\n"
        );
        fs::write(&conf, text).expect("the folder is ours");
        let mut nginx = Command::new("/usr/sbin/nginx");
        nginx.args(["-e", "stderr", "-c"]).arg(&conf);
        let nginx = Running::start(OTHER_CORE, &mut nginx, &folder.join("backend.log"), &[web]);
        let mut iperf = Command::new("iperf3");
        iperf.args(["-s", "-B", &bulk.ip().to_string(), "-p", &bulk.port().to_string()]);
        // Whoever connects to it and says nothing keeps it busy, so it is not looked at beforehand.
        let iperf = Running::start(OTHER_CORE, &mut iperf, &folder.join("iperf.log"), &[]);
        Self { web, bulk, _running: [nginx, iperf] }
    }
}
