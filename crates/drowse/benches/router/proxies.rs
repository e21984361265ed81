//! Drowse and its peers: each has a door to the same two backends, one thread, and the same core.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::clients::Kind;
use crate::programs::{Backends, PROXY_CORE, Running};
use crate::up::{Up, free_address};

/// The one that does less than the others.
pub(crate) const CUTS: &str = "nginx stream without half-close";

const REQUESTS: [Kind; 3] = [Kind::Requests, Kind::Few, Kind::Connections];
const STREAMS: [Kind; 2] = [Kind::Upload, Kind::Download];

/// One of them, up and running.
pub(crate) struct Proxy {
    pub(crate) name: &'static str,
    /// Leads to the web server.
    pub(crate) web: SocketAddr,
    /// Leads to the one that takes bulk.
    pub(crate) bulk: SocketAddr,
    pub(crate) pids: Vec<u32>,
    /// What it takes part in.
    pub(crate) kinds: &'static [Kind],
    kept: Kept,
}

enum Kept {
    Drowse(Up),
    Peers(#[expect(dead_code, reason = "kept until the end")] Vec<Running>),
}

impl Proxy {
    fn of_peers(
        name: &'static str,
        [web, bulk]: [SocketAddr; 2],
        kinds: &'static [Kind],
        running: Vec<Running>,
    ) -> Self {
        let pids = running.iter().map(Running::pid).collect();
        Self { name, web, bulk, pids, kinds, kept: Kept::Peers(running) }
    }

    /// The product as people run it. Its workers are there and count as used; their servers are the backends
    /// of all, so that everybody has the same behind them.
    pub(crate) fn drowse(backends: &Backends) -> Self {
        let doors = [free_address(), free_address()];
        let mut config = String::from("[policy]\nidle_timeout = \"1h\"\n");
        for (name, door, target) in [("web", doors[0], backends.web), ("bulk", doors[1], backends.bulk)] {
            let _ = write!(
                config,
                "[[worker]]\nid = \"{name}\"\ndriver = \"process\"\ncommand = [\"sleep\", \"infinity\"]\n\
                 listen = \"{door}\"\ntarget = \"{target}\"\n"
            );
        }
        let up = Up::start(&["taskset", "-c", PROXY_CORE], &config, None);
        Self {
            name: "drowse",
            web: doors[0],
            bulk: doors[1],
            pids: vec![up.pid()],
            kinds: &Kind::ALL,
            kept: Kept::Drowse(up),
        }
    }

    /// That it counts while it is measured: whose use it was, and each byte of the streams that clients say have arrived.
    pub(crate) fn has_counted(&self, streamed: f64) {
        let Kept::Drowse(up) = &self.kept else { return };
        for worker in ["web", "bulk"] {
            let (_, told) = up.ask("GET", &format!("/api/v1/workers/{worker}"), "").expect("it answers");
            assert_eq!(told["last_activity_by"], "connections", "{worker}: {told}");
        }
        let (_, metrics) = up.text("GET", "/metrics", "").expect("it answers");
        let counted: f64 = ["received", "sent"]
            .iter()
            .map(|direction| {
                let name = format!("drowse_door_{direction}_bytes_total{{worker=\"bulk\"}} ");
                let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
                line.and_then(|value| value.parse::<f64>().ok())
                    .unwrap_or_else(|| panic!("no {name}: {metrics}"))
            })
            .sum();
        assert!(counted >= streamed, "{counted} bytes were counted of {streamed}");
    }

    /// With larger buffers than its usual ones, which cost it less for each byte, and nothing that can be measured for
    /// each connection.
    pub(crate) fn haproxy(backends: &Backends, folder: &Path) -> Self {
        Self::haproxy_with("haproxy", "tune.bufsize 65536", "", &Kind::ALL, backends, folder)
    }

    /// Told to splice, with pipes as large as ours.
    pub(crate) fn haproxy_that_splices(backends: &Backends, folder: &Path) -> Self {
        let more = ("tune.pipesize 1048576", "option splice-request\n option splice-response\n");
        Self::haproxy_with("haproxy with splice", more.0, more.1, &STREAMS, backends, folder)
    }

