//! `[[worker]]`: the workers that the file lists.

mod driver;
mod route;
mod taken;
#[cfg(test)]
mod tests;

use std::ops::Range;

use toml::de::DeValue;

use drowse_core::id::WorkerId;
use drowse_core::policy::{Key, Level, Selectors, Value};
use drowse_core::reason::SleepMode;
use drowse_core::savings::Money;
use drowse_core::signal::{DriverKind, Nature};
use drowse_core::worker::Capabilities;

use super::door;
use super::policy::Layers;
use super::problem::{Fault, Report};
use super::read;
use super::router::Router;
use super::section::{Field, Node, Preset, Section, describe};
use super::suggest::nearest;
use super::taken::Ports;
pub use driver::{Boot, CmlAccess, CmlTls, Container, Driver};
pub(super) use driver::{CML, DOCKER, EC2, PROCESS, QEMU};
pub(super) use route::FIELDS as ROUTE;
use route::Led;
pub use route::{Protocol, Target, Ways};
use taken::{Taken, Thing, thing};

/// A worker that the file lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its id and what selects its policy. The group is its own, or else its owner's.
    pub selectors: Selectors,
    /// Its id.
    pub id: WorkerId,
    /// What observes and acts on it.
    pub driver: Driver,
    /// How clients come to it.
    pub ways: Ways,
    /// What an hour of it costs while it runs.
    pub price_per_hour: Option<Money>,
    /// What an hour of it costs while it is frozen; unless given, as much as while it runs.
    pub paused_price_per_hour: Option<Money>,
    /// Where its table begins, for messages about it.
    pub(super) span: Range<usize>,
}

impl Worker {
    /// What about it decides which signals it needs.
    pub fn nature(&self) -> Nature {
        Nature {
            driver: self.driver.kind(),
            is_cml: self.selectors.kind.as_deref() == Some(TYPE_CML),
            is_routed: self.ways.is_routed(),
            gpu_was_read: false,
        }
    }
}

/// The type of a CML controller.
const TYPE_CML: &str = "cml";

const DRIVER: &str = "\"process\", \"docker\", \"qemu\" or \"ec2\"";
const POLICY: &str = "policy keys such as policy.idle_timeout = \"10m\"";

pub(super) const COMMON: &[Field] = &[
    Field {
        name: "id",
        expected: "a name such as \"web\"",
        preset: Preset::Required,
        sample: "\"web\"",
        describe: "Its stable name: letters, digits, '.', '_' and '-'.",
    },
    Field {
        name: "driver",
        expected: DRIVER,
        preset: Preset::Required,
        sample: "\"process\"",
        describe: "What observes and acts on it.",
    },
    Field {
        name: "type",
        expected: "a name such as \"devcontainer\"",
        preset: Preset::Absent("none"),
        sample: "\"devcontainer\"",
        describe: "What it is: cml, gpu, devcontainer, compose, microvm, or a name of your own. Selects [policy.type.NAME].",
    },
    Field {
        name: "region",
        expected: "a name such as \"us-east-1\"",
        preset: Preset::Absent("none"),
        sample: "\"us-east-1\"",
        describe: "Where it runs. Selects [policy.region.NAME]; required for ec2.",
    },
    Field {
        name: "group",
        expected: "a name such as \"student\"",
        preset: Preset::Absent("the owner's group"),
        sample: "\"student\"",
        describe: "Selects [policy.group.NAME].",
    },
    Field {
        name: "owner",
        expected: "a name such as \"alice\"",
        preset: Preset::Absent("none"),
        sample: "\"alice\"",
        describe: "Whose it is. Selects [policy.owner.NAME].",
    },
    Field {
        name: "price_per_hour",
        expected: "a price of at least 0 such as 0.34",
        preset: Preset::Absent("hours without money"),
        sample: "0.34",
        describe: "What an hour of it costs, for the savings.",
    },
    Field {
        name: "paused_price_per_hour",
        expected: "a price of at least 0 such as 0.05",
        preset: Preset::Absent("as while it runs"),
        sample: "0.05",
        describe: "What an hour of it costs while it is frozen.",
    },
    Field {
        name: "policy",
        expected: POLICY,
        preset: Preset::Absent("from the other layers"),
        sample: "{ idle_timeout = \"10m\" }",
        describe: "The worker layer: any key of [policy].",
    },
];

const ALL: &[&[Field]] = &[COMMON, ROUTE, door::FIELDS, PROCESS, DOCKER, QEMU, EC2];

