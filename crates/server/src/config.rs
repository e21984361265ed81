//! `drowse.toml`: from text to typed values, or to every mistake in it with its place.
//!
//! [`parse`] is pure: the text of the file, of the members files and of the environment go in, a [`Config`]
//! and a list of [`Problem`]s come out. [`load`] reads the files. One file here for each element of the
//! configuration, each with a table of texts and what becomes of them.
//!
//! What must stay true:
//! - nothing that is written is ignored: a key that nobody reads is a problem;
//! - a file is read to its end, so that it can be mended in one go;
//! - a bad exemption costs no other exemption anything.

mod brake;
mod check;
mod door;
mod driver;
mod example;
mod exemption;
mod group;
mod journal;
mod load;
mod policy;
mod problem;
mod read;
mod reference;
mod resolved;
mod router;
mod schedule;
mod section;
mod sensor;
mod server;
mod source;
mod suggest;
mod syntax;
mod taken;
#[cfg(test)]
mod tests;
mod worker;

use std::collections::BTreeMap;

use drowse_core::brake::BrakeTerms;
use drowse_core::policy::exemption::Exemption;
use drowse_core::policy::{
    Key, Level, Origin, PolicyBook, Selectors, Source as From, Value, environment_layer,
};

pub(crate) use check::reads_telemetry;
pub use door::{Terms, Waiting};
pub use driver::{Docker, Ec2, Tag};
pub use example::example;
pub use group::{Groups, MembersFile, parse_members};
pub use journal::Journal;
pub use load::{LoadError, load, load_with, remember};
pub use problem::{Fault, Note, Problem};
pub use reference::reference;
pub use resolved::Resolved;
pub use router::Router;
pub use sensor::{Cml, Login};
pub use server::{Database, Server};
pub use source::Place;
pub use suggest::nearest;
pub(crate) use taken::{leads_to, listens_twice};
pub use worker::{Boot, CmlAccess, CmlTls, Container, Driver, Protocol, Target, Ways, Worker};

use policy::Layers;
use problem::Report;
use section::{Field, Preset, Section};
use source::Source;
use taken::Ports;

/// Everything that the file, the members files and the environment say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Where Drowse answers and remembers.
    pub server: Server,
    /// The front door.
    pub router: Router,
    /// The layers of the file and of the environment.
    pub policy: PolicyBook,
    /// The listed workers, in the order of the file.
    pub workers: Vec<Worker>,
    /// Who is spared what.
    pub exemptions: Vec<Exemption>,
    /// Who belongs to which group.
    pub groups: Groups,
    /// How containers are found.
    pub docker: Docker,
    /// How instances are found.
    pub ec2: Ec2,
    /// How CML's telemetry is read.
    pub cml: Cml,
    /// When the fleet brake engages.
    pub brake: BrakeTerms,
    /// How long history is kept.
    pub journal: Journal,
    /// Where the file sets which value.
    places: BTreeMap<(Level, Option<String>, Key), Place>,
}

impl Config {
    /// Where the file sets `key` in the layer that `origin` names.
    pub fn place(&self, origin: &Origin, key: Key) -> Option<&Place> {
        let is_written = origin.source == From::File && origin.follows.is_none();
        is_written.then(|| self.places.get(&(origin.level, origin.name.clone(), key)))?
    }
}

/// What a configuration is made from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The file as it is shown in messages.
    pub file: &'a str,
    /// What it says.
    pub text: &'a str,
    /// The members files beside it.
    pub members: &'a [MembersFile],
    /// The environment. What Drowse does not know is none of its business.
    pub variables: &'a [(String, String)],
}

/// A configuration and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// What could be read.
    pub config: Config,
    /// What could not, in the order of the file.
    pub problems: Vec<Problem>,
}

impl Parsed {
    /// The configuration, if nothing at all is wrong.
    pub fn strict(self) -> Result<Config, Vec<Problem>> {
        if self.problems.is_empty() { Ok(self.config) } else { Err(self.problems) }
    }

