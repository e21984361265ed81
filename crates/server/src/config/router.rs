//! `[router]`: the front door, as far as workers share it.

use std::net::SocketAddr;
use std::time::Duration;

use drowse_core::address::Network;
use toml::de::DeValue;

use super::door;
use super::problem::{Fault, Report};
use super::read;
use super::section::{Field, Node, Preset, Section, describe};
use super::taken::Ports;

/// `[router]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Router {
    /// Ports that lead by TLS server name.
    pub tls: Vec<SocketAddr>,
    /// Ports that lead by HTTP host.
    pub http: Vec<SocketAddr>,
    /// How many workers come up at once.
    pub waking: Option<u32>,
    /// How long connections are carried on after a planned restart; `None`: to their end.
    pub drain_for: Option<Duration>,
    /// Proxies whose word is taken for where a client is.
    pub trusted_proxies: Vec<Network>,
    /// On what terms somebody comes, unless the worker says otherwise.
    pub terms: door::Terms,
}

pub(super) const FIELDS: &[Field] = &[
    Field {
        name: "tls",
        expected: ADDRESSES,
        preset: Preset::Absent("none"),
        sample: "[\"127.0.0.1:8443\"]",
        describe: "Ports that all workers with `sni` share. A client is led by the server name that it asks for; the TLS ends at the worker, which keeps its certificate.",
    },
    Field {
        name: "http",
        expected: ADDRESSES,
        preset: Preset::Absent("none"),
        sample: "[\"127.0.0.1:8080\"]",
        describe: "Ports that all workers with `host` share. Each request is led by its host; a connection that is only kept for the next one holds no worker.",
    },
    Field {
        name: "waking",
        expected: "a whole number from 1 to 10000",
        preset: Preset::Is("32"),
        sample: "32",
        describe: "How many workers of this machine come up at once for connections; the others have their turn after them.",
    },
    Field {
        name: "drain_for",
        expected: "a duration of at least 1s such as \"12h\"",
        preset: Preset::Absent("to their end"),
        sample: "\"12h\"",
        describe: "How long the Drowse that `--take-over` has replaced carries the connections it has; what lasts longer is cut.",
    },
    Field {
        name: "trusted_proxies",
        expected: door::NETWORKS,
        preset: Preset::Absent("none"),
        sample: "[\"10.0.0.0/8\"]",
        describe: "HTTP proxies in front of Drowse: what they say of their clients (X-Forwarded-For, -Host and -Proto, X-Real-IP, Forwarded) reaches the worker. From anybody else Drowse says what it sees itself.",
    },
];

const ADDRESSES: &str = "a list of addresses and ports such as [\"127.0.0.1:8443\"]";

pub(super) fn read(report: &mut Report<'_>, node: &Node<'_>, ports: &mut Ports) -> Router {
    let mut router = Router::default();
    let Some(section) = Section::of(report, node, "[router]", &[FIELDS, door::FIELDS]) else { return router };
    router.tls = section.read(report, "tls", addresses).unwrap_or_default();
    router.http = section.read(report, "http", addresses).unwrap_or_default();
    router.waking = section.read(report, "waking", read::count(1, 10_000));
    router.drain_for = section.read(report, "drain_for", read::interval);
    router.trusted_proxies = section.read(report, "trusted_proxies", door::networks).unwrap_or_default();
    router.terms = door::read(report, &section);
    for (field, listens) in [("tls", &router.tls), ("http", &router.http)] {
        for listen in listens {
            ports.take(report, &section.span_of(field), field, *listen, "the router's shared port");
        }
    }
    section.finish(report);
    router
}

fn addresses(value: &DeValue<'_>) -> Result<Vec<SocketAddr>, Fault> {
    let items = value.as_array().ok_or_else(|| Fault::expected(ADDRESSES, describe(value)))?;
    items.iter().map(|item| read::address(item.get_ref())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, parse};

    #[test]
    fn shared_ports_are_read() {
        let router = parse("[router]\ntls = [\"127.0.0.1:8443\", \"[::1]:8443\"]").router;
        assert_eq!(router.tls, ["127.0.0.1:8443".parse().unwrap(), "[::1]:8443".parse().unwrap()]);
        assert!(parse("").router.tls.is_empty());
        assert!(parse("").router.trusted_proxies.is_empty());
        assert_eq!(parse("").router.drain_for, None);
        let hours = parse("router.drain_for = \"12h\"").router.drain_for;
        assert_eq!(hours, Some(std::time::Duration::from_hours(12)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            (
                "router.tls = \"127.0.0.1:1\"",
                "f:1:14: tls: expected a list of addresses and ports such as [\"127.0.0.1:8443\"], found \"127.0.0.1:1\"",
            ),
            (
                "router.tls = [443]",
                "f:1:14: tls: expected an address and a port such as \"127.0.0.1:8001\", found the number 443",
            ),
            (
                "router.tls = [\"127.0.0.1:7070\"]",
                "f:1:14: tls: 127.0.0.1:7070 is already used by the server itself",
            ),
            (
                "router.tls = [\"127.0.0.1:1\", \"127.0.0.1:1\"]",
                "f:1:14: tls: 127.0.0.1:1 is already used by the router's shared port",
            ),
            (
                "router.trusted_proxies = [\"proxy\"]",
                "f:1:26: trusted_proxies: expected a list of addresses or ranges such as [\"10.0.0.0/8\"], found \"proxy\"",
            ),
            (
                "router.drain_for = 12",
                "f:1:20: drain_for: a bare number has no unit: write \"12s\", \"12m\" or \"12h\"",
            ),
            ("router.tsl = []", "f:1:8: tsl: unknown key; did you mean \"tls\"?"),
        ];
        for (text, error) in table {
            assert_eq!(errors(text), [error], "{text}");
        }
    }
}
