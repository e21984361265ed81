//! Policy and exemptions at run time: validated, stored with their author, journalled, and in force at once.

use std::sync::Arc;

use drowse_core::Timestamp;
use drowse_core::id::WorkerId;
use drowse_core::policy::exemption::{Exemption, Expiry};
use drowse_core::policy::{Conflict, Key, Level, Policy, PolicyLayer, Selectors, Source, Value, conflicts};
use drowse_core::reason::SleepMode;
use drowse_core::worker::{Terms, Worker};
use drowse_store::{Lane, Listing, NewEvent, PolicyValue, Tx, View};
use serde_json::json;

use super::{ControlError, Fleet};
use crate::config::reads_telemetry;
use crate::discover::is_by_label;
use crate::policies::{Book, FileLayers};

/// A change of one value of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyChange {
    /// How specific the layer is; not `built-in`.
    pub level: Level,
    /// Which region, type, group, owner or worker; `None` for the whole fleet.
    pub name: Option<String>,
    /// Which key.
    pub key: Key,
    /// `None`: what was changed at run time is taken back.
    pub value: Option<Value>,
    /// Who changes it.
    pub by: String,
}

/// What changes of policy came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyApplied {
    /// The epoch from which on they count.
    pub epoch: u64,
    /// How many workers they concern.
    pub workers: u64,
}

/// Everything that policy says.
#[derive(Clone, Debug)]
pub struct PolicyView {
    /// Grows with every change.
    pub epoch: u64,
    /// Every layer, from the file, the run time and the environment.
    pub layers: Vec<PolicyLayer>,
    /// What was changed at run time.
    pub changed: Vec<PolicyValue>,
}

/// An exemption and who granted it.
#[derive(Clone, Debug, PartialEq)]
pub struct Granting {
    /// `None`: it stands in the file, and can be taken back only there.
    pub id: Option<i64>,
    pub exemption: Exemption,
    /// Who entered it.
    pub author: Option<String>,
    /// When.
    pub at: Option<Timestamp>,
}

/// How many workers are read at once when a change is validated.
const PAGE: usize = 1_000;

/// How many workers are nudged in one transaction after a change.
const NUDGED_AT_ONCE: usize = 200;

impl Fleet {
    /// Everything that policy says.
    pub async fn policies(&self) -> Result<PolicyView, ControlError> {
        let book = self.book().await?;
        Ok(PolicyView {
            epoch: book.epoch(),
            layers: book.layers().layers().to_vec(),
            changed: book.values.clone(),
        })
    }

    /// Sets a value, or takes back what was set. Refused where the environment pins it or where it does not go
    /// together with the rest of some worker's policy.
    pub async fn set_policy(&self, change: PolicyChange) -> Result<u64, ControlError> {
        Ok(self.set_policies(vec![change], String::new()).await?.epoch)
    }

    /// Makes several changes: all of them or none. They are judged together, so that two values which only go
    /// with each other can be changed at all.
    pub async fn set_policies(
        &self,
        changes: Vec<PolicyChange>,
        message: String,
    ) -> Result<PolicyApplied, ControlError> {
        let shared = Arc::clone(&self.0);
        let applied = self
            .0
            .db
            .tx("policy", Lane::Ordinary, move |tx| {
                let book = shared.policies.book(tx)?;
                apply(tx, &book, &changes, &message, shared.clock.now())
            })
            .await?;
        self.apply_policy();
        Ok(applied)
    }

    /// Lets Drowse act on a worker or only observe it: `auto_pause` of the worker layer.
    pub async fn set_idle_detection(
        &self,
        id: &WorkerId,
        is_enabled: bool,
        by: &str,
    ) -> Result<Arc<crate::policies::Resolved>, ControlError> {
        self.get(id).await?;
        self.set_policy(PolicyChange {
            level: Level::Worker,
            name: Some(id.to_string()),
            key: Key::AutoPause,
            value: Some(Value::Flag(is_enabled)),
            by: by.to_owned(),
        })
        .await?;
        Ok(self.get(id).await?.policy)
    }

    /// The exemptions of the file and those that were granted at run time.
    pub async fn exemptions(&self) -> Result<Vec<Granting>, ControlError> {
        let book = self.book().await?;
        let listed = book.file_exemptions().iter().map(|exemption| Granting {
            id: None,
            exemption: exemption.clone(),
            author: None,
            at: None,
        });
        let granted = book.granted.iter().map(|granted| Granting {
            id: Some(granted.id),
            exemption: granted.exemption.clone(),
            author: Some(granted.author.clone()),
            at: Some(granted.at),
        });
        Ok(listed.chain(granted).collect())
    }

    /// Grants an exemption; answers with its id.
    pub async fn add_exemption(&self, exemption: Exemption, by: &str) -> Result<i64, ControlError> {
        let now = self.0.clock.now();
        if matches!(exemption.expires_on, Expiry::At(end) if end <= now) {
            return Err(ControlError::invalid("expires_on", "it is over already"));
        }
        let by = by.to_owned();
        let id = self
            .0
            .db
            .tx("exemption", Lane::Ordinary, move |tx| {
                let id = tx.add_exemption(&exemption, &by, now)?;
                journal(tx, "exemption.granted", json!({ "id": id, "by": by, "exemption": exemption }), now);
                Ok::<_, ControlError>(id)
            })
            .await?;
        self.apply_policy();
        Ok(id)
    }

