//! `[driver.docker]` and `[driver.ec2]`: how workers are found that the file does not list.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml::de::DeValue;

use drowse_core::savings::Money;

use super::problem::{Fault, Report};
use super::read;
use super::section::{Field, Node, Preset, Section, describe, written};

/// `[driver.docker]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Docker {
    /// Containers with this label are taken care of: `KEY` or `KEY=VALUE`.
    pub discover: Option<String>,
    /// Where the engine answers.
    pub socket: Option<PathBuf>,
    /// NVIDIA's library, if not the one that its driver installs.
    pub nvml: Option<PathBuf>,
}

/// `[driver.ec2]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ec2 {
    /// The regions in which instances are looked for.
    pub regions: Vec<String>,
    /// Instances with this tag and value are taken care of.
    pub discover: Option<Tag>,
    /// Another address of the EC2 API, for tests.
    pub endpoint: Option<String>,
    /// What an hour of an instance type costs.
    pub price_per_hour: BTreeMap<String, Money>,
}

/// A tag of an EC2 instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: String,
}

pub(super) const TABLES: &[Field] = &[
    Field {
        name: "docker",
        expected: "a table [driver.docker]",
        preset: Preset::Absent("no discovery"),
        sample: "",
        describe: "Containers.",
    },
    Field {
        name: "ec2",
        expected: "a table [driver.ec2]",
        preset: Preset::Absent("no discovery"),
        sample: "",
        describe: "Cloud VMs.",
    },
];

pub(super) const DOCKER: &[Field] = &[
    Field {
        name: "discover",
        expected: "a label such as \"label=drowse.enable=true\"",
        preset: Preset::Absent("only listed workers"),
        sample: "\"label=drowse.enable=true\"",
        describe: "Containers with this label become workers; the labels drowse.name, drowse.group, drowse.owner, drowse.region, drowse.type, drowse.port, drowse.listen, drowse.protected and drowse.policy.KEY say more.",
    },
    Field {
        name: "socket",
        expected: "the path of a socket",
        preset: Preset::Absent("DOCKER_HOST, or /var/run/docker.sock"),
        sample: "\"/var/run/docker.sock\"",
        describe: "Where the engine answers.",
    },
    Field {
        name: "nvml",
        expected: "the path of a library",
        preset: Preset::Absent("libnvidia-ml.so.1, if it is there"),
        sample: "\"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1\"",
        describe: "NVIDIA's library that tells what containers use of graphics processors.",
    },
];

pub(super) const EC2: &[Field] = &[
    Field {
        name: "regions",
        expected: "a list of regions such as [\"us-east-1\"]",
        preset: Preset::Absent("none"),
        sample: "[\"us-east-1\"]",
        describe: "The regions in which instances are looked for.",
    },
    Field {
        name: "discover",
        expected: "a tag such as \"tag:drowse=true\"",
        preset: Preset::Absent("only listed workers"),
        sample: "\"tag:drowse=true\"",
        describe: "Instances with this tag become workers; the tags drowse:group, drowse:owner and drowse:type say more.",
    },
    Field {
        name: "endpoint",
        expected: "a URL such as \"http://127.0.0.1:5000\"",
        preset: Preset::Absent("Amazon's"),
        sample: "\"http://127.0.0.1:5000\"",
        describe: "Another address of the EC2 API, for tests.",
    },
    Field {
        name: "price_per_hour",
        expected: "prices by instance type such as { \"m5.4xlarge\" = 0.768 }",
        preset: Preset::Absent("hours without money"),
        sample: "{ \"m5.4xlarge\" = 0.768 }",
        describe: "What an hour of an instance type costs, for the savings.",
    },
];

pub(super) fn read(report: &mut Report<'_>, node: &Node<'_>) -> (Docker, Ec2) {
    let Some(section) = Section::of(report, node, "[driver.NAME]", &[TABLES]) else {
        return Default::default();
    };
    let docker = section.node("docker").map(|node| docker(report, node));
    let ec2 = section.node("ec2").map(|node| ec2(report, node));
    section.finish(report);
    (docker.unwrap_or_default(), ec2.unwrap_or_default())
}

fn docker(report: &mut Report<'_>, node: &Node<'_>) -> Docker {
    let Some(section) = Section::of(report, node, "[driver.docker]", &[DOCKER]) else {
        return Docker::default();
    };
    let discover = section.read(report, "discover", label);
    let socket = section.read(report, "socket", read::path);
    let nvml = section.read(report, "nvml", read::path);
    section.finish(report);
    Docker { discover, socket, nvml }
}

