//! How clients come to a worker: by a port of its own, or by a name at a port that workers share.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

use toml::de::DeValue;

use drowse_core::host::HostPattern;
use drowse_core::id::WorkerId;
use drowse_core::signal::DriverKind;

use super::super::door;
use super::super::problem::{Fault, Report};
use super::super::read;
use super::super::router::Router;
use super::super::section::{Field, Preset, Section, describe};
use super::super::taken::Ports;

/// How clients come to a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// The router's port for it.
    pub listen: Option<SocketAddr>,
    /// Where it answers.
    pub target: Option<Target>,
    /// Its names at the ports that lead by TLS server name.
    pub sni: Vec<HostPattern>,
    /// Where it answers TLS, if that is not `target`.
    pub tls_target: Option<Target>,
    /// Its names at the ports that lead by HTTP host.
    pub host: Vec<HostPattern>,
    /// What is spoken at its own port.
    pub protocol: Protocol,
    /// It is ready when a GET of this path is answered with success.
    pub ready_path: Option<String>,
    /// On what terms somebody comes, as far as they are its own.
    pub terms: door::Terms,
}

/// What is spoken at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Whatever it is.
    #[default]
    Tcp,
    /// HTTP, which is read.
    Http,
}

impl Protocol {
    /// For what is not written where it is what it always was.
    pub fn is_tcp(&self) -> bool {
        *self == Self::Tcp
    }
}

impl Ways {
    /// Whether there is a way that goes through the router.
    pub fn is_routed(&self) -> bool {
        self.listen.is_some() || !self.sni.is_empty() || !self.host.is_empty()
    }
}

/// Where a worker answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// At this address.
    Address(SocketAddr),
    /// At this port of the container or instance, whose address the driver knows and which may change.
    Port(u16),
}

impl Target {
    /// At which port, wherever that is.
    pub const fn port(self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Port(port) => port,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Port(port) => write!(f, ":{port}"),
        }
    }
}

const TARGET: &str =
    "an address and a port such as \"127.0.0.1:9001\", or of a container the port alone such as \":8888\"";
const NAMES: &str = "a host name such as \"lab.example.org\" or \"*.lab.example.org\", or a list of them";

pub(in super::super) const FIELDS: &[Field] = &[
    Field {
        name: "listen",
        expected: "an address and a port such as \"127.0.0.1:8001\"",
        preset: Preset::Absent("no port of its own"),
        sample: "\"127.0.0.1:8001\"",
        describe: "The router's port for it, open while it sleeps.",
    },
    Field {
        name: "target",
        expected: TARGET,
        preset: Preset::Absent("not routed"),
        sample: "\"127.0.0.1:9001\"",
        describe: "Where it answers. For docker and ec2 also a port alone, \":80\": the address is then the container's or instance's.",
    },
    Field {
        name: "sni",
        expected: NAMES,
        preset: Preset::Absent("none"),
        sample: "\"lab.example.org\"",
        describe: "Its TLS server names at the ports of [router] tls.",
    },
    Field {
        name: "tls_target",
        expected: TARGET,
        preset: Preset::Absent("the target"),
        sample: "\"127.0.0.1:9443\"",
        describe: "Where it answers TLS, if that is not its target.",
    },
    Field {
        name: "host",
        expected: NAMES,
        preset: Preset::Absent("none"),
        sample: "\"web.example.org\"",
        describe: "Its HTTP hosts at the ports of [router] http.",
    },
    Field {
        name: "protocol",
        expected: PROTOCOL,
        preset: Preset::Is("\"tcp\""),
        sample: "\"tcp\"",
        describe: "What is spoken at `listen`. With \"http\" each request is read: a waiting page, robots by name and path, and connections that are only kept for the next request hold nobody.",
    },
    Field {
        name: "ready_path",
        expected: "a path such as \"/healthz\"",
        preset: Preset::Absent("ready when a connection stands"),
        sample: "\"/healthz\"",
        describe: "After a wake nobody is let through before a GET of this at `target`, in plain HTTP, is answered with 2xx or 3xx.",
    },
];

const PROTOCOL: &str = "\"tcp\" or \"http\"";

/// What earlier workers have taken: a port or a name leads to one of them.
#[derive(Debug)]
pub(super) struct Led<'a> {
    router: &'a Router,
    ports: &'a mut Ports,
    sni: BTreeMap<HostPattern, (WorkerId, Range<usize>)>,
    host: BTreeMap<HostPattern, (WorkerId, Range<usize>)>,
    /// Where workers answer, to be held against all doors once they are known.
    targets: Vec<(&'static str, SocketAddr, Range<usize>)>,
}

impl<'a> Led<'a> {
    pub(super) fn new(router: &'a Router, ports: &'a mut Ports) -> Self {
        Self { router, ports, sni: BTreeMap::new(), host: BTreeMap::new(), targets: Vec::new() }
    }