    /// Takes an exemption back.
    pub async fn remove_exemption(&self, id: i64, by: &str) -> Result<Exemption, ControlError> {
        let (by, now) = (by.to_owned(), self.0.clock.now());
        let removed = self
            .0
            .db
            .tx("exemption", Lane::Ordinary, move |tx| {
                let removed = tx
                    .remove_exemption(id)?
                    .ok_or_else(|| ControlError::NoSuch { what: format!("exemption {id}") })?;
                journal(tx, "exemption.removed", json!({ "id": id, "by": by }), now);
                Ok::<_, ControlError>(removed.exemption)
            })
            .await?;
        self.apply_policy();
        Ok(removed)
    }

    /// Another file counts from now on.
    pub async fn reload(&self, file: FileLayers, by: &str) -> Result<u64, ControlError> {
        let (shared, by) = (Arc::clone(&self.0), by.to_owned());
        let epoch = self
            .0
            .db
            .tx("reload", Lane::Ordinary, move |tx| {
                let epoch = tx.bump_policy_epoch()?;
                // Inside: whoever sees the new epoch sees the new file.
                shared.policies.replace_file(file);
                journal(tx, "policy.reloaded", json!({ "by": by }), shared.clock.now());
                Ok::<_, ControlError>(epoch)
            })
            .await?;
        self.apply_policy();
        Ok(epoch)
    }

    async fn book(&self) -> Result<Arc<Book>, ControlError> {
        let shared = Arc::clone(&self.0);
        self.0.db.read(move |view| Ok(shared.policies.book(view)?)).await
    }

    /// Has everybody judged again who was last judged under another policy. In the background, a batch at a
    /// time, so that a change for a hundred thousand workers keeps nobody waiting.
    pub(crate) fn apply_policy(&self) {
        self.0.untold.policy_changed();
        self.0.notices.journal_advanced();
        let shared = Arc::clone(&self.0);
        self.0.tasks.spawn(async move {
            let mut after: Option<WorkerId> = None;
            loop {
                let clock = shared.clock.clone();
                let nudge = move |tx: &Tx<'_>| tx.nudge_outdated(after.as_ref(), clock.now(), NUDGED_AT_ONCE);
                let nudged = shared.db.tx("nudge", Lane::Ordinary, nudge).await;
                shared.queue.nudge();
                // Whoever is not nudged for want of the store is judged at the next check all the same.
                match nudged {
                    Ok(Some(last)) => after = Some(last),
                    Ok(None) | Err(_) => return,
                }
            }
        });
    }
}

/// Checks changes and writes them. Whatever is locked by the transaction beforehand is a worker.
pub(super) fn apply(
    tx: &Tx<'_>,
    book: &Book,
    changes: &[PolicyChange],
    message: &str,
    now: Timestamp,
) -> Result<PolicyApplied, ControlError> {
    let changes: Vec<PolicyChange> =
        changes.iter().filter(|change| !is_overruled(book, change)).cloned().collect();
    for change in &changes {
        check_shape(change)?;
        check_pinned(book, change)?;
    }
    let workers = check_workers(tx, book, &changes, now)?;
    let mut epoch = book.epoch();
    for change in &changes {
        epoch = write(tx, change, message, now)?;
    }
    Ok(PolicyApplied { epoch, workers })
}

/// What a person has set counts before a label, also if it was set since the labels were read.
fn is_overruled(book: &Book, change: &PolicyChange) -> bool {
    is_by_label(&change.by)
        && book.values.iter().any(|value| {
            value.level == change.level
                && value.name == change.name
                && value.key == change.key.name()
                && !is_by_label(&value.author)
        })
}

fn check_shape(change: &PolicyChange) -> Result<(), ControlError> {
    let needs_name = match change.level {
        Level::BuiltIn => return Err(ControlError::invalid("level", "what is built in cannot be changed")),
        Level::Global => false,
        Level::Region | Level::Type | Level::Group | Level::Owner | Level::Worker => true,
    };
    if needs_name != change.name.is_some() {
        let message = if needs_name { "which one is not said" } else { "the global layer has no name" };
        return Err(ControlError::invalid("name", message));
    }
    match &change.value {
        Some(value) if !value.is_of(change.key.kind()) => Err(ControlError::invalid(
            &change.key.name(),
            format!("expected {}", change.key.kind().expected()),
        )),
        Some(_) | None => Ok(()),
    }
}

fn check_pinned(book: &Book, change: &PolicyChange) -> Result<(), ControlError> {
    let pinned = book.layers().layers().iter().find(|layer| {
        layer.source == Source::Environment
            && layer.level == change.level
            && layer.values.contains_key(&change.key)
    });
    match pinned {
        Some(layer) => {
            let by = layer.author.clone().unwrap_or_else(|| "the environment".to_owned());
            Err(ControlError::Pinned { key: change.key, by })
        }
        None => Ok(()),
    }
}