/// `label=KEY` or `label=KEY=VALUE`, as `docker ps --filter` has it.
pub(super) fn label(value: &DeValue<'_>) -> Result<String, Fault> {
    let label = value.as_str().and_then(|text| text.strip_prefix("label="));
    label
        .filter(|label| !label.is_empty() && !label.starts_with('='))
        .map(ToOwned::to_owned)
        .ok_or_else(|| Fault::expected(DOCKER[0].expected, describe(value)))
}

fn ec2(report: &mut Report<'_>, node: &Node<'_>) -> Ec2 {
    let Some(section) = Section::of(report, node, "[driver.ec2]", &[EC2]) else { return Ec2::default() };
    let regions = section.read(report, "regions", read::texts(EC2[0].expected)).unwrap_or_default();
    let discover = section.read(report, "discover", tag);
    let endpoint = section.read(report, "endpoint", read::url);
    let price_per_hour = section.node("price_per_hour").map(|node| prices(report, node)).unwrap_or_default();
    if discover.is_some() && !section.has("regions") {
        let rule = "needs regions = [\"…\"]: where to look";
        report.add(&section.span_of("discover"), "discover", Fault::rule(rule));
    }
    section.finish(report);
    Ec2 { regions, discover, endpoint, price_per_hour }
}

fn tag(value: &DeValue<'_>) -> Result<Tag, Fault> {
    let parts = value.as_str().and_then(|text| text.strip_prefix("tag:")?.split_once('='));
    match parts {
        Some((key, value)) if !key.is_empty() => Ok(Tag { key: key.to_owned(), value: value.to_owned() }),
        _ => Err(Fault::expected(EC2[1].expected, describe(value))),
    }
}

fn prices(report: &mut Report<'_>, node: &Node<'_>) -> BTreeMap<String, Money> {
    let DeValue::Table(table) = node.get_ref() else {
        let fault = Fault::expected(EC2[3].expected, describe(node.get_ref()));
        report.add(&node.span(), "price_per_hour", fault);
        return BTreeMap::new();
    };
    let mut prices = BTreeMap::new();
    for (kind, node) in table {
        match read::price(node.get_ref()) {
            Ok(price) => {
                prices.insert(kind.get_ref().to_string(), price);
            }
            Err(fault) => {
                report.add(&node.span(), format!("price_per_hour.{}", written(kind.get_ref())), fault);
            }
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors, parse};
    use super::*;

    #[test]
    fn drivers_are_read() {
        let config = parse("[driver.docker]\ndiscover = \"label=drowse.enable=true\"");
        assert_eq!(config.docker.discover.as_deref(), Some("drowse.enable=true"));
        let config = parse(
            "[driver.ec2]\nregions = [\"us-east-1\"]\ndiscover = \"tag:drowse=true\"\nendpoint = \"http://127.0.0.1:5000\"\nprice_per_hour = { \"m5.4xlarge\" = 0.768, small = 1 }",
        );
        assert_eq!(config.ec2.regions, ["us-east-1"]);
        assert_eq!(config.ec2.discover, Some(Tag { key: "drowse".into(), value: "true".into() }));
        assert_eq!(config.ec2.price_per_hour["m5.4xlarge"], Money::from_micros(768_000));
        assert_eq!(config.ec2.price_per_hour["small"], Money::from_micros(1_000_000));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            (
                "driver.docker.discover = \"drowse\"",
                "f:1:26: discover: expected a label such as \"label=drowse.enable=true\", found \"drowse\"",
            ),
            (
                "driver.ec2.regions = \"us-east-1\"",
                "f:1:22: regions: expected a list of regions such as [\"us-east-1\"], found \"us-east-1\"",
            ),
            (
                "driver.ec2.regions = []",
                "f:1:22: regions: expected a list of regions such as [\"us-east-1\"], found a list",
            ),
            (
                "driver.ec2.discover = \"tag:drowse=true\"",
                "f:1:23: discover: needs regions = [\"…\"]: where to look",
            ),
            (
                "driver.ec2.price_per_hour.\"m5.large\" = -1",
                "f:1:40: price_per_hour.\"m5.large\": expected a price of at least 0 such as 0.34, found the number -1",
            ),
            (
                "driver.ec2.price_per_hour = 3",
                "f:1:29: price_per_hour: expected prices by instance type such as { \"m5.4xlarge\" = 0.768 }, found the number 3",
            ),
            ("driver.dokcer.discover = 1", "f:1:8: dokcer: unknown key; did you mean \"docker\"?"),
            ("driver.docker = true", "f:1:17: expected a table [driver.docker], found true"),
        ];
        for (text, error) in table {
            assert_eq!(errors(text), [error], "{text}");
        }
    }
}