    pub(super) fn read(
        &mut self,
        report: &mut Report<'_>,
        section: &Section<'_>,
        kind: Option<DriverKind>,
    ) -> Ways {
        let ways = Ways {
            listen: section.read(report, "listen", read::address),
            target: section.read(report, "target", |value| target(value, kind)),
            sni: section.read(report, "sni", names).unwrap_or_default(),
            tls_target: section.read(report, "tls_target", |value| target(value, kind)),
            host: section.read(report, "host", names).unwrap_or_default(),
            protocol: section.read(report, "protocol", protocol).unwrap_or_default(),
            ready_path: section.read(report, "ready_path", ready_path),
            terms: door::read(report, section),
        };
        for (field, target) in [("target", ways.target), ("tls_target", ways.tls_target)] {
            if let Some(Target::Address(target)) = target {
                self.targets.push((field, target, section.span_of(field)));
            }
        }
        let rule = "needs target beside it: where the worker answers";
        let has_target = section.has("target");
        let missing = [
            ("listen", has_target),
            ("sni", has_target || section.has("tls_target")),
            ("host", has_target),
            ("ready_path", has_target),
        ];
        for (field, has_target) in missing {
            if section.has(field) && !has_target {
                report.add(&section.span_of(field), field, Fault::rule(rule));
            }
        }
        if section.has("sni") && self.router.tls.is_empty() {
            let rule = "needs a port that leads by name: [router] tls = [\"127.0.0.1:8443\"]";
            report.add(&section.span_of("sni"), "sni", Fault::rule(rule));
        }
        if section.has("host") && self.router.http.is_empty() {
            let rule = "needs a port that leads by host: [router] http = [\"127.0.0.1:8080\"]";
            report.add(&section.span_of("host"), "host", Fault::rule(rule));
        }
        if section.has("protocol") && !section.has("listen") {
            report.add(&section.span_of("protocol"), "protocol", Fault::rule("needs listen beside it"));
        }
        if section.has("tls_target") && !section.has("sni") {
            report.add(&section.span_of("tls_target"), "tls_target", Fault::rule("needs sni beside it"));
        }
        ways
    }

    pub(super) fn take(
        &mut self,
        report: &mut Report<'_>,
        section: &Section<'_>,
        ways: &Ways,
        id: &WorkerId,
    ) {
        if let Some(listen) = ways.listen {
            self.ports.take(report, &section.span_of("listen"), "listen", listen, &format!("worker {id}"));
        }
        take(&mut self.sni, report, section, ("sni", &ways.sni), id);
        take(&mut self.host, report, section, ("host", &ways.host), id);
    }

    /// To be called when all workers have been read.
    pub(super) fn check_targets(&self, report: &mut Report<'_>) {
        for (field, target, span) in &self.targets {
            self.ports.check_target(report, span, field, *target);
        }
    }
}

fn take(
    taken: &mut BTreeMap<HostPattern, (WorkerId, Range<usize>)>,
    report: &mut Report<'_>,
    section: &Section<'_>,
    (field, names): (&'static str, &[HostPattern]),
    id: &WorkerId,
) {
    let span = section.span_of(field);
    for name in names {
        if let Some((other, first)) = taken.get(name) {
            let fault =
                Fault::Taken { what: format!("{:?}", name.to_string()), by: format!("worker {other}") };
            let first = Some(first).filter(|first| **first != span);
            let first = first.map(|first| (first, "first used here".to_owned()));
            report.add_with(&span, field, fault, first);
        } else {
            taken.insert(name.clone(), (id.clone(), span.clone()));
        }
    }
}

fn names(value: &DeValue<'_>) -> Result<Vec<HostPattern>, Fault> {
    let one = |value: &DeValue<'_>| {
        let name = value.as_str().and_then(|text| text.parse().ok());
        name.ok_or_else(|| Fault::expected(NAMES, describe(value)))
    };
    match value.as_array() {
        Some(items) if !items.is_empty() => items.iter().map(|item| one(item.get_ref())).collect(),
        Some(_) | None => Ok(vec![one(value)?]),
    }
}

fn protocol(value: &DeValue<'_>) -> Result<Protocol, Fault> {
    match value.as_str() {
        Some("tcp") => Ok(Protocol::Tcp),
        Some("http") => Ok(Protocol::Http),
        Some(_) | None => Err(Fault::expected(PROTOCOL, describe(value))),
    }
}

/// It goes into a request line as it is.
fn ready_path(value: &DeValue<'_>) -> Result<String, Fault> {
    let is_path = |path: &&str| path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    let path = value.as_str().filter(is_path);
    path.map(str::to_owned).ok_or_else(|| Fault::expected("a path such as \"/healthz\"", describe(value)))
}

fn target(value: &DeValue<'_>, kind: Option<DriverKind>) -> Result<Target, Fault> {
    let wrong = || Fault::expected(TARGET, describe(value));
    let text = value.as_str().unwrap_or_default();
    if let Some(port) = text.strip_prefix(':').and_then(|port| port.parse().ok()).filter(|port| *port > 0) {
        return match kind {
            Some(DriverKind::Docker | DriverKind::Ec2) | None => Ok(Target::Port(port)),
            Some(DriverKind::Process | DriverKind::Qemu | DriverKind::Sim) => Err(wrong()),
        };
    }
    let address = read::address(value).ok().filter(|address| address.port() > 0);
    address.map(Target::Address).ok_or_else(wrong)
}