    /// The configuration, if nothing is wrong but what costs nobody anything. A server that did
    /// not start because of one record would leave everybody else's workers without anybody.
    pub fn lenient(self) -> Result<(Config, Vec<Problem>), Vec<Problem>> {
        if self.problems.iter().all(|problem| problem.costs_nobody) {
            Ok((self.config, self.problems))
        } else {
            Err(self.problems)
        }
    }
}

/// The tables of the file.
const TABLES: &[Field] = &[
    table("server", "[server]", "Where Drowse answers and remembers."),
    table("router", "[router]", "The front door, as far as workers share it."),
    table("policy", "[policy]", "The settings of workers."),
    table("worker", "[[worker]]", "The workers that are listed."),
    table("exemption", "[[exemption]]", "Who is spared what."),
    table("driver", "[driver.NAME]", "How workers are found."),
    table("sensor", "[sensor.NAME]", "How evidence is read from elsewhere."),
    table("brake", "[brake]", "When the fleet brake engages."),
    table("journal", "[journal]", "How long history is kept."),
];

const fn table(name: &'static str, expected: &'static str, describe: &'static str) -> Field {
    Field { name, expected, preset: Preset::Absent("built-in values"), sample: "", describe }
}

/// Parses a configuration.
pub fn parse(input: &Input<'_>) -> Parsed {
    let mut report = Report::new(Source::new(input.file, input.text));
    let mut config = Config { groups: group::read(&mut report, input.members), ..Config::default() };
    let mut environment = Vec::new();
    match environment_layer(input.variables.iter().map(|(name, text)| (name.as_str(), text.as_str()))) {
        Ok(layers) => environment = layers,
        Err(errors) => errors.into_iter().for_each(|error| report.add_outside(error.into())),
    }
    let mut layers = Layers::default();
    if let Some(root) = syntax::parse(&mut report) {
        // A worker that comes by itself, from a label or the API, comes without the groups of the fleet.
        let is_alone = input.file.is_empty();
        read_tables(&mut report, &root, &mut config, &mut layers, is_alone);
        config.policy = PolicyBook::new(layers.layers.drain(..).chain(environment).collect());
        check::check(&mut report, &config.policy, &layers, &config.workers);
        config.places =
            layers.places().map(|(key, span)| (key.clone(), report.source().place(span.start))).collect();
    }
    // The brake watches for one `stale_after` of the fleet.
    config.brake.threshold = config.policy.resolve_for(&Selectors::default()).0.stale_after;
    Parsed { config, problems: report.finish() }
}

fn read_tables(
    report: &mut Report<'_>,
    root: &toml::de::DeTable<'_>,
    config: &mut Config,
    layers: &mut Layers,
    is_alone: bool,
) {
    let section = Section::new(root, 0..0, &[TABLES]);
    if let Some(node) = section.node("server") {
        config.server = server::read(report, node);
    }
    let mut ports = Ports::of_server(config.server.listen);
    if let Some(node) = section.node("router") {
        config.router = router::read(report, node, &mut ports);
    }
    if let Some(node) = section.node("policy") {
        layers.read(report, node);
    }
    if let Some(node) = section.node("worker") {
        config.workers = worker::read_all(report, node, layers, &config.router, &mut ports);
    }
    if let Some(node) = section.node("exemption") {
        config.exemptions = exemption::read_all(report, node);
    }
    if let Some(node) = section.node("driver") {
        (config.docker, config.ec2) = driver::read(report, node);
    }
    if let Some(node) = section.node("sensor") {
        let (cml, interval) = sensor::read(report, node);
        config.cml = cml;
        if let Some((interval, span)) = interval {
            layers.set_global(report, Key::TelemetryInterval, Value::Duration(interval), "interval", span);
        }
    }
    if let Some(node) = section.node("brake") {
        config.brake = brake::read(report, node);
    }
    if let Some(node) = section.node("journal") {
        config.journal = journal::read(report, node);
    }
    if !is_alone {
        group::check(report, section.node("worker"), layers, &config.groups, &config.exemptions);
    }
    section.finish(report);
    for worker in &mut config.workers {
        let selectors = &mut worker.selectors;
        if selectors.group.is_none() {
            selectors.group =
                selectors.owner.as_deref().and_then(|owner| config.groups.of(owner)).map(ToOwned::to_owned);
        }
    }
}
