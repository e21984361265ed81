//! Peers that die without a word. Drowse lives in a network of its own here, and they in another, with a cable between
//! them that can be cut; nobody else's network is touched.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use super::super::text;
use super::super::up::running::{Folder, Up, free_port};
use super::echo::PYTHON;

/// Opens a connection, speaks, hears, and then says nothing for ever.
const CLIENT: &str = "import socket, sys, time\n\
                      s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n\
                      s.sendall(b'GET / HTTP/1.1\\r\\n')\n\
                      print('connected', flush=True)\n\
                      time.sleep(1000000)\n";

/// The words that give a program a network of its own; whoever is not root becomes it in there.
fn own_network() -> Vec<String> {
    let mut words = vec!["/usr/bin/unshare", "--net"];
    if !rustix::process::geteuid().is_root() {
        words.extend(["--user", "--map-root-user"]);
    }
    words.extend(["--", "/bin/sh", "-c", "/usr/sbin/ip link set lo up && exec \"$0\" \"$@\""]);
    words.into_iter().map(str::to_owned).collect()
}

/// Does something in the network of a process.
#[track_caller]
fn inside(pid: u32, script: &str) {
    let output = entering(pid).args(["/bin/sh", "-c", script]).output().expect("util-linux is installed");
    assert!(output.status.success(), "{script}: {}", text(&output.stderr));
}

fn entering(pid: u32) -> Command {
    let mut command = Command::new("/usr/bin/nsenter");
    command.args(["--net", "--target", &pid.to_string()]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--preserve-credentials"]);
    }
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

/// Somewhere else, behind a cable.
struct Elsewhere {
    /// Keeps the network.
    anchor: Child,
    client: Option<Child>,
}

impl Elsewhere {
    fn reach(up: &Up) -> Self {
        let words = own_network();
        let anchor = Command::new(&words[0])
            .args(&words[1..])
            .args(["/bin/sh", "-c", "echo ready; exec sleep infinity"])
            .stdout(Stdio::piped())
            .spawn();
        let mut anchor = anchor.expect("util-linux is installed");
        assert_eq!(line(anchor.stdout.take().expect("it is piped")), "ready\n");
        let (here, there) = (up.pid(), anchor.id());
        inside(here, &format!("ip link add v0 type veth peer name v1 netns {there}"));
        inside(here, "ip addr add 10.87.65.1/24 dev v0 && ip link set v0 up");
        inside(there, "ip addr add 10.87.65.2/24 dev v1 && ip link set v1 up");
        Self { anchor, client: None }
    }

    fn connect_to(&mut self, port: u16) {
        let mut command = entering(self.anchor.id());
        command.args([PYTHON, "-c", CLIENT, "10.87.65.1", &port.to_string()]).stdout(Stdio::piped());
        let mut client = command.spawn().expect("util-linux is installed");
        assert_eq!(line(client.stdout.take().expect("it is piped")), "connected\n");
        self.client = Some(client);
    }

    /// Cuts the cable, and then they are gone.
    fn die(&mut self) {
        inside(self.anchor.id(), "ip link set v1 down");
        self.end();
    }

    fn end(&mut self) {
        for child in self.client.iter_mut().chain([&mut self.anchor]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.end();
    }
}

fn line(from: ChildStdout) -> String {
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line).expect("it speaks UTF-8");
    line
}

/// A peer that has died holds its worker for as long as it takes to be sure, and not a day longer.
#[test]
fn a_peer_that_dies_without_a_word_does_not_keep_its_worker_awake() {
    let mut folder = Folder::new();
    folder.through = own_network();
    let (door, target) = (free_port(), free_port());
    // It does not hang up by itself, however long it is told nothing.
    let server = "import socket, time; s = socket.create_server(('127.0.0.1', int(__import__('sys').argv[1]))); \
                  kept = []\nwhile True: kept.append(s.accept())";
    let command = serde_json::to_string(&[PYTHON, "-c", server, &target.to_string()]).expect("texts");
    folder.append(&format!(
        "[[worker]]\nid = \"web\"\ndriver = \"process\"\ncommand = {command}\nlisten = \"0.0.0.0:{door}\"\n\
         target = \"127.0.0.1:{target}\"\npolicy.idle_timeout = \"1s\"\n"
    ));
    let mut up = folder.up(&[]);
    up.wait_for("web paused: idle");
    let mut elsewhere = Elsewhere::reach(&up);
    elsewhere.connect_to(door);
    up.wait_for("web running again: wake, by connection");
    elsewhere.die();
    up.wait_for("web paused: idle");
}
