//! What is stored about a worker beside its state: how its driver finds it and where it answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use drowse_core::host::HostPattern;
use drowse_core::id::WorkerId;
use drowse_core::policy::Selectors;
use drowse_core::savings::Money;
use drowse_core::signal::DriverKind;
use drowse_drivers::docker;
use serde::{Deserialize, Serialize};

use crate::config;

/// How a worker is configured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerSpec {
    /// What stands behind it.
    pub driver: DriverSpec,
    /// The router's port for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
    /// Where it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SocketAddr>,
    /// Its names at the ports that lead by TLS server name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sni: Vec<HostPattern>,
    /// Where it answers TLS, if that is not `target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_target: Option<SocketAddr>,
    /// Its names at the ports that lead by HTTP host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<HostPattern>,
    /// What is spoken at its own port.
    #[serde(default, skip_serializing_if = "config::Protocol::is_tcp")]
    pub protocol: config::Protocol,
    /// It is ready when a GET of this path is answered with success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_path: Option<String>,
    /// What an hour of it costs while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<Money>,
    /// What an hour of it costs while it is frozen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_price_per_hour: Option<Money>,
    /// The port at which it answers, if its driver knows the address of each run of it; `target` says nothing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_port: Option<u16>,
    /// The same for `tls_target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_target_port: Option<u16>,
    /// The file lists it: it leaves the books when the file no longer does.
    #[serde(default)]
    pub is_listed: bool,
    /// What it was found by: it leaves the books when that is no longer looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_by: Option<String>,
}

/// What stands behind a worker, in the words of its driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DriverSpec {
    /// A command on this machine.
    Process {
        /// The program and its arguments.
        command: Vec<String>,
        /// Where it is started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<PathBuf>,
        /// What is added to its environment.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        environment: BTreeMap<String, String>,
    },
    /// A container.
    Docker {
        /// Which.
        container: Container,
    },
    /// An invention of the tests.
    Sim,
}

/// Which container a worker is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Container {
    /// The one with this id, and no other.
    Id(String),
    /// Whichever bears this name, or has this id.
    Name(String),
    /// Whichever has this label.
    Label(String),
}

impl WorkerSpec {
    /// Whether there is a way to it through the router.
    pub fn is_routed(&self) -> bool {
        self.listen.is_some() || !self.sni.is_empty() || !self.host.is_empty()
    }

    /// Where it answers.
    pub fn place(&self) -> Option<config::Target> {
        place(self.target_port, self.target)
    }

    /// Where it answers TLS, if that is elsewhere.
    pub fn tls_place(&self) -> Option<config::Target> {
        place(self.tls_target_port, self.tls_target)
    }

    /// Everywhere where it answers.
    pub fn places(&self) -> impl Iterator<Item = config::Target> {
        self.place().into_iter().chain(self.tls_place())
    }
}

/// The port first: an address beside it was written down by a Drowse that did not know better, and may be anybody's.
fn place(port: Option<u16>, address: Option<SocketAddr>) -> Option<config::Target> {
    port.map(config::Target::Port).or(address.map(config::Target::Address))
}

impl DriverSpec {
    pub const fn kind(&self) -> DriverKind {
        match self {
            DriverSpec::Process { .. } => DriverKind::Process,
            DriverSpec::Docker { .. } => DriverKind::Docker,
            DriverSpec::Sim => DriverKind::Sim,
        }
    }

    pub(crate) fn for_driver(&self) -> drowse_drivers::Spec {
        match self {
            DriverSpec::Process { command, directory, environment } => {
                drowse_drivers::Spec::Process(drowse_drivers::process::Spec {
                    command: command.clone(),
                    dir: directory.clone(),
                    env: environment.clone(),
                })
            }
            DriverSpec::Docker { container } => {
                let container = match container.clone() {
                    Container::Id(id) => docker::Container::Id(id),
                    Container::Name(name) => docker::Container::Named(name),
                    Container::Label(label) => docker::Container::Labelled(label),
                };
                drowse_drivers::Spec::Docker(docker::Spec { container })
            }
            DriverSpec::Sim => drowse_drivers::Spec::Sim(Box::default()),
        }
    }
}

/// A worker to be put on the books.
#[derive(Clone, Debug, PartialEq)]
pub struct NewWorker {
    /// Its name.
    pub id: WorkerId,
    /// What selects its policy; the worker's own name is filled in.
    pub selectors: Selectors,
    /// How it is configured.
    pub spec: WorkerSpec,
    /// False: taken out of service, so nothing wakes it.
    pub in_service: bool,
}

/// A worker of the file whose driver this program does not have yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("worker {id}: the {driver} driver is not there yet")]
pub struct NoDriverYet {
    pub id: WorkerId,
    pub driver: DriverKind,
}

impl NewWorker {
    /// A worker as the file lists it.
    pub fn listed(worker: &config::Worker) -> Result<Self, NoDriverYet> {
        let driver = match &worker.driver {
            config::Driver::Process { command, directory } => DriverSpec::Process {
                command: command.clone(),
                directory: directory.clone(),
                environment: BTreeMap::new(),
            },
            config::Driver::Sim => DriverSpec::Sim,
            config::Driver::Docker { container } => DriverSpec::Docker {
                container: match container.clone() {
                    config::Container::Named(name) => Container::Name(name),
                    config::Container::Labelled(label) => Container::Label(label),
                },
            },
            config::Driver::Qemu { .. } | config::Driver::Ec2 { .. } => {
                return Err(NoDriverYet { id: worker.id.clone(), driver: worker.driver.kind() });
            }
        };
        let address = |target| match target {
            Some(config::Target::Address(address)) => Some(address),
            Some(config::Target::Port(_)) | None => None,
        };
        let port = |target| match target {
            Some(config::Target::Port(port)) => Some(port),
            Some(config::Target::Address(_)) | None => None,
        };
        let ways = &worker.ways;
        Ok(Self {
            id: worker.id.clone(),
            selectors: worker.selectors.clone(),
            spec: WorkerSpec {
                driver,
                listen: ways.listen,
                target: address(ways.target),
                sni: ways.sni.clone(),
                tls_target: address(ways.tls_target),
                host: ways.host.clone(),
                protocol: ways.protocol,
                ready_path: ways.ready_path.clone(),
                price_per_hour: worker.price_per_hour,
                paused_price_per_hour: worker.paused_price_per_hour,
                target_port: port(ways.target),
                tls_target_port: port(ways.tls_target),
                is_listed: true,
                found_by: None,
            },
            in_service: true,
        })
    }
}
