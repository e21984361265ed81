//! What the tests need beyond the Rust toolchain, and how it is installed.
//!
//! **To add something, add a line to a table below.** Each line has a probe, a command that succeeds
//! exactly when the thing is usable; what is there already is left alone. A thing that cannot be installed
//! makes the test run fail with how to install it: no test is skipped because something is missing.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::workspace::{Workspace, must, stdout};

/// A cargo subcommand that a crate brings.
#[derive(Debug)]
struct Tool {
    name: &'static str,
    /// Arguments to `cargo`.
    probe: &'static [&'static str],
    why: &'static str,
}

/// Something from Debian's own packages.
#[derive(Clone, Copy, Debug)]
struct Package {
    name: &'static str,
    /// A program and its arguments.
    probe: &'static [&'static str],
    why: &'static str,
}

const TOOLS: &[Tool] = &[Tool {
    name: "cargo-nextest",
    probe: &["nextest", "--version"],
    why: "runs every test in its own process, so that one cannot hang or poison another",
}];

const PACKAGES: &[Package] = &[
    Package {
        name: "postgresql",
        // The server's own programs are not on the path, and clients alone would not do.
        probe: &["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb"],
        why: "the second engine of the store; its tests start a server of their own",
    },
    Package {
        name: "docker.io",
        // By their full names: others of that name on the path may be clients of an engine elsewhere.
        probe: &[
            "sh",
            "-c",
            "test -x /usr/sbin/dockerd && test -x /usr/bin/docker && test -x /usr/bin/containerd",
        ],
        why: "a real engine for the docker driver; each test starts one of its own",
    },
    Package {
        name: "iproute2",
        probe: &["/usr/sbin/ip", "-Version"],
        why: "a wire to a container on which nobody else speaks",
    },
    Package { name: "iptables", probe: &["/usr/sbin/iptables", "--version"], why: "the engine looks for it" },
    Package {
        name: "busybox-static",
        // A busybox that needs libraries would not run in an image that has none.
        probe: &["sh", "-c", "dpkg-query --show --showformat '${Status}' busybox-static | grep -q installed"],
        why: "the only program in the containers of those tests",
    },
    Package {
        name: "nginx",
        probe: &["/usr/sbin/nginx", "-v"],
        why: "a worker with HTTP and TLS behind the front door",
    },
    Package {
        name: "systemd",
        probe: &["systemd-socket-activate", "--version"],
        why: "opens ports before Drowse is there, and hands them over",
    },
    Package { name: "chromium", probe: &["chromium", "--version"], why: "a real browser for the pages" },
    Package { name: "chromium-driver", probe: &["chromedriver", "--version"], why: "steers that browser" },
    Package {
        name: "redis-server",
        probe: &["redis-server", "--version"],
        why: "a worker behind the front door, and its client",
    },
    Package { name: "python3", probe: &["/usr/bin/python3", "--version"], why: "small servers as workers" },
    Package { name: "openssl", probe: &["openssl", "version"], why: "certificates for that worker" },
    Package { name: "curl", probe: &["curl", "--version"], why: "a client of that worker" },
    Package {
        name: "python3-venv",
        probe: &["python3", "-c", "import venv, ensurepip"],
        why: "schemathesis, which probes the API, gets a folder of its own",
    },
];

/// What `cargo xtask bench router` measures against, and with what.
const ROUTER_PEERS: &[Package] = &[
    Package { name: "haproxy", probe: &["haproxy", "-v"], why: "a peer of the front door" },
    Package {
        name: "libnginx-mod-stream",
        probe: &["ls", "/usr/lib/nginx/modules/ngx_stream_module.so"],
        why: "a peer of the front door",
    },
    Package {
        name: "systemd",
        probe: &["/lib/systemd/systemd-socket-proxyd", "--version"],
        why: "systemd-socket-proxyd, a peer of the front door",
    },
    Package { name: "nginx", probe: &["/usr/sbin/nginx", "-v"], why: "what the proxies lead to" },
    // It has no call that succeeds and does nothing.
    Package { name: "wrk", probe: &["which", "wrk"], why: "many requests and connections" },
    Package { name: "iperf3", probe: &["iperf3", "--version"], why: "many bytes" },
    Package { name: "util-linux", probe: &["taskset", "--version"], why: "a core for each side" },
];