    fn haproxy_with(
        name: &'static str,
        global: &str,
        defaults: &str,
        kinds: &'static [Kind],
        backends: &Backends,
        folder: &Path,
    ) -> Self {
        let folder = folder.join(name);
        fs::create_dir(&folder).expect("the folder is ours");
        let doors = [free_address(), free_address()];
        let mut text = format!(
            "global\n nbthread 1\n maxconn 2000\n {global}\n\
             defaults\n mode tcp\n option tcp-smart-accept\n option tcp-smart-connect\n {defaults} \
             timeout connect 5s\n timeout client 1h\n timeout server 1h\n backlog 4096\n",
        );
        for (name, door, target) in [("web", doors[0], backends.web), ("bulk", doors[1], backends.bulk)] {
            let _ = writeln!(text, "listen {name}\n bind {door}\n server {name} {target}");
        }
        let conf = folder.join("haproxy.cfg");
        fs::write(&conf, text).expect("the folder is ours");
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(&conf);
        let log = folder.join("haproxy.log");
        let running = Running::start(PROXY_CORE, &mut command, &log, &doors[..1]);
        Self::of_peers(name, doors, kinds, vec![running])
    }

    /// Told to do what the others do: whoever has said their last may still listen.
    pub(crate) fn nginx(backends: &Backends, folder: &Path) -> Self {
        Self::nginx_with("nginx stream", "proxy_half_close on;\n", &Kind::ALL, backends, folder)
    }

    /// As it comes: it hangs up on both as soon as one of them has said its last, and has less to do for that.
    pub(crate) fn nginx_that_cuts(backends: &Backends, folder: &Path) -> Self {
        Self::nginx_with(CUTS, "", &REQUESTS, backends, folder)
    }

    fn nginx_with(
        name: &'static str,
        more: &str,
        kinds: &'static [Kind],
        backends: &Backends,
        folder: &Path,
    ) -> Self {
        let folder = folder.join(name);
        fs::create_dir(&folder).expect("the folder is ours");
        let doors = [free_address(), free_address()];
        let mut servers = String::new();
        // Larger buffers cost it less for each byte, and somewhat more for each connection.
        for (door, target, buffers) in
            [(doors[0], backends.web, ""), (doors[1], backends.bulk, "proxy_buffer_size 64k;")]
        {
            let _ =
                writeln!(servers, "server {{ listen {door} backlog=4096; proxy_pass {target}; {buffers} }}");
        }
        let text = format!(
            "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\ndaemon off;\nmaster_process off;\n\
             pid \"{}/nginx.pid\";\nerror_log stderr error;\nevents {{ worker_connections 16384; }}\n\
             stream {{\nproxy_timeout 1h;\n{more}{servers}}}\n",
            folder.display()
        );
        let conf = folder.join("nginx.conf");
        fs::write(&conf, text).expect("the folder is ours");
        let mut command = Command::new("/usr/sbin/nginx");
        command.args(["-e", "stderr", "-c"]).arg(&conf);
        let log = folder.join("nginx.log");
        let running = Running::start(PROXY_CORE, &mut command, &log, &doors[..1]);
        Self::of_peers(name, doors, kinds, vec![running])
    }

    /// One process for each port: it knows one destination. It is handed its port as systemd would do it. It does not
    /// survive many streams, so each direction has one of its own.
    pub(crate) fn socket_proxyds(backends: &Backends, folder: &Path) -> [Self; 2] {
        [&[Kind::Requests, Kind::Few, Kind::Connections, Kind::Upload][..], &[Kind::Download]]
            .map(|kinds| Self::socket_proxyd(kinds, backends, folder))
    }

    fn socket_proxyd(kinds: &'static [Kind], backends: &Backends, folder: &Path) -> Self {
        let mut doors = Vec::new();
        let running = [("web", backends.web), ("bulk", backends.bulk)].map(|(name, target)| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            rustix::net::listen(&listener, 4096).expect("it listens");
            doors.push(listener.local_addr().expect("an address"));
            let script = format!(
                "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec taskset -c {PROXY_CORE} \
                 /lib/systemd/systemd-socket-proxyd --connections-max=4096 {target}"
            );
            let mut command = Command::new("sh");
            command.args(["-c", &script]).stdin(Stdio::from(OwnedFd::from(listener)));
            Running::start_pinned(&mut command, &folder.join(format!("socket-proxyd.{name}.log")), &[])
        });
        Self::of_peers("systemd-socket-proxyd", [doors[0], doors[1]], kinds, running.into())
    }
}
