//! What happens, a line for each entry of the journal, on stderr.

use std::collections::HashMap;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::journal::Entry;
use drowse_core::reason::PauseReason;
use drowse_core::units::Human;
use drowse_server::fleet::EventFilterOwned;
use drowse_server::{Fleet, sentence};
use drowse_store::StoredEvent;

use crate::output;

/// How many entries are read at once.
const PAGE: usize = 200;

/// A reader of the journal.
pub(super) struct News {
    fleet: Fleet,
    after: i64,
    since: Timestamp,
    idle: HashMap<WorkerId, String>,
}

impl News {
    /// What comes from now on.
    pub(super) async fn new(fleet: Fleet) -> anyhow::Result<Self> {
        let after = fleet.newest_event().await?.seq;
        let since = fleet.clock().now();
        Ok(Self { fleet, after, since, idle: HashMap::new() })
    }

    /// Tells until it is dropped.
    pub(super) async fn follow(&mut self) {
        let mut grown = self.fleet.subscribe();
        loop {
            self.catch_up().await;
            if grown.changed().await.is_err() {
                return;
            }
        }
    }

    /// Tells what has not been told.
    pub(super) async fn catch_up(&mut self) {
        // A store that does not answer has nothing new to tell.
        while let Ok(events) = self.fleet.events(self.after, PAGE, EventFilterOwned::default()).await {
            for stored in &events {
                self.after = stored.seq;
                if let Some(line) = self.line(stored).await {
                    output::talk(&line);
                }
            }
            if events.len() < PAGE {
                return;
            }
        }
    }

    async fn line(&mut self, stored: &StoredEvent) -> Option<String> {
        let event = &stored.event;
        let Some(worker) = event.worker.as_ref() else {
            return event.kind.starts_with("brake.").then(|| {
                self.at(
                    event.at,
                    &format!("{}; see `drowse brake status`", sentence(&event.kind, &event.doc)),
                )
            });
        };
        // Nobody listed them, so nobody knows of them yet.
        let is_found = event.doc.get("by").and_then(serde_json::Value::as_str) == Some("discovery");
        if event.kind == "worker.registered" && is_found {
            let said = sentence(&event.kind, &event.doc);
            return Some(self.at(event.at, &format!("{worker} {said}")));
        }
        let entry = serde_json::from_value::<Entry>(event.doc.clone()).ok()?;
        let text = match &entry {
            // Steps on the way: what comes of them follows.
            Entry::SleepIntended { .. } | Entry::WakeIntended { .. } | Entry::TerminateIntended { .. } => {
                return None;
            }
            Entry::Paused { reason: PauseReason::IdleTimeout, .. } => {
                format!("paused: {}", self.why_idle(worker).await)
            }
            Entry::Paused { .. }
            | Entry::Stopped { .. }
            | Entry::GraceExceeded
            | Entry::Resumed { .. }
            | Entry::Started
            | Entry::Undone { .. }
            | Entry::HookVetoed { .. }
            | Entry::VetoAlert { .. }
            | Entry::External { .. }
            | Entry::Exited { .. }
            | Entry::Draining { .. }
            | Entry::DrainEnded { .. }
            | Entry::TerminateUndone { .. }
            | Entry::Terminated
            | Entry::Found { .. }
            | Entry::DriverRefused { .. }
            | Entry::Failed { .. }
            | Entry::Unknown { .. } => entry.to_string(),
        };
        Some(self.at(event.at, &format!("{worker} {text}")))
    }

    fn at(&self, at: Timestamp, text: &str) -> String {
        let seconds = at.since(self.since).as_secs();
        format!("{:02}:{:02} {}\n", seconds / 60, seconds % 60, output::line(text))
    }

    /// Asked once for each worker: it is only for show, and a fleet that falls asleep at once is large.
    async fn why_idle(&mut self, worker: &WorkerId) -> String {
        if let Some(known) = self.idle.get(worker) {
            return known.clone();
        }
        let Ok(card) = self.fleet.get(worker).await else { return "idle".to_owned() };
        let timeout = card.policy.policy.idle_timeout;
        let idle =
            timeout.map_or_else(|| "idle".to_owned(), |timeout| format!("idle for {}", Human(timeout)));
        let text = if card.worker.is_routed { format!("{idle}; a connection wakes it") } else { idle };
        self.idle.insert(worker.clone(), text.clone());
        text
    }
}
