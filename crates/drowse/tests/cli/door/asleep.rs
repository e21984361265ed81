//! Programs as workers, and the proof that they slept when somebody came.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};

use super::super::up::running::{Folder, Up, free_port, until};

/// A worker that is some program.
pub(super) struct Sleeper<'a> {
    folder: &'a Folder,
    id: &'a str,
    /// Where people come to.
    pub(super) door: SocketAddr,
}

/// A loopback address that no other test has: where many ports are needed, free ones need not be looked for.
pub(super) fn own_host() -> Ipv4Addr {
    // Below a hundred are the stands that survive.
    static NEXT: AtomicU8 = AtomicU8::new(100);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, NEXT.fetch_add(1, Ordering::Relaxed), high, low)
}

impl<'a> Sleeper<'a> {
    /// Lists it in the configuration. `{port}` or `{target}` in its command is where it is to answer.
    pub(super) fn list(folder: &'a Folder, id: &'a str, command: &[&str], more: &str) -> Self {
        Self::list_at(
            folder,
            id,
            command,
            [free_port(), free_port()].map(|port| ([127, 0, 0, 1], port).into()),
            more,
        )
    }

    /// The same with a door and a target of one's own choice.
    pub(super) fn list_at(
        folder: &'a Folder,
        id: &'a str,
        command: &[&str],
        [door, target]: [SocketAddr; 2],
        more: &str,
    ) -> Self {
        let fill = |word: &&str| {
            word.replace("{port}", &target.port().to_string()).replace("{target}", &target.to_string())
        };
        let command: Vec<String> = command.iter().map(fill).collect();
        // An array of texts is written alike in both.
        let command = serde_json::to_string(&command).expect("texts");
        folder.append(&format!(
            "[[worker]]\nid = \"{id}\"\ndriver = \"process\"\ncommand = {command}\n\
             listen = \"{door}\"\ntarget = \"{target}\"\n{more}\n"
        ));
        Self { folder, id, door }
    }

    pub(super) fn status(&self, up: &Up) -> String {
        let answer = self.folder.api(up).send("GET", &format!("/api/v1/workers/{}", self.id), "");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let worker: serde_json::Value = serde_json::from_str(body).expect("JSON");
        worker["status"].as_str().expect("a status").to_owned()
    }

    /// Waits until it sleeps.
    #[track_caller]
    pub(super) fn falls_asleep(&self, up: &mut Up) {
        until(&format!("{} sleeps", self.id), || self.status(up) == "paused");
        // What was told so far is about the time before.
        up.wait_for(&format!("{} paused: idle", self.id));
    }

    /// Waits until it has been told that a connection has woken it.
    #[track_caller]
    pub(super) fn was_woken(&self, up: &mut Up) {
        up.wait_for(&format!("{} running again: wake, by connection", self.id));
    }
}
