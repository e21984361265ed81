//! What happens, a line for each entry of the journal, on stderr.

use std::collections::HashMap;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::journal::Entry;
use drowse_core::reason::PauseReason;
use drowse_core::units::Human;
use drowse_server::Fleet;
use drowse_server::fleet::EventFilterOwned;
use drowse_store::StoredEvent;

use crate::output;

/// How many entries are read at once.
const PAGE: usize = 200;

/// A reader of the journal.
pub(super) struct News {
    fleet: Fleet,
    after: i64,
    since: Timestamp,
    idle_timeouts: HashMap<WorkerId, String>,
}

impl News {
    /// What comes from now on.
    pub(super) async fn new(fleet: Fleet) -> anyhow::Result<Self> {
        let after = fleet.newest_event().await?.seq;
        let since = fleet.clock().now();
        Ok(Self { fleet, after, since, idle_timeouts: HashMap::new() })
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
        let worker = event.worker.as_ref()?;
        let entry = serde_json::from_value::<Entry>(event.doc.clone()).ok()?;
        let text = match &entry {
            // Steps on the way: what comes of them follows.
            Entry::SleepIntended { .. } | Entry::WakeIntended { .. } | Entry::TerminateIntended { .. } => {
                return None;
            }
            Entry::Paused { reason: PauseReason::IdleTimeout, .. } => {
                format!("paused: idle for {}; a connection wakes it", self.idle_timeout(worker).await)
            }
            Entry::Paused { .. }
            | Entry::Stopped { .. }
            | Entry::GraceExceeded
            | Entry::Resumed { .. }
            | Entry::Started
            | Entry::Undone { .. }
            | Entry::HookVetoed { .. }
            | Entry::External { .. }
            | Entry::Exited { .. }
            | Entry::Draining { .. }
            | Entry::DrainEnded { .. }
            | Entry::Terminated
            | Entry::Found { .. }
            | Entry::DriverRefused { .. }
            | Entry::Failed { .. }
            | Entry::Unknown { .. } => entry.to_string(),
        };
        let seconds = event.at.since(self.since).as_secs();
        Some(format!("{:02}:{:02} {worker} {text}\n", seconds / 60, seconds % 60))
    }

    /// Asked once for each worker: it is only for show, and a fleet that falls asleep at once is large.
    async fn idle_timeout(&mut self, worker: &WorkerId) -> String {
        if let Some(known) = self.idle_timeouts.get(worker) {
            return known.clone();
        }
        let timeout = self.fleet.idle_status(worker).await.ok().and_then(|status| status.idle_timeout);
        let text =
            timeout.map_or_else(|| "its idle timeout".to_owned(), |timeout| Human(timeout).to_string());
        self.idle_timeouts.insert(worker.clone(), text.clone());
        text
    }
}
