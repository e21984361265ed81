//! What the file, the environment and the command line say, together.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use drowse_core::id::WorkerId;
use drowse_core::signal::DriverKind;
use drowse_drivers::docker::USUAL_SOCKET;
use drowse_router::route::{Place, Ready, Site, Target};
use drowse_router::{Leads, Names, Route};
use drowse_server::LookFor;
use drowse_server::config::{self, Config, Database, Input, Parsed, Problem, Protocol};
use drowse_server::http::SharedPorts;
use drowse_server::policies::FileLayers;
use drowse_server::spec::NewWorker;

use super::Args;
use super::doors::Door;
use super::terms::Terms;
use crate::cmd::check_config::{error_line, variables};
use crate::output;

/// Everything that was said.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) config: Config,
    /// The workers of the file, as they go onto the books.
    pub(super) listed: Vec<NewWorker>,
    /// On what terms somebody comes to them.
    rules: Terms,
    /// Where they come from, to be read again.
    file: Option<PathBuf>,
    /// Where what the members files said is kept.
    kept: PathBuf,
    listen: Option<SocketAddr>,
    database: Option<Database>,
}

/// The file that is read if none is given and it is there.
const USUAL: &str = "drowse.toml";

/// The folder for what the members files said, in the data folder.
const KEPT: &str = "members";

impl Settings {
    pub(super) fn load(args: &Args, file: Option<PathBuf>) -> anyhow::Result<Self> {
        let file = file.or_else(|| Path::new(USUAL).exists().then(|| USUAL.into()));
        let database = args.database.as_deref().map(database).transpose()?;
        Self::read(file, args.data().join(KEPT), args.listen, database)
    }

    /// Reads the same again.
    pub(super) fn again(&self) -> anyhow::Result<Self> {
        Self::read(self.file.clone(), self.kept.clone(), self.listen, self.database.clone())
    }

    fn read(
        file: Option<PathBuf>,
        kept: PathBuf,
        listen: Option<SocketAddr>,
        database: Option<Database>,
    ) -> anyhow::Result<Self> {
        let parsed = match &file {
            Some(file) => config::load_with(file, &variables(), Some(&kept))
                .map_err(|error| anyhow!("{}", error_line(&error)))?,
            None => parse("", USUAL),
        };
        let shown = file.as_deref().unwrap_or(Path::new(USUAL)).display();
        let (mut config, problems) =
            parsed.lenient().map_err(|problems| anyhow!("{}", one_line(&problems, &shown.to_string())))?;
        for problem in problems {
            output::talk(&format!("drowse: to be put right: {}\n", first_line(&problem)));
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
        let beside = file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let rules = Terms::read(&config, beside).with_context(|| shown.to_string())?;
        Ok(Self { config, listed: workers, rules, file, kept, listen, database })
    }

    /// Keeps who belongs to which group: a file that is missing another time takes nobody out of one.
    pub(super) fn remember_members(&self) {
        if let Err(error) = config::remember(&self.config.groups, &self.kept) {
            tracing::warn!(%error, "cannot keep who belongs to which group");
        }
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
        let mut doors: Vec<Door> = Vec::new();
        let (mut tls, mut http) = (Vec::new(), Vec::new());
        for new in &self.listed {
            let spec = &new.spec;
            // It says in plain HTTP that it is ready, also to those who come by TLS.
            let ready = spec.ready_path.as_ref().zip(spec.place());
            let ready = ready.map(|(path, at)| Arc::new(Ready { place: place(at), path: path.clone() }));
            let route = |target| Arc::new(self.route(&new.id, target, ready.clone()));
            if let Some(target) = spec.tls_place().or(spec.place()) {
                let route = route(target);
                tls.extend(spec.sni.iter().map(|name| (name.clone(), Arc::clone(&route))));
            }
            let Some(target) = spec.place() else { continue };
            http.extend(spec.host.iter().map(|name| (name.clone(), route(target))));
            if let Some(listen) = spec.listen {
                let leads = match spec.protocol {
                    Protocol::Tcp => Leads::Port(Route::clone(&route(target))),
                    Protocol::Http => Leads::Http(Arc::new(Names::any(route(target)))),
                };
                doors.push(Door { listen, leads, whose: format!("worker {}", new.id) });
            }
        }
        let (tls, http) = (Arc::new(Names::new(tls)), Arc::new(Names::new(http)));
        let shared = &self.config.router;
        for (listens, leads, whose) in [
            (&shared.tls, Leads::Tls(tls), "[router] tls"),
            (&shared.http, Leads::Http(http), "[router] http"),
        ] {
            let open =
                |listen: &SocketAddr| Door { listen: *listen, leads: leads.clone(), whose: whose.to_owned() };
            doors.extend(listens.iter().map(open));
        }
        doors
    }

    /// Where browsers find workers by name.
    pub(super) fn shared_ports(&self) -> SharedPorts {
        let first = |listens: &[SocketAddr]| listens.first().map(SocketAddr::port);
        SharedPorts { tls: first(&self.config.router.tls), http: first(&self.config.router.http) }
    }

    /// The door of a worker that came by the API.
    pub(super) fn door(&self, worker: &WorkerId, listen: SocketAddr, target: config::Target) -> Door {
        let leads = Leads::Port(self.route(worker, target, None));
        Door { listen, leads, whose: format!("worker {worker}") }
    }

    fn route(&self, worker: &WorkerId, at: config::Target, ready: Option<Arc<Ready>>) -> Route {
        let target = Target { place: place(at), ready };
        Route { worker: worker.clone(), target, site: Site::default(), rules: self.rules.of(worker) }
    }
}

fn place(target: config::Target) -> Place {
    match target {
        config::Target::Address(address) => Place::Address(address),
        config::Target::Port(port) => Place::Port(port),
    }
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

/// The first problem that somebody would suffer from; who wants them all asks for them.
fn one_line(problems: &[Problem], shown: &str) -> String {
    let first = problems.iter().find(|problem| !problem.costs_nobody).or(problems.first());
    let first = first.map(first_line).unwrap_or_default();
    match problems.len() {
        0 | 1 => first,
        more => format!("{first} (and {} more: drowse check-config {shown})", more - 1),
    }
}

fn first_line(problem: &Problem) -> String {
    problem.to_string().lines().next().unwrap_or_default().to_owned()
}
