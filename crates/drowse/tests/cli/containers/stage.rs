//! An engine, containers that do this or that, and a Drowse that looks after them.

use std::fmt::Write as _;

use super::engine::{Engine, IMAGE};
use crate::up::running::{Api, Folder, Up, until};

/// Sleeps, and hears SIGTERM.
pub(crate) const SLEEPS: &str = "sleep 100000";
/// What makes one sleep by being stopped.
pub(crate) const COMPOSE: (&str, &str) = ("com.docker.compose.project", "shop");
/// Uses a processor.
pub(crate) const BURNS: &str = "while :; do :; done";

/// What a test is played on. Drowse ends first, then the containers, then the engine.
pub(crate) struct Stage {
    pub(crate) folder: Folder,
    pub(crate) engine: Engine,
}

impl Stage {
    /// With discovery, and this in the configuration too.
    pub(crate) fn new(config: &str) -> Self {
        let (folder, engine) = (Folder::new(), Engine::start());
        let socket = engine.socket();
        folder.append(&format!(
            "{config}\n[driver.docker]\nsocket = \"{}\"\ndiscover = \"label=drowse.enable=true\"\n",
            socket.display()
        ));
        Self { folder, engine }
    }

    /// Writes a members file beside the configuration, or takes it away.
    pub(crate) fn members(&self, group: &str, text: Option<&str>) {
        let folder = self.folder.file("groups");
        std::fs::create_dir_all(&folder).expect("the folder is ours");
        let file = folder.join(format!("{group}.members"));
        match text {
            Some(text) => std::fs::write(file, text).expect("the folder is ours"),
            None => std::fs::remove_file(file).expect("it was there"),
        }
    }

    /// Runs a container that asks to be looked after.
    pub(crate) fn run(&self, name: &str, labels: &[(&str, &str)], script: &str) {
        self.run_with(name, labels, &["--network", "none"], script);
    }

    pub(crate) fn run_with(&self, name: &str, labels: &[(&str, &str)], more: &[&str], script: &str) {
        let labels: Vec<String> = [("drowse.enable", "true")]
            .iter()
            .chain(labels)
            .map(|(label, text)| format!("{label}={text}"))
            .collect();
        let mut run = vec!["run", "--detach", "--init", "--name", name];
        run.extend(labels.iter().flat_map(|label| ["--label", label.as_str()]));
        run.extend(more);
        run.extend([IMAGE, "sh", "-c", script]);
        self.engine.docker(&run);
    }

    /// What the engine says of a container.
    pub(crate) fn state(&self, name: &str) -> String {
        let found = self.engine.try_docker(&["inspect", "--format", "{{.State.Status}}", name]);
        found.unwrap_or_else(|_| "gone".to_owned())
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, name: &str, state: &str) {
        until(&format!("{name} is {state}"), || self.state(name) == state);
    }

    pub(crate) fn up(&self) -> Up {
        self.folder.up(&[])
    }
}

/// The body of an answer of the API.
#[track_caller]
pub(crate) fn json(api: &Api, path: &str) -> serde_json::Value {
    let answer = api.send("GET", &format!("/api/v1/{path}"), "");
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {answer}"))
}

/// The events of a kind, oldest first.
#[track_caller]
pub(crate) fn events(api: &Api, kind: &str) -> Vec<serde_json::Value> {
    let mut path = String::from("events?limit=500");
    let _ = write!(path, "&type={kind}");
    let found = json(api, &path);
    let found = found.as_array().cloned().or_else(|| found["events"].as_array().cloned());
    found.unwrap_or_else(|| panic!("no events in the answer to {path}"))
}