/// Installs what a benchmark needs beyond what the tests do.
pub(crate) fn install_for_bench(name: &str) -> anyhow::Result<()> {
    match name {
        "router" => debian(&missing(ROUTER_PEERS, is_usable)),
        _ => Ok(()),
    }
}

fn is_usable(probe: &[&str]) -> bool {
    match probe {
        [program, args @ ..] => succeeds(Command::new(program).args(args)),
        [] => false,
    }
}

/// Installs whatever is missing, saying so before it does.
pub(crate) fn install(workspace: &Workspace) -> anyhow::Result<()> {
    for tool in TOOLS {
        if !succeeds(&mut workspace.cargo(tool.probe.iter().copied())) {
            println!("{} is missing ({}); installing it", tool.name, tool.why);
            must(&mut workspace.cargo(["install", "--locked", tool.name])).with_context(|| {
                format!("install it by hand, then try again: cargo install --locked {}", tool.name)
            })?;
        }
    }
    debian(&missing(PACKAGES, is_usable))
}

fn missing(packages: &[Package], usable: impl Fn(&[&str]) -> bool) -> Vec<Package> {
    packages.iter().filter(|package| !usable(package.probe)).copied().collect()
}

/// All packages in one call: the package index is fetched once.
fn debian(missing: &[Package]) -> anyhow::Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    for package in missing {
        println!("{} is missing ({})", package.name, package.why);
    }
    let names: Vec<_> = missing.iter().map(|package| package.name).collect();
    let by_hand = format!("apt-get install --no-install-recommends {}", names.join(" "));
    if !Path::new("/etc/debian_version").exists() {
        bail!("this is no Debian, so install by hand what `{by_hand}` would bring");
    }
    println!("installing: {}", names.join(" "));
    let how = || format!("install by hand as root, then try again: {by_hand}");
    must(apt()?.arg("update")).with_context(how)?;
    must(apt()?.args(["install", "--yes", "--no-install-recommends"]).args(names)).with_context(how)
}

/// An apt-get that asks nothing.
fn apt() -> anyhow::Result<Command> {
    let is_root = stdout(Command::new("id").arg("-u"))?.trim() == "0";
    let mut command = Command::new(if is_root { "env" } else { "sudo" });
    if !is_root {
        // `-n`: better an error that says what to do than a password prompt that nobody sees.
        command.args(["-n", "env"]);
    }
    // Through `env`, because sudo drops the environment it is given.
    command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"]).stdin(Stdio::null());
    Ok(command)
}

fn succeeds(probe: &mut Command) -> bool {
    probe
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGES: &[Package] = &[
        Package { name: "postgresql", probe: &["pg_lsclusters"], why: "the store's second engine" },
        Package { name: "docker.io", probe: &["docker", "version"], why: "the docker driver" },
    ];

    fn names(packages: &[Package]) -> Vec<&str> {
        packages.iter().map(|package| package.name).collect()
    }

    #[test]
    fn only_what_the_probe_does_not_find_is_installed() {
        let found = missing(PACKAGES, |probe| probe == ["docker", "version"]);
        assert_eq!(names(&found), ["postgresql"]);
        assert_eq!(names(&missing(PACKAGES, |_| true)), [""; 0]);
    }

    #[test]
    fn a_program_that_does_not_exist_or_fails_is_missing() {
        assert!(succeeds(&mut Command::new("true")));
        assert!(!succeeds(&mut Command::new("false")));
        assert!(!succeeds(&mut Command::new("drowse-has-no-such-program")));
    }
}