/// Two layers that never met on paper meet in a worker: the changes are tried on every worker that they
/// concern; how many those are.
fn check_workers(
    view: &View<'_>,
    book: &Book,
    changes: &[PolicyChange],
    now: Timestamp,
) -> Result<u64, ControlError> {
    let after = changed_book(book, changes, now)?;
    let layer =
        |change: &PolicyChange| PolicyLayer::new(change.level, change.name.as_deref(), Source::RunTime);
    let layers: Vec<_> = changes.iter().map(|change| (layer(change), change)).collect();
    let mut listing = Listing { limit: PAGE, ..Listing::default() };
    let mut found = new_conflicts(book, &after, &Selectors::default());
    let mut seen = vec![false; changes.len()];
    let mut workers = 0;
    loop {
        let page = view.workers(&listing)?;
        for record in &page {
            let worker = record.without_terms();
            let mut is_concerned = false;
            for ((layer, change), seen) in layers.iter().zip(&mut seen) {
                if worker.selectors.select(layer) {
                    (is_concerned, *seen) = (true, true);
                    check_sleep(change, worker, &after.of(&worker.selectors).policy)?;
                }
            }
            if is_concerned {
                workers += 1;
                found.extend(new_conflicts(book, &after, &worker.selectors));
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE && found.is_empty() => listing.after = Some(last.id().clone()),
            Some(_) | None => break,
        }
    }
    let nobody = changes
        .iter()
        .zip(seen)
        .find(|(change, seen)| change.level == Level::Worker && change.value.is_some() && !seen);
    if let Some((change, _)) = nobody {
        let name = change.name.clone().unwrap_or_default();
        return Err(ControlError::NoSuch { what: format!("worker {name}") });
    }
    if found.is_empty() { Ok(workers) } else { Err(ControlError::Conflicting { conflicts: found }) }
}

/// At the worker layer, a way to sleep that its driver does not know is a slip; elsewhere it becomes `stop`.
fn check_sleep(change: &PolicyChange, worker: &Worker, policy: &Policy) -> Result<(), ControlError> {
    let is_replaced = Terms::of(policy, worker.can).sleep_replaced;
    match &change.value {
        Some(Value::Sleep(mode)) if change.level == Level::Worker && is_replaced => {
            let message = format!("the {} driver cannot {}", worker.driver, mode.code());
            debug_assert_ne!(*mode, SleepMode::Stop, "every driver can stop");
            Err(ControlError::invalid("sleep", message))
        }
        Some(_) | None => Ok(()),
    }
}

/// Conflicts that were there before are not the fault of this change.
fn new_conflicts(before: &Book, after: &Book, selectors: &Selectors) -> Vec<Conflict> {
    let of = |book: &Book| {
        let resolved = book.of(selectors);
        conflicts(&resolved.policy, &resolved.provenance, reads_telemetry(selectors))
    };
    let old = of(before);
    of(after)
        .into_iter()
        .filter(|conflict| !old.iter().any(|old| old.key == conflict.key && old.with == conflict.with))
        .collect()
}

fn changed_book(book: &Book, changes: &[PolicyChange], now: Timestamp) -> Result<Book, ControlError> {
    let mut values = book.values.clone();
    for change in changes {
        let key = change.key.name();
        values.retain(|value| (value.level, &value.name, &value.key) != (change.level, &change.name, &key));
        values.extend(stored(change, now)?);
    }
    Ok(Book::new(book.epoch(), book.file(), values, book.granted.clone()))
}

fn stored(change: &PolicyChange, now: Timestamp) -> Result<Option<PolicyValue>, ControlError> {
    let Some(value) = &change.value else { return Ok(None) };
    let value = serde_json::to_value(value)
        .map_err(|error| ControlError::invalid(&change.key.name(), error.to_string()))?;
    Ok(Some(PolicyValue {
        level: change.level,
        name: change.name.clone(),
        key: change.key.name(),
        value,
        author: change.by.clone(),
        at: now,
    }))
}

fn write(tx: &Tx<'_>, change: &PolicyChange, message: &str, now: Timestamp) -> Result<u64, ControlError> {
    let epoch = if let Some(value) = stored(change, now)? {
        tx.set_policy_value(&value)?
    } else {
        let key = change.key.name();
        if !tx.reset_policy_value(change.level, change.name.as_deref(), &key)? {
            return Err(ControlError::NoSuch { what: format!("run-time value of {key} in that layer") });
        }
        tx.policy_epoch()?
    };
    let doc = json!({
        "level": change.level, "name": change.name, "key": change.key, "value": change.value, "by": change.by,
        "message": message,
    });
    journal(tx, "policy.changed", doc, now);
    Ok(epoch)
}

pub(super) fn journal(tx: &Tx<'_>, kind: &str, doc: serde_json::Value, now: Timestamp) {
    tx.append(NewEvent { at: now, worker: None, kind: kind.to_owned(), doc });
}
