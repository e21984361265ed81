//! What the engine says unasked.
//!
//! Its events only tell where to look: what is told onward is what a look then shows, and only if that is news to
//! whoever asked last. So an end that a stop of ours brought about is not told twice, and neither is a pause of ours.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bollard::Docker;
use bollard::models::{EventMessage, EventMessageTypeEnum};
use bollard::query_parameters::EventsOptionsBuilder;
use drowse_core::Timestamp;
use drowse_core::worker::Power;
use futures_util::StreamExt as _;

use super::Inside;
use super::engine::Line;
use super::entry::Entry;
use super::look::Look;
use crate::driver::Error;
use crate::hint::Hint;

/// How long an engine that does not answer is left alone.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often a look that failed is tried again; after that, a check finds it.
const LOOKS: u32 = 5;

/// Listens for as long as there is a driver.
pub(super) fn listen(inside: &Arc<Inside>) {
    let (line, since, weak) = (inside.engine.line(), inside.now(), Arc::downgrade(inside));
    inside.engine.spawn(async move { listen_to(&line, since, &weak).await });
}

async fn listen_to(line: &Arc<Line>, mut since: Timestamp, inside: &Weak<Inside>) {
    let mut pause = FIRST_PAUSE;
    let mut is_first = true;
    while inside.strong_count() > 0 {
        if let Ok(docker) = line.client().await {
            // Whatever happened while nobody listened: the engine remembers only its latest events, and none of
            // those before it was restarted.
            if !std::mem::take(&mut is_first) {
                let known = inside.upgrade().map(|inside| inside.entries().values().cloned().collect());
                known.into_iter().flat_map(|known: Vec<Arc<Entry>>| known).for_each(|entry| entry.let_go());
                tell(inside, Hint::Lost);
            }
            let mut events = std::pin::pin!(events(&docker, since));
            while let Some(Ok(event)) = events.next().await {
                pause = FIRST_PAUSE;
                if let Some(at) = event.time_nano {
                    since = Timestamp::from_micros(at / 1_000);
                }
                let Some(inside) = inside.upgrade() else { return };
                heed(&inside, &event);
            }
            line.begin_afresh();
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn events(
    docker: &Docker,
    since: Timestamp,
) -> impl futures_util::Stream<Item = Result<EventMessage, bollard::errors::Error>> + use<> {
    let filters = HashMap::from([
        ("type", vec!["container", "network"]),
        (
            "event",
            vec!["create", "start", "die", "pause", "unpause", "rename", "destroy", "connect", "disconnect"],
        ),
    ]);
    let micros = since.as_micros();
    let since = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    docker.events(Some(EventsOptionsBuilder::default().since(&since).filters(&filters).build()))
}

fn heed(inside: &Arc<Inside>, event: &EventMessage) {
    let Some(actor) = &event.actor else { return };
    let entries: Vec<Arc<Entry>> = inside.entries().values().cloned().collect();
    if event.typ == Some(EventMessageTypeEnum::NETWORK) {
        // Somebody moves a container that runs: it keeps its first process and not its address.
        let id = actor.attributes.as_ref().and_then(|attributes| attributes.get("container"));
        let moved = entries.iter().filter(|entry| id.is_some_and(|id| entry.is_about(id)));
        return moved.for_each(|entry| entry.let_go());
    }
    let Some(id) = actor.id.as_deref() else { return };
    let mut is_known = false;
    let comes_or_goes = matches!(event.action.as_deref(), Some("create" | "destroy"));
    for entry in &entries {
        let is_about = entry.is_about(id);
        is_known |= is_about;
        if is_about || entry.may_become() || (comes_or_goes && entry.is_labelled()) {
            examine(inside, entry);
        }
    }
    // A container that is nobody's yet, or is no more, or starts with another address.
    if !is_known || matches!(event.action.as_deref(), Some("start" | "destroy")) {
        inside.hints.push(Hint::Came);
    }
}

/// Looks at a worker, and tells if it is not as it was last seen.
pub(super) fn examine(inside: &Arc<Inside>, entry: &Arc<Entry>) {
    let (weak, entry) = (Arc::downgrade(inside), Arc::clone(entry));
    inside.engine.spawn(async move {
        for _ in 0..LOOKS {
            let Some(inside) = weak.upgrade() else { return };
            // Whoever acts on it looks afterwards, and answers with what is so then.
            if entry.acting.try_lock().is_err() {
                return;
            }
            match entry.peek(&inside).await {
                Ok(look) => return tell_of(&inside, &entry, &look),
                // Its label means several by now: whoever looks after it has to hear that.
                Err(Error::Refused { .. }) => {
                    return inside.hints.push(Hint::Changed { worker: entry.worker.clone() });
                }
                Err(Error::Gone | Error::Unsupported { .. }) => return,
                Err(Error::Unreachable { .. } | Error::Denied { .. } | Error::TimedOut { .. }) => {}
            }
            drop(inside);
            tokio::time::sleep(FIRST_PAUSE).await;
        }
    });
}

/// The same once nobody acts on it any more.
pub(super) fn examine_in_turn(inside: &Arc<Inside>, entry: &Arc<Entry>) {
    let (weak, entry) = (Arc::downgrade(inside), Arc::clone(entry));
    inside.engine.spawn(async move {
        drop(entry.acting.lock().await);
        if let Some(inside) = weak.upgrade() {
            examine(&inside, &entry);
        }
    });
}

/// Tells what a look has shown, if that is news; unless somebody acts on it, who looks afterwards.
pub(super) fn tell_of(inside: &Inside, entry: &Entry, look: &Look) {
    if entry.acting.try_lock().is_ok()
        && let Some(hint) = news(entry, look)
    {
        inside.hints.push(hint);
    }
}

fn news(entry: &Entry, look: &Look) -> Option<Hint> {
    let worker = entry.worker.clone();
    let last = entry.last()?;
    let (before, now) = (&last.seen, &look.seen);
    if before.power == now.power && before.boot == now.boot {
        return None;
    }
    match (now.power, &now.boot, now.exit_code) {
        (Power::Stopped, Some(boot), Some(code)) if before.boot.as_ref() == Some(boot) => {
            entry.tell(boot).then(|| Hint::Exited { worker, boot: boot.clone(), code: Some(code) })
        }
        _ => Some(Hint::Changed { worker }),
    }
}

fn tell(inside: &Weak<Inside>, hint: Hint) {
    if let Some(inside) = inside.upgrade() {
        inside.hints.push(hint);
    }
}
