//! A server that runs, and a caller that believes nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use drowse_core::brake::BrakeTerms;
use drowse_core::policy::{Key, Level, PolicyBook, PolicyLayer, Source, Value as Setting};
use drowse_drivers::Driver;
use drowse_drivers::sim::Sim;
use drowse_server::crash::CrashPoints;
use drowse_server::http::{AllDoors, ApiParts, ApiState, Limits, serve};
use drowse_server::policies::FileLayers;
use drowse_server::tasks::{Blocking, Tasks};
use drowse_server::{CHECKS_AT_ONCE, Chance, Clock, Drivers, Fleet, Parts, Reconciler};
use drowse_store::{Epoch, Options, Store};
use drowse_wire::client::Client;
use drowse_wire::place::Place;
use drowse_wire::v1::{CreateToken, Role};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use ureq::http::{HeaderMap, Request};

use crate::schema;

/// So many looks at something that should become so; each is a request, so this is seconds.
const PATIENCE: usize = 5_000;

pub(crate) struct Rig {
    pub(crate) runtime: Runtime,
    pub(crate) state: ApiState,
    pub(crate) address: SocketAddr,
    pub(crate) admin: String,
    pub(crate) folder: tempfile::TempDir,
    agent: ureq::Agent,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// It is this problem and nothing else.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{self:?}");
        assert_eq!(problem["status"], status, "{self:?}");
        problem
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        if self.text.is_empty() { Value::Null } else { self.json() }
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(Limits {
            requests_per_second: 1_000_000,
            burst: 1_000_000,
            heartbeat: Duration::from_millis(50),
            ..Limits::default()
        })
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open("sqlite://drowse.db", folder.path(), &Options::new(Epoch(0xfeed))).unwrap();
        let clock = Clock::system();
        let sim = Arc::new(Sim::new(1, clock.now()));
        let tasks = Tasks::new(Blocking::Threads);
        let global = PolicyLayer::new(Level::Global, None, Source::File)
            .with(Key::IdleTimeout, Setting::Duration(Duration::from_hours(1)));
        let fleet = Fleet::new(Parts {
            store,
            drivers: Drivers::default().with(Arc::clone(&sim) as Arc<dyn Driver>),
            clock: clock.clone(),
            tasks: tasks.clone(),
            crash: CrashPoints::default(),
            replica: "one".to_owned(),
            former: Vec::new(),
            file: FileLayers { policy: PolicyBook::new(vec![global]), exemptions: Vec::new() },
            brake: BrakeTerms::default(),
            checks_at_once: CHECKS_AT_ONCE,
            head_starts: None,
        });
        let (scratch, doors) = (folder.path().to_owned(), AllDoors::none());
        let parts = ApiParts { fleet, chance: Chance::system(), scratch, doors, limits };
        let state = ApiState::new(parts);
        let admin = new_token(&runtime, &state, Role::Admin, None);
        let (listener, address) = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            (listener, address)
        });
        let reconciler = Reconciler::new(state.fleet());
        runtime.block_on(reconciler.start()).unwrap();
        let guard = runtime.enter();
        tasks.spawn(serve(listener, state.clone(), std::future::pending()));
        tasks.spawn(async move { reconciler.run(std::future::pending()).await });
        tasks.spawn(async move {
            // The world's time is the machine's here.
            loop {
                sim.tick(clock.now());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        drop(guard);
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(Duration::from_secs(30)))
            .build();
        Self { runtime, state, address, admin, folder, agent: agent.into() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Place { url: self.url(), token: Some(self.admin.clone()) })
    }

    pub(crate) fn token(&self, role: Role, worker: Option<&str>) -> String {
        new_token(&self.runtime, &self.state, role, worker)
    }

    /// Sends anything and holds the answer against the document.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.url()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = if body.is_empty() {
            self.agent.run(request.body(()).unwrap())
        } else {
            self.agent.run(request.body(body).unwrap())
        };
        let mut response = sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let is_stream =
            response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let answer = Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            // A stream has no end to wait for.
            text: if is_stream { String::new() } else { text(&mut response) },
        };
        schema::check(method, path, &answer);
        answer
    }

    /// Asks as somebody.
    pub(crate) fn ask(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.send(method, path, if body.is_empty() { &headers[..1] } else { &headers }, &body)
    }

    /// Asks as the administrator.
    pub(crate) fn admin(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.ask(&self.admin, method, path, body)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        self.admin("GET", path, &Value::Null).is(200)
    }

    /// Registers a worker and waits until it runs.
    pub(crate) fn worker(&self, id: &str) {
        self.registered(&json!({ "id": id, "driver": "sim", "region": "us-east-1", "owner": "alice" }));
    }

    pub(crate) fn registered(&self, new: &Value) {
        let worker = self.admin("POST", "/api/v1/workers", new).is(201);
        self.reaches(worker["id"].as_str().unwrap(), "running");
    }

    /// Waits until a worker has a status.
    #[track_caller]
    pub(crate) fn reaches(&self, id: &str, status: &str) {
        let mut last = Value::Null;
        for _ in 0..PATIENCE {
            last = self.get(&format!("/api/v1/workers/{id}"))["status"].take();
            if last == status {
                return;
            }
        }
        panic!("{id} is {last} and not {status}");
    }

    /// The id of the newest event.
    pub(crate) fn newest(&self) -> String {
        self.runtime.block_on(self.state.fleet().newest_event()).unwrap().to_string()
    }
}

fn text(response: &mut ureq::http::Response<ureq::Body>) -> String {
    let bytes = response.body_mut().read_to_vec().unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn new_token(runtime: &Runtime, state: &ApiState, role: Role, worker: Option<&str>) -> String {
    let new = CreateToken {
        name: format!("the {role}"),
        role,
        worker_id: worker.map(str::to_owned),
        expires_after: None,
    };
    runtime.block_on(state.create_token(new, "test")).unwrap()
}