/// Reads the list of workers and their policy layers.
pub(super) fn read_all(
    report: &mut Report<'_>,
    node: &Node<'_>,
    layers: &mut Layers,
    router: &Router,
    ports: &mut Ports,
) -> Vec<Worker> {
    let DeValue::Array(items) = node.get_ref() else {
        report.add(&node.span(), "worker", Fault::expected("[[worker]]", describe(node.get_ref())));
        return Vec::new();
    };
    let mut workers = Vec::new();
    let (mut taken, mut led) = (Taken::default(), Led::new(router, ports));
    for item in items {
        if let Some(worker) = read(report, item, layers, &mut taken, &mut led) {
            workers.push(worker);
        }
    }
    led.check_targets(report);
    workers
}

fn read(
    report: &mut Report<'_>,
    node: &Node<'_>,
    layers: &mut Layers,
    taken: &mut Taken,
    led: &mut Led<'_>,
) -> Option<Worker> {
    let section = Section::of(report, node, "[[worker]]", ALL)?;
    let id = section.require(report, "id", |value| Ok(read::text(value)?.parse::<WorkerId>()?));
    if let Some(id) = &id {
        taken.take(report, &section, "id", Thing::Id(id.to_string()), id);
    }
    let kind = section.require(report, "driver", driver_kind);
    let mut selectors = Selectors {
        worker: id.as_ref().map(ToString::to_string).unwrap_or_default(),
        region: section.read(report, "region", read::word),
        kind: section.read(report, "type", read::word),
        group: section.read(report, "group", read::word),
        owner: section.read(report, "owner", read::word),
    };
    selectors.kind = selectors.kind.or_else(|| default_type(kind));
    let ways = led.read(report, &section, kind);
    let price_per_hour = section.read(report, "price_per_hour", read::price);
    let paused_price_per_hour = section.read(report, "paused_price_per_hour", read::price);
    let driver = driver::read(report, &section, kind, &selectors);
    if let Some(node) = section.node("policy") {
        read_layer(report, node, layers, &selectors.worker, kind);
    }
    let span = section.span();
    if let Some(id) = &id {
        led.take(report, &section, &ways, id);
    }
    if let (Some(id), Some(thing)) = (&id, driver.as_ref().and_then(|driver| thing(driver, &selectors))) {
        taken.take(report, &section, thing.field(), thing, id);
    }
    section.finish(report);
    Some(Worker { selectors, id: id?, driver: driver?, ways, price_per_hour, paused_price_per_hour, span })
}

/// A worker of the QEMU driver is a microVM, whose type has built-in values.
fn default_type(kind: Option<DriverKind>) -> Option<String> {
    (kind == Some(DriverKind::Qemu)).then(|| "microvm".to_owned())
}

fn driver_kind(value: &DeValue<'_>) -> Result<DriverKind, Fault> {
    let written = value.as_str().unwrap_or_default();
    DriverKind::ALL.into_iter().find(|kind| kind.code() == written).ok_or_else(|| Fault::Unexpected {
        expected: DRIVER.to_owned(),
        found: describe(value),
        suggestion: nearest(written, DriverKind::ALL.map(DriverKind::code)),
    })
}

fn read_layer(
    report: &mut Report<'_>,
    node: &Node<'_>,
    layers: &mut Layers,
    id: &str,
    kind: Option<DriverKind>,
) {
    let DeValue::Table(table) = node.get_ref() else {
        let fault = Fault::expected(POLICY, describe(node.get_ref()));
        report.add(&node.span(), "policy", fault);
        return;
    };
    layers.read_layer(report, table, Level::Worker, Some(id));
    let sleep = layers.layers.last().and_then(|layer| layer.values.get(&Key::Sleep).cloned());
    let (Some(kind), Some(Value::Sleep(mode)), Some(node)) = (kind, sleep, table.get("sleep")) else {
        return;
    };
    // At the other layers it becomes `stop`, because they are for workers of many kinds; here it is a slip.
    let can = Capabilities::of(kind);
    let possible: Vec<SleepMode> = SleepMode::ALL.into_iter().filter(|mode| can_do(can, *mode)).collect();
    if !possible.contains(&mode) {
        let words: Vec<String> = possible.iter().map(|mode| format!("{:?}", mode.code())).collect();
        let rule = format!("the {kind} driver cannot {}: expected {}", mode.code(), words.join(" or "));
        report.add(&node.span(), "sleep", Fault::rule(rule));
    }
}

const fn can_do(can: Capabilities, mode: SleepMode) -> bool {
    match mode {
        SleepMode::Freeze => can.can_freeze,
        SleepMode::Stop => true,
        SleepMode::Hibernate => can.can_hibernate,
    }
}
