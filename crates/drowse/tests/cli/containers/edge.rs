//! A threshold to the byte, on a live container.

use std::process::Command;

use super::stage::{SLEEPS, Stage, json};
use crate::up::running::until;

/// A wire from the container to this machine on which nobody speaks but who is told to.
struct Wire {
    pid: String,
}

/// Of the packet itself: Ethernet, IP and UDP.
const HEADERS: usize = 14 + 20 + 8;

fn run(program: &str, args: &[&str]) {
    let output = Command::new(program).args(args).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}; apt-get install iproute2 util-linux"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

impl Wire {
    fn lay(pid: String) -> Self {
        let here = format!("edge{}", std::process::id() % 100_000);
        run("ip", &["link", "add", "edge", "netns", &pid, "type", "veth", "peer", "name", &here]);
        let wire = Self { pid };
        // Without addresses of its own making, neither end has anything to say.
        run("ip", &["link", "set", &here, "addrgenmode", "none", "up"]);
        wire.inside(&["ip", "link", "set", "edge", "addrgenmode", "none", "up"]);
        wire.inside(&["ip", "address", "add", "192.0.2.1/24", "dev", "edge"]);
        let neighbour = ["ip", "neighbour", "add", "192.0.2.2", "lladdr", "02:00:00:00:00:02", "dev", "edge"];
        wire.inside(&neighbour);
        wire
    }

    /// In its network, and in nothing else of it: what is used here is not the container's.
    fn inside(&self, command: &[&str]) {
        run("nsenter", &[&["--target", self.pid.as_str(), "--net", "--"], command].concat());
    }

    fn send(&self, bytes: usize) {
        let script = format!("head -c {} /dev/zero > /dev/udp/192.0.2.2/9", bytes - HEADERS);
        self.inside(&["bash", "-c", &script]);
    }
}

#[test]
fn as_many_bytes_as_the_threshold_are_quiet_and_one_more_is_use() {
    // So low a threshold is the floor, whatever the interval: 512 bytes.
    let stage = Stage::new(
        "policy.idle_timeout = \"1h\"\npolicy.check_interval = \"2s\"\npolicy.signals.network.active_above = \"1B\"",
    );
    stage.run("web", &[], SLEEPS);
    let wire = Wire::lay(stage.engine.docker(&["inspect", "--format", "{{.State.Pid}}", "web"]));
    let mut up = stage.up();
    let api = stage.folder.api(&up);
    up.wait_for("web running");
    let network = || {
        let readings = json(&api, "workers/web/readings");
        let all = readings["readings"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|one| one["signal"] == "network").unwrap_or_default()
    };
    until("nobody speaks", || network()["value"] == 0.0);
    for (bytes, state) in [(512, "quiet"), (513, "active")] {
        wire.send(bytes);
        let mut last = network();
        #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
        let wanted = bytes as f64;
        until(&format!("{bytes} bytes are read"), || {
            last = network();
            last["value"] == wanted
        });
        assert_eq!((&last["state"], &last["active_above"]), (&state.into(), &512.0.into()), "{last}");
        until("nobody speaks", || network()["value"] == 0.0);
    }
}
