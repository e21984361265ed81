//! What the file, the environment and the command line say, together.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use drowse_core::id::WorkerId;
use drowse_core::signal::DriverKind;
use drowse_drivers::docker::USUAL_SOCKET;
use drowse_router::route::Rules;
use drowse_router::{Leads, Names, Route};
use drowse_server::LookFor;
use drowse_server::config::{self, Config, Database, Input, Parsed, Problem};
use drowse_server::policies::FileLayers;
use drowse_server::spec::NewWorker;

use super::Args;
use super::doors::Door;
use crate::cmd::check_config::{error_line, variables};
use crate::output;

/// Everything that was said.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) config: Config,
    /// The workers of the file, as they go onto the books.
    pub(super) listed: Vec<NewWorker>,
    /// Where they come from, to be read again.
    file: Option<PathBuf>,
    listen: Option<SocketAddr>,
    database: Option<Database>,
}

/// The file that is read if none is given and it is there.
const USUAL: &str = "drowse.toml";

impl Settings {
    pub(super) fn load(args: &Args, file: Option<PathBuf>) -> anyhow::Result<Self> {
        let file = file.or_else(|| Path::new(USUAL).exists().then(|| USUAL.into()));
        let database = args.database.as_deref().map(database).transpose()?;
        Self::read(file, args.listen, database)
    }

    /// Reads the same again.
    pub(super) fn again(&self) -> anyhow::Result<Self> {
        Self::read(self.file.clone(), self.listen, self.database.clone())
    }

    fn read(
        file: Option<PathBuf>,
        listen: Option<SocketAddr>,
        database: Option<Database>,
    ) -> anyhow::Result<Self> {
        let parsed = match &file {
            Some(file) => {
                config::load(file, &variables()).map_err(|error| anyhow!("{}", error_line(&error)))?
            }
            None => parse("", USUAL),
        };
        let shown = file.as_deref().unwrap_or(Path::new(USUAL)).display();
        let (mut config, problems) =
            parsed.lenient().map_err(|problems| anyhow!("{}", one_line(&problems, &shown.to_string())))?;
        for problem in problems {
            output::talk(&format!("drowse: left out: {}\n", first_line(&problem)));
        }
        config.server.listen = listen.unwrap_or(config.server.listen);
        if let Some(database) = &database {
            config.server.database = database.clone();
        }
        let workers = config
            .workers
            .iter()
            .map(|worker| {
                if worker.driver.kind() == DriverKind::Sim {
                    return Err(anyhow!("{shown}: worker {}: the sim driver is for tests only", worker.id));
                }
                NewWorker::listed(worker).map_err(|error| anyhow!("{shown}: {error}"))
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { config, listed: workers, file, listen, database })
    }

    pub(super) fn layers(&self) -> FileLayers {
        FileLayers { policy: self.config.policy.clone(), exemptions: self.config.exemptions.clone() }
    }

    /// What is looked for beside the listed workers.
    pub(super) fn look_for(&self) -> LookFor {
        LookFor { docker: self.config.docker.discover.clone(), groups: self.config.groups.clone() }
    }

    /// Where the Docker engine answers.
    pub(super) fn docker_socket(&self) -> PathBuf {
        let variable = std::env::var("DOCKER_HOST").ok();
        let said = variable.as_deref().and_then(|host| host.strip_prefix("unix://")).map(PathBuf::from);
        self.config.docker.socket.clone().or(said).unwrap_or_else(|| USUAL_SOCKET.into())
    }

    /// The doors of the listed workers, and those that they share.
    pub(super) fn doors(&self) -> Vec<Door> {
        let own =
            self.listed.iter().filter_map(|new| Some(door(&new.id, new.spec.listen?, new.spec.target?)));
        let mut doors: Vec<Door> = own.collect();
        let tls = Arc::new(Names::new(self.listed.iter().flat_map(|new| {
            let target = new.spec.tls_target.or(new.spec.target);
            let route = target.map(|target| Arc::new(route(&new.id, target)));
            let names = new.spec.sni.iter().cloned();
            names.filter_map(move |name| Some((name, route.clone()?)))
        })));
        for listen in &self.config.router.tls {
            let leads = Leads::Tls(Arc::clone(&tls));
            doors.push(Door { listen: *listen, leads, whose: "[router] tls".to_owned() });
        }
        doors
    }
}

/// The door of one worker.
pub(super) fn door(worker: &WorkerId, listen: SocketAddr, target: SocketAddr) -> Door {
    Door { listen, leads: Leads::Port(route(worker, target)), whose: format!("worker {worker}") }
}

fn route(worker: &WorkerId, target: SocketAddr) -> Route {
    Route { worker: worker.clone(), target, rules: Rules::default() }
}

fn parse(text: &str, shown: &str) -> Parsed {
    config::parse(&Input { file: shown, text, members: &[], variables: &variables() })
}

/// A database on the command line is what it would be in the file, with the same rules.
fn database(url: &str) -> anyhow::Result<Database> {
    let text = format!("server.database = {}\n", toml::Value::String(url.to_owned()));
    let input = Input { file: "--database", text: &text, members: &[], variables: &[] };
    let config = config::parse(&input)
        .strict()
        .map_err(|problems| anyhow!("{}", problems.first().map_or_else(String::new, Problem::message)));
    Ok(config.context("--database")?.server.database)
}

/// The first problem; who wants them all asks for them.
fn one_line(problems: &[Problem], shown: &str) -> String {
    let first = problems.first().map(first_line).unwrap_or_default();
    match problems.len() {
        0 | 1 => first,
        more => format!("{first} (and {} more: drowse check-config {shown})", more - 1),
    }
}

fn first_line(problem: &Problem) -> String {
    problem.to_string().lines().next().unwrap_or_default().to_owned()
}
